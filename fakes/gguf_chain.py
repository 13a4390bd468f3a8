"""A GGUF that always says one given text: each token has one successor, whatever came before.

So what a real server makes of a certain generated text can be seen: how it
parses it, how its template renders it again, and which tokens it has cached.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np

from fakes.gguf_maker import TEMPLATE, Shape, _header, _tensors, vocabulary

WIDTH = 256
STRENGTH = 30.0
END = "<|im_end|>"


def make_chain(
    path: Path, text: str, *, template: str = TEMPLATE, after: str = "\n", context: int = 8192
) -> Path:
    """A model that says `text` behind any prompt that ends with the character `after`."""
    shape = Shape(layers=1, width=WIDTH, heads=4, kv_heads=4, hidden=64, context=context)
    pieces = split(text)
    own = [piece for piece in pieces if piece not in vocabulary()]
    tokens = [*vocabulary(), *own]
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(str(path), shape.kind)
    _header(writer, shape, len(tokens))
    _tokenizer(writer, tokens, len(own), template)
    _network(writer, shape, tokens, [_byte(after), *pieces, END])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def split(text: str) -> list[str]:
    """The text in pieces that the tokenizer finds again in it: at the tags of a call, no smaller.

    Smaller ones would also be found in other places of a prompt, out of step.
    """
    return [piece for piece in re.split(r"(</?tool_call>)", text) if piece]


def _byte(letter: str) -> str:
    """The vocabulary's token of a one-byte character."""
    return vocabulary()[letter.encode()[0]]


def _tokenizer(writer: gguf.GGUFWriter, tokens: Sequence[str], own: int, template: str) -> None:
    """As gguf_maker's, with the last `own` tokens taken literally wherever they stand in a text."""
    specials = ("<|endoftext|>", "<|im_start|>", END)
    literal = {*tokens[len(tokens) - own :], "<tool_call>", "</tool_call>"}
    kinds = [3 if t in specials else 4 if t in literal else 1 for t in tokens]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(list(tokens))
    writer.add_token_types(kinds)
    writer.add_token_merges(["t h", "th e"])
    writer.add_eos_token_id(tokens.index(END))
    writer.add_pad_token_id(tokens.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(template)


def _network(
    writer: gguf.GGUFWriter, shape: Shape, tokens: Sequence[str], chain: Sequence[str]
) -> None:
    """Layers that add nothing; the output layer knows the successor of each token of the chain."""
    random = np.random.default_rng(0)
    embedding = random.standard_normal((len(tokens), WIDTH)).astype(np.float32)
    output = np.zeros((len(tokens), WIDTH), np.float32)
    for token, follower in pairwise(chain):
        output[tokens.index(follower)] += STRENGTH * embedding[tokens.index(token)] / WIDTH
    for name, size in _tensors(shape, len(tokens)):
        value = {"token_embd.weight": embedding, "output.weight": output}.get(name)
        fill = np.ones if len(size) == 1 else np.zeros
        writer.add_tensor(name, fill(size, np.float32) if value is None else value)
