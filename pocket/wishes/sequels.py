"""Wishes that lean on what went before: read it again, send it to me, and in the other repository?"""

from collections.abc import Callable

from pocket.dialogue import Answer, Exchange, Result, World, call, quote, shell
from pocket.sentences import phrase
from pocket.wishes import files, git, machine
from pocket.words import noun, number, repo

IT = "{it|that file|this file|the file|that one}"
AGAIN = (
    f"{{read|show|open|print|display|cat}}[ me] {IT} {{again|once more|one more time|now|please}}",
    f"{{show|read|open|print}}[ me] {IT}",
    f"{{what's|what is|what does it say}} {{in|inside}} {IT}[ now]",
    "{what does it say|what does it say now|let me see it|show the result|read it back|how does it look now|can I see it|and the content|show me what's in there}",
)
SEND_IT = (
    f"{{now |then |and |}}{{send|give|mail|forward|share|upload}}[ me] {IT}[ to me| please| over| here]",
    "{send it to me|send that to me|can I have it|I want to have it|let me have it|please send it|I'd like to download it|attach it|give it to me as a file}",
)
COUNT_IT = (
    f"how many {{lines|lines of text|rows}} {{does|has}} {IT} {{have|got}}",
    f"{{count|tell me}} the {{lines|number of lines}} {{in|of}} {IT}",
    "{how long is it|how many lines is it|how many lines are in there|line count}",
)
CHANGE_IT = (
    "{now |then |and |}{replace|change|swap} {'$old'|\"$old\"|$old} {with|by|to|into} {'$new'|\"$new\"|$new} {in it|there|in that file|in the file|}",
    "in {it|that file|there}{,|} {replace|change} {'$old'|\"$old\"|$old} {with|by|to|into} {'$new'|\"$new\"|$new}",
    "{it should say|make it say|I meant|put} {'$new'|\"$new\"|$new} instead of {'$old'|\"$old\"|$old}",
)
ADD_IT = (
    "{now |then |and |}{add|append} {the line |}{'$text'|\"$text\"|$text} {to it|to that file|at the end|there|to the file|at the bottom}",
    "{add another line|one more line|append to it}: $text",
)
DROP_LINE = (
    "{now |then |and |}{delete|remove|drop|take out|cut} {the line |}{'$old'|\"$old\"|$old} {from it|there|from that file|from the file|in it|again}",
    "{delete|remove} {that|this} line: $old",
)
FIND_IT = (
    "{search|look} {for |}{'$word'|\"$word\"|$word} {in it|there|in that file|in the file}",
    "does it {mention|contain|have|say} {'$word'|\"$word\"|$word}",
    "{is|where is} {'$word'|\"$word\"|$word} in {it|that file|there}",
)
DIFF_IT = (
    "{now |then |and |}{show|print|let me see|give me}[ me] the {diff|changes|differences}[ there| of it| please]",
    "{what did I change|what changed exactly|show what changed there|diff|and the diff|git diff}",
)
COMMIT_IT = (
    "{now |then |and |ok, |}{commit|git commit} {it|that|everything|all|the changes|this|all of it|them}[ there] {with|using|as|with message|with the message|, message} {'$text'|\"$text\"|$text}",
    "commit[ it| that]: $text",
)
STATUS_THERE = (
    "{and|what about|how about|the same for|now|and what about|same for} {in |for |}{the |}$repo[ {repo|repository}]",
    "{and|now} {in|for} $repo",
)
OTHER = (
    "{and|what about|how about|now|also|then|and what about|and now} {the |}$topic[ {please|then|now}]",
    "{and|also} {the |}$topic",
)
TOPICS = {
    "df -h /workspace": ("disk", "disk space", "free space", "storage"),
    "free -h": ("memory", "RAM", "ram", "free memory"),
    "uptime -p": ("uptime", "uptime of the machine"),
    "date": ("date", "time", "current time"),
    "hostname": ("hostname", "host name", "machine's name"),
}


def about_file(world: World) -> Exchange:
    if not world.path or world.path.endswith("/"):
        return files.reading(world)
    return world.random.choice(
        (
            again,
            send_it,
            count_it,
            change_it,
            add_it,
            drop_line,
            find_it,
            again,
            send_it,
            change_it,
        )
    )(world)


def again(world: World) -> Exchange:
    lines = world.lines or files.content(world.random)
    text = "\n".join(lines)
    return [world.say(AGAIN), call("read_file", path=world.path), Result(text), Answer(quote(text))]


def send_it(world: World) -> Exchange:
    return [
        world.say(SEND_IT),
        call("send_file", path=world.path),
        *files.sent(world.random, world.path),
    ]


def count_it(world: World) -> Exchange:
    count = number(world.random)
    return [
        world.say(COUNT_IT),
        shell(f"wc -l {world.path}"),
        Result(f"{count} {world.path}"),
        Answer(f"{world.path} has {count} lines."),
    ]


def change_it(world: World) -> Exchange:
    known = " ".join(world.lines).split()
    old = world.random.choice(known) if known and world.chance(0.6) else files.piece(world.random)
    new = files.piece(world.random)
    world.lines = [line.replace(old, new) for line in world.lines]
    return [
        world.say(CHANGE_IT, old=old, new=new),
        call("edit_file", path=world.path, old=old, new=new),
        *files.edited(world.random, world.path, old, new),
    ]


def add_it(world: World) -> Exchange:
    text = phrase(world.random).replace("'", "")
    world.lines = [*world.lines, text]
    return [
        world.say(ADD_IT, text=text),
        shell(f"echo '{text}' >> {world.path}"),
        Result(world.random.choice(("", "exit code: 0", "(no output)"))),
        Answer(f"Added to {world.path}: {text}"),
    ]


def drop_line(world: World) -> Exchange:
    old = world.random.choice(world.lines) if world.lines else noun(world.random)
    world.lines = [line for line in world.lines if line != old]
    new = ""
    return [
        world.say(DROP_LINE, old=old),
        call("edit_file", path=world.path, old=old, new=""),
        *files.edited(world.random, world.path, old, new),
    ]


def find_it(world: World) -> Exchange:
    word = files.needle(world.random)
    found = files.hits(world.random, word, world.path)
    return [
        world.say(FIND_IT, word=word),
        call("grep", pattern=word, path=world.path),
        Result(found),
        Answer(quote(found)),
    ]


def about_repo(world: World) -> Exchange:
    if not world.repo:
        return git.status(world)
    return world.random.choice((diff_it, commit_it, commit_it, status_there))(world)


def diff_it(world: World) -> Exchange:
    text = git.diff_text(world.random)
    return [
        world.say(DIFF_IT),
        call("git_diff", repo=world.repo),
        Result(text),
        Answer(quote(text, 10)),
    ]


def commit_it(world: World) -> Exchange:
    text = git.message(world.random)
    return [
        world.say(COMMIT_IT, text=text),
        call("git_commit", repo=world.repo, message=text),
        *git.committed(world.random, text),
    ]


def status_there(world: World) -> Exchange:
    world.repo = repo(world.random)
    text = git.status_text(world.random)
    return [
        world.say(STATUS_THERE, repo=world.repo),
        call("git_status", repo=world.repo),
        Result(text),
        Answer(quote(text)),
    ]


def about_machine(world: World) -> Exchange:
    reading = world.random.choice([r for r in machine.READINGS if r.command in TOPICS])
    output = reading.output(world.random)
    words = world.say(OTHER, topic=world.random.choice(TOPICS[reading.command]))
    return [words, shell(reading.command), Result(output), Answer(reading.answer(output))]


Sequel = Callable[[World], Exchange]
