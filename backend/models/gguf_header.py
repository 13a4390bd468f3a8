"""The header of a GGUF file: a model's metadata and tensors, without its weights.

The gguf library builds a Python object for each token of the vocabulary, which takes
3-7 s and 540 MB for 150,000 tokens (measured); this reader skips them (0.2 s, no
memory), so that it can run before each start of a server.
Format: GGUF version 2 and 3, docs/gguf.md of ggml.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from backend.models.profile import Profile, locate
from backend.protocol import PICTURE_PIXELS

# Value types as `struct` names them; 8 and 9 are strings and arrays.
SCALARS = dict(zip([*range(8), 10, 11, 12], "BbHhIif?Qqd", strict=True))
STRING, ARRAY = 8, 9
KEPT = 1024  # arrays up to this length are kept (per-layer values), longer ones skipped
# The tokens of a vocabulary that are hashed, to tell two vocabularies apart. The first few are left
# out, as in llama.cpp's own comparison (SPEC_VOCAB_CHECK_START_TOKEN_ID).
DIGESTED = range(5, 16_384)


class NotAModel(Exception):
    """The file is not a complete GGUF; `str` is one sentence."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor, without its weights. `size` in bytes, including the padding after it."""

    name: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Header:
    """The header of a GGUF file.

    `values` holds the metadata. Of a long array it has only the length, as `NAME.length`, and for
    strings a hash, as `NAME.digest`.
    """

    values: Mapping[str, Any]
    tensors: tuple[Tensor, ...]

    @cached_property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))

    def get(self, key: str, default: Any = None) -> Any:
        """A value under the architecture's prefix, such as "block_count"."""
        return self.values.get(f"{self.architecture}.{key}", default)

    @property
    def weights(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.size for tensor in self.tensors)

    @property
    def vocabulary(self) -> int:
        return int(self.values.get("tokenizer.ggml.tokens.length") or self.get("vocab_size", 0))


def read_header(path: Path) -> Header:
    """Read the header of `path`. Raises NotAModel if it is damaged, OSError if it cannot be read."""
    with path.open("rb") as file:
        return read_open(file, path.stat().st_size, path.name)


def read_open(file: BinaryIO, size: int, name: str) -> Header:
    """Read the header of an open file of `size` bytes."""
    values: dict[str, Any] = {}
    try:
        magic, version = struct.unpack("<4sI", file.read(8))
        if magic != b"GGUF" or version not in (2, 3):
            raise NotAModel(f"{name} is not a GGUF model.")
        tensors, pairs = struct.unpack("<QQ", file.read(16))
        for _ in range(pairs):
            read_pair(file, values, size)
        found = [read_tensor(file, size) for _ in range(tensors)]
    except (struct.error, UnicodeDecodeError, MemoryError, KeyError):
        raise NotAModel(f"{name} is damaged: its header breaks off or makes no sense.") from None
    align = int(values.get("general.alignment", 32))
    end = size - -(-file.tell() // align) * align
    return Header(values, tuple(sized(found, end)))


def read_pair(file: BinaryIO, values: dict[str, Any], size: int) -> None:
    key = read_text(file, size)
    (kind,) = struct.unpack("<I", file.read(4))
    if kind != ARRAY:
        values[key] = read_value(file, kind, size)
        return
    kind, length = struct.unpack("<IQ", file.read(12))
    values[f"{key}.length"] = length
    if length <= KEPT:
        values[key] = [read_value(file, kind, size) for _ in range(length)]
    elif kind == STRING:
        values[f"{key}.digest"] = digest_strings(file, length, size)
    else:
        file.seek(length * struct.calcsize("<" + SCALARS[kind]), 1)


def read_value(file: BinaryIO, kind: int, size: int) -> Any:
    if kind == STRING:
        return read_text(file, size)
    form = "<" + SCALARS[kind]
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def digest_strings(file: BinaryIO, length: int, size: int) -> str:
    """Skip the strings of an array; return the SHA-1 of those in DIGESTED."""
    digest = hashlib.sha1(usedforsecurity=False)
    for index in range(length):
        length_in_bytes = read_length(file, size)
        if index in DIGESTED:
            digest.update(file.read(length_in_bytes) + b"\0")
        else:
            file.seek(length_in_bytes, 1)
    return digest.hexdigest()


def read_text(file: BinaryIO, size: int) -> str:
    return file.read(read_length(file, size)).decode("utf-8")


def read_length(file: BinaryIO, size: int) -> int:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > size:
        raise KeyError(length)  # longer than the file itself: damaged
    return int(length)


def read_tensor(file: BinaryIO, size: int) -> tuple[str, tuple[int, ...], int]:
    name = read_text(file, size)
    (dimensions,) = struct.unpack("<I", file.read(4))
    shape = struct.unpack(f"<{dimensions}Q", file.read(8 * dimensions))
    _, offset = struct.unpack("<IQ", file.read(12))
    return name, shape, offset


def sized(found: list[tuple[str, tuple[int, ...], int]], end: int) -> list[Tensor]:
    """Compute each size from the next tensor's offset, which needs no table of quantizations."""
    if found and found[-1][2] > end:
        raise NotAModel("The model file is cut off: its last weights are missing.")
    starts = [*sorted(offset for _, _, offset in found), end]
    following = dict(pairwise(starts))
    return [Tensor(name, shape, following[offset] - offset) for name, shape, offset in found]


MIB = 2**20
KIND = "clip.projector_type"
VISION_KIND = "clip.vision.projector_type"  # in a projector that accepts sound, too
# By kind: patches on the side of a token, most tokens of a picture, tokens that the server sizes its buffer for.
ANY_SHAPE = {
    "gemma4v": (3, 280, 256),
    "qwen2vl_merger": (2, 4096, 46 * 46),
    "qwen2.5vl_merger": (2, 4096, 46 * 46),
    "qwen3vl_merger": (2, 4096, 46 * 46),
    "pixtral": (2, 1024, 256),
}
EXTRA_ELEMENTS = 80  # for each patch, measured
UNREAD_COMPUTE = 256 * MIB  # assumed for a projector that is not here yet


def with_projector(profile: Profile, models: Path) -> Profile:
    """The profile with its projector's memory, from the file, else from the size in the profile. Blocks."""
    if profile.mmproj is None:
        return profile
    try:
        needed = projector_bytes(read_header(locate(profile.mmproj, models)))
    except (NotAModel, OSError, TypeError, ValueError):
        needed = profile.mmproj.size + UNREAD_COMPUTE if profile.mmproj.size else 0
    return replace(profile, mmproj_bytes=needed)


def projector_bytes(header: Header) -> int:
    """The weights, and the compute buffer for the largest picture.

    At its peak the buffer holds a feed-forward network's hidden layer, its input and its residual for each
    patch, in float32. This is within 0.2 % of what llama.cpp logged for random weights of three shapes
    in LLaVA's format, with flash attention. A gated network's hidden layer counts twice.
    """
    width, hidden = vision(header, "embedding_length"), vision(header, "feed_forward_length")
    gated = any("ffn_gate" in tensor.name for tensor in header.tensors)
    elements = 2 * width + hidden * (1 + gated) + EXTRA_ELEMENTS
    return header.weights + 4 * patches(header) * elements


def any_shape(header: Header) -> tuple[int, int, int] | None:
    """The row of ANY_SHAPE for this projector; None if it scales pictures to a square."""
    return ANY_SHAPE.get(str(header.values.get(KIND, header.values.get(VISION_KIND))))


def patches(header: Header) -> int:
    """The patches of the picture that the server sizes its buffer for."""
    if kind := any_shape(header):
        side, _, tokens = kind
        return tokens * side * side
    return (vision(header, "image_size") // max(1, vision(header, "patch_size"))) ** 2


def picture_pixels(path: Path) -> int:
    """The pixels of a picture that it uses, at most PICTURE_PIXELS: more only cost tokens and time. Blocks."""
    try:
        header = read_header(path)
        if kind := any_shape(header):
            side, tokens, _ = kind
            used = tokens * (side * vision(header, "patch_size")) ** 2
        else:
            used = vision(header, "image_size") ** 2
    except (NotAModel, OSError, TypeError, ValueError):
        used = 0
    return min(used, PICTURE_PIXELS) or PICTURE_PIXELS


def vision(header: Header, key: str) -> int:
    return int(header.values.get(f"clip.vision.{key}", 0))
