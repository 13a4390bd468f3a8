"""The output of a command: gathered, stripped of terminal control sequences, truncated in the middle."""

import re
import unicodedata
from dataclasses import dataclass, field

ESCAPES = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"
)
HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls: text that reads otherwise
    r"\ufeff\U000e0000-\U000e007f]"  # byte order mark, tag characters
)
# Invisible letters and marks: grapheme joiner, Hangul fillers, Khmer inherent vowels,
# Mongolian and general variation selectors, the empty Braille cell.
BLANK_LETTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
# Marks that cover a character, by a stroke or a frame; any mark does when more are stacked than a script uses.
COVERING = re.compile("[\u0334-\u0338\u0488\u0489\u1abe\u20d0-\u20f0\ua670-\ua672]")
STACKED = 3
BREAKS = re.compile(r"\r\n?|[\u2028\u2029]")
STRAY_BREAKS = re.compile(r"\r(?!\n)|[\u2028\u2029]")


def clean(text: str) -> str:
    """Remove what would move a cursor, or hide or reorder what a person reads."""
    text = ESCAPES.sub("", text)
    return HIDDEN.sub("", BREAKS.sub("\n", text))


def plain_name(path: str) -> str:
    """The name of a file as it is sent to people: one line, which does not read backwards, of any letters."""
    name = path.rpartition("/")[2].encode("utf-8", "replace").decode()
    return clean(name).replace("\n", " ")


def visible(text: str) -> str:
    """Show a code in place of each character that is invisible, or changes how others look.

    Those are controls except tab and line feed, format and direction characters, tags, variation
    selectors, fillers, spaces except U+0020, unassigned characters, and marks that cover others.
    """
    shown, marks = list[str](), 0
    for character in text:
        kind = unicodedata.category(character)
        marks = marks + 1 if kind[0] == "M" else 0
        hidden = (kind[0] in "CZ" and character not in " \t\n") or BLANK_LETTERS.match(character)
        covers = marks > STACKED or (marks and COVERING.match(character))
        shown.append(f"⟨U+{ord(character):04X}⟩" if hidden or covers else character)
    return "".join(shown)


def decode(raw: bytes) -> str:
    return clean(raw.decode("utf-8", "replace"))


def decode_fields(raw: bytes) -> str:
    """Text in which only line feeds and NULs end lines and fields. Any other break comes from a name or text
    and becomes "␤"."""
    text = STRAY_BREAKS.sub("␤", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    return "\0".join(HIDDEN.sub("", ESCAPES.sub("", each)) for each in text.split("\0"))


@dataclass(slots=True)
class OutputBuffer:
    """The output of a command, up to `limit` bytes; with more, the call is to be ended."""

    limit: int = 16 << 20
    raw: bytearray = field(default_factory=bytearray)
    _reported: int = 0

    def feed(self, piece: bytes) -> bool:
        """Add a piece of output; return whether more fits after it."""
        self.raw += piece[: self.limit - len(self.raw)]
        return len(self.raw) < self.limit

    def new_lines(self) -> str:
        """The whole lines since the last call, at most the last 2 KiB."""
        end = max(self.raw.rfind(b"\n"), self.raw.rfind(b"\r")) + 1
        piece = bytes(self.raw[max(self._reported, end - 2048) : end])
        self._reported = max(self._reported, end)
        return decode(piece).strip("\n")

    def excerpt(self, limit: int) -> tuple[str, bool]:
        """The text, or its head and tail where it has more than `limit` bytes; whether it was truncated."""
        if len(self.raw) <= 4 * limit:
            return truncate_middle(decode(bytes(self.raw)), limit)
        head, tail = bytes(self.raw[: 2 * limit]), bytes(self.raw[-2 * limit :])
        between = self.raw.count(b"\n") - head.count(b"\n") - tail.count(b"\n")
        before, after = decode(head), decode(tail)
        first, last = head_lines(before, limit), tail_lines(after, limit)
        lost = before[len(first) :].count("\n") + after[: -len(last)].count("\n")
        return joined(first, last, between + lost), True


class RecentOutput(OutputBuffer):
    """The newest `limit` bytes of a program that keeps running."""

    def feed(self, piece: bytes) -> bool:
        self.raw += piece
        del self.raw[: -self.limit]
        return True


def truncate_middle(text: str, limit: int) -> tuple[str, bool]:
    """Head and tail of a text in at most about `limit` bytes of UTF-8; whether it was truncated."""
    if len(text.encode()) <= limit:
        return text, False
    first, last = head_lines(text, limit), tail_lines(text, limit)
    return joined(first, last, text.count("\n") - first.count("\n") - last.count("\n")), True


def joined(first: str, last: str, lost: int) -> str:
    return f"{first.rstrip()}\n[... {max(lost, 1)} lines left out ...]\n{last}"


def head_lines(text: str, limit: int) -> str:
    """Cut out two fifths of `limit` from the start, whole lines where they are short."""
    piece = text.encode()[: limit * 2 // 5].decode("utf-8", "ignore")
    end = piece.rfind("\n") + 1
    return piece[:end] if end > len(piece) // 2 else piece


def tail_lines(text: str, limit: int) -> str:
    """Cut out three fifths of `limit` from the end, whole lines where they are short."""
    piece = text.encode()[-(limit * 3 // 5) :].decode("utf-8", "ignore")
    start = piece.find("\n") + 1
    return piece[start:] if 0 < start < len(piece) // 2 else piece
