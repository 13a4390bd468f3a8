"""A GGUF that says one of several given texts, chosen by the request's `logit_bias`.

Each text is one token of the vocabulary, so the real server generates it whatever
its format is: its parser reads it, its template renders it again, and `cache_n` tells
what of it was found. The other tokens are Pocket's (byte-level BPE), so that counts
of tokens are those of a small real vocabulary, about 3.5 characters each.

It can have the layers of a hybrid (short convolutions, whose state cannot go back) or
of a sliding-window model (whose cache forgets), as the prompt caches of those differ.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np

POCKET = Path(__file__).parents[1] / "backend/embedded/pocket.gguf"
WIDTH = 64
Kind = Literal["llama", "lfm2", "gemma3"]  # full attention, hybrid, sliding windows
WINDOW = 512  # tokens
# Single tokens of every family that has them: Gemma 4's empty thought is four, and llama-server keeps a checkpoint
# four tokens before a prompt's end.
TAGS = ("<think>", "</think>", "<|channel>", "thought", "<channel|>")
LAYERS: Mapping[Kind, int] = {"llama": 1, "lfm2": 2, "gemma3": 2}
END_STRENGTH = 1000.0  # above any bias: after a text comes the end
BIAS = 100.0


def make_scripted(
    path: Path,
    texts: Sequence[str],
    template: str,
    *,
    end: str = "<|im_end|>",
    context: int = 32768,
    kind: Kind = "llama",
) -> dict[str, int]:
    """Write the model and return each text's token id. `end` is the template's end of a turn."""
    base, merges, pre = _vocabulary()
    known = set(base)
    own = [text for text in dict.fromkeys([end, *TAGS, *texts]) if text not in known]
    tokens = [*base, *own]
    kinds = [1] * len(base) + [3 if text == end else 4 for text in own]
    writer = gguf.GGUFWriter(str(path), kind)
    _shape(writer, kind, context, len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(merges))
    writer.add_eos_token_id(tokens.index(end))
    writer.add_bos_token_id(tokens.index(end))
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)
    ids = {text: tokens.index(text) for text in texts}
    _tensors(writer, kind, len(tokens), list(ids.values()), tokens.index(end))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return ids


def saying(id: int) -> dict[str, Any]:
    """Sampling by which the model says that text and ends."""
    return {"logit_bias": [[id, BIAS]], "temperature": 0.0}


@cache
def _vocabulary() -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Pocket's ordinary tokens, merges and the name of its splitting."""
    fields = gguf.GGUFReader(str(POCKET)).fields
    types = fields["tokenizer.ggml.token_type"].contents()
    tokens = fields["tokenizer.ggml.tokens"].contents()
    plain = tuple(token for token, kind in zip(tokens, types, strict=True) if kind == 1)
    merges = tuple(fields["tokenizer.ggml.merges"].contents())
    return plain, merges, str(fields["tokenizer.ggml.pre"].contents())


def _shape(writer: gguf.GGUFWriter, kind: Kind, context: int, tokens: int) -> None:
    writer.add_name("scripted")
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS[kind])
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(2)
    writer.add_head_count_kv([0, 1] if kind == "lfm2" else 1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_key_length(WIDTH // 2)
    writer.add_value_length(WIDTH // 2)
    writer.add_vocab_size(tokens)
    if kind == "lfm2":
        writer.add_shortconv_l_cache(3)
    if kind == "gemma3":
        writer.add_sliding_window(WINDOW)


def _tensors(
    writer: gguf.GGUFWriter, kind: Kind, tokens: int, spoken: Sequence[int], end: int
) -> None:
    """Layers that add nothing. The first dimension says that a text was just spoken."""
    embedding = np.full((tokens, WIDTH), 0.0, np.float32)
    embedding[:, 1] = 1.0
    embedding[list(spoken), :2] = (1.0, 0.0)
    if kind == "llama":
        output = np.zeros((tokens, WIDTH), np.float32)
        output[end, 0] = END_STRENGTH
        writer.add_tensor("output.weight", output)
    else:  # the output layer is the input embedding
        embedding[end, :2] = (END_STRENGTH, 0.0)
    writer.add_tensor("token_embd.weight", embedding)
    last = "token_embd_norm" if kind == "lfm2" else "output_norm"
    writer.add_tensor(f"{last}.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS[kind]):
        for name, size in _layer(kind, layer).items():
            weights = np.ones(size) if len(size) == 1 else np.zeros(size)
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights.astype(np.float32))


def _layer(kind: Kind, layer: int) -> Mapping[str, tuple[int, ...]]:
    head = WIDTH // 2
    sizes: dict[str, tuple[int, ...]] = {
        "attn_norm": (WIDTH,),
        "ffn_norm": (WIDTH,),
        "ffn_gate": (WIDTH, WIDTH),
        "ffn_up": (WIDTH, WIDTH),
        "ffn_down": (WIDTH, WIDTH),
    }
    if kind == "lfm2" and layer == 0:
        return sizes | {
            "shortconv.conv": (WIDTH, 3),
            "shortconv.in_proj": (3 * WIDTH, WIDTH),
            "shortconv.out_proj": (WIDTH, WIDTH),
        }
    sizes |= {
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (head, WIDTH),
        "attn_v": (head, WIDTH),
        "attn_output": (WIDTH, WIDTH),
    }
    if kind != "llama":
        sizes |= {"attn_q_norm": (head,), "attn_k_norm": (head,)}
    if kind == "gemma3":
        sizes |= {"post_attention_norm": (WIDTH,), "post_ffw_norm": (WIDTH,)}
    return sizes
