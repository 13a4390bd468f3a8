"""Two steps for one wish, and a second try after an error."""

from backend.pocket.dialogue import Answer, Exchange, Result, User, World, call, quote, shell
from backend.pocket.wishes import files, git, machine, memory, sums
from backend.pocket.words import errand, fact, filename, folder, noun, path, phrase, repo, stem

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
    words = User(world.say(files.WRITE, path=name, text=text).words + random.choice(then))
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
    """The file is elsewhere: list, then read what was meant."""
    random = world.random
    wanted = filename(random)
    error = random.choice(
        (
            f"Error: {wanted} does not exist",
            f"Error: {wanted} not found",
            f"Error: no such file: {wanted}",
            f"Error: there is no file {wanted}. list_files shows what there is.",
            f"Error: No such file: {wanted}",
        )
    )
    words = world.say(files.READ, path=wanted)
    others = [path(random) for _ in range(random.randint(1, 4))]
    found = random.choice(
        (
            f"{folder(random)}/{wanted}",
            f"{folder(random)}/{folder(random)}/{wanted}",
            wanted.lower().capitalize() if wanted.islower() else wanted.lower(),
        )
    )
    steps = [words, call("read_file", path=wanted), Result(error), call("list_files", pattern="**")]
    if random.random() < 0.35 or found == wanted:
        names = "\n".join(others)
        return [*steps, Result(names), Answer(f"There is no {wanted}. There are:\n{quote(names)}")]
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
    """The words stand otherwise in the file: read it, then edit what is there."""
    random = world.random
    name = world.path = path(random)
    asked, new = noun(random), noun(random)
    there = random.choice((asked.capitalize(), asked.upper(), f"{asked}s", asked.capitalize()))
    error = random.choice(
        (
            f"Error: {asked!r} does not occur in {name}",
            "Error: old was not found",
            f"Error: old does not occur in {name}. Read the file and copy it exactly.",
            "Error: old text not found",
            f"Error: {name} does not contain it",
        )
    )
    lines = files.content(random, random.randint(1, 4))
    steps = [
        world.say(files.EDIT, path=name, old=asked, new=new),
        call("edit_file", path=name, old=asked, new=new),
        Result(error),
        call("read_file", path=name),
    ]
    if random.random() < 0.35:
        world.lines = [line for line in lines if asked not in line.lower()] or ["empty"]
        return [
            *steps,
            Result("\n".join(world.lines)),
            Answer(f"{asked} does not occur in {name}."),
        ]
    lines.insert(
        random.randint(0, len(lines)),
        random.choice((f"{there} {noun(random)}", f"the {there} {phrase(random)}", there)),
    )
    world.lines = lines
    return [
        *steps,
        Result("\n".join(lines)),
        call("edit_file", path=name, old=there, new=new),
        *files.edited(random, name, there, new),
    ]


def no_repo(world: World) -> Exchange:
    random = world.random
    wanted = repo(random)
    names = "\n".join(repo(random) for _ in range(random.randint(1, 5)))
    error = random.choice(
        (
            f"Error: no repository {wanted}",
            f"Error: {wanted} is not a repository",
            f"Error: there is no repository named {wanted}",
            f"Error: unknown repository: {wanted}",
        )
    )
    return [
        world.say(git.STATUS, repo=wanted),
        call("git_status", repo=wanted),
        Result(error),
        shell("ls /repos"),
        Result(names),
        Answer(f"There is no repository {wanted}. There are:\n{quote(names)}"),
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
