"""Brings agent/languages/*.po up to the texts of the code: what is new comes in without a translation,
what is gone leaves. docs/languages.md tells more.

python docs/make_catalogues.py            # all catalogues
python docs/make_catalogues.py it         # and begins one for another language
"""

import ast
import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import polib

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from agent.language import CATALOGUES  # noqa: E402
from agent.trust import SOURCES  # noqa: E402
from agent.turn.answer_checks import CLAIMS  # noqa: E402
from backend.protocol import StateName  # noqa: E402
from bot.texts import Plural, Texts  # noqa: E402

LOOKUPS = {"translated", "plural", "Plural"}
PROFILES = "backend/models/profiles"  # which /model describes
NO_CHAT = ("bot/localgram", "bot/setup")  # programs that do not talk in a chat
# What is looked up by a value that is known at run time alone, by the expression.
AT_RUN_TIME: dict[str, Any] = {
    "claim.correction": [claim.correction for claim in CLAIMS],
    "server.state": get_args(StateName),
    "head": list(Texts().help_groups),
    "found": [],  # Texts, all of them below
    "kind": SOURCES,
    "source": [],
    "v": [],
}
Message = tuple[str, str]  # the English text, and its plural or ""


def messages() -> dict[Message, str]:
    """Every fixed text that is looked up, with the file where it stands first."""
    found: dict[Message, str] = {}
    for message in flat(list(Texts())):
        found.setdefault(message, "bot/texts.py")
    for folder in ("agent", "backend", "bot"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(NO_CHAT):
                for message in looked_up(name, ast.parse(path.read_text("utf-8"))):
                    found.setdefault(message, name)
    for path in sorted((ROOT / PROFILES).glob("*.toml")):
        profile = tomllib.loads(path.read_text("utf-8"))
        for field in ("title", "good", "bad"):
            found.setdefault((profile[field], ""), f"{PROFILES}/{path.name}")
    return found


def looked_up(name: str, tree: ast.Module) -> Iterator[Message]:
    """LookupError for a text that cannot be told from the code."""
    imports = (node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    if not {"agent.language", "backend.protocol", "bot.texts"} & {*imports}:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            match node.func.id, node.args:
                case (("plural" | "Plural"), [ast.Constant(one), ast.Constant(many), *_]):
                    yield str(one), str(many)
                case "translated", [argument] if name != "agent/language.py":
                    yield from flat(value_of(name, argument))
                case "Phrase", [ast.Name(id=variable), *_]:
                    yield from assigned(tree, variable)
                case "Phrase", [ast.Constant() | ast.IfExp() as argument, *_]:
                    yield from flat(value_of(name, argument))


def assigned(tree: ast.Module, variable: str) -> Iterator[Message]:
    """The constant texts that a variable of that name may have in a module."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Name(id=name)], value) if name == variable:
                found = [value]
            case ast.Assign([ast.Tuple(names)], ast.Tuple(values)):
                pairs = zip(names, values, strict=True)
                found = [value for name, value in pairs if ast.unparse(name) == variable]
            case _:
                continue
        for value in found:
            parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
            yield from ((str(part.value), "") for part in parts if isinstance(part, ast.Constant))


def value_of(name: str, argument: ast.expr) -> Any:
    if isinstance(argument, ast.IfExp):
        return [value_of(name, argument.body), value_of(name, argument.orelse)]
    if ast.unparse(argument) in AT_RUN_TIME:
        return AT_RUN_TIME[ast.unparse(argument)]
    table = argument.value if isinstance(argument, ast.Subscript) else argument
    module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
    try:
        return eval(ast.unparse(table), vars(module))  # noqa: S307 - a name of our own code
    except NameError:
        raise LookupError(f"{name}:{argument.lineno}: {ast.unparse(argument)}") from None


def flat(value: Any) -> Iterator[Message]:
    """The texts in a value: of a table its values."""
    if isinstance(value, Plural):
        yield value.one, value.many
    elif isinstance(value, str):
        yield value, ""
    else:
        if value == Texts().help_groups:
            return  # names of commands
        for each in value.values() if isinstance(value, dict) else value:
            yield from flat(each)


def update(path: Path) -> None:
    """Write the catalogue anew, in the order of the code; what is translated stays."""
    old = polib.pofile(str(path)) if path.exists() else polib.POFile()
    known = {(entry.msgid, entry.msgid_plural): entry for entry in old}
    new = polib.POFile(wrapwidth=0)
    new.header = old.header or " The texts of a chat; docs/languages.md tells how to edit them."
    new.metadata = old.metadata or {
        "Language": path.stem,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": "nplurals=2; plural=(n != 1);",
    }
    told = ""
    for (one, many), where in messages().items():
        entry = known.get((one, many)) or polib.POEntry(msgid=one, msgid_plural=many)
        if many and not entry.msgstr_plural:
            entry.msgstr_plural = {0: "", 1: ""}
        entry.comment, told = where if where != told else "", where  # a head for each file's
        new.append(entry)
    new.save(str(path))


if __name__ == "__main__":
    for code in {*sys.argv[1:], *(path.stem for path in CATALOGUES.glob("*.po"))}:
        update(CATALOGUES / f"{code}.po")
