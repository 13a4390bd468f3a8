"""A projector of images (mmproj) with random weights, in the form of LLaVA 1.5: a server that loads it says
that it sees."""

from pathlib import Path

import gguf
import numpy as np

WIDTH, HIDDEN, HEADS, PATCH, IMAGE = 32, 64, 2, 14, 28


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
        ("block_count", 1),
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
    for norm in ("pre_ln", "blk.0.ln1", "blk.0.ln2"):
        shapes |= {f"v.{norm}.weight": (WIDTH,), f"v.{norm}.bias": (WIDTH,)}
    for part in ("attn_q", "attn_k", "attn_v", "attn_out"):
        shapes |= {f"v.blk.0.{part}.weight": (WIDTH, WIDTH), f"v.blk.0.{part}.bias": (WIDTH,)}
    for part, into, out in (("ffn_up", WIDTH, HIDDEN), ("ffn_down", HIDDEN, WIDTH)):
        shapes |= {f"v.blk.0.{part}.weight": (out, into), f"v.blk.0.{part}.bias": (out,)}
    random = np.random.default_rng(1)
    for name, shape in shapes.items():
        kind = np.float16 if len(shape) == 4 else np.float32
        writer.add_tensor(name, (random.standard_normal(shape) * 0.02).astype(kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
