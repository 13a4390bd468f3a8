"""The header of a GGUF file: a model's metadata and tensors, without its weights.

The gguf library builds a Python object for each token of the vocabulary, which takes
3-7 s and 540 MB for 150,000 tokens (measured); this reader skips them (0.2 s, no
memory), so that it can run before each start of a server.
Format: GGUF version 2 and 3, docs/gguf.md of ggml.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

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
    """`size` in bytes, including the padding after it."""

    name: str
    shape: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Header:
    """`values` holds the metadata. Of a long array it has only the length, as `NAME.length`, and for
    strings a hash, as `NAME.digest`."""

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
