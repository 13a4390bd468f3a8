"""Conversations as token ids: one prefix, branches behind it, the model's own words to learn."""

from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer

from pocket.architecture import Pack
from pocket.conversation import conversation
from pocket.dialogue import Answer, Call, Message
from pocket.prefix import Prefix, bare, brief, varied
from pocket.rendering import message_text

DECISION = 6.0
OPENING = 5
ANSWER = 100.0


@dataclass(slots=True)
class Row:
    """Tokens, and the weight with which each is learned; 0: given, not learned."""

    tokens: list[int]
    weights: list[float]


@dataclass(frozen=True, slots=True)
class Mixture:
    """How packs are composed.

    `room` is branch tokens in a pack, `lengths` are exchanges in a branch; the
    rest are shares: packs without prefix, of the others those with a short one,
    of the others those with the product's own; long packs; copying; context blocks;
    branches that end with their first call.
    """

    room: int = 2432
    lengths: tuple[int, ...] = (1, 1, 1, 2, 2, 3, 4, 6, 9, 13)
    bare: float = 0.0
    brief: float = 0.0
    own: float = 0.55
    long: float = 0.08
    drills: float = 0.0
    context: float = 0.88
    calls: float = 0.0


# A wish alone comes first, mostly without what follows its call, which is as long again:
# what to do is learned from few words at once, and later found among many.
FIRST = Mixture(room=1792, lengths=(1,), bare=1.0, long=0.0, context=0.0, calls=0.6)
SECOND = Mixture(
    room=2176, lengths=(1, 1, 1, 2, 2, 3, 5, 8), bare=0.2, brief=0.7, long=0.0, context=0.5
)
THIRD = Mixture()
# Between the long ones, wishes alone again: they cost a quarter of the time.
ALONE = Mixture(room=1792, lengths=(1, 1, 1, 2), bare=1.0, long=0.0, context=0.5)
# At the end, what the product meets: its own prefix, conversations that have lasted for long.
LAST = Mixture(lengths=(1, 6, 13, 16, 16), own=0.9)


def pack(
    random: Random, own: Prefix, tokenizer: Tokenizer, mixture: Mixture, long: bool = False
) -> Pack:
    prefix = _prefix(random, own, mixture)
    head = tokenizer.encode(prefix.text).ids
    row = Row(list(head), [0.0] * len(head))
    branches = []
    room = mixture.room + 2560 * long - len(head) % 128
    while room:
        branch = _branch(
            random, prefix, tokenizer, 50 if long else random.choice(mixture.lengths), mixture
        )
        branches.append(min(room, len(branch.tokens)))
        row.tokens += branch.tokens[:room]
        row.weights += branch.weights[:room]
        room -= branches[-1]
    return _packed(row, len(head), branches)


def _packed(row: Row, prefix: int, branches: list[int]) -> Pack:
    """What is weighted is learned where it is predicted: one token earlier."""
    tokens = torch.tensor(row.tokens)
    weights = torch.tensor([*row.weights[1:], 0.0])
    starts = torch.tensor([prefix, *branches]).cumsum(0) - 1
    weights[starts[starts >= 0]] = 0.0
    targets = torch.where(weights > 0, tokens.roll(-1), -1)
    return Pack(tokens, targets, weights, prefix, tuple(branches))


def drill(random: Random, tokenizer: Tokenizer, room: int = 1280) -> Pack:
    """Pure copying: pieces at random, and the same again as the answer."""
    head = tokenizer.encode("<|im_start|>user\n").ids
    middle = tokenizer.encode("<|im_end|>\n<|im_start|>assistant\n").ids
    end = tokenizer.encode("<|im_end|>").ids
    size, newline = tokenizer.get_vocab_size(), tokenizer.encode("\n").ids[0]
    row, branches = Row([], []), []
    while room:
        words = _scribble(random, size) if random.random() < 0.7 else _lines(random, size, newline)
        branch = [*head, *words, *middle, *words, *end]
        quiet = len(head) + len(words) + len(middle)
        branches.append(min(room, len(branch)))
        row.tokens += branch[:room]
        row.weights += ([0.0] * quiet + [1.0] * (len(branch) - quiet))[:room]
        room -= branches[-1]
    return _packed(row, 0, branches)


def _scribble(random: Random, size: int) -> list[int]:
    """Pieces at random; often of few kinds, so that one token back does not tell the place."""
    kinds = [random.randrange(32, size) for _ in range(random.choice((2, 4, 8, 40, 40)))]
    return [random.choice(kinds) for _ in range(random.randint(3, 40))]


def _lines(random: Random, size: int, newline: int) -> list[int]:
    """Lines that begin and end alike, as names of files do: only what stands further back tells them apart."""
    first, last = ([random.randrange(32, size) for _ in range(random.randint(0, 3))] for _ in "fl")
    lines = [
        [*first, *(random.randrange(32, size) for _ in range(random.randint(1, 3))), *last, newline]
        for _ in range(random.randint(2, 6))
    ]
    return [token for line in lines for token in line]


def _prefix(random: Random, own: Prefix, mixture: Mixture) -> Prefix:
    if random.random() < mixture.bare:
        return bare(own)
    if random.random() < mixture.brief:
        return brief(own, random)
    return own if random.random() < mixture.own else varied(own, random)


def _branch(
    random: Random, prefix: Prefix, tokenizer: Tokenizer, exchanges: int, mixture: Mixture
) -> Row:
    messages = conversation(random, prefix, exchanges, mixture.drills, mixture.context).messages
    if random.random() < mixture.calls and isinstance(messages[1], Call):
        messages = messages[:2]
    texts = [message_text(message) for message in messages]
    given = tokenizer.encode_batch([text for text, _ in texts])
    mine = tokenizer.encode_batch([text for _, text in texts])
    newline = tokenizer.encode("\n").ids
    row = Row([], [])
    for message, before, after in zip(messages, given, mine, strict=True):
        row.tokens += before.ids + after.ids
        row.weights += [0.0] * len(before.ids) + _weights(message, len(after.ids))
        if after.ids:
            row.tokens += newline
            row.weights.append(0.0)
    return row


def _weights(message: Message, tokens: int) -> list[float]:
    """Much for every token of a call, and for an answer's opening; a long answer does not drown the rest.

    What follows from the tokens before is learned soon and costs nothing. Within a value each
    weighs the same: were its end heavier than what continues it, values would end early.
    """
    if isinstance(message, Call | Answer) and not message.learned:
        return [0.0] * tokens
    if isinstance(message, Call):
        return [DECISION] * tokens
    rest = min(DECISION, max(1.0, ANSWER / max(1, tokens)))
    return ([DECISION] * OPENING + [rest] * tokens)[:tokens]
