"""Small GGUF models with random weights, for tests that need a real server and no sense.

    python -m fakes.gguf_maker OUT.gguf [--kind llama|gemma3|lfm2|qwen3moe] [--context N]

The vocabulary is byte-level BPE with a few merges, the template ChatML with
Hermes tool calls. What such a model writes is noise; token counts, caches,
slots, logs and errors are those of any model of its architecture.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import gguf
import numpy as np

Kind = Literal["llama", "gemma3", "lfm2", "qwen3moe"]

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
<tools>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}</tools>
Call a tool as <tool_call>{"name": NAME, "arguments": ARGUMENTS}</tool_call>.<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.role != 'system' %}<|im_start|>{{ message.role }}
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
EXPERTS = 8
MERGES = ("t h", "th e", "i n", "e r", "a n", "o n", "r e", "Ġ the", "Ġ a", "e n", "an d")


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network; `context` in tokens, `window` the sliding one where there is one, `fillers` the tokens
    that make the vocabulary larger."""

    kind: Kind = "llama"
    layers: int = 2
    width: int = 64
    heads: int = 2
    kv_heads: int = 1
    hidden: int = 128
    context: int = 32768
    window: int = 1024
    fillers: int = 0

    @property
    def head(self) -> int:
        return self.width // self.heads


# Large enough that what it takes of a card is told in MiB: 33 of weights.
MEDIUM = Shape("llama", 6, 256, 8, 2, 768, context=16384, fillers=4000)


def make(
    path: Path, shape: Shape | None = None, *, seed: int = 0, template: str = TEMPLATE
) -> Path:
    """Write a model of `shape` to `path` and return it; the same seed gives the same bytes."""
    shape = shape or Shape()
    tokens = [*vocabulary(), *(f"<filler{n}>" for n in range(shape.fillers))]
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(str(path), shape.kind)
    _header(writer, shape, len(tokens))
    _tokenizer(writer, tokens, template)
    random = np.random.default_rng(seed)
    for name, size in _tensors(shape, len(tokens)):
        writer.add_tensor(name, _weights(random, size))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def vocabulary() -> list[str]:
    """Bytes first, then what the merges give, then the special tokens."""
    return [*_byte_tokens(), *(pair.replace(" ", "") for pair in MERGES), *SPECIALS]


def _byte_tokens() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes, in byte order."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def _header(writer: gguf.GGUFWriter, shape: Shape, tokens: int) -> None:
    writer.add_name(f"noise-{shape.kind}")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(_kv_heads(shape))
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(50_000.0)
    writer.add_vocab_size(tokens)
    if shape.kind == "lfm2":
        writer.add_shortconv_l_cache(3)
    else:
        writer.add_rope_dimension_count(shape.head)
        writer.add_key_length(shape.head)
        writer.add_value_length(shape.head)
    if shape.kind == "gemma3":
        writer.add_sliding_window(shape.window)
    if shape.kind == "qwen3moe":
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(2)
        writer.add_expert_feed_forward_length(_expert_hidden(shape))


def _expert_hidden(shape: Shape) -> int:
    return shape.hidden // 3


def _kv_heads(shape: Shape) -> int | Sequence[int]:
    """Per layer for the hybrid: a layer with no heads is a short convolution."""
    if shape.kind != "lfm2":
        return shape.kv_heads
    return [shape.kv_heads if layer % 2 else 0 for layer in range(shape.layers)]


def _tokenizer(writer: gguf.GGUFWriter, tokens: list[str], template: str) -> None:
    special = [token in SPECIALS[:3] for token in tokens]
    own = [token in SPECIALS[3:] for token in tokens]
    kinds = [3 if control else 4 if user else 1 for control, user in zip(special, own, strict=True)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)


def _tensors(shape: Shape, tokens: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = shape.width
    yield "token_embd.weight", (tokens, width)
    if shape.kind == "lfm2":
        yield "token_embd_norm.weight", (width,)
    else:
        yield "output_norm.weight", (width,)
        yield "output.weight", (tokens, width)
    for layer in range(shape.layers):
        for name, size in _layer(shape, layer):
            yield f"blk.{layer}.{name}.weight", size


def _layer(shape: Shape, layer: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, hidden = shape.width, shape.hidden
    yield "attn_norm", (width,)
    yield from _mixer(shape, layer)
    yield "ffn_norm", (width,)
    if shape.kind == "qwen3moe":
        hidden = _expert_hidden(shape)
        yield "ffn_gate_inp", (EXPERTS, width)
        yield "ffn_gate_exps", (EXPERTS, hidden, width)
        yield "ffn_up_exps", (EXPERTS, hidden, width)
        yield "ffn_down_exps", (EXPERTS, width, hidden)
    else:
        yield "ffn_gate", (hidden, width)
        yield "ffn_up", (hidden, width)
        yield "ffn_down", (width, hidden)
    if shape.kind == "gemma3":
        yield "post_attention_norm", (width,)
        yield "post_ffw_norm", (width,)


def _mixer(shape: Shape, layer: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, head = shape.width, shape.head
    if shape.kind == "lfm2" and layer % 2 == 0:
        yield "shortconv.conv", (width, 3)
        yield "shortconv.in_proj", (3 * width, width)
        yield "shortconv.out_proj", (width, width)
        return
    yield "attn_q", (shape.heads * head, width)
    yield "attn_k", (shape.kv_heads * head, width)
    yield "attn_v", (shape.kv_heads * head, width)
    yield "attn_output", (width, shape.heads * head)
    if shape.kind != "llama":
        yield "attn_q_norm", (head,)
        yield "attn_k_norm", (head,)


def _weights(
    random: np.random.Generator, size: tuple[int, ...]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    if len(size) == 1:
        return np.ones(size, np.float32)
    return np.asarray(random.standard_normal(size) / size[-1] ** 0.5, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="write a small GGUF with random weights")
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", choices=get_args(Kind), default="llama")
    parser.add_argument("--context", type=int, default=Shape().context)
    chosen = parser.parse_args()
    print(make(chosen.out, Shape(kind=chosen.kind, context=chosen.context)))


if __name__ == "__main__":
    main()
