"""The texts in other languages: whole, with the same names to fill in, and no text beside them."""

import ast
import gc
import importlib.util
import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polib
import pytest

from agent.language import (
    CATALOGUES,
    ENGLISH,
    catalogue,
    fields,
    languages,
    plural,
    speaking,
    translated,
)
from bot.telegram.markdown import TABLE_COLUMNS, columns
from bot.texts import TEXTS
from fakes.cases import cases
from fakes.words import saying

ROOT = Path(__file__).parent.parent
OTHERS = [code for code in languages() if code != ENGLISH]


@cache
def messages() -> dict[tuple[str, str], str]:
    """The texts that docs/make_catalogues.py finds in the code: seconds, which no collection of tests waits for."""
    path = ROOT / "docs" / "make_catalogues.py"
    spec = importlib.util.spec_from_file_location("make_catalogues", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.messages())


@pytest.mark.parametrize("code", OTHERS)
def test_a_catalogue_has_every_text_of_the_code_and_no_other(code: str) -> None:
    entries = polib.pofile(str(CATALOGUES / f"{code}.po"))
    found = {(entry.msgid, entry.msgid_plural) for entry in entries}
    assert found == set(messages()), "run: python docs/make_catalogues.py"
    missing = [entry.msgid for entry in entries if not entry.translated()]
    assert missing == []


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_has_the_names_and_the_marks_of_the_english_text(code: str) -> None:
    forms = {"ru": 3, "zh": 1}.get(code, 2)
    for entry in polib.pofile(str(CATALOGUES / f"{code}.po")):
        many = [entry.msgstr_plural[n] for n in sorted(entry.msgstr_plural)]
        assert not entry.msgid_plural or len(many) == forms, entry.msgid
        for text in many or [entry.msgstr]:
            english = entry.msgid_plural or entry.msgid
            assert fields(text) == fields(english), entry.msgid
            assert text.count("**") == english.count("**"), entry.msgid
            assert text.count("`") == english.count("`"), entry.msgid
            assert text.count("\n") == english.count("\n"), entry.msgid
            assert commands(text) == commands(english), entry.msgid
            assert (text[0].isspace(), text[-1].isspace()) == (english[0].isspace(), english[-1].isspace()) or code == "zh", entry.msgid  # fmt: skip


def commands(text: str) -> set[str]:
    """Chat commands that it names."""
    return set(re.findall(r"(?<![\w/])/[a-z]{3,}", text))


@pytest.mark.parametrize("code", OTHERS)
def test_what_telegram_shows_of_the_bot_fits_its_limits(code: str) -> None:
    with speaking(code):
        assert max(map(len, TEXTS.commands.values())) <= 256
        assert len(TEXTS.description) <= 512 and len(TEXTS.description_demo) <= 512
        assert len(TEXTS.short_description) <= 120


@pytest.mark.parametrize("code", OTHERS)
def test_the_table_of_the_context_fits_a_phone(code: str) -> None:
    with speaking(code):
        parts = [*TEXTS.context_parts.values(), TEXTS.context_tool.format(name="list_files")]
    assert max(map(columns, parts)) + 3 + len("16,384") <= TABLE_COLUMNS


def test_russian_has_three_forms() -> None:
    with speaking("ru"):
        told = [plural("{count} day", "{count} days", n).format(count=n) for n in (1, 2, 5, 11, 21)]
    assert told == ["1 день", "2 дня", "5 дней", "11 дней", "21 день"]


def test_a_tag_of_a_region_speaks_its_language_and_an_unknown_one_what_was_spoken() -> None:
    with speaking("de-AT"):
        assert translated("No") == "Nein"
        with speaking("tlh", ""):
            assert translated("No") == "Nein"
        with speaking("pt-BR", "fr"):
            assert translated("No") == "Non"
    assert translated("No") == "No"


def test_numbers_are_filled_in_as_their_language_writes_them() -> None:
    with speaking("de"):
        assert TEXTS.reading.format(done=1234, total=5000) == saying("1\u202f234", "5\u202f000")
        assert TEXTS.decode.format(speed=12.5).endswith("12,5 Tok/s")
    with speaking("zh"):
        assert "1,234" in TEXTS.reading.format(done=1234, total=5000)


def test_a_catalogue_with_a_fault_leaves_english_and_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = (CATALOGUES / "de.po").read_text("utf-8")
    monkeypatch.setattr("agent.language.CATALOGUES", tmp_path)
    for name, text in (
        ("xa", source.replace("{count} Tage", "{anzahl} Tage")),
        ("xb", "msgid nothing"),
    ):
        (tmp_path / f"{name}.po").write_text(text, "utf-8")
    languages.cache_clear()
    try:
        with speaking("xa"):
            assert plural("{count} day", "{count} days", 2).format(count=2) == "2 days"
            assert translated("No") == "Nein"
        with speaking("xb"):
            assert translated("No") == "No"
    finally:
        languages.cache_clear()
        catalogue.cache_clear()
    assert len(caplog.records) >= 2


def test_a_catalogue_once_read_leaves_no_entry_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service searches for no garbage while it starts, and never among what it has by then."""
    shutil.copy(CATALOGUES / "de.po", tmp_path)
    monkeypatch.setattr("agent.language.CATALOGUES", tmp_path)
    gc.collect()
    gc.disable()
    try:
        read = catalogue.__wrapped__("de")
        left = [found for found in gc.get_objects() if isinstance(found, polib.POEntry)]
    finally:
        gc.enable()
    assert read.gettext("No") == "Nein"
    assert len(left) <= 2, len(left)


# -- no text escapes ----------------------------------------------------------

SPEAKERS = {"send", "Button", "PressResult", "OutgoingMessage", "payload", "Notice", "AgentError", "TurnError", "NotUnderstood", "said"}  # fmt: skip
CHAT = [
    *sorted((ROOT / "bot").glob("*.py")),
    *sorted((ROOT / "bot" / "commands").glob("*.py")),
    *sorted((ROOT / "bot" / "telegram").glob("*.py")),
    *sorted((ROOT / "bot" / "matrix").glob("*.py")),
    *sorted((ROOT / "agent" / "schedule").rglob("*.py")),
    *sorted((ROOT / "agent" / "chats").glob("*.py")),
    *sorted((ROOT / "agent" / "turn").glob("*.py")),
]
NOT_IN_A_CHAT = {
    # errors of the command line
    "bot/acts.py: Nobody has a chat named",
    "bot/acts.py: , so nobody would read it.",
    "bot/acts.py: This needs the model.",
    "bot/acts.py: There is no server named",
    "bot/acts.py: : voltaire mcp list",
    "bot/service.py: agent.quiet_hours must look like",
    "bot/metrics.py: The figures cannot be served at metrics.listen",
}


@cases("path", CHAT)
def test_no_sentence_goes_to_a_person_past_the_catalogue(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = [f"{name}: {text}" for text in spoken_directly(ast.parse(path.read_text("utf-8")))]
    known = tuple(NOT_IN_A_CHAT)
    assert [each for each in found if not each.startswith(known)] == []


def spoken_directly(tree: ast.Module) -> Iterator[str]:
    """Words in what is handed to those that speak to a person, but for what is looked up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in SPEAKERS:
            for argument in [*node.args, *(each.value for each in node.keywords)]:
                yield from (
                    text
                    for text in words(argument)
                    if re.search(r"[A-Za-z]{2,} [a-z]|[A-Z][a-z]{2,}", text)
                )


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def words(node: ast.AST) -> Iterator[str]:
    """The constant texts of an expression, not those of calls in it."""
    if isinstance(node, ast.Call):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for child in ast.iter_child_nodes(node):
        yield from words(child)


def test_a_sentence_past_the_catalogue_is_found() -> None:
    code = 'context.send(chat, f"{name} is here" if name else translated("Nobody."))'
    assert [*spoken_directly(ast.parse(code))] == [" is here"]
