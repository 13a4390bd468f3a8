"""What a command printed: gathered, cleaned of what drives terminals, cut to a size."""

import re
from dataclasses import dataclass, field

_ESCAPES = re.compile(
    r"\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC strings
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"
)
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls: text that reads otherwise
    r"\ufeff\U000e0000-\U000e007f]"  # byte order mark, tag characters
)
_BREAKS = re.compile(r"\r\n?|[\u2028\u2029]")


def clean(text: str) -> str:
    """Text that neither moves a cursor nor hides or reorders what a person reads."""
    text = _ESCAPES.sub("", text)
    return _HIDDEN.sub("", _BREAKS.sub("\n", text))


def decode(raw: bytes) -> str:
    return clean(raw.decode("utf-8", "replace"))


@dataclass(slots=True)
class OutputBuffer:
    """The bytes of a command, up to `limit`; beyond it the call is to be ended."""

    limit: int = 16 << 20
    raw: bytearray = field(default_factory=bytearray)
    told: int = 0

    def take(self, piece: bytes) -> bool:
        """Whether there is still room after this piece."""
        self.raw += piece[: self.limit - len(self.raw)]
        return len(self.raw) < self.limit

    def news(self) -> str:
        """Whole lines that came since the last call, at most about 2 KiB of them."""
        end = max(self.raw.rfind(b"\n"), self.raw.rfind(b"\r")) + 1
        piece = bytes(self.raw[max(self.told, end - 2048) : end])
        self.told = max(self.told, end)
        return decode(piece).strip("\n")

    def shown(self, keep: int) -> tuple[str, bool]:
        """The text, its head and tail where it has more than `keep` bytes, and whether it was cut."""
        if len(self.raw) <= 4 * keep:
            return shorten(decode(bytes(self.raw)), keep)
        head, tail = bytes(self.raw[: 2 * keep]), bytes(self.raw[-2 * keep :])
        lost = self.raw.count(b"\n") - head.count(b"\n") - tail.count(b"\n")
        return _joined(decode(head), decode(tail), keep, lost), True


def shorten(text: str, keep: int) -> tuple[str, bool]:
    """Head and tail of a text in at most about `keep` bytes of UTF-8; whether it was cut."""
    if len(text.encode()) <= keep:
        return text, False
    return _joined(text, text, keep, None), True


def _joined(head: str, tail: str, keep: int, lost: int | None) -> str:
    first, last = _head(head, keep * 2 // 5), _tail(tail, keep * 3 // 5)
    if lost is None:
        gone = head.count("\n") - first.count("\n") - last.count("\n")
    else:
        gone = lost + head[len(first) :].count("\n") + tail[: -len(last)].count("\n")
    return f"{first.rstrip()}\n[... {max(gone, 1)} lines left out ...]\n{last}"


def _head(text: str, keep: int) -> str:
    piece = text.encode()[:keep].decode("utf-8", "ignore")
    end = piece.rfind("\n") + 1
    return piece[:end] if end > len(piece) // 2 else piece


def _tail(text: str, keep: int) -> str:
    piece = text.encode()[-keep:].decode("utf-8", "ignore")
    start = piece.find("\n") + 1
    return piece[start:] if 0 < start < len(piece) // 2 else piece
