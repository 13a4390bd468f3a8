"""Byte-level BPE in which a string is the same tokens wherever it stands.

Merges join letters with letters only, so that `notes.txt` is the same tokens
after a space, a quote or a slash: copying is then a plain induction. A few
merges of punctuation come first (JSON, escapes, runs of spaces). Last, a space
joins whole common words, never a piece of one; `twins` says which piece is the
same word without it. Up to three digits are one token: of single ones the same
few stand everywhere, and what follows one says little about where it was copied
from. llama.cpp splits such text with its `dbrx` pre-tokeniser.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
WHOLE = (
    "<tool_call>",
    "</tool_call>",
    "<tools>",
    "</tools>",
    "<context>",
    "</context>",
    '{"type": "function", "function": {"name": "',
    ', "description": "',
    ', "parameters": {"type": "object", "properties": {"',
    ': {"type": "string"',
    ': {"type": "integer"',
    '}}, "required": ["',
    '{"name": "',
    ', "arguments": {"',
)
_SPACE = "Ġ"
PUNCTUATION = tuple(
    pair.split(" ")
    for pair in (
        '\\ n|\\ "|\\ t|Ġ Ġ|ĠĠ ĠĠ|ĠĠĠĠ ĠĠĠĠ|{ "|" :|" ,|" }|} }|"} }|" ]|Ġ "|Ġ {"|Ċ Ċ|- -|-- -|+ +|++ +|@ @|. .|.. .|` `|`` `|$ (|$( (|) )|> >|Ġ >>|Ġ =|Ġ -|Ġ +|* *|Ġ **|Ġ *|Ġ /|Ġ %|Ġ \''
    ).split("|")
)
_DIGITS = "0123456789"
_TENS = tuple((a, b) for a in _DIGITS for b in _DIGITS)
# Of three digits the merge applies that joins what their first merge leaves: of two pairs the lower.
NUMBERS = _TENS + tuple(
    (a, b + c) if b + c < a + b else (a + b, c) for a in _DIGITS for b in _DIGITS for c in _DIGITS
)
JOINED = 230


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces by id, merges by rank."""

    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]

    def twins(self) -> list[tuple[int, int]]:
        """(id of a word behind a space, id of the word)."""
        ids = {piece: n for n, piece in enumerate(self.pieces)}
        return [(ids[a + b], ids[b]) for a, b in self.merges if a == _SPACE and b.isalpha()]


def learn(texts: Iterable[str], size: int) -> Vocabulary:
    """A vocabulary of exactly `size` pieces from texts."""
    words, spaced = Counter[str](), Counter[str]()
    for text in texts:
        words.update(re.findall(r"[^\W\d_]+", text))
        spaced.update(re.findall(r"(?<= )[^\W\d_]+", text))
    base = sorted(pre_tokenizers.ByteLevel.alphabet())
    room = size - len(CONTROL) - len(WHOLE) - len(base) - len(PUNCTUATION) - len(NUMBERS) - JOINED
    letters = _letter_merges(words, room)
    known = {a + b for a, b in letters} | set(base)
    common = [w for w, _ in spaced.most_common() if w in known][:JOINED]
    merges = (
        [(a, b) for a, b in PUNCTUATION] + list(NUMBERS) + letters + [(_SPACE, w) for w in common]
    )
    pieces = [*CONTROL, *WHOLE, *base, *(a + b for a, b in merges)]
    if len(pieces) != size or len(set(pieces)) != size:
        raise ValueError(f"{len(pieces)} pieces, {len(set(pieces))} different, {size} wanted")
    return Vocabulary(tuple(pieces), tuple(merges))


def _letter_merges(words: Counter[str], room: int) -> list[tuple[str, str]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + room, initial_alphabet=alphabet, show_progress=False
    )
    # A word weighs less than its count, or the commonest would leave no room for syllables.
    repeated = (word for word, count in sorted(words.items()) for _ in range(int(count**0.75)))
    tokenizer.train_from_iterator(repeated, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in merges][:room]


def tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    ids = {piece: n for n, piece in enumerate(vocabulary.pieces)}
    built = Tokenizer(models.BPE(vocab=ids, merges=list(vocabulary.merges)))
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in CONTROL])
    built.add_tokens([AddedToken(t, normalized=False) for t in WHOLE])
    return built


def save(vocabulary: Vocabulary, path: Path) -> None:
    lines = [" ".join(merge) for merge in vocabulary.merges]
    path.write_text("\n".join([str(len(vocabulary.pieces)), *lines]) + "\n", "utf-8")


def load(path: Path) -> Vocabulary:
    size, *lines = path.read_text("utf-8").splitlines()
    merges = tuple((a, b) for a, b in (line.split(" ") for line in lines))
    base = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = (*CONTROL, *WHOLE, *base, *(a + b for a, b in merges))
    if len(pieces) != int(size):
        raise ValueError(f"{path}: {len(pieces)} pieces, {size} said")
    return Vocabulary(pieces, merges)
