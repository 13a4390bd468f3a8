"""Prepares a stranger's picture for a model: upright, no larger than the model uses, redrawn as a PNG.

Sizes are read here, from the first bytes; pixels are decoded by resvg (Rust) in a process of its own with
limits on memory and time, so that no server decodes a file that somebody else made.
"""

import base64
import struct
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from math import sqrt

from agent.aio import output_of
from agent.errors import ToolError
from agent.language import translated
from agent.messages import User
from agent.model import Completion, Piece, Request, TextPiece, WrappedModel
from agent.prompt import attached_files, context_and_words
from agent.store.pictures import data_url
from agent.turn import texts

MOST_BYTES = 20 << 20
MOST_PIXELS = 50_000_000  # a photo of 8,000 x 6,000
MOST_SEGMENTS = 1000  # of a JPEG before its first frame; 20 MiB of empty ones took 2 s
SECONDS = 20
MEMORY = 1536 << 20  # bytes of address space; each copy of MOST_PIXELS takes 200 MB
KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
DAMAGED = "the picture is damaged, or not what its name says"
DRAW = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, 2 * (int(sys.argv[1]),))
resource.setrlimit(resource.RLIMIT_CPU, 2 * (int(sys.argv[2]),))
import resvg_py
frame, picture = sys.stdin.read().split("\\0")
def draw(ground, picture):
    return resvg_py.svg_to_bytes(frame.format(ground, picture), skip_system_fonts=True)
drawn = draw("white", picture)
# A picture that cannot be decoded is left out without a word.
if drawn == draw("white", "") and draw("black", picture) == draw("black", ""):
    sys.exit(1)
sys.stdout.buffer.write(drawn)
"""
# By EXIF's orientation: the transform that turns a picture of w x h upright. From 5 on its sides are exchanged.
TURNS = {
    2: "translate({w} 0) scale(-1 1)",
    3: "rotate(180) translate(-{w} -{h})",
    4: "translate(0 {h}) scale(1 -1)",
    5: "rotate(90) scale(1 -1)",
    6: "translate({h} 0) rotate(90)",
    7: "translate({h} {w}) rotate(90) scale(-1 1)",
    8: "translate(0 {w}) rotate(-90)",
}
SIDEWAYS = 5


@dataclass(frozen=True, slots=True)
class VisionLimits:
    """What a vision model can use: pixels of a picture, and pictures in a message."""

    pixels: int
    most: int


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """What a picture's head says of it: `width` and `height` as stored; `turn` is EXIF's orientation (1: upright)."""

    kind: str
    width: int
    height: int
    turn: int = 1

    @property
    def size(self) -> tuple[int, int]:
        """Width and height after the rotation that EXIF asks for."""
        sides = self.width, self.height
        return sides if self.turn < SIDEWAYS else sides[::-1]


async def shown(content: bytes, vision: VisionLimits) -> str:
    """The picture's data URL for a model. ToolError says in one clause why it cannot be shown."""
    if len(content) > MOST_BYTES:
        raise ToolError(f"the picture has more than {MOST_BYTES >> 20} MB")
    facts = facts_of(content)
    width, height = facts.size
    if width * height > MOST_PIXELS:
        raise ToolError(f"the picture has {width:,} x {height:,} pixels, more than can be read")
    scale = min(1.0, sqrt(vision.pixels / (width * height)))
    drawn = await drawn_by_another(frame(facts, scale), upright(content, facts))
    return data_url("image/png", drawn)


def facts_of(content: bytes) -> PictureFacts:
    """Kind and size by the first bytes. ToolError for a broken picture, or one that is none of KINDS."""
    try:
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            facts = PictureFacts("image/png", *struct.unpack(">II", content[16:24]))
        elif content.startswith((b"GIF87a", b"GIF89a")):
            facts = PictureFacts("image/gif", *struct.unpack("<HH", content[6:10]))
        elif content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            facts = PictureFacts("image/webp", *webp_size(content))
        elif content.startswith(b"\xff\xd8\xff"):
            facts = jpeg_facts(content)
        elif b"<svg" in content[:1024]:
            raise ToolError("an SVG is a drawing in text, which read_file reads")
        else:
            raise ToolError(f"only {', '.join(k.partition('/')[2] for k in KINDS)} can be shown")
    except (struct.error, IndexError):
        raise ToolError(DAMAGED) from None
    if not facts.width or not facts.height:
        raise ToolError(DAMAGED)
    return facts


def webp_size(content: bytes) -> tuple[int, int]:
    """Read the size of a WebP (https://developers.google.com/speed/webp/docs/riff_container)."""
    form = content[12:16]
    if form == b"VP8X":
        width, height = (int.from_bytes(content[at : at + 3], "little") for at in (24, 27))
        return width + 1, height + 1
    if form == b"VP8L":
        (bits,) = struct.unpack("<I", content[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", content[26:30])
    return width & 0x3FFF, height & 0x3FFF


def jpeg_facts(content: bytes) -> PictureFacts:
    """The first frame's size and the EXIF orientation before it, from the markers (ITU T.81, B.2.2)."""
    at, turn = 2, 0
    for _ in range(MOST_SEGMENTS):
        if content[at] != 0xFF:
            break
        marker = content[at + 1]
        (length,) = struct.unpack(">H", content[at + 2 : at + 4])
        if marker == 0xE1 and content[at + 4 : at + 10] == b"Exif\0\0":
            turn = turn or exif_turn(content[at + 10 : at + 2 + length])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return PictureFacts("image/jpeg", width, height, turn or 1)
        at += 2 + length
    raise ToolError(DAMAGED)


def exif_turn(block: bytes) -> int:
    """The orientation: tag 0x0112 of the first directory (TIFF 6.0, section 2); 1 where there is none."""
    order = {b"II": "<", b"MM": ">"}.get(block[:2], "")
    if not order:
        return 1
    (start,) = struct.unpack(order + "I", block[4:8])
    (count,) = struct.unpack(order + "H", block[start : start + 2])
    for number in range(count):
        tag, _, _, value = struct.unpack_from(order + "HHIH", block, start + 2 + 12 * number)
        if tag == 0x0112:
            return value if value in TURNS else 1
    return 1


def frame(facts: PictureFacts, scale: float) -> str:
    """An SVG at `scale` of the picture's size, with fields for a background colour and the picture."""
    width, height = facts.size
    drawn = max(1, round(width * scale)), max(1, round(height * scale))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{drawn[0]}" height="{drawn[1]}"'
        f' viewBox="0 0 {width} {height}" preserveAspectRatio="none">'
        f'<rect width="{width}" height="{height}" fill="{{}}"/>{{}}</svg>'
    )


def upright(content: bytes, facts: PictureFacts) -> str:
    """The picture as an SVG element, turned upright."""
    turn = TURNS.get(facts.turn, "").format(w=facts.width, h=facts.height)
    return (
        f'<image width="{facts.width}" height="{facts.height}" transform="{turn}"'
        f' href="data:{facts.kind};base64,{base64.b64encode(content).decode()}"/>'
    )


async def drawn_by_another(frame: str, picture: str) -> bytes:
    """The PNG of a picture in its frame, drawn by a child process. ToolError where that fails."""
    command = (sys.executable, "-I", "-c", DRAW, str(MEMORY), str(SECONDS))
    try:
        code, drawn = await output_of(
            *command, seconds=SECONDS, stdin=f"{frame}\0{picture}".encode(), env={}
        )
    except TimeoutError:
        raise ToolError("the picture takes too long to read") from None
    if code:
        raise ToolError(DAMAGED)
    return drawn


# -- a model that sees none -----------------------------------------------------


def blind_answer(message: str, told: str) -> str:
    """Answer a message of pictures that the model cannot see: `told`, and where they are kept; "" for other messages."""
    head, words = context_and_words(message)
    files = attached_files(head)
    if words or not files or not all("cannot see pictures" in what for _, what in files):
        return ""
    return f"{told} {translated(texts.KEPT).format(paths=', '.join(path for path, _ in files))}"


@dataclass(frozen=True)
class FixedAnswers(WrappedModel):
    """A model whose answer is `answer` of the person's message, and which is asked only where that is empty."""

    answer: Callable[[str], str]

    def completion(self, request: Request) -> Completion | None:
        """The answer that needs no model, if there is one."""
        last = request.messages[-1]
        text = self.answer(last.text) if isinstance(last, User) and request.tools else ""
        return Completion(text, (), "", "stop") if text else None

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        if completion := self.completion(request):
            if completion.text:
                yield TextPiece(completion.text)
            yield completion
            return
        async with aclosing(self.model.stream(request)) as pieces:
            async for piece in pieces:
                yield piece
