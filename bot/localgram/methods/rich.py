"""The HTML of rich messages: its tags are checked, its text is taken out."""

from html.parser import HTMLParser

from bot.localgram.wire import bad_request

RICH_CHARACTERS = 32_768
RICH_COLUMNS = 20
EMPTY = frozenset({"br", "hr"})
TAGS = EMPTY | frozenset(
    "a b blockquote code details em h1 h2 h3 h4 h5 h6 i ins li mark ol p pre s strong sub summary sup"
    " table td tg-spoiler th tr u ul".split()
)


def rich_text(html: str) -> str:
    """The text of a rich message. Raises: ApiError 400 for a tag that Telegram does not take."""
    reader = RichReader()
    reader.feed(html)
    reader.close()
    if reader.open:
        raise bad_request(f"can't find end tag of {reader.open[-1]}")
    text = "".join(reader.words).strip()
    if len(text) > RICH_CHARACTERS:
        raise bad_request("rich message is too long")
    return text


class RichReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self._columns = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            raise bad_request(f"unsupported start tag {tag}")
        if tag not in EMPTY:
            self.open.append(tag)
        self._columns = 0 if tag == "tr" else self._columns + (tag in ("td", "th"))
        if self._columns > RICH_COLUMNS:
            raise bad_request("too many columns")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise bad_request(f"unexpected end tag {tag}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)
