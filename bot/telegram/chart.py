"""The graphics card's last hour as a PNG, drawn here: no drawing library is worth its start-up time."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise

from backend.protocol import Gpu, Minute

WIDTH, PANEL, MARGIN = 800, 150, 12
_PAPER, _GRID, _INK = (250, 250, 248), (222, 222, 218), (60, 60, 60)
_LINES = ((196, 64, 48), (38, 110, 170), (60, 140, 70), (150, 100, 20))


@dataclass(frozen=True, slots=True)
class Series:
    title: str
    unit: str
    values: Sequence[float | None]


def picture(minutes: Sequence[Minute], gpus: Sequence[Gpu]) -> BytesIO:
    """Temperature, power, load and speed of the first card, oldest on the left."""
    first = gpus[0].index
    own = [m for m in minutes if m.gpu == first]
    speed = [m for m in minutes if m.gpu is None]
    series = [
        Series("TEMPERATURE", "C", [m.temperature_c for m in own]),
        Series("POWER", "W", [m.power_w for m in own]),
        Series("LOAD", "%", [m.utilization for m in own]),
        Series("DECODE", "TOK/S", [m.decode_tok_s for m in speed]),
    ]
    canvas = Canvas(WIDTH, PANEL * len(series))
    for row, one in enumerate(series):
        _panel(canvas, row * PANEL, one, _LINES[row])
    return BytesIO(canvas.png())


def _panel(canvas: "Canvas", top: int, series: Series, color: tuple[int, int, int]) -> None:
    known = [v for v in series.values if v is not None]
    canvas.rectangle(MARGIN, top + PANEL - MARGIN, WIDTH - MARGIN, top + PANEL - MARGIN + 1, _GRID)
    now = f"{known[-1]:.0f} {series.unit}" if known else "-"
    canvas.text(MARGIN, top + 8, f"{series.title} {now}", _INK)
    if not known:
        return
    high, low = max(*known, 1.0), min(*known, 0.0)
    canvas.text(WIDTH - MARGIN - 12 * 8, top + 8, f"MAX {max(known):.0f}", _INK)
    room = PANEL - 40 - MARGIN
    step = (WIDTH - 2 * MARGIN) / max(1, len(series.values) - 1)
    points = [
        (int(MARGIN + i * step), int(top + PANEL - MARGIN - (v - low) / (high - low) * room))
        for i, v in enumerate(series.values)
        if v is not None
    ]
    for start, end in pairwise(points):
        canvas.line(start, end, color)


class Canvas:
    """An RGB raster with lines and a small face of capitals and digits."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._rows = [bytearray(bytes(_PAPER) * width) for _ in range(height)]

    def rectangle(
        self, left: int, top: int, right: int, bottom: int, color: tuple[int, int, int]
    ) -> None:
        for y in range(max(0, top), min(self.height, bottom)):
            first, last = max(0, left), min(self.width, right)
            self._rows[y][3 * first : 3 * last] = bytes(color) * max(0, last - first)

    def line(
        self, start: tuple[int, int], end: tuple[int, int], color: tuple[int, int, int]
    ) -> None:
        (x0, y0), (x1, y1) = start, end
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for i in range(steps + 1):
            x, y = x0 + (x1 - x0) * i // steps, y0 + (y1 - y0) * i // steps
            self.rectangle(x - 1, y - 1, x + 2, y + 2, color)

    def text(self, left: int, top: int, words: str, color: tuple[int, int, int]) -> None:
        """Two pixels a dot, twelve a letter."""
        for place, letter in enumerate(words.upper()):
            for y, bits in enumerate(_FACE.get(letter, _FACE[" "])):
                for x in range(5):
                    if bits >> (4 - x) & 1:
                        at = left + 12 * place + 2 * x
                        self.rectangle(at, top + 2 * y, at + 2, top + 2 * y + 2, color)

    def png(self) -> bytes:
        """https://www.w3.org/TR/png/: signature, header, one compressed block of unfiltered rows."""
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        pixels = zlib.compress(b"".join(b"\0" + row for row in self._rows), 9)
        chunks = (b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


# Seven rows of five dots, the most significant bit on the left.
_FACE = {
    letter: [int(row, 32) for row in rows]
    for letter, rows in {
        " ": "0000000", "-": "000e000", "/": "1124488", "%": "op248j3", ".": "0000006",
        "0": "ehjlphe", "1": "4c4444e", "2": "eh1248v", "3": "v2421he", "4": "26aiv22",
        "5": "vgu11he", "6": "68guhhe", "7": "v124888", "8": "ehhehhe", "9": "ehhf12c",
        "A": "ehhvhhh", "B": "uhhuhhu", "C": "ehggghe", "D": "shhhhhs", "E": "vgguggv",
        "F": "vggsggg", "G": "ehgnhhf", "H": "hhhvhhh", "I": "e44444e", "J": "72222ic",
        "K": "hikokih", "L": "ggggggv", "M": "hrllhhh", "N": "hhpljhh", "O": "ehhhhhe",
        "P": "uhhuggg", "Q": "ehhhlid", "R": "uhhukih", "S": "fgge11u", "T": "v444444",
        "U": "hhhhhhe", "V": "hhhhha4", "W": "hhhllla", "X": "hha4ahh", "Y": "hha4444",
        "Z": "v1248gv",
    }.items()
}  # fmt: skip
