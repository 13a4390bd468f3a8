"""GGUF files with the shapes of real models and no weights: sparse, so that they take no disk.

    path = make(folder, "qwen3-coder-30b-a3b")

A server maps such a file and logs its buffers as for the real model; with
`--no-warmup` it never reads a weight. Shapes are those of the models'
config.json; the vocabulary is a number alone.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

ALIGNMENT = 32  # bytes
WEIGHTS = gguf.GGMLQuantizationType.Q5_0  # a type that the CPU backend does not repack into memory
Tensors = Iterator[
    tuple[str, tuple[int, ...]]
]  # name, shape as GGUF counts it: the row's length first


@dataclass(frozen=True)
class Shape:
    """`values` are metadata without the architecture's prefix."""

    kind: str
    vocabulary: int
    values: Mapping[str, Any]
    layer: Callable[[Mapping[str, Any], int], Tensors]
    output: bool = True  # False: the output layer is the input embedding

    @property
    def width(self) -> int:
        return int(self.values["embedding_length"])


def make(folder: Path, name: str) -> Path:
    """Write the file of a model in SHAPES or DRAFTERS."""
    shape, path = {**SHAPES, **DRAFTERS}[name], folder / f"{name}.gguf"

    def no_vocabulary(writer: gguf.GGUFWriter) -> None:
        writer.add_string("tokenizer.ggml.model", "no_vocab")
        add_value(writer, f"{shape.kind}.vocab_size", shape.vocabulary)

    stored = write_header(path, shape, no_vocabulary, lambda width: WEIGHTS)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + sum(tensor.size for tensor in stored))
    return path


@dataclass(frozen=True)
class StoredTensor:
    """`size` in bytes, padded to ALIGNMENT."""

    name: str
    dimensions: tuple[int, ...]
    type: gguf.GGMLQuantizationType
    size: int


def write_header(
    path: Path,
    shape: Shape,
    add_tokenizer: Callable[[gguf.GGUFWriter], None],
    type_of: Callable[[int], gguf.GGMLQuantizationType],
) -> list[StoredTensor]:
    """Everything in front of the tensors' bytes; they are to follow in the order of the list.

    `type_of` gives the type of weights whose rows have so many elements.
    """
    writer = gguf.GGUFWriter(path, shape.kind)
    for key, value in shape.values.items():
        add_value(writer, f"{shape.kind}.{key}", value)
    add_tokenizer(writer)
    stored = []
    for tensor, dimensions in tensors(shape):
        plain = (
            len(dimensions) == 1
            or dimensions[0] % 32
            or "gate_inp" in tensor
            or "norm" in tensor
            or tensor.endswith("bias")
        )
        kind = gguf.GGMLQuantizationType.F32 if plain else type_of(dimensions[0])
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        size = int(np.prod(dimensions)) // block * block_bytes
        writer.add_tensor_info(tensor, dimensions[::-1], np.dtype(np.float32), size, kind)
        stored.append(StoredTensor(tensor, dimensions, kind, padded(size)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        file.truncate(padded(path.stat().st_size))
    return stored


def padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def add_value(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_uint32(key, value)


def tensors(shape: Shape) -> Tensors:
    yield "token_embd.weight", (shape.width, shape.vocabulary)
    yield "output_norm.weight", (shape.width,)
    if shape.output:
        yield "output.weight", (shape.width, shape.vocabulary)
    if shape.kind.startswith("gemma4"):
        yield "rope_freqs.weight", (shape.values["attention.key_length"] // 2,)
    if wider := shape.values.get("embedding_length_out"):
        yield "nextn.pre_projection.weight", (2 * wider, shape.width)
        yield "nextn.post_projection.weight", (shape.width, wider)
    for index in range(shape.values["block_count"]):
        for name, dimensions in shape.layer(shape.values, index):
            yield f"blk.{index}.{name}", dimensions


# -- layers -------------------------------------------------------------------


def of(value: Any, index: int) -> int:
    return int(value[index] if isinstance(value, list) else value)


def attention(values: Mapping[str, Any], index: int, *, norms: bool, double: int = 1) -> Tensors:
    """`double` 2: the query carries a gate (Qwen3.5)."""
    width, head = values["embedding_length"], values["attention.key_length"]
    heads, groups = (of(values[f"attention.head_count{kv}"], index) for kv in ("", "_kv"))
    yield "attn_norm.weight", (width,)
    yield "attn_q.weight", (width, heads * head * double)
    yield "attn_k.weight", (width, groups * head)
    yield "attn_v.weight", (width, groups * head)
    yield "attn_output.weight", (heads * head, width)
    if norms:
        yield "attn_q_norm.weight", (head,)
        yield "attn_k_norm.weight", (head,)


def feed_forward(width: int, hidden: int, suffix: str = "") -> Tensors:
    yield f"ffn_gate{suffix}.weight", (width, hidden)
    yield f"ffn_up{suffix}.weight", (width, hidden)
    yield f"ffn_down{suffix}.weight", (hidden, width)


def experts(values: Mapping[str, Any], *, gate: bool = True) -> Tensors:
    width, hidden = values["embedding_length"], values["expert_feed_forward_length"]
    count = values["expert_count"]
    yield "ffn_gate_inp.weight", (width, count)
    if gate:
        yield "ffn_gate_exps.weight", (width, hidden, count)
    yield "ffn_up_exps.weight", (width, hidden, count)
    yield "ffn_down_exps.weight", (hidden, width, count)


def dense(values: Mapping[str, Any], index: int) -> Tensors:
    yield from attention(values, index, norms=True)
    yield "ffn_norm.weight", (values["embedding_length"],)
    yield from feed_forward(values["embedding_length"], values["feed_forward_length"])


def dense_plain(values: Mapping[str, Any], index: int) -> Tensors:
    yield from attention(values, index, norms=False)
    yield "ffn_norm.weight", (values["embedding_length"],)
    yield from feed_forward(values["embedding_length"], values["feed_forward_length"])


def dense_biased(values: Mapping[str, Any], index: int) -> Tensors:
    width = values["embedding_length"]
    for name, shape in attention(values, index, norms=False):
        yield name, shape
        if name in ("attn_q.weight", "attn_k.weight", "attn_v.weight"):
            yield name.replace("weight", "bias"), shape[1:]
    yield "ffn_norm.weight", (width,)
    yield from feed_forward(width, values["feed_forward_length"])


def gemma3(values: Mapping[str, Any], index: int) -> Tensors:
    yield from dense(values, index)
    yield "post_attention_norm.weight", (values["embedding_length"],)
    yield "post_ffw_norm.weight", (values["embedding_length"],)


def qwen3moe(values: Mapping[str, Any], index: int) -> Tensors:
    yield from attention(values, index, norms=True)
    yield "ffn_norm.weight", (values["embedding_length"],)
    yield from experts(values)


def gpt_oss(values: Mapping[str, Any], index: int) -> Tensors:
    width, count = values["embedding_length"], values["expert_count"]
    hidden, heads = values["expert_feed_forward_length"], values["attention.head_count"]
    for name, shape in attention(values, index, norms=False):
        yield name, shape
        if name != "attn_norm.weight":
            yield name.replace("weight", "bias"), shape[1:]
    yield "post_attention_norm.weight", (width,)
    yield "attn_sinks.weight", (heads,)
    yield from experts(values)
    yield "ffn_gate_inp.bias", (count,)
    yield "ffn_gate_exps.bias", (hidden, count)
    yield "ffn_up_exps.bias", (hidden, count)
    yield "ffn_down_exps.bias", (width, count)


def gemma4(values: Mapping[str, Any], index: int) -> Tensors:
    width, count = values["embedding_length"], values["expert_count"]
    hidden = values["expert_feed_forward_length"]
    sliding = values["attention.sliding_window_pattern"][index]
    head = values["attention.key_length_swa" if sliding else "attention.key_length"]
    heads, groups = values["attention.head_count"], values["attention.head_count_kv"][index]
    yield "attn_q.weight", (width, heads * head)
    yield "attn_k.weight", (width, groups * head)
    if sliding:  # elsewhere the keys are the values
        yield "attn_v.weight", (width, groups * head)
    yield "attn_output.weight", (heads * head, width)
    yield "attn_q_norm.weight", (head,)
    yield "attn_k_norm.weight", (head,)
    yield from feed_forward(width, values["feed_forward_length"])
    yield "ffn_gate_inp.weight", (width, count)
    yield "ffn_gate_inp.scale", (width,)
    yield "ffn_gate_up_exps.weight", (width, 2 * hidden, count)
    yield "ffn_down_exps.weight", (hidden, width, count)
    yield "ffn_down_exps.scale", (count,)
    for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "pre_ffw_norm_2", "post_ffw_norm_1", "post_ffw_norm_2"):  # fmt: skip
        yield f"{name}.weight", (width,)


def gemma4_assistant(values: Mapping[str, Any], index: int) -> Tensors:
    """The drafter: its layers see the keys and values of the model that it drafts for."""
    width, heads = values["embedding_length"], values["attention.head_count"]
    sliding = values["attention.sliding_window_pattern"][index]
    head = values["attention.key_length_swa" if sliding else "attention.key_length"]
    yield "attn_q.weight", (width, heads * head)
    yield "attn_output.weight", (heads * head, width)
    yield "attn_q_norm.weight", (head,)
    yield "layer_output_scale.weight", (1,)
    yield from feed_forward(width, values["feed_forward_length"])
    for name in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
        yield f"{name}.weight", (width,)


def deepseek2(values: Mapping[str, Any], index: int) -> Tensors:
    """DeepSeek V2 Lite as its GGUF files of 2024 have it: keys and values of every head are kept."""
    width, heads = values["embedding_length"], values["attention.head_count"]
    rank, key, value = (values[f"attention.{of}"] for of in ("kv_lora_rank", "key_length", "value_length"))  # fmt: skip
    turned = values["rope.dimension_count"]
    yield "attn_norm.weight", (width,)
    yield "attn_q.weight", (width, heads * key)
    yield "attn_kv_a_mqa.weight", (width, rank + turned)
    yield "attn_kv_a_norm.weight", (rank,)
    yield "attn_kv_b.weight", (rank, heads * (key - turned + value))
    yield "attn_output.weight", (heads * value, width)
    yield "ffn_norm.weight", (width,)
    if index < values["leading_dense_block_count"]:
        yield from feed_forward(width, values["feed_forward_length"])
        return
    yield from experts(values)
    shared = values["expert_feed_forward_length"] * values["expert_shared_count"]
    yield from feed_forward(width, shared, "_shexp")


def qwen35(values: Mapping[str, Any], index: int) -> Tensors:
    """Dense or with experts; the last block is the head that drafts (MTP)."""
    width, state = values["embedding_length"], values["ssm.state_size"]
    heads, groups = values["ssm.time_step_rank"], values["ssm.group_count"]
    drafts = index == values["block_count"] - values["nextn_predict_layers"]
    if drafts or (index + 1) % values["full_attention_interval"] == 0:
        yield from attention(values, index, norms=True, double=2)
    else:
        mixed = (2 * groups + heads) * state
        yield "attn_norm.weight", (width,)
        yield "attn_qkv.weight", (width, mixed)
        yield "attn_gate.weight", (width, heads * state)
        yield "ssm_conv1d.weight", (values["ssm.conv_kernel"], mixed)
        yield "ssm_dt.bias", (heads,)
        yield "ssm_a", (heads,)
        yield "ssm_beta.weight", (width, heads)
        yield "ssm_alpha.weight", (width, heads)
        yield "ssm_norm.weight", (state,)
        yield "ssm_out.weight", (heads * state, width)
    yield "post_attention_norm.weight", (width,)
    if values.get("expert_count"):
        yield from experts(values)
        yield "ffn_gate_inp_shexp.weight", (width,)
        yield from feed_forward(width, values["expert_shared_feed_forward_length"], "_shexp")
    else:
        yield from feed_forward(width, values["feed_forward_length"])
    if drafts:
        yield "nextn.eh_proj.weight", (2 * width, width)
        yield "nextn.enorm.weight", (width,)
        yield "nextn.hnorm.weight", (width,)
        yield "nextn.shared_head_norm.weight", (width,)


def nemotron_h_moe(values: Mapping[str, Any], index: int) -> Tensors:
    """Each layer is one of attention, experts, Mamba."""
    width, state = values["embedding_length"], values["ssm.state_size"]
    inner, groups = values["ssm.inner_size"], values["ssm.group_count"]
    heads, mixed = values["ssm.time_step_rank"], inner + 2 * groups * state
    if values["attention.head_count_kv"][index]:
        yield from attention(values, index, norms=False)
        return
    yield "attn_norm.weight", (width,)
    if values["feed_forward_length"][index]:
        yield from experts(values, gate=False)
        yield "exp_probs_b.bias", (values["expert_count"],)
        shared = values["expert_shared_feed_forward_length"]
        yield "ffn_up_shexp.weight", (width, shared)
        yield "ffn_down_shexp.weight", (shared, width)
        return
    yield "ssm_in.weight", (width, 2 * inner + 2 * groups * state + heads)
    yield "ssm_conv1d.weight", (values["ssm.conv_kernel"], mixed)
    yield "ssm_conv1d.bias", (mixed,)
    yield "ssm_dt.bias", (heads,)
    yield "ssm_a", (1, heads)
    yield "ssm_d", (1, heads)
    yield "ssm_norm.weight", (inner // groups, groups)
    yield "ssm_out.weight", (inner, width)


# -- models -------------------------------------------------------------------


def common(layers: int, width: int, heads: int, groups: Any, head: int, hidden: Any) -> dict[str, Any]:  # fmt: skip
    return {
        "block_count": layers,
        "context_length": 262_144,
        "embedding_length": width,
        "feed_forward_length": hidden,
        "attention.head_count": heads,
        "attention.head_count_kv": groups,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": head,
        "rope.freq_base": 1e6,
    }


def moe(count: int, used: int, hidden: int, shared: int = 0) -> dict[str, Any]:
    values = {
        "expert_count": count,
        "expert_used_count": used,
        "expert_feed_forward_length": hidden,
    }
    return {**values, "expert_shared_feed_forward_length": shared} if shared else values


def delta_net(heads: int) -> dict[str, Any]:
    """Qwen3.5 and 3.6: three of four layers are gated delta nets, and one more block drafts."""
    return {
        "full_attention_interval": 4,
        "nextn_predict_layers": 1,
        "rope.dimension_sections": [11, 11, 10, 0],
        "rope.dimension_count": 64,
        "ssm.conv_kernel": 4,
        "ssm.state_size": 128,
        "ssm.group_count": 16,
        "ssm.time_step_rank": heads,
        "ssm.inner_size": 128 * heads,
    }


SLIDING = [layer % 6 != 5 for layer in range(30)]  # Gemma 4: every sixth layer sees all
NEMOTRON = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"  # Mamba, experts, attention

SHAPES = {
    "qwen2.5-3b": Shape("qwen2", 151_936, common(36, 2048, 16, 2, 128, 11_008), dense_biased, output=False),
    "qwen3-4b": Shape("qwen3", 151_936, common(36, 2560, 32, 8, 128, 9728), dense, output=False),
    "gemma3-4b": Shape("gemma3", 262_208, {
        **common(34, 2560, 8, 4, 256, 10_240), "attention.sliding_window": 1024,
    }, gemma3, output=False),
    "qwen3-coder-30b-a3b": Shape("qwen3moe", 151_936, {
        **common(48, 2048, 32, 4, 128, 5472), **moe(128, 8, 768),
    }, qwen3moe),
    "gpt-oss-20b": Shape("gpt-oss", 201_088, {
        **common(24, 2880, 64, 8, 64, 2880), **moe(32, 4, 2880), "attention.sliding_window": 128,
    }, gpt_oss),
    "gemma4-26b-a4b": Shape("gemma4", 262_144, {
        **common(30, 2816, 16, [8 if sliding else 2 for sliding in SLIDING], 512, 2112), **moe(128, 8, 704),
        "attention.sliding_window": 1024, "attention.sliding_window_pattern": SLIDING,
        "attention.key_length_swa": 256, "attention.value_length_swa": 256, "rope.dimension_count_swa": 256,
        "embedding_length_per_layer_input": 0,
    }, gemma4, output=False),
    "qwen3.6-35b-a3b": Shape("qwen35moe", 248_320, {
        **common(41, 2048, 16, 2, 256, 512), **moe(256, 8, 512, 512), **delta_net(32),
    }, qwen35),
    "qwen3.6-27b": Shape("qwen35", 248_320, {
        **common(65, 5120, 24, 4, 256, 17_408), **delta_net(48),
    }, qwen35),
    "devstral-small-2-24b": Shape("mistral3", 131_072, common(40, 5120, 32, 8, 128, 32_768), dense_plain),
    "llama3.3-70b": Shape("llama", 128_256, common(80, 8192, 64, 8, 128, 28_672), dense_plain),
    "deepseek-coder-v2-lite": Shape("deepseek2", 102_400, {
        **common(27, 2048, 16, 16, 192, 10_944), **moe(64, 6, 1408), "attention.value_length": 128,
        "attention.kv_lora_rank": 512, "rope.dimension_count": 64, "leading_dense_block_count": 1,
        "expert_shared_count": 2, "expert_weights_scale": 1.0,
    }, deepseek2),
    "nemotron-3-nano-30b-a3b": Shape("nemotron_h_moe", 131_072, {
        **common(52, 2688, 32, [2 if kind == "*" else 0 for kind in NEMOTRON], 128,
                 [1856 if kind == "E" else 0 for kind in NEMOTRON]),
        **moe(128, 6, 1856, 3712), "expert_shared_count": 1, "expert_weights_norm": True, "expert_weights_scale": 2.5,
        "expert_group_count": 1, "expert_group_used_count": 1, "attention.layer_norm_epsilon": 1e-5,
        "ssm.conv_kernel": 4, "ssm.state_size": 128, "ssm.group_count": 8, "ssm.time_step_rank": 64, "ssm.inner_size": 4096,
    }, nemotron_h_moe),
}  # fmt: skip

DRAFTERS = {
    "gemma4-26b-a4b-mtp": Shape("gemma4-assistant", 262_144, {
        **common(4, 1024, 16, [8, 8, 8, 2], 512, 8192), "embedding_length_out": 2816, "nextn_predict_layers": 4,
        "attention.shared_kv_layers": 4, "attention.sliding_window": 1024,
        "attention.sliding_window_pattern": [True, True, True, False],
        "attention.key_length_swa": 256, "attention.value_length_swa": 256, "rope.dimension_count_swa": 256,
    }, gemma4_assistant, output=False),
}  # fmt: skip
