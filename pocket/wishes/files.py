"""Listing, reading, writing, editing, searching, sending files."""

import re
from collections.abc import Callable
from random import Random

from pocket.dialogue import Answer, Exchange, Result, User, World, call, quote, shell
from pocket.lexicon import EXTENSIONS, KEYS, VERBS
from pocket.pairs import pair
from pocket.sentences import fact, line, phrase, value
from pocket.wordings.files import (
    APPEND,
    ATTACHED,
    EDIT,
    EDIT_KEY,
    GREP,
    GREP_CODE,
    GREP_PATH,
    KEY,
    LIST,
    LIST_FOLDER,
    LIST_KIND,
    LIST_KIND_FOLDER,
    MISSING,
    READ,
    READ_FIRST,
    READ_LINES,
    SEND,
    SET_KEY,
    WRITE,
    WRITE_LINES,
)
from pocket.words import (
    adjective,
    decimal,
    filename,
    folder,
    invented,
    named_after,
    noun,
    number,
    path,
    person,
    place,
    repo,
    scrap,
    stem,
    thing,
)

# The parts of a wish to write: what, into what, how.

LANGUAGES = {
    "python": "py",
    "Python": "py",
    "text": "txt",
    "markdown": "md",
    "Markdown": "md",
    "json": "json",
    "JSON": "json",
    "csv": "csv",
    "CSV": "csv",
    "log": "log",
    "shell": "sh",
    "html": "html",
    "HTML": "html",
    "yaml": "yaml",
    "pdf": "pdf",
    "PDF": "pdf",
    "toml": "toml",
    "javascript": "js",
    "css": "css",
    "image": "png",
    "png": "png",
}


def listing(world: World) -> Exchange:
    random = world.random
    words, where, extension = _which(world)
    pattern = f"*.{extension}" if extension else "*"
    step = call("list_files", pattern=pattern, **({"path": where} if where else {}))
    if random.random() < 0.15:
        return [words, step, Result(_none(random, pattern)), Answer("There are no such files.")]
    names = _names(random, where, extension)
    if world.chance(0.5):
        world.path = names.split("\n")[0].split("  ")[0].split("\t")[0]
    return [words, step, Result(names), Answer(quote(names))]


def _which(world: World) -> tuple[User, str, str]:
    """The wish, and the folder and the ending that it names."""
    random = world.random
    roll = random.random()
    if roll < 0.37:
        return world.say(LIST), "", ""
    if roll < 0.42:
        (kind, extension), where = _kind(random), folder(random)
        words = world.say(LIST_KIND_FOLDER, kind=kind, ext=extension, folder=where)
        return words, where, extension
    if roll < 0.75:
        kind, extension = _kind(random)
        words = world.say(LIST_KIND, kind=kind, ext=extension)
        if kind.lower() in ("python", "shell") and world.chance(0.35):
            words = User(words.words.replace("files", "scripts"))
        return words, "", extension
    where = folder(random)
    if world.chance(0.3):
        forms = (f"{folder(random)}/{where}", f"/repos/{repo(random)}", f"/workspace/{where}")
        where = random.choice(forms)
    return world.say(LIST_FOLDER, folder=f"{where}/" if world.chance(0.1) else where), where, ""


def _none(random: Random, pattern: str) -> str:
    product = f"No file matches {pattern} in /workspace."
    others = ("no files", "No files match.", "(none)", "No files.", f"No files match {pattern}.")
    return random.choice((*others, product, product))


def _kind(random: Random) -> tuple[str, str]:
    if random.random() < 0.6:
        kind = random.choice(tuple(LANGUAGES))
        return kind, LANGUAGES[kind]
    extension = random.choice(EXTENSIONS)
    return random.choice((f".{extension}", f".{extension}", f"*.{extension}", extension)), extension


def tree(random: Random, extension: str = "") -> list[str]:
    """Files as they lie in a small workspace: a few in a folder, a few beside it, some of like names."""
    extensions = [extension] if extension else EXTENSIONS
    names = []
    for _ in range(random.randint(1, 2)):
        where = folder(random)
        names += [f"{where}/{filename(random, extensions)}" for _ in range(random.randint(2, 4))]
    first, last = stem(random), random.choice(extensions)
    names += [f"{first}{n}.{last}" for n in range(1, random.choice((1, 1, 3, 4)))]
    names += [filename(random, extensions) for _ in range(random.randint(0, 3))]
    if random.random() < 0.5:
        names = names[::-1] if random.random() < 0.5 else sorted(names)
    return names[:8]


def _names(random: Random, where: str, extension: str) -> str:
    if not where and random.random() < 0.45:
        return "\n".join(tree(random, extension))
    extensions = [extension] if extension else EXTENSIONS
    makers: tuple[Callable[[Random], str], ...] = (lambda r: path(r, extensions),)
    if where:
        lead = f"{where}/" if random.random() < 0.6 else ""
        makers = (lambda r: lead + filename(r, extensions),)
    elif not extension:
        makers = (*makers, lambda r: filename(r, extensions), lambda r: f"{folder(r)}/")
    names = [
        random.choice(makers)(random) for _ in range(random.choice((1, 1, 1, 2, 2, 3, 3, 4, 5, 9)))
    ]
    style = random.random()
    if style < 0.25:
        names = [
            f"{name}  {number(random)}{random.choice((' B', ' KB', ' bytes', 'K', ''))}"
            for name in names
        ]
    elif style < 0.35:
        names = [
            f"{name}\t{number(random)}\t2026-0{random.randint(1, 9)}-{random.randint(10, 28)} {random.randint(10, 23)}:{random.randint(10, 59)}"
            for name in names
        ]
    return "\n".join(names)


def content(random: Random, lines: int = 0) -> list[str]:
    count = lines or random.choice((1, 1, 1, 2, 2, 3, 3, 4, 5, 9))
    return [line(random) for _ in range(count)]


def shown(random: Random, lines: list[str], first: int = 1) -> str:
    """The forms in which a reading tool may show lines."""
    style = random.random()
    if style < 0.7:
        return "\n".join(lines)
    if style < 0.8:
        return "\n".join(f"{n}\t{text}" for n, text in enumerate(lines, first))
    if style < 0.9:
        return "\n".join(f"{n}: {text}" for n, text in enumerate(lines, first))
    return "\n".join([*lines, f"[lines {first}-{first + len(lines) - 1} of {number(random, 2)}]"])


def reading(world: World) -> Exchange:
    random = world.random
    roll = random.random()
    name = world.path = path(random)
    if roll < 0.7:
        world.lines = content(random)
        text = shown(random, world.lines)
        return [
            world.say(READ, path=name),
            call("read_file", path=name),
            Result(text),
            Answer(quote(text)),
        ]
    first, last = (
        (1, random.randint(2, 9)) if roll < 0.8 else sorted(random.sample(range(1, 200), 2))
    )
    last = min(last, first + 12) if random.random() < 0.5 else last
    slots = {"path": name, "a": str(first), "b": str(last)}
    words = world.say(READ_FIRST if roll < 0.8 else READ_LINES, **slots)
    world.lines = content(random, min(last - first + 1, random.randint(1, 9)))
    text = shown(random, world.lines, first)
    return [
        words,
        call("read_file", path=name, first=first, last=last),
        Result(text),
        Answer(quote(text)),
    ]


def key(world: World) -> Exchange:
    """One line of a file answers."""
    random = world.random
    name = world.path = path(random)
    asked = random.choice(KEYS) if random.random() < 0.6 else noun(random)
    sign = random.choice((" = ", "=", ": ", ": ", " is "))
    lines = content(random, random.randint(1, 7))
    lines = [
        f"{random.choice(KEYS)}{sign}{value(random)}" if random.random() < 0.6 else text
        for text in lines
    ]
    lines = [text for text in lines if asked not in text]
    answer = f"{asked}{sign}{value(random)}"
    lines.insert(random.randint(0, len(lines)), answer)
    world.lines = lines
    return [
        world.say(KEY, key=asked, path=name),
        call("read_file", path=name),
        Result("\n".join(lines)),
        Answer(answer),
    ]


def done(random: Random, *forms: str) -> Result:
    return Result(random.choice(forms))


def writing(world: World) -> Exchange:
    random = world.random
    roll = random.random()
    name = world.path = path(random)
    if roll < 0.78:
        world.lines = [snippet(random) if world.chance(0.08) else phrase(random)]
        name = world.path = named_after(random, name, world.lines[0])
        words = world.say(WRITE, path=name, text=world.lines[0])
    else:
        world.lines = [
            random.choice((line, phrase))(random) if roll < 0.88 else _item(random)
            for _ in range(random.randint(2, 5))
        ]
        words = world.say(
            WRITE_LINES[:2] if roll < 0.88 else WRITE_LINES[2:],
            path=name,
            lines="\n".join(world.lines),
            commas=(commas := _commas(random, world.lines)),
        )
        world.lines = [commas] if roll >= 0.88 else world.lines
    text = "\n".join(world.lines)
    return [words, call("write_file", path=name, content=text), *wrote(random, name, text)]


def snippet(random: Random) -> str:
    """One line of a program, of JSON, of a page."""
    key, word = (
        random.choice((noun(random), random.choice(KEYS))),
        random.choice((noun, phrase))(random),
    )
    shown = random.choice((word, word, number(random)))
    return random.choice(
        (
            f"print('{word}')",
            f'print("{word}")',
            f"print({number(random)})",
            f"{key} = {shown}",
            f"echo {word}",
            f"import {noun(random)}",
            f"<h1>{word}</h1>",
            f'{{"{key}": {random.choice(("true", "false", number(random)))}}}',
            f'{{"{key}": "{noun(random)}"}}',
            f"[{number(random)}, {number(random)}]",
            f"- [ ] {word}",
        )
    )


def _commas(random: Random, items: list[str]) -> str:
    if random.random() < 0.5:
        return ", ".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def _item(random: Random) -> str:
    return random.choice((noun, noun, noun, person, thing, invented))(random)


def wrote(random: Random, name: str, text: str) -> Exchange:
    size = len(text.encode())
    result = done(
        random,
        f"Wrote {size} bytes to {name}.",
        f"Wrote {name} ({size} bytes).",
        f"Created {name}, {size} bytes.",
        f"wrote {name}: {size} bytes",
        f"Saved {name}.",
        f"{name}: {size} bytes written",
        f"Created {name} ({text.count(chr(10)) + 1} lines).",
        f"Replaced {name} ({size} bytes).",
    )
    return [result, Answer(f"Done: {result.text}")]


def append(world: World) -> Exchange:
    random = world.random
    text = " ".join(
        random.choice((noun, adjective, invented))(random) for _ in range(random.randint(1, 5))
    )
    name = world.path = named_after(random, path(random), text)
    return [
        world.say(APPEND, path=name, text=text),
        shell(f"echo '{text}' >> {name}"),
        Result(random.choice(("", "exit code: 0", "(no output)"))),
        Answer(f"Added to {name}: {text}"),
    ]


def piece(random: Random) -> str:
    roll = random.random()
    if roll < 0.6:
        return random.choice((noun, adjective, invented, number, value))(random)
    if roll < 0.8:
        return f"{adjective(random)} {noun(random)}"
    return random.choice(
        (
            f"{random.choice(KEYS)} = {value(random)}",
            f"{random.choice(KEYS)}={value(random)}",
            f"{random.choice(KEYS)}: {value(random)}",
            f"{noun(random)} {number(random)}",
            phrase(random),
        )
    )


def what(random: Random) -> str:
    """What a value is for."""
    return random.choice((lambda r: r.choice(KEYS), noun, thing, invented))(random)


def two_of(make: Callable[[Random], str], random: Random) -> tuple[str, str]:
    """Two of a kind that differ."""
    old = new = make(random)
    while new == old:
        new = make(random)
    return old, new


def editing(world: World) -> Exchange:
    random = world.random
    old, new = pair(random) if world.chance(0.5) else (piece(random), piece(random))
    if world.chance(0.2):
        asked = random.choice(KEYS)
        old, new = (
            f"{asked}{sign}{value(random)}" for sign in [random.choice((" = ", "=", ": "))] * 2
        )
    templates = EDIT_KEY if world.chance(0.15) else EDIT
    if templates is EDIT_KEY and world.chance(0.6):
        old, new = two_of(random.choice((number, number, decimal, value)), random)
    name = world.path = named_after(random, path(random), f"{old} {new}")
    words = world.say(templates, path=name, old=old, new=new, key=what(random))
    return [words, call("edit_file", path=name, old=old, new=new), *edited(random, name, old, new)]


def set_key(world: World) -> Exchange:
    """Only the new value is said: read the file, then change the line that has the key."""
    random = world.random
    name = world.path = path(random)
    asked = random.choice(KEYS) if random.random() < 0.6 else invented(random)
    sign = random.choice((" = ", "=", ": ", ": "))
    old, new = (random.choice((number, number, decimal, invented, place))(random) for _ in "on")
    lines = [text for text in content(random, random.randint(1, 5)) if asked not in text]
    lines.insert(random.randint(0, len(lines)), f"{asked}{sign}{old}")
    world.lines = [f"{asked}{sign}{new}" if text.startswith(asked) else text for text in lines]
    return [
        world.say(SET_KEY, key=asked, path=name, value=new),
        call("read_file", path=name),
        Result("\n".join(lines)),
        call("edit_file", path=name, old=f"{asked}{sign}{old}", new=f"{asked}{sign}{new}"),
        *edited(random, name, f"{asked}{sign}{old}", f"{asked}{sign}{new}"),
    ]


def edited(random: Random, name: str, old: str = "old", new: str = "new") -> Exchange:
    result = done(
        random,
        f"edited {name}\n-{old}\n+{new}",
        f"edited {name}\n-{noun(random)} {old}\n+{noun(random)} {new}",
        f"Edited {name}.",
        f"Replaced 1 occurrence in {name}.",
        f"{name}: line {number(random)} changed",
        f"Changed {name} (line {number(random)}).",
        f"Edited {name}, line {number(random)}.",
    )
    return [result, Answer(f"Done: {first_line(result.text)}")]


def first_line(text: str) -> str:
    return text.split("\n")[0]


def identifier(random: Random) -> str:
    """A name out of some code: max_lamp, getHarbour, TEA_LIMIT."""
    parts = [random.choice((noun, adjective, invented, lambda r: r.choice(VERBS)))(random)]
    parts.append(random.choice((noun, invented, lambda r: r.choice(KEYS)))(random))
    snake = "_".join(parts)
    camel = parts[0] + parts[1].capitalize()
    return random.choice((snake, snake, snake, snake.upper(), camel, f"_{snake}", f"{camel}()"))


def code_word(random: Random) -> str:
    """What somebody at a program asks for: a name of two words, a constant, a verb."""
    plain = (lambda r: r.choice(VERBS), lambda r: noun(r).upper(), lambda r: r.choice(KEYS).upper())
    return random.choice((identifier, identifier, *plain))(random)


def needle(random: Random) -> str:
    roll = random.random()
    if roll < 0.12:
        return identifier(random)
    if roll < 0.7:
        return random.choice((noun, noun, adjective, invented, lambda r: r.choice(KEYS)))(random)
    if roll < 0.85:
        return random.choice(
            (
                "TODO",
                "FIXME",
                "ERROR",
                "import",
                "def",
                "password",
                "error",
                "warning",
                "http",
                "return",
                number(random),
                f"{invented(random)}_{noun(random)}",
                noun(random).upper(),
                invented(random).capitalize(),
            )
        )
    if roll < 0.92:
        return random.choice((person, place, scrap, lambda r: f"{noun(r)}_{invented(r)}"))(random)
    return f"{adjective(random)} {noun(random)}"


def hits(random: Random, word: str, name: str = "") -> str:
    rows = []
    for _ in range(random.choice((1, 1, 2, 2, 3, 4, 6))):
        around = random.choice(
            (
                f"{noun(random)} {word} {noun(random)}",
                f"{word} {noun(random)}",
                f"{noun(random)} {word}",
                f"{word} = {value(random)}",
                f"{fact(random)} {word}",
            )
        )
        rows.append(f"{name or path(random)}:{number(random)}:{random.choice(('', ' '))}{around}")
    return "\n".join(rows)


def search(world: World) -> Exchange:
    random = world.random
    words, word, name = _sought(world)
    step = call("grep", pattern=word, **({"path": name} if name else {}))
    if random.random() < 0.2:
        return [words, step, Result(_missing(random, word)), Answer(f"There is no {word} there.")]
    found = hits(random, word, name if "." in name else "")
    world.path = found.split(":")[0]
    return [words, step, Result(found), Answer(quote(found))]


def _sought(world: World) -> tuple[User, str, str]:
    """The wish, what is looked for, and the file or folder that it names."""
    random = world.random
    word = needle(random)
    if random.random() < 0.13:
        word = code_word(random)
        return world.say(GREP_CODE, word=word), word, ""
    if random.random() < 0.6:
        return world.say(GREP, word=word), word, ""
    name = random.choice((path(random), path(random), folder(random)))
    return _named(world.say(GREP_PATH, word=word, path=name), name), word, name


def _missing(random: Random, word: str) -> str:
    product = f"No line matches {word} in /workspace."
    plain = ("no matches", "No matches.", f"No matches for {word}.")
    return random.choice((*plain, product, product, "(no matches)", "nothing found"))


def _named(words: User, name: str) -> User:
    """A file is called a file, a folder a folder, whatever the wording thought of."""
    wrong, right = ("folder|directory|dir", "file") if "." in name else ("file|document", "folder")
    return User(re.sub(rf"\b({wrong}) (?={re.escape(name)})", f"{right} ", words.words))


def sending(world: World) -> Exchange:
    random = world.random
    name = world.path = path(random, EXTENSIONS)
    return [world.say(SEND, path=name), call("send_file", path=name), *sent(random, name)]


def sent(random: Random, name: str) -> Exchange:
    result = done(
        random,
        f"Sent {name}.",
        f"Sent {name} ({number(random)} KB).",
        f"{name} was sent",
        f"sent {name}, {random.randint(1, 900)},{random.randint(100, 999)} bytes",
        f"sent {name}, {number(random)} bytes",
        f"{name} is on its way.",
        f"Queued {name}.",
    )
    return [result, Answer(f"Done: {result.text}")]


def attached(world: World) -> Exchange:
    """A file came with the message: its name stands in the context block."""
    random = world.random
    name = world.path = random.choice(
        (
            filename(random),
            f"inbox/{filename(random)}",
            f"/workspace/inbox/{filename(random)}",
            path(random),
        )
    )
    shape = random.choice(("{}", "{}", "{} ({} KB)", "{} ({} bytes)", "{}, {} KB")).format(
        name, number(random)
    )
    world.lines = content(random)
    text = "\n".join(world.lines)
    return [
        User(world.say(ATTACHED).words, files=(shape,)),
        call("read_file", path=name),
        Result(text),
        Answer(quote(text)),
    ]


def unclear(world: World) -> Exchange:
    return [world.say(MISSING), Answer("Which file, and what exactly?")]
