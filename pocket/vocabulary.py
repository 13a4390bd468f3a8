"""Byte-level BPE in which a string is the same tokens wherever it stands.

Merges join letters with letters only, so that `notes.txt` is the same tokens
after a space, a quote or a slash: copying is then a plain induction. A few
merges of punctuation come first (JSON, escapes, runs of spaces). The commonest
words are one token with the space before them, but only where they are the whole
word: no merge makes them, so that "island" never begins like "is". `twins` says
which piece is the same word without its space. Up to three digits are one token:
of single ones the same few stand everywhere, and what follows one says little
about where it was copied from. What is always written alike is one token: how a
turn opens, how the call of a tool opens and closes, what is said where nothing can be
done. So which tool it is gets decided in one step, and a call is written in half the
tokens. llama.cpp splits such text with its `llama-bpe` pre-tokeniser, which looks a word
up whole before it merges.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
FIRST_ARGUMENTS = {
    "bash": "command",
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "list_files": "pattern",
    "grep": "pattern",
    "git_status": "repo",
    "git_diff": "repo",
    "git_commit": "repo",
    "remember": "note",
    "recall": "query",
    "schedule": "when",
    "send_file": "path",
}
LATER_ARGUMENTS = "path caption content old new message revision task kind".split()
# llama.cpp cuts out the longest of these first, tokenizers the leftmost: where text can hold
# two that overlap, the longer must be the left one. `, "last": ` before `: {"type"` was not.
WHOLE = (
    *(f"<|im_start|>{role}\n" for role in ("system", "user", "assistant", "tool")),
    *(
        f'<tool_call>\n{{"name": "{tool}", "arguments": {{"{argument}": "'
        for tool, argument in FIRST_ARGUMENTS.items()
    ),
    *(f'", "{argument}": "' for argument in LATER_ARGUMENTS),
    '", "first": ',
    "python3 -c 'print(",
    "I am only a demonstration model",
    ", and this is beyond me. ",
    "For real work, give me a real model.",
    '"}}\n</tool_call>',
    "<context>\nnow: ",
    "\n</context>\n",
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
        '\\ n|\\ "|\\ t|Ġ Ġ|ĠĠ ĠĠ|ĠĠĠĠ ĠĠĠĠ|{ "|" :|" ,|" }|} }|"} }|" ]|Ġ "|Ġ {"|Ċ Ċ|- -|-- -|+ +|++ +|@ @|. .|.. .|` `|`` `|$ (|$( (|) )|> >|Ġ >>|Ġ =|Ġ -|Ġ +|* *|Ġ **|Ġ *|Ġ /|Ġ %|Ġ \'|ĠĠ Ġ|ĠĠĠĠ Ġ|ĠĠĠĠ ĠĠ|ĠĠĠĠĠĠ Ġ|â Ģ|âĢ ľ|âĢ Ŀ'
    ).split("|")
)
_DIGITS = "0123456789"
NUMBERS = tuple("".join(digits) for n in (2, 3) for digits in product(_DIGITS, repeat=n))
JOINED = 300


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Merges by rank, and the words that are one piece with the space before them."""

    merges: tuple[tuple[str, str], ...]
    joined: tuple[str, ...]

    @property
    def pieces(self) -> tuple[str, ...]:
        """All pieces by id."""
        base = sorted(pre_tokenizers.ByteLevel.alphabet())
        merged = (a + b for a, b in self.merges)
        spaced = (_SPACE + word for word in self.joined)
        return (*CONTROL, *WHOLE, *base, *NUMBERS, *merged, *spaced)

    def twins(self) -> list[tuple[int, int]]:
        """(id of a word behind a space, id of the word)."""
        ids = {piece: n for n, piece in enumerate(self.pieces)}
        return [(ids[_SPACE + word], ids[word]) for word in self.joined]


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
    learnt = Vocabulary((*((a, b) for a, b in PUNCTUATION), *letters), tuple(common))
    if not len(learnt.pieces) == len(set(learnt.pieces)) == size:
        raise ValueError(f"{len(learnt.pieces)} pieces, {len(set(learnt.pieces))} different")
    return learnt


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
    built = Tokenizer(models.BPE(vocab=ids, merges=list(vocabulary.merges), ignore_merges=True))
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
    path.write_text(json.dumps(asdict(vocabulary), ensure_ascii=False, indent=0) + "\n", "utf-8")


def load(path: Path) -> Vocabulary:
    saved = json.loads(path.read_text("utf-8"))
    return Vocabulary(tuple((a, b) for a, b in saved["merges"]), tuple(saved["joined"]))
