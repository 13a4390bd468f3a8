"""Which flags are the fastest on this machine: one after the other, the best so far kept.

    found = await sweep(profile, measure, threads=(6, 12))

The score is the time of a typical turn. No KV type below q8_0 is tried: what
that costs in recall only the task suite can tell.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from backend.bench import Row
from backend.ladder import DRAFTING
from backend.profile import Profile

READ, WRITE = 1500, 300  # tokens of a typical turn that finds its past cached
DRAFT_LENGTH = ("--spec-draft-n-max", "--draft-max")
Measure = Callable[[Profile], Awaitable[Row | None]]


@dataclass(frozen=True, slots=True)
class Variant:
    """One change to a profile, in words."""

    words: str
    profile: Profile


Axis = Callable[[Profile], Iterator[Variant]]


@dataclass(frozen=True, slots=True)
class Tried:
    """A variant as measured; `row` is None where it did not start."""

    words: str
    profile: Profile
    row: Row | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """`best` is the fastest sound one; `tried` all of them in order, the profile as it is first."""

    best: Tried
    tried: tuple[Tried, ...] = field(default_factory=tuple)

    @property
    def gain(self) -> float:
        """How much faster than the profile as it is: 0.1 is 10 %."""
        before, after = self.tried[0].seconds, self.best.seconds
        return before / after - 1 if before and after else 0.0


def axes(profile: Profile, threads: Sequence[int]) -> list[Axis]:
    """What is varied, one after the other."""
    found: list[Axis] = [_ubatch, lambda now: _threads(now, threads), _kv]
    if profile.draft or profile.flag("--spec-type"):
        found += [_drafting, _draft_length]
    return found


def _ubatch(now: Profile) -> Iterator[Variant]:
    for size in ("256", "512", "1024", "2048"):
        yield Variant(f"-ub {size}", now.with_flag(size, "--ubatch-size", "-ub"))


def _threads(now: Profile, threads: Sequence[int]) -> Iterator[Variant]:
    for count in threads:
        yield Variant(f"-t {count}", now.with_flag(str(count), "--threads", "-t"))


def _kv(now: Profile) -> Iterator[Variant]:
    for kind in ("f16", "q8_0"):
        keys = now.with_flag(kind, "--cache-type-k", "-ctk")
        yield Variant(f"KV {kind}", keys.with_flag(kind, "--cache-type-v", "-ctv"))


def _drafting(now: Profile) -> Iterator[Variant]:
    yield Variant("no drafting", replace(now.without_flags(*DRAFTING), draft=None))


def _draft_length(now: Profile) -> Iterator[Variant]:
    if now.draft or now.flag("--spec-type"):
        for length in ("2", "4", "8"):
            yield Variant(f"{length} drafted", now.with_flag(length, *DRAFT_LENGTH))


def turn_seconds(row: Row | None) -> float | None:
    """Time of a typical turn; None for a row that was throttled or has no figures."""
    if row is None or row.throttled or not row.prefill_tok_s or not row.decode_tok_s:
        return None
    return READ / row.prefill_tok_s + WRITE / row.decode_tok_s


async def sweep(
    profile: Profile,
    measure: Measure,
    threads: Sequence[int],
    told: Callable[[Tried], None] = lambda tried: None,
) -> Found:
    """Measure the profile as it is, then each axis on top of the best so far."""
    best = await _try(Variant("as it is", profile), measure, told)
    tried = [best]
    for axis in axes(profile, threads):
        base = best.profile
        for variant in axis(base):
            if variant.profile == base:
                continue
            one = await _try(variant, measure, told)
            tried.append(one)
            best = one if _better(one, best) else best
    return Found(best, tuple(tried))


async def _try(variant: Variant, measure: Measure, told: Callable[[Tried], None]) -> Tried:
    row = await measure(variant.profile)
    tried = Tried(variant.words, variant.profile, row, turn_seconds(row))
    told(tried)
    return tried


def _better(one: Tried, best: Tried) -> bool:
    if one.seconds is None:
        return False
    return best.seconds is None or one.seconds < best.seconds


def changed_flags(before: Profile, after: Profile) -> dict[str, str]:
    """The flags that the better profile has and the other has not, or has otherwise; "" is none."""
    old = {**before.optional, **before.required}
    new = {**after.optional, **after.required}
    names = [name for name in (*new, *old) if old.get(name) != new.get(name)]
    return {name: new.get(name, "") for name in dict.fromkeys(names)}
