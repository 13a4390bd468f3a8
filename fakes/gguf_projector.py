"""Projectors (mmproj) with random weights: of images in the form of LLaVA 1.5, of sound in that of Qwen2-Audio. A
server that loads one says that it sees or hears."""

from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

WIDTH, HIDDEN, HEADS, PATCH, IMAGE = 32, 64, 2, 14, 28
BLOCKS = 2  # LLaVA takes what comes out of the last but one
MELS, POSITIONS = 80, 1500  # Whisper's encoder: 30 s are 1,500 positions
KERNEL = 3


def make(path: Path, width: int) -> Path:
    """`width` is that of the text model's embeddings."""
    writer = gguf.GGUFWriter(str(path), "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    for key, value in (
        ("image_size", IMAGE),
        ("patch_size", PATCH),
        ("embedding_length", WIDTH),
        ("feed_forward_length", HIDDEN),
        ("projection_dim", width),
        ("block_count", BLOCKS),
        ("attention.head_count", HEADS),
    ):
        writer.add_uint32(f"clip.vision.{key}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    shapes: dict[str, tuple[int, ...]] = {
        "v.class_embd": (WIDTH,),
        "v.patch_embd.weight": (WIDTH, 3, PATCH, PATCH),
        "v.position_embd.weight": ((IMAGE // PATCH) ** 2 + 1, WIDTH),
        "mm.0.weight": (width, WIDTH),
        "mm.0.bias": (width,),
        "mm.2.weight": (width, width),
        "mm.2.bias": (width,),
    }
    shapes |= {f"v.pre_ln.{each}": (WIDTH,) for each in ("weight", "bias")} | transformer("v")
    return written(writer, path, shapes)


def make_speech_to_text(path: Path, width: int) -> Path:
    """`width` is that of the text model's embeddings."""
    writer = gguf.GGUFWriter(str(path), "clip")
    writer.add_bool("clip.has_audio_encoder", True)
    writer.add_string("clip.projector_type", "qwen2a")
    for key, value in (
        ("num_mel_bins", MELS),
        ("embedding_length", WIDTH),
        ("feed_forward_length", HIDDEN),
        ("projection_dim", width),
        ("block_count", BLOCKS),
        ("attention.head_count", HEADS),
    ):
        writer.add_uint32(f"clip.audio.{key}", value)
    writer.add_float32("clip.audio.attention.layer_norm_epsilon", 1e-5)
    shapes: dict[str, tuple[int, ...]] = {
        "a.conv1d.1.weight": (WIDTH, MELS, KERNEL),
        "a.conv1d.1.bias": (WIDTH, 1),
        "a.conv1d.2.weight": (WIDTH, WIDTH, KERNEL),
        "a.conv1d.2.bias": (WIDTH, 1),
        "a.position_embd.weight": (POSITIONS, WIDTH),
        "a.post_ln.weight": (WIDTH,),
        "a.post_ln.bias": (WIDTH,),
        "mm.a.fc.weight": (width, WIDTH),
        "mm.a.fc.bias": (width,),
    }
    shapes |= transformer("a", without_bias=("attn_k",))
    return written(writer, path, shapes)


def transformer(side: str, without_bias: tuple[str, ...] = ()) -> dict[str, tuple[int, ...]]:
    """The tensors of an encoder's blocks."""
    shapes: dict[str, tuple[int, ...]] = {}
    attention = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_out"), (WIDTH, WIDTH))
    parts = attention | {"ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)}
    for block in (f"{side}.blk.{number}" for number in range(BLOCKS)):
        for norm in ("ln1", "ln2"):
            shapes |= {f"{block}.{norm}.{each}": (WIDTH,) for each in ("weight", "bias")}
        for part, (out, into) in parts.items():
            shapes[f"{block}.{part}.weight"] = (out, into)
            if part not in without_bias:
                shapes[f"{block}.{part}.bias"] = (out,)
    return shapes


def written(writer: gguf.GGUFWriter, path: Path, shapes: Mapping[str, tuple[int, ...]]) -> Path:
    """The file, its weights random; those of convolutions are of 16 bits."""
    random = np.random.default_rng(1)
    for name, shape in shapes.items():
        convolves = name.endswith("weight") and len(shape) > 2
        kind = np.float16 if convolves else np.float32
        writer.add_tensor(name, (random.standard_normal(shape) * 0.02).astype(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
