"""What to reduce next when the GPU's memory is full, one reduction at a time. Pure.

The reduction that saves most comes first, computed from the buffers that the server
logged; the KV cache's type comes last, and never goes below q8_0 (q4_0 loses JSON
and recall first).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from backend.models.profile import Profile
from backend.protocol import Phrase

LEAST_UBATCH, LEAST_CONTEXT, MORE_EXPERTS = 128, 4096, 4
Q8_SHARE = 0.47  # of an f16 KV cache that q8_0 saves
UBATCH, EXPERTS, KV = "--ubatch-size", "--n-cpu-moe", ("--cache-type-k", "--cache-type-v")
BUFFER = re.compile(r"(?:CUDA|Vulkan|ROCm)\d*\s+(compute|KV|model) buffer size\s*=\s*([\d.]+) MiB")
LAYERS = re.compile(r"n_layer\s*=\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Buffers:
    """MiB on the GPU, as llama-server logs them; 0 if it ended before. `draft` is the draft model's file."""

    compute: float = 0
    kv: float = 0
    weights: float = 0
    layers: int = 0
    draft: float = 0


def logged_buffers(log: Sequence[str], draft: float = 0) -> Buffers:
    """The GPU buffers that a server logged, summed over the GPUs; `draft` in MiB."""
    sums = {"compute": 0.0, "KV": 0.0, "model": 0.0}
    text = "\n".join(log)
    for kind, mib in BUFFER.findall(text):
        sums[kind] += float(mib)
    layers = max(map(int, LAYERS.findall(text)), default=0)
    return Buffers(sums["compute"], sums["KV"], sums["model"], layers, draft)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A profile that needs less memory.

    `profile` needs `saved_mib` less; `label` identifies it, `description` is for a person.
    """

    label: str
    description: Phrase
    profile: Profile
    saved_mib: float


@dataclass(frozen=True, slots=True)
class MemoryFallback:
    """Which reductions a profile runs with.

    `full` is the profile as written, `taken` the reductions so far, `placed` the profile as started, which the next
    one is based on.

    `crashed` are the labels of reductions with which memory ran out again.
    """

    full: Profile
    taken: tuple[Reduction, ...] = ()
    crashed: frozenset[str] = field(default_factory=frozenset)
    placed: Profile | None = None

    @property
    def profile(self) -> Profile:
        return self.taken[-1].profile if self.taken else self.full

    def reduced(self, buffers: Buffers) -> "MemoryFallback | None":
        """Take one more reduction after memory ran out; None when no reduction is left."""
        crashed = self.crashed | {reduction.label for reduction in self.taken[-1:]}
        options = reductions(self.placed or self.profile, buffers)
        untried = [option for option in options if option.label not in crashed]
        if not untried:
            return None
        best = max(
            untried, key=lambda option: (not option.label.startswith("kv"), option.saved_mib)
        )
        return replace(self, taken=(*self.taken, best), crashed=crashed, placed=None)


def reductions(profile: Profile, buffers: Buffers) -> Iterator[Reduction]:
    """Every single reduction of `profile`."""
    ubatch = int(profile.flag(UBATCH) or 512) // 2
    if ubatch >= LEAST_UBATCH:
        less = profile.with_flag(str(ubatch), UBATCH)
        description = Phrase("prefill in batches of {count}", count=ubatch)
        yield Reduction(f"ubatch {ubatch}", description, less, buffers.compute / 2)
    context = profile.context * 3 // 4 // 256 * 256
    if context >= LEAST_CONTEXT:
        less = replace(profile, context=context)
        description = Phrase("a window of {count} tokens", count=context)
        yield Reduction(f"context {context}", description, less, buffers.kv / 4)
    experts = profile.flag(EXPERTS)
    if experts is not None and (not buffers.layers or int(experts) < buffers.layers):
        more = int(experts) + MORE_EXPERTS
        saved = buffers.weights * MORE_EXPERTS / max(1, buffers.layers - int(experts))
        less = profile.with_flag(str(more), EXPERTS)
        description = Phrase("the experts of {count} layers in RAM", count=more)
        yield Reduction(f"experts {more}", description, less, saved)
    if profile.draft:
        less = profile.without_drafting()
        yield Reduction("draft none", Phrase("no draft model"), less, buffers.draft)
    if all((profile.flag(name) or "f16") in ("f16", "f32", "bf16") for name in KV):
        less = profile
        for name in KV:
            less = less.with_flag("q8_0", name)
        description = Phrase("a KV cache of 8 bits")
        yield Reduction("kv q8_0", description, less, buffers.kv * Q8_SHARE)
