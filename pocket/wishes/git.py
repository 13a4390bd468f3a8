"""Repositories: status, changes, commits."""

import re
from collections.abc import Sequence
from random import Random

from pocket.dialogue import Answer, Exchange, Result, User, World, call, quote
from pocket.sentences import errand, line, phrase
from pocket.wordings.git import COMMIT, COMMIT_FILE, DIFF, DIFF_REVISION, STATUS
from pocket.words import adjective, invented, noun, number, path, person, plural, repo, thing

HERE = (
    ".",
    "the folder here",
    "the current folder",
    "this directory",
    "this repo",
    "this repository",
    "this project",
    "the workspace",
    "this workspace",
)


def name(random: Random) -> str:
    return "." if random.random() < 0.09 else repo(random)


def about(world: World, templates: Sequence[str], **slots: str) -> User:
    """A wish about `world.repo`; the folder that one is in is said in words."""
    if world.repo != ".":
        return world.say(templates, repo=world.repo, **slots)
    words = world.say(templates, repo="@@", **slots).words
    here = world.random.choice(HERE)
    return User(re.sub(r"(?:\b(?:the|my|our) )?@@(?: (?:repo|repository|project))?", here, words))


def message(random: Random) -> str:
    text = random.choice(
        (
            errand,
            errand,
            phrase,
            phrase,
            thing,
            lambda r: f"{thing(r)} {adjective(r)}",
            lambda r: f"{adjective(r)} {plural(noun(r))}",
            lambda r: f"fix {thing(r)}",
            lambda r: f"add {thing(r)}",
            lambda r: f"{invented(r)} {noun(r)}",
            lambda r: f"update {noun(r)} {number(r)}",
        )
    )(random)
    return text[0].upper() + text[1:] if random.random() < 0.4 else text


def status(world: World) -> Exchange:
    random = world.random
    world.repo = name(random)
    text = status_text(random, clean=random.random() < 0.2)
    return [
        about(world, STATUS),
        call("git_status", repo=world.repo),
        Result(text),
        Answer(quote(text)),
    ]


def branch(random: Random) -> str:
    return random.choice(
        (
            "main",
            "main",
            "master",
            "dev",
            f"{random.choice(('feature', 'fix'))}/{noun(random)}",
            invented(random),
            noun(random),
        )
    )


def status_text(random: Random, clean: bool = False) -> str:
    head = random.choice(
        (
            "On branch {}",
            "## {}",
            "branch: {}",
            "branch {}",
            "Branch {}",
            "## {0}...origin/{0}",
            "on {}",
        )
    ).format(branch(random))
    if clean:
        return head + random.choice(
            (
                "\nnothing to commit, working tree clean",
                "\nclean",
                "\nno changes",
                ", clean",
                ": clean",
                "\nNo changes.",
            )
        )
    marks = random.choice(
        (
            (" M ", "?? ", " D ", "A  ", "M  "),
            ("modified: ", "new: ", "deleted: "),
            ("M ", "A ", "? "),
        )
    )
    rows = [
        random.choice(marks) + path(random) for _ in range(random.choice((1, 1, 2, 2, 3, 4, 6)))
    ]
    return "\n".join((head, *rows))


def diff_text(random: Random) -> str:
    file = path(random)
    head = random.choice(
        (
            f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -{number(random)} +{number(random)} @@",
            f"--- a/{file}\n+++ b/{file}\n@@ -1,{number(random, 1)} +1,{number(random, 1)} @@",
            f"{file}",
            f"diff --git a/{file} b/{file}\nindex {number(random)}..{number(random)} 100644\n--- a/{file}\n+++ b/{file}\n@@ -{number(random)},2 +{number(random)},2 @@",
        )
    )
    rows = []
    for _ in range(random.choice((1, 1, 2))):
        if random.random() < 0.75:
            rows.append(f"-{line(random)}")
        rows.append(f"+{line(random)}")
    return "\n".join((head, *rows))


def diff(world: World) -> Exchange:
    random = world.random
    world.repo = name(random)
    if random.random() < 0.2:
        revision = random.choice(
            ("HEAD~1", "HEAD", "HEAD^", "main", "HEAD~3", f"{random.randrange(16**7):07x}", "v1.0")
        )
        words, step = (
            about(world, DIFF_REVISION, revision=revision),
            call("git_diff", repo=world.repo, revision=revision),
        )
    else:
        words, step = about(world, DIFF), call("git_diff", repo=world.repo)
    if random.random() < 0.15:
        return [
            words,
            step,
            Result(
                random.choice(("", "no changes", "No changes.", "(no changes)", "No differences."))
            ),
            Answer("Nothing has changed there."),
        ]
    text = diff_text(random)
    return [words, step, Result(text), Answer(quote(text, 10))]


def commit(world: World) -> Exchange:
    random = world.random
    world.repo, text = name(random), message(random)
    if random.random() < 0.85:
        words, step = (
            about(world, COMMIT, text=text),
            call("git_commit", repo=world.repo, message=text),
        )
    else:
        file = path(random)
        words, step = (
            about(world, COMMIT_FILE, text=text, path=file),
            call("git_commit", repo=world.repo, message=text, files=[file]),
        )
    return [words, step, *committed(random, text)]


def committed(random: Random, text: str) -> Exchange:
    if random.random() < 0.08:
        return [
            Result(
                random.choice(
                    (
                        "Error: nothing to commit",
                        "Error: nothing to commit, working tree clean",
                        "Error: there is nothing to commit.",
                    )
                )
            ),
            Answer("There is nothing to commit."),
        ]
    revision = f"{random.randrange(16**7):07x}"
    result = random.choice(
        (
            f"[{branch(random)} {revision}] {text}",
            f"Committed {revision}: {text}",
            f"{revision} {text}",
            f"Committed {revision} on {branch(random)}.",
            f"commit {revision}\n{number(random, 1)} files changed",
            f"[{branch(random)} {revision}] {text}\n {number(random, 1)} files changed, {number(random)} insertions(+)",
            f"Committed {revision} as {person(random)}.",
        )
    )
    return [Result(result), Answer(f"Done: {result.split(chr(10))[0]}")]
