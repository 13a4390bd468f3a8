"""Commands, options, targets and configurations that README.md and docs/ show are there."""

import re
import shlex
import tomllib
from contextlib import suppress
from pathlib import Path

import click

from bot.cli import cli
from bot.settings import Settings
from fakes.cases import cases

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = (
    r"(?:voltaire|make|git|systemctl|journalctl|apt|apt-get|python|pip|curl|sh|llama-server) \S"
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def documented() -> set[str]:
    """Every command: the lines of plain blocks, and code in running text that begins with a program."""
    found = set()
    for page in PAGES:
        text = page.read_text()
        blocks = [body for language, body in BLOCK.findall(text) if language in ("", "sh")]
        joined = [re.sub(r"\\\n\s*", "", body) for body in blocks]
        lines = [line.partition("  #")[0].strip() for body in joined for line in body.splitlines()]
        spans = [" ".join(s.split()) for s in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
        found |= {line.removeprefix(".venv/bin/") for line in lines + spans}
    parts = {part.strip() for command in found for part in command.split("&&")}
    return {part for part in parts if re.match(PROGRAMS, part)}


@cases("command", sorted(c for c in documented() if c.startswith("voltaire ")))
def test_commands_and_their_options_are_there(command: str) -> None:
    """Parsed as it stands, and not run; FILE, NAME and "..." are words like others.

    A text may name a command without its argument.
    """
    found: click.Command | None = cli
    words = shlex.split(command)[1:]
    while isinstance(found, click.Group) and words and not words[0].startswith("-"):
        found = found.get_command(click.Context(found), words.pop(0))
    assert found is not None, "no such command"
    with suppress(click.exceptions.Exit, click.MissingParameter):  # Exit: of --version
        found.make_context(found.name, words)


def test_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    named = [shlex.split(command)[1:] for command in documented() if command.startswith("make ")]
    assert {word for words in named for word in words if "=" not in word} <= targets


def test_what_pytest_is_to_run_is_there() -> None:
    for command in re.findall(r"`pytest ([^`]+)`", "".join(page.read_text() for page in PAGES)):
        *options, file = shlex.split(command)
        named = options[options.index("-k") + 1] if "-k" in options else ""
        assert re.search(f"def test_.*{named}", (ROOT / file).read_text()), command


def blocks(language: str) -> list[tuple[str, str]]:
    found = [(page.name, BLOCK.findall(page.read_text())) for page in PAGES]
    return [(name, body) for name, all_ in found for lang, body in all_ if lang == language]


@cases(("page", "text"), blocks("toml"))
def test_configurations_are_valid(page: str, text: str) -> None:
    Settings(**tomllib.loads(text))
