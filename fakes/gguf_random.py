"""Models of real shapes with random weights: what a card computes costs what the real model costs.

    path = make_random(folder / "m.gguf", fitting(SHAPES["gpt-oss-20b"], 14 << 30))

Zeros would not do: a card that multiplies zeros draws less power and is faster.
Weights are Q4_K where a row allows it, else Q5_0; the vocabulary is Pocket's,
filled up to the real size, so that the server can tokenize.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from fakes.gguf_maker import TEMPLATE
from fakes.gguf_shapes import Shape, StoredTensor, tensors, write_header

POCKET = Path(__file__).parents[1] / "backend/embedded/pocket.gguf"
END = "<|im_end|>"
Type = gguf.GGMLQuantizationType
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
PIECE = 16 << 20  # bytes of weights that repeat
# Standard deviation of a weight whose scale is 1: of Q4_K's d * scale * q - 7.5 * d * minimum
# with all fields uniform, and of Q5_0's d * (q - 16).
SPREAD = {Type.Q4_K: 258.0, Type.Q5_0: 9.2}
THINNED = (
    "embedding_length",
    "feed_forward_length",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
)


def make_random(path: Path, shape: Shape, *, seed: int = 0) -> Path:
    """Write the model; the same seed gives the same bytes."""
    random = np.random.default_rng(seed)
    stored = write_header(
        path, shape, lambda writer: _tokenizer(writer, shape.vocabulary), weight_type
    )
    pieces: dict[tuple[Type, int], Bytes] = {}
    with path.open("ab") as file:
        for tensor in stored:
            if tensor.type == Type.F32:
                file.write(plain(tensor, random))
                continue
            key = tensor.type, tensor.dimensions[0]
            if key not in pieces:
                pieces[key] = piece(*key, random)
            _write_repeated(file, pieces[key], tensor.size, random, tensor.type)
    return path


def weight_type(row: int) -> Type:
    return Type.Q4_K if row % 256 == 0 else Type.Q5_0


def size_of(shape: Shape) -> int:
    """Bytes of the weights, roughly."""
    each = {kind: of[1] / of[0] for kind, of in gguf.GGML_QUANT_SIZES.items()}
    return round(sum(int(np.prod(d)) * each[weight_type(d[0])] for _, d in tensors(shape)))


def fitting(shape: Shape, room: int) -> Shape:
    """The shape with as many of its layers as make at most `room` bytes."""
    layers = int(shape.values["block_count"])
    while size_of(shape) > room and layers > 6:
        layers -= 1
        shape = with_layers(shape, layers)
    return shape


def with_layers(shape: Shape, layers: int) -> Shape:
    count = shape.values["block_count"]
    values = {
        key: value[:layers] if isinstance(value, list) and len(value) == count else value
        for key, value in shape.values.items()
    }
    return replace(shape, values={**values, "block_count": layers})


def shrunk(shape: Shape) -> Shape:
    """Something of the same kind that a processor computes in moments."""
    layers = 6 + int(shape.values.get("nextn_predict_layers", 0))
    small = with_layers(shape, min(layers, int(shape.values["block_count"])))
    less: dict[str, Any] = {"embedding_length": 512, "feed_forward_length": 512}
    if "expert_count" in small.values:
        less |= {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 512}
    return replace(small, vocabulary=8192, values={**small.values, **less})


def narrowed(shape: Shape) -> Shape:
    """All its layers with the caches and states of the real model, between them as little as can be."""
    thin: dict[str, Any] = {name: 64 for name in THINNED if name in shape.values}
    if isinstance(hidden := shape.values["feed_forward_length"], list):
        thin |= {"feed_forward_length": [min(size, 64) for size in hidden]}
    few = {"expert_count": 8, "expert_used_count": 2} if "expert_count" in shape.values else {}
    return replace(shape, vocabulary=8192, values={**shape.values, **thin, **few})


def plain(tensor: StoredTensor, random: np.random.Generator) -> bytes:
    """The bytes of what is not quantized: norms and scales are 1, biases 0, decays negative."""
    count = tensor.size // 4
    if tensor.name.endswith("bias"):
        values = np.zeros(count)
    elif tensor.name.endswith("ssm_a"):
        values = -1 - random.random(count)
    elif len(tensor.dimensions) == 1:
        values = np.ones(count)
    else:
        values = random.standard_normal(count) / tensor.dimensions[0] ** 0.5
    return values.astype(np.float32).tobytes()


def piece(kind: Type, row: int, random: np.random.Generator) -> Bytes:
    """Random blocks whose weights spread as 1 / sqrt(row)."""
    block = gguf.GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (PIECE // block, block), np.uint8)
    scale = 1 / SPREAD[kind] / row**0.5
    fields = [scale, 7.5 * scale] if kind == Type.Q4_K else [scale]
    head = np.array(fields, np.float16).view(np.uint8)
    blocks[:, : len(head)] = head
    return blocks.reshape(-1)


def _write_repeated(
    file: Any, piece: Bytes, size: int, random: np.random.Generator, kind: Type
) -> None:
    """`size` bytes of the piece, from another block on each time."""
    block = gguf.GGML_QUANT_SIZES[kind][1]
    view = memoryview(piece.tobytes())
    at = int(random.integers(len(piece) // block)) * block
    while size:
        part = view[at : at + size]
        file.write(part)
        size, at = size - len(part), 0


@cache
def _pocket() -> Mapping[str, Any]:
    fields = gguf.GGUFReader(str(POCKET)).fields
    names = ("tokens", "token_type", "merges", "pre")
    return {name: fields[f"tokenizer.ggml.{name}"].contents() for name in names}


def _tokenizer(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    known = _pocket()
    own = list(known["tokens"])
    rest = vocabulary - len(own)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(str(known["pre"]))
    writer.add_token_list([*own, *(f"<filler{number}>" for number in range(rest))])
    writer.add_token_types([*known["token_type"], *([1] * rest)])
    writer.add_token_merges(list(known["merges"]))
    writer.add_eos_token_id(own.index(END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
