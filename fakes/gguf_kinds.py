"""Small models of several architectures, large enough that a server's log shows their sizes in MiB."""

from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np

from fakes.gguf_maker import SPECIALS, _tokenizer, vocabulary

KINDS = ("llama", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3", "lfm2")
WIDTH, LAYERS, HEADS, KV_HEADS, HEAD, HIDDEN = 256, 6, 8, 2, 32, 768
EXPERTS, EXPERT_HIDDEN, WINDOW = 8, 256, 512
Sizes = Iterator[tuple[str, tuple[int, ...]]]


def make(path: Path, kind: str, context: int = 16384) -> Path:
    writer = gguf.GGUFWriter(str(path), kind)
    tokens = [*vocabulary(), *(f"<filler{n}>" for n in range(4000))]
    _header(writer, kind, context, len(tokens))
    _tokenizer(writer, tokens, "{{ messages[0].content }}")
    random = np.random.default_rng(1)
    for name, size in _tensors(kind, len(tokens)):
        plain = np.ones(size) if len(size) == 1 else random.standard_normal(size) * 0.02
        writer.add_tensor(name, plain.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert SPECIALS
    return path


def _header(writer: gguf.GGUFWriter, kind: str, context: int, tokens: int) -> None:
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    hybrid = [0 if layer % 3 else KV_HEADS for layer in range(LAYERS)]
    writer.add_head_count_kv(hybrid if kind == "lfm2" else KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(tokens)
    if kind == "lfm2":
        writer.add_shortconv_l_cache(3)
    else:
        writer.add_key_length(HEAD)
        writer.add_value_length(HEAD)
        writer.add_rope_dimension_count(HEAD)
    if kind.startswith("gemma"):
        writer.add_sliding_window(WINDOW)
    if kind == "qwen3moe":
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(EXPERT_HIDDEN)


def _tensors(kind: str, tokens: int) -> Sizes:
    yield "token_embd.weight", (tokens, WIDTH)
    yield ("token_embd_norm" if kind == "lfm2" else "output_norm") + ".weight", (WIDTH,)
    if not kind.startswith("gemma") and kind != "lfm2":
        yield "output.weight", (tokens, WIDTH)
    for layer in range(LAYERS):
        for name, size in _layer(kind, layer):
            suffix = "" if name.endswith(".bias") else ".weight"
            yield f"blk.{layer}.{name}{suffix}", size


def _layer(kind: str, layer: int) -> Sizes:
    yield "attn_norm", (WIDTH,)
    if kind == "lfm2" and layer % 3:
        yield "shortconv.conv", (WIDTH, 3)
        yield "shortconv.in_proj", (3 * WIDTH, WIDTH)
        yield "shortconv.out_proj", (WIDTH, WIDTH)
    else:
        yield from _attention(kind)
    yield "ffn_norm", (WIDTH,)
    yield from _feed_forward(kind)
    if kind.startswith("gemma"):
        yield "post_attention_norm", (WIDTH,)
        yield "post_ffw_norm", (WIDTH,)


def _attention(kind: str) -> Sizes:
    for name, heads in (("attn_q", HEADS), ("attn_k", KV_HEADS), ("attn_v", KV_HEADS)):
        yield name, (heads * HEAD, WIDTH)
        if kind == "qwen2":
            yield f"{name}.bias", (heads * HEAD,)
    yield "attn_output", (WIDTH, HEADS * HEAD)
    if kind in ("qwen3", "qwen3moe", "gemma3", "lfm2"):
        yield "attn_q_norm", (HEAD,)
        yield "attn_k_norm", (HEAD,)


def _feed_forward(kind: str) -> Sizes:
    if kind != "qwen3moe":
        yield "ffn_gate", (HIDDEN, WIDTH)
        yield "ffn_up", (HIDDEN, WIDTH)
        yield "ffn_down", (WIDTH, HIDDEN)
        return
    yield "ffn_gate_inp", (EXPERTS, WIDTH)
    yield "ffn_gate_exps", (EXPERTS, EXPERT_HIDDEN, WIDTH)
    yield "ffn_up_exps", (EXPERTS, EXPERT_HIDDEN, WIDTH)
    yield "ffn_down_exps", (EXPERTS, WIDTH, EXPERT_HIDDEN)
