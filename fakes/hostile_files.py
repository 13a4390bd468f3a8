"""Files that would cost a careless reader its memory or its time, each as a person may send it."""

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fakes import documents

MOST = 20 << 20  # bytes that Telegram lets a bot download


@dataclass(frozen=True)
class HostileFile:
    """`told` is a part of what the model is told of it."""

    name: str
    content: Callable[[], bytes]
    told: str
    kind: Literal["document", "voice"] = "document"


def chunk(kind: bytes, body: bytes) -> bytes:
    """Of a PNG."""
    check = struct.pack(">I", zlib.crc32(kind + body))
    return struct.pack(">I", len(body)) + kind + body + check


def png_bomb(width: int, height: int) -> bytes:
    """A PNG of so many pixels in a few kB, of which it has the first."""
    packer = zlib.compressobj(9)
    rows = packer.compress(bytes(1 << 20)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def noise() -> bytes:
    """As many bytes as can be sent."""
    return random.Random(4).randbytes(MOST)


def broken_ogg() -> bytes:
    """The first pages of a recording, then noise."""
    return b"OggS\0\2" + bytes(8) + random.Random(5).randbytes(4000)


FILES = (
    HostileFile("noise.bin", noise, "noise.bin (document, application/octet-stream, 20.0 MB)"),
    HostileFile("lines.txt", lambda: b"word " * (MOST // 5), 'lines.txt: 1 line, it begins: "word'),
    HostileFile(
        "bomb.png",
        lambda: png_bomb(30_000, 30_000),
        "; not shown: the picture has 30,000 x 30,000 pixels, more than can be read)",
    ),
    HostileFile(
        "drawing.svg",
        lambda: b"<svg>" + b"<g>" * 100_000,
        "; not shown: an SVG is a drawing in text, which read_file reads)",
    ),
    HostileFile(
        "long.pdf",
        lambda: documents.pdf([f"This is page {n} of a long book." for n in range(5000)]),
        "Only the first 3000 of its 5000 pages were read.",
    ),
    HostileFile(
        "bomb.docx",
        lambda: documents.zip_bomb(128),
        "It unpacks to more than 64 MiB, which no honest document does.",
    ),
    HostileFile(
        "voice.ogg",
        broken_ogg,
        "; not transcribed: There is no sound in it, or it is damaged.)",
        kind="voice",
    ),
)
