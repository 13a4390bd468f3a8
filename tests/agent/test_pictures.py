"""What a model is shown of somebody's picture, and what is refused in a sentence."""

import base64
import io
import struct
import zlib

import pytest
from PIL import Image

from agent.errors import ToolError
from agent.pictures import DAMAGED, VisionLimits, facts_of, shown

VISION = VisionLimits(pixels=10_000, most=4)
ORIENTATION = 0x0112


def encoded(image: Image.Image, form: str, turn: int = 1) -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = turn
    out = io.BytesIO()
    image.save(out, form, **({"exif": exif} if turn > 1 else {}))
    return out.getvalue()


def halves(width: int = 300, height: int = 200) -> Image.Image:
    """Red on the left, blue on the right; the top left corner is green."""
    image = Image.new("RGB", (width, height), "blue")
    image.paste("red", (0, 0, width // 2, height))
    image.paste("lime", (0, 0, width // 6, height // 4))
    return image


def opened(url: str) -> Image.Image:
    head, _, body = url.partition(",")
    assert head == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(body))).convert("RGB")


def colour(image: Image.Image, x: float, y: float) -> str:
    """The nearest of the three, at a place in shares of the sides."""
    pixel = image.getpixel((int(x * image.width), int(y * image.height)))
    assert isinstance(pixel, tuple)
    return ("red", "green", "blue")[pixel.index(max(pixel))]


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_each_kind_is_scaled_to_what_the_model_uses(form: str) -> None:
    image = opened(await shown(encoded(halves(), form), VISION))
    assert image.size == (122, 82)
    assert [colour(image, 0.05, 0.1), colour(image, 0.3, 0.8), colour(image, 0.9, 0.5)] == [
        "green",
        "red",
        "blue",
    ]


async def test_a_small_picture_keeps_its_size_and_gives_the_same_bytes_again() -> None:
    content = encoded(halves(60, 40), "PNG")
    first = await shown(content, VISION)
    assert opened(first).size == (60, 40)
    assert await shown(content, VISION) == first


@pytest.mark.parametrize("turn", range(1, 9))
async def test_a_photo_is_brought_upright(turn: int) -> None:
    ways = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = halves(90, 60).transpose(ways[turn]) if turn > 1 else halves(90, 60)
    image = opened(await shown(encoded(stored, "JPEG", turn), VISION))
    assert image.size == (90, 60)
    assert (colour(image, 0.05, 0.1), colour(image, 0.9, 0.5)) == ("green", "blue")


async def test_what_is_transparent_is_white_and_white_is_a_picture() -> None:
    image = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    image.putpixel((0, 0), (255, 0, 0, 255))
    assert opened(await shown(encoded(image, "PNG"), VISION)).getpixel((4, 4)) == (255, 255, 255)
    blank = await shown(encoded(Image.new("RGB", (8, 8), "white"), "PNG"), VISION)
    assert opened(blank).getpixel((4, 4)) == (255, 255, 255)


def bomb(width: int, height: int) -> bytes:
    """A PNG of so many pixels in a few kB."""
    packer = zlib.compressobj(9)
    row = packer.compress(bytes(1 << 20)) + packer.flush()

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", row) + chunk(b"IEND", b"")


JPEG = encoded(halves(), "JPEG")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (bomb(30_000, 30_000), "the picture has 30,000 x 30,000 pixels, more than can be read"),
        (b"<?xml version='1.0'?><svg/>", "an SVG is a drawing in text, which read_file reads"),
        (b"BM" + bytes(60), "only png, jpeg, gif, webp can be shown"),
        (bytes(30), "only png, jpeg, gif, webp can be shown"),
        (encoded(halves(), "PNG")[:20], DAMAGED),
        (encoded(halves(), "PNG")[:60], DAMAGED),
        (JPEG[:200], DAMAGED),
        (b"\xff\xd8\xff" + bytes(300), DAMAGED),
        (bomb(0, 4), DAMAGED),
        (JPEG + bytes(20 << 20), "the picture has more than 20 MB"),
    ],
    ids=["bomb", "svg", "bmp", "noise", "head", "half-png", "half-jpeg", "jpeg", "empty", "large"],
)
async def test_what_cannot_be_shown_is_refused_in_a_sentence(content: bytes, why: str) -> None:
    with pytest.raises(ToolError) as caught:
        await shown(content, VISION)
    assert str(caught.value) == why


async def test_a_picture_of_more_memory_than_is_allowed_ends_its_own_process_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.pictures.MEMORY", 64 << 20)
    with pytest.raises(ToolError):
        await shown(encoded(Image.new("RGB", (7000, 7000)), "PNG"), VISION)


def test_facts_are_read_from_the_first_bytes() -> None:
    facts = facts_of(encoded(halves(30, 20), "JPEG", 6)[:400] + JPEG[400:])
    assert (facts.kind, facts.size, facts.turn) == ("image/jpeg", (20, 30), 6)


def test_of_a_jpeg_no_more_than_a_thousand_segments_are_looked_at() -> None:
    photo = encoded(halves(20, 30), "JPEG")
    begin, comment = photo[:2], b"\xff\xfe\0\2"
    assert facts_of(begin + 900 * comment + photo[2:]).size == (20, 30)
    with pytest.raises(ToolError, match=DAMAGED):
        facts_of(begin + 1000 * comment + photo[2:])


def test_of_two_exif_blocks_the_first_one_counts() -> None:
    first, second = (encoded(halves(20, 30), "JPEG", turn) for turn in (6, 3))
    begin = first[: first.index(b"\xff\xdb")]  # up to the tables of the picture itself
    assert facts_of(begin + second[2:]).turn == 6
