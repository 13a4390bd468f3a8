"""Two steps for one wish, and a second try after an error."""

from difflib import get_close_matches
from random import Random

from pocket.dialogue import Answer, Exchange, Result, User, Value, World, call, quote, shell
from pocket.lexicon import EXTENSIONS
from pocket.sentences import errand, fact, phrase
from pocket.wishes import files, git, hosts, machine, memory, sums
from pocket.wordings import files as files_wordings
from pocket.wordings import git as git_wordings
from pocket.wordings import memory as memory_wordings
from pocket.words import filename, folder, noun, number, path, repo, stem

THEN_READ = (
    ", then show it to me",
    " and read it back",
    ", then read it",
    " and show me the file",
    ", and show the result",
    " and then print it",
    " and open it afterwards",
)
THEN_SEND = (
    ", then send it to me",
    " and send it to me",
    " and send me the file",
    ", then send it",
    ", and give me the file",
)
LIST_READ = (
    "{list|show} {the |all |my |}$kind files {and|, then|, and then} {read|open|show|print} {the first one|the newest|the newest one|the first|the latest one}",
    "{read|show|open}[ me] the {newest|latest|first|most recent} $kind file",
    "{find|look for} {a|the} $kind file and {read it|show it|open it}",
)
EDIT_DIFF = (
    "{replace|change} {'$old'|$old} {with|by|to} {'$new'|$new} in $path and {show|then show|print}[ me] the {diff|changes}",
    "in $path{,|} change {'$old'|$old} to {'$new'|$new}, then {show the diff|diff|show me what changed}",
)
STATUS_COMMIT = (
    "{check|look at|show} the status of $repo and {commit everything|commit all|commit it|commit} {as|with message|with the message} {'$text'|$text}",
    "{check|look} what changed in $repo{, then| and} commit it {as|with message|with the message} {'$text'|$text}",
)
FIND_READ = (
    "{find|search for} the file that {mentions|contains|talks about} {'$word'|$word} and {read|show|open} it",
    "{read|show|open} the file that {mentions|contains|has} {'$word'|$word}[ in it]",
)
BOTH = ("and", "and also", "and then", "as well as", "plus", "and tell me")
SAY = (
    "{say|repeat|echo}[ after me|: | this:]: $text",
    "{repeat|say} {exactly |just |}{'$text'|\"$text\"}",
    "{answer with|reply with|write back|just say|say the words} {'$text'|\"$text\"|$text}",
)


def then_read(world: World) -> Exchange:
    words, step, result = _written(world, THEN_READ)
    text = "\n".join(world.lines)
    return [
        words,
        step,
        result,
        call("read_file", path=world.path),
        Result(text),
        Answer(quote(text)),
    ]


def then_send(world: World) -> Exchange:
    words, step, result = _written(world, THEN_SEND)
    return [
        words,
        step,
        result,
        call("send_file", path=world.path),
        *files.sent(world.random, world.path),
    ]


def _written(world: World, then: tuple[str, ...]) -> Exchange:
    random = world.random
    name, text = path(random), phrase(random)
    world.path, world.lines = name, [text]
    words = User(world.say(files_wordings.WRITE, path=name, text=text).words + random.choice(then))
    return [words, call("write_file", path=name, content=text), files.wrote(random, name, text)[0]]


def list_read(world: World) -> Exchange:
    random = world.random
    kind, extension = files._kind(random)
    names = [path(random, [extension]) for _ in range(random.randint(1, 4))]
    world.path, world.lines = names[0], files.content(random)
    text = "\n".join(world.lines)
    words = world.say(LIST_READ, kind=kind)
    return [
        words,
        call("list_files", pattern=f"*.{extension}"),
        Result("\n".join(names)),
        call("read_file", path=names[0]),
        Result(text),
        Answer(quote(text)),
    ]


def edit_diff(world: World) -> Exchange:
    random = world.random
    world.repo = repo(random)
    name = world.path = f"/repos/{world.repo}/{filename(random)}"
    old, new = files.piece(random), files.piece(random)
    text = f"--- a/{name.split('/')[-1]}\n+++ b/{name.split('/')[-1]}\n@@ -1 +1 @@\n-{old}\n+{new}"
    words = world.say(EDIT_DIFF, path=name, old=old, new=new)
    return [
        words,
        call("edit_file", path=name, old=old, new=new),
        files.edited(random, name, old, new)[0],
        call("git_diff", repo=world.repo),
        Result(text),
        Answer(quote(text, 10)),
    ]


def status_commit(world: World) -> Exchange:
    random = world.random
    world.repo, text = repo(random), git.message(random)
    words = world.say(STATUS_COMMIT, repo=world.repo, text=text)
    return [
        words,
        call("git_status", repo=world.repo),
        Result(git.status_text(random)),
        call("git_commit", repo=world.repo, message=text),
        *git.committed(random, text),
    ]


def find_read(world: World) -> Exchange:
    random = world.random
    word = files.needle(random)
    found = files.hits(random, word)
    world.path, world.lines = found.split(":")[0], files.content(random)
    text = "\n".join(world.lines)
    return [
        world.say(FIND_READ, word=word),
        call("grep", pattern=word),
        Result(found),
        call("read_file", path=world.path),
        Result(text),
        Answer(quote(text)),
    ]


def two_readings(world: World) -> Exchange:
    random = world.random
    one, two = random.sample(machine.READINGS[:5], 2)
    first, second = one.output(random), two.output(random)
    words = User(
        f"{world.say(one.wordings).words} {random.choice(BOTH)} {world.say(two.wordings).words}"
    )
    return [
        words,
        shell(one.command),
        Result(first),
        shell(two.command),
        Result(second),
        Answer(f"{one.answer(first)} {two.answer(second)}"),
    ]


def second_path(world: World) -> Exchange:
    """The name is misspelled, and the error tells the right one: the same again with that name."""
    random = world.random
    if random.random() < 0.2:
        return elsewhere(world)
    there = path(random)
    wanted = _misnamed(random, there)
    beside = there.rpartition("/")[0]
    others = (filename(random) for _ in range(random.choice((0, 0, 1, 1, 2))))
    near = [there, *(f"{beside}/{other}" if beside else other for other in others)]
    error = f"There is no file {wanted}. Near names are: {', '.join(near)}."
    world.path, world.lines = there, files.content(random)
    wish, name, arguments, end = _of_file(world, wanted)
    return [
        wish,
        call(name, path=wanted, **arguments),
        Result(_told(random, error)),
        call(name, path=there, **arguments),
        *end,
    ]


def _of_file(world: World, wanted: str) -> tuple[User, str, dict[str, Value], Exchange]:
    """A wish about a file that is not there: its words, call, arguments and good end."""
    random = world.random
    roll = random.random()
    if roll < 0.6:
        text = "\n".join(world.lines)
        end: Exchange = [Result(text), Answer(quote(text))]
        return world.say(files_wordings.READ, path=wanted), "read_file", {}, end
    if roll < 0.75:
        return (
            world.say(files_wordings.SEND, path=wanted),
            "send_file",
            {},
            files.sent(random, world.path),
        )
    old, new = files.piece(random), files.piece(random)
    end = files.edited(random, world.path, old, new)
    words = world.say(files_wordings.EDIT, path=wanted, old=old, new=new)
    return words, "edit_file", {"old": old, "new": new}, end


def _told(random: Random, error: str) -> str:
    return random.choice((error, error, error, f"Error: {error}"))


def _misnamed(random: Random, there: str) -> str:
    """The path with another ending, a slip, a plural more or less."""
    head, _, extension = there.rpartition(".")
    folder, slash, stem = head.rpartition("/")
    roll = random.random()
    if roll < 0.2:
        return f"{head}.{random.choice([e for e in EXTENSIONS if e != extension])}"
    if roll < 0.3 and slash:
        return f"{stem}.{extension}"
    return f"{folder}{slash}{_misspelt(random, stem)}.{extension}"


def _misspelt(random: Random, word: str) -> str:
    """Something like the word that does not stand in it."""
    at = random.randrange(len(word))
    forms = [
        f"{word}s",
        word[:-1],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
        word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :],
        word[:at] + random.choice("aeiourstn") + word[at + 1 :],
        word.capitalize(),
        word.upper(),
        word.replace("_", "-"),
        word.replace("-", "_"),
    ]
    return random.choice([form for form in forms if form not in word])


def elsewhere(world: World) -> Exchange:
    """No name is near: list, then read what was meant, or say what there is."""
    random = world.random
    wanted = filename(random)
    error = random.choice(
        (
            f"There is no file {wanted}.",
            f"There is no file {wanted}.",
            f"Error: {wanted} does not exist",
            f"Error: no such file: {wanted}",
        )
    )
    words = world.say(files_wordings.READ, path=wanted)
    others = [path(random) for _ in range(random.randint(1, 4))]
    steps: Exchange = [
        words,
        call("read_file", path=wanted),
        Result(error),
        call("list_files", pattern="*"),
    ]
    if random.random() < 0.35:
        names = "\n".join(others)
        return [*steps, Result(names), Answer(f"There is no {wanted}. There are:\n{quote(names)}")]
    found = f"{folder(random)}/{wanted}"
    others.insert(random.randint(0, len(others)), found)
    world.path, world.lines = found, files.content(random)
    text = "\n".join(world.lines)
    return [
        *steps,
        Result("\n".join(others)),
        call("read_file", path=found),
        Result(text),
        Answer(quote(text)),
    ]


def second_edit(world: World) -> Exchange:
    """The words stand otherwise in the file: the error shows the line, or the file must be read."""
    random = world.random
    name = world.path = path(random)
    there, new = files.piece(random), files.piece(random)
    asked = _misspelt(random, there)
    line = random.choice(
        (there, f"{there} {noun(random)}", f"{noun(random)} {there}", f"- {there}", f"the {there}")
    )
    steps: Exchange = [
        world.say(files_wordings.EDIT, path=name, old=asked, new=new),
        call("edit_file", path=name, old=asked, new=new),
    ]
    again = [
        call("edit_file", path=name, old=there, new=new),
        *files.edited(random, name, there, new),
    ]
    if random.random() < 0.6:
        near = f"The nearest lines, from line {number(random, 1)}, are:\n{line}"
        error = f"old does not occur in {name}. {near}"
        return [*steps, Result(_told(random, error)), *again]
    lines = files.content(random, random.randint(1, 4))
    error = f"old does not occur in {name}. Read the file and copy the lines exactly."
    steps += [Result(_told(random, error)), call("read_file", path=name)]
    if random.random() < 0.3:
        world.lines = lines
        return [
            *steps,
            Result("\n".join(lines)),
            Answer(f"{asked} does not occur in {name}."),
        ]
    lines.insert(random.randint(0, len(lines)), line)
    world.lines = lines
    return [*steps, Result("\n".join(lines)), *again]


def no_repo(world: World) -> Exchange:
    """The repository is misspelled: the one that is like it, or else say which there are."""
    random = world.random
    there = repo(random)
    wanted = repo(random) if random.random() < 0.2 else _misspelt(random, there)
    known = [repo(random) for _ in range(random.randint(0, 4))]
    known.insert(random.randint(0, len(known)), there)
    named = ", ".join(known)
    error = f"There is no git repository at {random.choice(('/workspace/', '/repos/', ''))}{wanted}. Configured are: {named}."
    wish, name, arguments, end = _of_repo(world, wanted)
    steps: Exchange = [wish, call(name, repo=wanted, **arguments), Result(_told(random, error))]
    if not get_close_matches(wanted, [there], 1, 0.6):
        return [*steps, Answer(f"There is no repository {wanted}. There are: {named}")]
    world.repo = there
    return [*steps, call(name, repo=there, **arguments), *end]


def _of_repo(world: World, wanted: str) -> tuple[User, str, dict[str, Value], Exchange]:
    random = world.random
    roll = random.random()
    if roll < 0.45:
        text = git.status_text(random)
        end: Exchange = [Result(text), Answer(quote(text))]
        return world.say(git_wordings.STATUS, repo=wanted), "git_status", {}, end
    if roll < 0.7:
        text = git.diff_text(random)
        return (
            world.say(git_wordings.DIFF, repo=wanted),
            "git_diff",
            {},
            [Result(text), Answer(quote(text, 10))],
        )
    text = git.message(random)
    words = world.say(git_wordings.COMMIT, repo=wanted, text=text)
    return words, "git_commit", {"message": text}, git.committed(random, text)


def second_command(world: World) -> Exchange:
    """The usual command is not there: /host.txt has the figure as well."""
    random = world.random
    chosen = random.choice(machine.READINGS[:5])
    lines = hosts.product_lines(random)
    command = chosen.command.split()[0]
    error = random.choice(
        (
            f"bash: line 1: {command}: command not found\nexit code: 127",
            f"bash: line 1: {command}: command not found\nexit code: 127",
            f"bash: {command}: command not found\nexit code: 127",
            f"{command}: not found\nexit code: 127",
        )
    )
    return [
        world.say(chosen.wordings, n=number(random)),
        shell(chosen.command),
        Result(error),
        call("read_file", path="/host.txt"),
        Result("\n".join(lines.values())),
        Answer(lines[chosen.command]),
    ]


VAGUE = {
    "in a bit": "in 15 minutes",
    "in a little while": "in 15 minutes",
    "soon": "in 15 minutes",
    "shortly": "in 15 minutes",
    "in a jiffy": "in 5 minutes",
    "in a moment": "in 5 minutes",
    "in no time": "in 5 minutes",
    "later": "in 2 hours",
    "later on": "in 2 hours",
    "in a while": "in 2 hours",
    "some time later": "in 2 hours",
    "first thing tomorrow": "tomorrow at 8:00",
    "tomorrow first thing": "tomorrow at 8:00",
    "early tomorrow": "tomorrow at 8:00",
    "when I wake up": "tomorrow at 8:00",
    "at the crack of dawn": "tomorrow at 6:00",
    "at sunrise": "tomorrow at 6:00",
    "at breakfast": "tomorrow at 8:00",
    "before work": "tomorrow at 8:00",
    "around dinner time": "today at 19:00",
    "at dinner": "today at 19:00",
    "after supper": "today at 20:00",
    "after work": "today at 18:00",
    "when I get home": "today at 18:00",
    "before bed": "today at 22:00",
    "at bedtime": "today at 22:00",
    "late tonight": "today at 22:00",
    "after lunch": "today at 13:00",
    "at teatime": "today at 16:00",
    "in a fortnight": "in 2 weeks",
    "a fortnight from now": "in 2 weeks",
    "every now and then": "every day at 12:00",
    "from time to time": "every day at 12:00",
    "now and again": "every day at 12:00",
    "regularly": "every day at 9:00",
}


def second_time(world: World) -> Exchange:
    """A time that the tool does not understand: the same in plain words."""
    random = world.random
    vague, plain = random.choice(tuple(VAGUE.items()))
    task = errand(random)
    error = "I did not understand when that is. Say it like: in 20 minutes, tomorrow at 9, every weekday at 8."
    return [
        world.say(memory_wordings.REMIND, when=vague, errand=task),
        call("schedule", when=vague, task=task, kind="remind"),
        Result(_told(random, error)),
        call("schedule", when=plain, task=task, kind="remind"),
        *memory.planned(random, plain, "remind", task),
    ]


def failure(world: World) -> Exchange:
    """An error that no second try helps."""
    random = world.random
    family = random.choice(
        (
            files.writing,
            files.sending,
            memory.remember,
            memory.remind,
            git.commit,
            machine.reading,
            sums.sums,
            files.search,
            files.listing,
        )
    )
    words, step, *_ = family(world)
    reason = random.choice(
        (
            "denied by the owner",
            "the owner denied this",
            "approval was denied: nobody can be asked",
            "the disk quota is used up",
            "timed out after 60 s",
            "permission denied",
            "the sandbox is not available",
            f"{noun(random)} failed: {phrase(random)}",
            f"cannot {errand(random)}",
            "the command took longer than 120 seconds and was ended",
            f"{path(random)} is too large",
            "not allowed",
        )
    )
    return [words, step, Result(f"Error: {reason}"), Answer(f"That did not work: {reason}")]


def echo(world: World) -> Exchange:
    """Pure copying, which everything else builds on."""
    random = world.random
    text = random.choice(
        (
            phrase,
            fact,
            errand,
            path,
            lambda r: f"{stem(r)} {noun(r)} {path(r)}",
            lambda r: " ".join(filename(r) for _ in range(3)),
        )
    )(random)
    return [world.say(SAY, text=text), Answer(text)]
