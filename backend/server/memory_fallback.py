"""Less memory, one step at a time: what to give up next when the GPU is full. Pure.

The step that wins most goes first, measured against the buffers that the
server logged; the KV cache's type goes last, and never below q8_0 (q4_0 loses
JSON and recall first).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from backend.models.profile import Profile

LEAST_UBATCH, LEAST_CONTEXT, MORE_EXPERTS = 128, 4096, 4
UBATCH, EXPERTS, KV = "--ubatch-size", "--n-cpu-moe", ("--cache-type-k", "--cache-type-v")
DRAFTING = ("--spec-type", "--spec-draft-n-max", "--spec-draft-n-min", "-ngld")


@dataclass(frozen=True, slots=True)
class Buffers:
    """MiB on the GPU, as llama-server logs them; 0 where it did not come so far. `draft` is its file."""

    compute: float = 0
    kv: float = 0
    weights: float = 0
    layers: int = 0
    draft: float = 0


@dataclass(frozen=True, slots=True)
class Step:
    label: str
    words: str
    profile: Profile
    won_mib: float


@dataclass(frozen=True, slots=True)
class MemoryFallback:
    """`full` is the profile as it is written; `taken` led to `profile`, `placed` is how that was started."""

    full: Profile
    taken: tuple[Step, ...] = ()
    crashed: frozenset[str] = field(default_factory=frozenset)
    placed: Profile | None = None

    @property
    def profile(self) -> Profile:
        return self.taken[-1].profile if self.taken else self.full

    def started(self, placed: Profile) -> "MemoryFallback":
        """The next step goes down from what really ran."""
        return replace(self, placed=placed)

    def down(self, buffers: Buffers) -> "MemoryFallback | None":
        """One step down after memory ran out; None when there is nothing left to give up."""
        crashed = self.crashed | {step.label for step in self.taken[-1:]}
        options = [
            step
            for step in steps(self.placed or self.profile, buffers)
            if step.label not in crashed
        ]
        if not options:
            return None
        best = max(options, key=lambda step: (not step.label.startswith("kv"), step.won_mib))
        return replace(self, taken=(*self.taken, best), crashed=crashed, placed=None)

    def up(self) -> "MemoryFallback":
        """The full profile again; what crashed on the way is tried anew."""
        return MemoryFallback(self.full)


def steps(profile: Profile, buffers: Buffers) -> Iterator[Step]:
    """Every single step down from `profile`."""
    yield from _ubatch(profile, buffers)
    yield from _context(profile, buffers)
    yield from _experts(profile, buffers)
    yield from _draft(profile, buffers)
    yield from _kv(profile, buffers)


def _ubatch(profile: Profile, buffers: Buffers) -> Iterator[Step]:
    now = int(profile.flag(UBATCH) or 512)
    if now // 2 >= LEAST_UBATCH:
        less = profile.with_flag(str(now // 2), UBATCH)
        words = f"prefill in batches of {now // 2:,}"
        yield Step(f"ubatch {now // 2}", words, less, buffers.compute / 2)


def _context(profile: Profile, buffers: Buffers) -> Iterator[Step]:
    less = profile.context * 3 // 4 // 256 * 256
    if less >= LEAST_CONTEXT:
        words = f"a window of {less:,} tokens"
        yield Step(f"context {less}", words, replace(profile, context=less), buffers.kv / 4)


def _experts(profile: Profile, buffers: Buffers) -> Iterator[Step]:
    now = profile.flag(EXPERTS)
    if now is not None and (not buffers.layers or int(now) < buffers.layers):
        more = int(now) + MORE_EXPERTS
        won = buffers.weights * MORE_EXPERTS / max(1, buffers.layers - int(now))
        words = f"the experts of {more} layers in RAM"
        yield Step(f"experts {more}", words, profile.with_flag(str(more), EXPERTS), won)


def _draft(profile: Profile, buffers: Buffers) -> Iterator[Step]:
    if profile.draft:
        plain = replace(profile.without_flags(*DRAFTING), draft=None)
        yield Step("draft none", "no draft model", plain, buffers.draft)


def _kv(profile: Profile, buffers: Buffers) -> Iterator[Step]:
    if all((profile.flag(name) or "f16") in ("f16", "f32", "bf16") for name in KV):
        less = profile
        for name in KV:
            less = less.with_flag("q8_0", name)
        yield Step("kv q8_0", "a KV cache of 8 bits", less, buffers.kv * 0.47)


_BUFFER = re.compile(r"(?:CUDA|Vulkan|ROCm)\d*\s+(compute|KV|model) buffer size\s*=\s*([\d.]+) MiB")
_LAYERS = re.compile(r"n_layer\s*=\s*(\d+)")


def buffers(log: Sequence[str], draft: float = 0) -> Buffers:
    """The GPU buffers that a server's log names, summed over the cards; `draft` in MiB."""
    sums = {"compute": 0.0, "KV": 0.0, "model": 0.0}
    text = "\n".join(log)
    for kind, mib in _BUFFER.findall(text):
        sums[kind] += float(mib)
    layers = [int(n) for n in _LAYERS.findall(text)]
    return Buffers(sums["compute"], sums["KV"], sums["model"], max(layers, default=0), draft)
