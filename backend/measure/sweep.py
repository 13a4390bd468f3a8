"""`voltaire bench sweep`: which flags are the fastest on this machine, tried one after the other.

    result = await sweep(profile, measure, Choices(threads=(6, 12), flags=known(help_text)))

The score is the time of a typical turn, plus that of a turn whose last message was changed
if the model needs context checkpoints. A better variant is measured again, back to back
with the one that it would replace, because heat and other programs can fake a gain. KV
types below q8_0 are not tried: only the task suite could show what they cost in recall.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from backend.measure.bench import BenchRow
from backend.measure.probe import CannotMeasure
from backend.models.profile import DRAFTING, Profile
from backend.server.flag_spellings import OWN_HEAD

READ, WRITE = 1500, 300  # tokens of a typical turn whose history is cached
GAIN = 0.03  # a smaller gain is noise
KEYS, VALUES = "--cache-type-k", "--cache-type-v"
LENGTHS, LEAST = ("2", "4", "8"), ("0", "0.5", "0.75")
# Flags that are varied where the server has them: words, values, default.
DRAFTED = {
    "--spec-draft-n-max": ("{} drafted", LENGTHS, ""),
    "--spec-draft-sampling": ("{} drafts", ("greedy", "probabilistic"), "greedy"),
    "--spec-draft-p-min": ("drafts above {}", LEAST, "0"),
}
CACHED_EXPERTS = {"--moe-cache-mib": ("{} MiB of hot experts", ("1024", "2048", "4096"), "0")}
CHECKPOINTS = {
    "--ctx-checkpoints": ("{} checkpoints", ("8", "64"), "32"),
    "--checkpoint-min-step": ("one each {} tokens", ("512", "2048"), "8192"),
    "--ctx-checkpoints-interval": ("one each {} tokens", ("512", "2048"), "512"),  # ik_llama.cpp's
}
MeasureProfile = Callable[[Profile], Awaitable[BenchRow | None]]
Variant = tuple[str, Profile]  # one change to a profile, in words
Axis = Callable[[Profile], Iterator[Variant]]


@dataclass(frozen=True, slots=True)
class TriedVariant:
    """A measured variant; `row` is None if it did not start, `again` true if it had been measured before."""

    words: str
    profile: Profile
    row: BenchRow | None
    seconds: float | None
    again: bool = False


@dataclass(frozen=True, slots=True)
class SweepResult:
    """The measured variants of a profile.

    `best` is the fastest variant; `tried` has all in order, the unchanged profile first.
    """

    best: TriedVariant
    tried: tuple[TriedVariant, ...]

    @property
    def gain(self) -> float:
        """How much faster it is than the unchanged profile (0.1 is 10 %), by the last measurement of each."""
        same = [tried for tried in self.tried if tried.profile == self.tried[0].profile]
        before, after = same[-1].seconds, self.best.seconds
        return before / after - 1 if before and after else 0.0


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be varied: numbers of threads, the flags that the server's `--help` lists, and
    whether the model needs context checkpoints (recurrent layers, sliding windows)."""

    threads: Sequence[int]
    flags: frozenset[str] = frozenset()
    checkpoints: bool = False


def axes(profile: Profile, choices: Choices) -> list[Axis]:
    """What is varied, one axis after the other; flags that this server does not know are left out."""

    def varied(flags: Mapping[str, tuple[str, Sequence[str], str]]) -> list[Axis]:
        known = ((name, *flag) for name, flag in flags.items() if name in choices.flags)
        return [one_flag(words, name, values, unset) for name, words, values, unset in known]

    ubatch = one_flag("-ub {}", "--ubatch-size", ("256", "512", "1024", "2048"), unset="512")
    found = [ubatch, one_flag("-t {}", "--threads", list(map(str, choices.threads))), cache_types]
    if profile.drafts:
        found += [no_drafting, *varied(DRAFTED)]
        found.append(own_head("{} drafted", "n_max", LENGTHS))
        found.append(own_head("drafts above {}", "p_min", LEAST))
    if profile.flag("--n-cpu-moe"):
        found += varied(CACHED_EXPERTS)
    return [*found, *varied(CHECKPOINTS)] if choices.checkpoints else found


def one_flag(words: str, flag: str, values: Sequence[str], unset: str = "") -> Axis:
    """The other values of one flag, whose default is `unset`.

    Drafting flags are not varied if the best variant so far does not draft.
    """

    def variants(now: Profile) -> Iterator[Variant]:
        if flag in DRAFTING and not now.drafts:
            return
        for value in values:
            if value != (now.flag(flag) or unset):
                yield words.format(value), now.with_flag(value, flag)

    return variants


def cache_types(now: Profile) -> Iterator[Variant]:
    used = {now.flag(name) or "f16" for name in (KEYS, VALUES)}
    for kind in ("f16", "q8_0"):
        if used != {kind}:
            yield f"KV {kind}", now.with_flag(kind, KEYS).with_flag(kind, VALUES)


def no_drafting(now: Profile) -> Iterator[Variant]:
    yield "no drafting", now.without_drafting()


def own_head(words: str, setting: str, values: Sequence[str]) -> Axis:
    """The other values of one setting inside ik_llama.cpp's `--spec-type mtp:n_max=...,p_min=...`."""

    def variants(now: Profile) -> Iterator[Variant]:
        if not (found := OWN_HEAD.fullmatch(now.flag("--spec-type") or "")):
            return
        used = {"n_max": found[1], "p_min": found[2]}
        for value in values:
            if float(value) != float(used[setting]):
                settings = ",".join(f"{k}={v}" for k, v in {**used, setting: value}.items())
                yield words.format(value), now.with_flag(f"mtp:{settings}", "--spec-type")

    return variants


def turn_seconds(row: BenchRow | None) -> float | None:
    """The time of a typical turn; None for a row that was throttled or has no figures."""
    if row is None or row.throttled or not row.prefill_tok_s or not row.decode_tok_s:
        return None
    return READ / row.prefill_tok_s + WRITE / row.decode_tok_s + (row.rewind_ms or 0) / 1000


async def sweep(
    profile: Profile,
    measure: MeasureProfile,
    choices: Choices,
    report: Callable[[TriedVariant], None] = lambda tried: None,
) -> SweepResult:
    """Measure the unchanged profile, then the variants of each axis on top of the best so far."""
    tried: list[TriedVariant] = []

    async def one(words: str, variant: Profile, *, again: bool = False) -> TriedVariant:
        row = await measure(variant)
        tried.append(TriedVariant(words, variant, row, turn_seconds(row), again))
        report(tried[-1])
        return tried[-1]

    best = await one("as it is", profile)
    for axis in axes(profile, choices):
        base = best.profile
        for words, variant in axis(base):
            candidate = await one(words, variant)
            if not is_better(candidate, best):
                continue
            before = await one(best.words, best.profile, again=True)
            after = await one(candidate.words, candidate.profile, again=True)
            best = after if is_better(after, before) else before
    return SweepResult(best, tuple(tried))


def is_better(one: TriedVariant, best: TriedVariant) -> bool:
    if one.seconds is None:
        return False
    return best.seconds is None or one.seconds < (1 - GAIN) * best.seconds


def changed_flags(before: Profile, after: Profile) -> dict[str, str]:
    """The flags in which `after` differs from `before`, with its values; "" for a flag that it lacks."""
    old = {**before.optional, **before.required}
    new = {**after.optional, **after.required}
    names = [name for name in (*new, *old) if old.get(name) != new.get(name)]
    return {name: new.get(name, "") for name in dict.fromkeys(names)}


ROUNDS = 2
MeasureServer = Callable[[Path], Awaitable[BenchRow]]  # raises CannotMeasure


async def choose(used: Path, new: Path, measure: MeasureServer) -> tuple[Path, str]:
    """The server to use, and why: the new one if its slowest typical turn beats the old one's fastest by at least GAIN.

    A server that does not run loses; if neither runs, the new one is chosen.
    """
    seconds: dict[Path, list[float]] = {used: [], new: []}
    problems: dict[Path, str] = {}
    for server in (used, new) * ROUNDS:
        if server in problems:
            continue
        try:
            found = turn_seconds(await measure(server))
        except CannotMeasure as error:
            problems[server] = str(error)
        else:
            if found is not None:  # throttled
                seconds[server].append(found)
    if len(problems) == 2:
        return new, f"Neither could be measured, so the new one stays: {problems[new]}"
    for broken, other in ((new, used), (used, new)):
        if broken in problems:
            return other, f"{broken} did not serve ({problems[broken].rstrip('.')})."
    before, after = seconds[used], seconds[new]
    if not before or not after:
        return used, "The card was slowed while they were measured, so nothing changes."
    times = (
        f"a typical turn takes {fmean(after):.1f} s with the new one, {fmean(before):.1f} s before"
    )
    if max(after) < (1 - GAIN) * min(before):
        return new, f"The new one is faster: {times}."
    return used, f"The one from before stays: {times}."
