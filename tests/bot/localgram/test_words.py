"""The chat page in the browser's language: no text of it is missing from the table, and none stands there in vain."""

import re
from html.parser import HTMLParser
from pathlib import Path

import bot.localgram

STATIC = Path(bot.localgram.__file__).parent / "static"
SCRIPTS = sorted(path.name for path in STATIC.glob("*.js") if path.name != "words.js")
LANGUAGES = ("de", "es", "fr", "ru", "zh")
LINE = re.compile(r'^  "(?P<english>.+?)": \[(?P<others>".*")\],$', re.MULTILINE)
NAMES = re.compile(r"\{\w+\}")


def table() -> dict[str, list[str]]:
    source = (STATIC / "words.js").read_text("utf-8")
    return {line["english"]: line["others"][1:-1].split('", "') for line in LINE.finditer(source)}


class PageWords(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: set[str] = set()
        self._skipped = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped = tag in ("script", "style")
        self.words |= {
            value for name, value in attrs if name in ("aria-label", "placeholder") and value
        }

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._skipped:
            self.words.add(data.strip())


def used() -> set[str]:
    page = PageWords()
    page.feed((STATIC / "index.html").read_text("utf-8"))
    scripts = [(STATIC / name).read_text("utf-8") for name in SCRIPTS]
    return page.words.union(*(re.findall(r'\bsay\("(.+?)"', script) for script in scripts))


def test_every_text_of_the_page_is_there_in_five_languages_more() -> None:
    words = table()
    assert set(words) == used()
    assert len(words) == (STATIC / "words.js").read_text("utf-8").count('": [')
    for english, others in words.items():
        assert len(others) == len(LANGUAGES), english
        for text in others:
            assert sorted(NAMES.findall(text)) == sorted(NAMES.findall(english)), english
