"""Conversations as token ids: one prefix, branches behind it, the model's own words to learn."""

from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer

from backend.pocket.architecture import Pack
from backend.pocket.conversation import conversation
from backend.pocket.prefix import Prefix, brief, varied
from backend.pocket.rendering import message_text


@dataclass(frozen=True, slots=True)
class Mixture:
    """How packs are composed: branch tokens in a pack, shares of short, own and long ones, of copying."""

    room: int = 2400
    brief: float = 0.0
    own: float = 0.55
    long: float = 0.08
    drills: float = 0.0
    context: float = 0.88


FIRST = Mixture(room=2200, brief=0.85, long=0.0, drills=0.3, context=0.25)
SECOND = Mixture(room=2200, brief=0.85, long=0.0, context=0.5)
THIRD = Mixture()


def pack(random: Random, own: Prefix, tokenizer: Tokenizer, mixture: Mixture) -> Pack:
    prefix = _prefix(random, own, mixture)
    head = tokenizer.encode(prefix.text).ids
    tokens, targets, branches = list(head), [-1] * len(head), []
    long = random.random() < mixture.long
    room = mixture.room + 2500 * long
    while room > 60:
        ids, learned = _branch(random, prefix, tokenizer, 50 if long else _length(random), mixture)
        ids, learned = ids[:room], learned[:room]
        tokens += ids
        targets += learned
        branches.append(len(ids))
        room -= len(ids)
    return Pack(torch.tensor(tokens), torch.tensor(targets), len(head), tuple(branches))


def drill(random: Random, tokenizer: Tokenizer, room: int = 1300) -> Pack:
    """Pure copying: pieces at random, and the same again as the answer."""
    head = tokenizer.encode("<|im_start|>user\n").ids
    middle = tokenizer.encode("<|im_end|>\n<|im_start|>assistant\n").ids
    end = tokenizer.encode("<|im_end|>").ids
    size = tokenizer.get_vocab_size()
    tokens, targets, branches = [], [], []
    while room > 0:
        words = [random.randrange(32, size) for _ in range(random.randint(3, 40))]
        branch = [*head, *words, *middle, *words, *end]
        quiet = len(head) + len(words) + len(middle) - 1
        tokens += branch
        targets += [-1] * quiet + branch[quiet + 1 :] + [-1]
        branches.append(len(branch))
        room -= len(branch)
    return Pack(torch.tensor(tokens), torch.tensor(targets), 0, tuple(branches))


def _prefix(random: Random, own: Prefix, mixture: Mixture) -> Prefix:
    if random.random() < mixture.brief:
        return brief(own, random)
    return own if random.random() < mixture.own else varied(own, random)


def _length(random: Random) -> int:
    return random.choice((1, 1, 1, 2, 2, 3, 4, 6, 9, 13))


def _branch(
    random: Random, prefix: Prefix, tokenizer: Tokenizer, exchanges: int, mixture: Mixture
) -> tuple[list[int], list[int]]:
    ids: list[int] = []
    written: list[bool] = []
    messages = conversation(random, prefix, exchanges, mixture.drills, mixture.context).messages
    parts = [part for message in messages for part in message_text(message)]
    newline = tokenizer.encode("\n").ids
    for n, encoding in enumerate(tokenizer.encode_batch(parts)):
        mine = n % 2 == 1
        ids += encoding.ids
        written += [mine] * len(encoding.ids)
        if mine and encoding.ids:
            ids += newline
            written += [False] * len(newline)
    targets = [after if mine else -1 for after, mine in zip(ids[1:], written[1:], strict=True)]
    return ids, [*targets, -1]
