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
from typing import Any

import gguf
import numpy as np

from fakes.gguf_maker import Kind, Shape, _header, _tensors

POCKET = Path(__file__).parents[1] / "backend/embedded/pocket.gguf"
WIDTH = 64
WINDOW = 512  # tokens
# Single tokens of every family that has them: Gemma 4's empty thought is four, and llama-server keeps a checkpoint
# four tokens before a prompt's end.
TAGS = ("<think>", "</think>", "<|channel>", "thought", "<channel|>")
# Full attention, hybrid, sliding windows.
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
    shape = Shape(kind, LAYERS[kind], WIDTH, hidden=WIDTH, context=context, window=WINDOW)
    _header(writer, shape, len(tokens))
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
    _weights(writer, shape, len(tokens), list(ids.values()), tokens.index(end))
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


def _weights(
    writer: gguf.GGUFWriter, shape: Shape, tokens: int, spoken: Sequence[int], end: int
) -> None:
    """Layers that add nothing. The first dimension says that a text was just spoken."""
    embedding = np.full((tokens, WIDTH), 0.0, np.float32)
    embedding[:, 1] = 1.0
    embedding[list(spoken), :2] = (1.0, 0.0)
    output = np.zeros((tokens, WIDTH), np.float32)
    output[end, 0] = END_STRENGTH
    if shape.kind == "lfm2":  # the output layer is the input embedding
        embedding[end, :2] = (END_STRENGTH, 0.0)
    known = {"token_embd.weight": embedding, "output.weight": output}
    for name, size in _tensors(shape, tokens):
        weights = np.ones(size) if len(size) == 1 else np.zeros(size)
        writer.add_tensor(name, known.get(name, weights.astype(np.float32)))
