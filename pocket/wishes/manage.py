"""Folders, moving, copying, counting, sizes: by the shell. Deleting is beyond it, on purpose."""

from pocket.dialogue import Answer, Exchange, Result, World, shell
from pocket.lexicon import EXTENSIONS
from pocket.words import folder, invented, noun, number, path

FOLDER = (
    "{make|create|add|set up|open} {a |a new |the |}{folder|directory|subfolder|dir} {called |named |}$a[ here| for me]",
    "{mkdir|new folder|new directory} $a",
    "{I need|I want|please make} a {folder|directory} {called|named} $a",
)
MOVE = (
    "{rename|move|mv} {the file |}$a {to|into|as} $b",
    "{give {the file |}$a the new name|move {the file |}$a to the place} $b",
)
COPY = (
    "{copy|duplicate|cp} {the file |}$a {to|as|into|under the name} $b",
    "{make|create|keep} a {copy|duplicate|backup} of {the file |}$a {as|called|named|in|under} $b",
)
COUNT = (
    "how many lines {does|has} {the file |}$a {have|got|contain|count}",
    "{count|tell me} the {lines|number of lines} {in|of} {the file |}$a",
    "how {long|many lines} is {the file |}$a",
    "{line count of|number of lines in|lines in} $a",
)
SIZE = (
    "how {big|large} is {the file |the folder |}$a",
    "{what's|what is|tell me|show me} the size of {the file |the folder |}$a",
    "how much {space|room|disk space} does {the file |the folder |}$a {take|use|need|occupy}",
    "{size of|disk usage of} $a",
)


def manage(world: World) -> Exchange:
    random = world.random
    a, b = path(random, EXTENSIONS), path(random, EXTENSIONS)
    match random.randrange(5):
        case 0:
            a = random.choice(
                (folder(random), f"{folder(random)}/{invented(random)}", noun(random))
            )
            return _silent(world, FOLDER, f"mkdir -p {a}", f"Created the folder {a}.", a, b)
        case 1:
            return _silent(world, MOVE, f"mv {a} {b}", f"Moved {a} to {b}.", a, b)
        case 2:
            return _silent(world, COPY, f"cp {a} {b}", f"Copied {a} to {b}.", a, b)
        case 3:
            count = number(random)
            return [
                world.say(COUNT, a=a),
                shell(f"wc -l {a}"),
                Result(f"{count} {a}"),
                Answer(f"{a} has {count} lines."),
            ]
    size = f"{number(random)}{random.choice(('K', 'M', 'G', '', '.0K'))}"
    return [
        world.say(SIZE, a=a),
        shell(f"du -sh {a}"),
        Result(f"{size}\t{a}"),
        Answer(f"{a} takes {size}."),
    ]


def _silent(
    world: World, wordings: tuple[str, ...], command: str, said: str, a: str, b: str
) -> Exchange:
    words = world.say(wordings, a=a, b=b)
    world.path = b if command.startswith(("mv", "cp")) else world.path
    if world.chance(0.1):
        reason = f"{command.split()[0]}: cannot {world.random.choice(('stat', 'access', 'remove', 'create', 'move'))} '{a}': {world.random.choice(('No such file or directory', 'Permission denied', 'File exists'))}"
        return [
            words,
            shell(command),
            Result(f"{reason}\nexit code: 1"),
            Answer(f"It failed: {reason}"),
        ]
    return [
        words,
        shell(command),
        Result(world.random.choice(("", "exit code: 0", "(no output)"))),
        Answer(said),
    ]
