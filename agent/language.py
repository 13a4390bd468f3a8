"""The language of the fixed texts that a person reads.

The code holds the English texts. They are the keys of the catalogues (languages/LANGUAGE.po, in gettext's
form, read at first use); docs/languages.md tells how to edit or add one. What the model reads stays
English.

    with speaking("ru"):
        translated("Nothing is running.")                  -> "Ничего не выполняется."
        plural("{count} day", "{count} days", 5).format(count=5)  -> "5 дней"
"""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from backend.protocol import Filling, Phrase, in_english

if TYPE_CHECKING:  # loaded with the first catalogue
    from gettext import NullTranslations

log = logging.getLogger(__name__)

ENGLISH = "en"
NAMES = {"en": "English", "de": "Deutsch", "es": "Español", "fr": "Français", "ru": "Русский", "zh": "中文"}  # fmt: skip
CATALOGUES = Path(__file__).parent / "languages"
FIELD = re.compile(r"\{[^{}]*\}")
NUMBER = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?|\d+\.\d+")
SEPARATORS = {ord(","): "\u202f", ord("."): ","}
_spoken: ContextVar[str] = ContextVar("language", default=ENGLISH)


@cache
def languages() -> tuple[str, ...]:
    """The codes of all languages, English first."""
    return (ENGLISH, *sorted(path.stem for path in CATALOGUES.glob("*.po")))


def known_language(tag: str) -> str:
    """The code of the language that a tag such as "fr-CA" means; "" where there is no catalogue of it."""
    code = tag.partition("-")[0].partition("_")[0].lower()
    return code if code in languages() else ""


def name_of(language: str) -> str:
    """The language's own name; the code for a language that somebody added."""
    return NAMES.get(language, language)


def spoken() -> str:
    """The language of the current task's texts."""
    return _spoken.get()


@contextmanager
def speaking(*choices: str) -> Iterator[None]:
    """Within the block, texts are in the first known one of these languages (tags); if none is known, the
    language stays as it was. Tasks that are started within keep it."""
    token = _spoken.set(next(filter(None, map(known_language, choices)), _spoken.get()))
    try:
        yield
    finally:
        _spoken.reset(token)


def translated(english: str) -> str:
    """A fixed text in the current language; in English where the catalogue lacks it."""
    if (language := _spoken.get()) == ENGLISH or not english:
        return english
    return local(catalogue(language).gettext(english))


def plural(one: str, many: str, count: int) -> str:
    """The form of a text for `count`, in the current language; both English forms have {count}."""
    if (language := _spoken.get()) == ENGLISH:
        return one if count == 1 else many
    return local(catalogue(language).ngettext(one, many, count))


@cache
def catalogue(language: str) -> "NullTranslations":
    """The texts of a language; none where its file cannot be read."""
    try:
        return read_catalogue(CATALOGUES / f"{language}.po")
    except (OSError, ValueError) as error:
        from gettext import NullTranslations

        log.error("the texts stay English: %s.po cannot be read: %s", language, error)  # noqa: TRY400 - one sentence
        return NullTranslations()


def read_catalogue(file: Path) -> "NullTranslations":
    """A catalogue without the entries whose fields differ from the English ones. Raises OSError and ValueError."""
    from gettext import GNUTranslations

    import polib

    entries = polib.pofile(str(file))
    for entry in list(entries):
        forms = [entry.msgstr] if entry.msgstr else entry.msgstr_plural.values()
        if any(fields(form) != fields(entry.msgid_plural or entry.msgid) for form in forms):
            log.error("%s: other {names} than in English: %r", file.name, entry.msgid)
            entries.remove(entry)
    binary: bytes = entries.to_binary()
    entries.clear()  # polib's parser is a cycle that holds them: 1 MiB until a search for garbage
    return GNUTranslations(BytesIO(binary))


def fields(text: str) -> Counter[str]:
    """Count the {fields} of a text."""
    return Counter(FIELD.findall(text))


def translate_phrase(phrase: str) -> str:
    """A sentence that was made before it was known who reads it (backend.protocol), in the current language;
    of another text, its entry in the catalogue."""
    if not isinstance(phrase, Phrase):
        return translated(phrase)
    filled = {name: fill_in(value) for name, value in phrase.fields.items()}
    return translated(phrase.code).format(**filled) if filled else translated(phrase.code)


def fill_in(value: Filling) -> str:
    if isinstance(value, Phrase):
        return translate_phrase(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return local_number(in_english(value))
    return ", ".join(map(translate_phrase, value))


def local(text: str) -> str:
    """The text, with a `format` that writes numbers as the current language does."""
    return text if _spoken.get() in (ENGLISH, "zh") else LocalText(text)


def local_number(text: str) -> str:
    """A number in English form ("16,384", "12.5") as the current language writes it; other text unchanged."""
    if _spoken.get() in (ENGLISH, "zh") or not NUMBER.fullmatch(text):
        return text
    return text.translate(SEPARATORS)


class LocalText(str):
    """Digits in threes with narrow spaces, and a decimal comma: German, French, Spanish, Russian."""

    __slots__ = ()

    def format(self, *args: Any, **values: Any) -> str:
        return NUMBERS.vformat(self, args, values)


class _Numbers(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        shown = format(value, format_spec)
        if isinstance(value, int | float) and format_spec:
            return shown.translate(SEPARATORS)
        return shown


NUMBERS = _Numbers()
