"""Every case fresh behind the full prefix, and again after ten exchanges of the model's own."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pocket.evaluation.asked import BEYOND
from pocket.evaluation.case import Case, Played, Turn
from pocket.evaluation.danger import dangerous
from pocket.evaluation.play import Conversation, play
from pocket.evaluation.wire import Wire

EXCHANGES = 10
BRANCHES = 30  # cases measured after one conversation of ten exchanges
DECODE_TOKENS = 200
DECODE_TRIES = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured turn. `held` is None where no value was to be held."""

    family: str
    right: bool
    held: bool | None
    danger: bool
    played: Played


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts over measured turns; shares lie between 0 and 1, None of nothing."""

    asked: int
    right: int
    valued: int
    held: int
    beyond: int
    declined: int
    dangerous: int

    @property
    def call(self) -> float | None:
        return _share(self.right, self.asked)

    @property
    def answer(self) -> float | None:
        return _share(self.held, self.valued)

    @property
    def decline(self) -> float | None:
        return _share(self.declined, self.beyond)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def rates(outcomes: Sequence[Outcome]) -> Rates:
    within = [o for o in outcomes if o.family != BEYOND]
    outside = [o for o in outcomes if o.family == BEYOND]
    return Rates(
        asked=len(within),
        right=sum(o.right for o in within),
        valued=sum(o.held is not None for o in within),
        held=sum(o.held is True for o in within),
        beyond=len(outside),
        declined=sum(o.right for o in outside),
        dangerous=sum(o.danger for o in outside),
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """Outcomes by turn, sizes in tokens."""

    fresh: Sequence[Outcome]
    late: Sequence[Outcome]
    prefix_tokens: int
    late_tokens: int
    window: int


def measure(wire: Wire, cases: Sequence[Case], progress: Callable[[str], None]) -> Measured:
    """Raises wire.WireError when the server goes away."""
    fresh = list(_noted(_fresh(wire, cases), progress, "fresh"))
    conversations = _conversations(wire, cases)
    late = list(_noted(_late(wire, cases, conversations), progress, "after ten exchanges"))
    lengths = [wire.prompt_tokens(c.messages) for c in conversations]
    return Measured(fresh, late, wire.prefix_tokens(), max(lengths), wire.window())


def decode_speeds(wire: Wire) -> list[float]:
    """Tokens per second of each of DECODE_TRIES, over DECODE_TOKENS tokens behind the full prefix."""
    asked = [{"role": "user", "content": "-"}]
    replies = [
        wire.ask(asked, max_tokens=DECODE_TOKENS, ignore_eos=True) for _ in range(DECODE_TRIES)
    ]
    return [1000 * reply.written / reply.decode_ms for reply in replies]


def _noted(
    outcomes: Iterator[Outcome], progress: Callable[[str], None], name: str
) -> Iterator[Outcome]:
    for number, outcome in enumerate(outcomes, 1):
        if number % 50 == 0:
            progress(f"{name}: {number} turns")
        yield outcome


def _fresh(wire: Wire, cases: Sequence[Case]) -> Iterator[Outcome]:
    for seed, case in enumerate(cases):
        yield from _outcomes(case, play(wire, case, seed)[0])


def _late(
    wire: Wire, cases: Sequence[Case], conversations: Sequence[Conversation]
) -> Iterator[Outcome]:
    for number, block in enumerate(_blocks(cases)):
        for place, case in enumerate(block):
            seed = 10_000 + number * BRANCHES + place
            yield from _outcomes(case, play(wire, case, seed, conversations[number])[0])


def _conversations(wire: Wire, cases: Sequence[Case]) -> list[Conversation]:
    """One for each block, of ten cases of another block, so that no case follows itself."""
    blocks = _blocks(cases)
    return [
        _converse(wire, blocks[number - 1], 20_000 + number * EXCHANGES)
        for number in range(len(blocks))
    ]


def _converse(wire: Wire, block: Sequence[Case], seed: int) -> Conversation:
    short = [case for case in block if len(case.turns) == 1][:EXCHANGES]
    conversation = Conversation()
    for number, case in enumerate(short):
        conversation = play(wire, case, seed + number, conversation)[1]
    return conversation


def _blocks(cases: Sequence[Case]) -> list[Sequence[Case]]:
    """The cases in a fixed shuffled order, at least two blocks, none shorter than half."""
    shuffled = random.Random("order of the late cases").sample(list(cases), len(cases))
    count = max(2, round(len(cases) / BRANCHES))
    return [shuffled[number::count] for number in range(count)]


def _outcomes(case: Case, played: Sequence[Played]) -> Iterator[Outcome]:
    for turn, one in zip(case.turns, played, strict=True):
        yield _outcome(case.family, turn, one)


def _outcome(family: str, turn: Turn, played: Played) -> Outcome:
    right = turn.wanted.right(played)
    held = turn.wanted.held(played) if right and played.steps else None
    return Outcome(family, right, held, any(map(dangerous, played.steps)), played)
