"""What a profile needs on this machine: the table of `voltaire model fit`, and the word before each start.

Pure: headers go in, a table comes out.
"""

from dataclasses import dataclass, replace

from backend.models import fit
from backend.models.fit import Budget, Row, Way
from backend.models.gguf_header import Header
from backend.models.profile import Profile

CONTEXTS = (8192, 16384, 32768, 65536, 131072)
CACHES = ("f16", "q8_0")  # never below q8_0: q4_0 loses JSON and recall first
MOST_WORDS_APART = 128  # llama.cpp's SPEC_VOCAB_MAX_SIZE_DIFFERENCE
_MOE = ("--n-cpu-moe", "-ncmoe")


@dataclass(frozen=True, slots=True)
class Advice:
    """`own` is the profile as it stands; `refusal` one sentence why it cannot run at all."""

    model: Header
    own: Row
    rows: tuple[Row, ...]
    refusal: str = ""

    @property
    def best(self) -> Row | None:
        """The largest window that fits with the profile's own cache, else with any."""
        fitting = [row for row in self.rows if row.fits]
        same = [row for row in fitting if row.way.cache_k == self.own.way.cache_k]
        return max(same or fitting, key=lambda row: row.way.context, default=None)


def advise(profile: Profile, target: Header, small: Header | None, budget: Budget) -> Advice:
    """The headers are those of the model and of its draft."""
    way = way_of(profile, target, budget)
    left = _without_draft(budget, small, way)
    contexts = sorted({way.context, *(c for c in CONTEXTS if c <= _trained(target))})
    rows = fit.table(target, way, left, contexts, CACHES)
    own = row_of(profile, target, small, budget)
    return Advice(target, own, tuple(rows), refusal(profile, target, small))


def row_of(profile: Profile, model: Header, draft: Header | None, budget: Budget) -> Row:
    """What the profile as it stands takes of a budget, experts moved where it says "auto"."""
    way = way_of(profile, model, budget)
    left = _without_draft(budget, draft, way)
    automatic = profile.flag(*_MOE) == "auto" and way.gpu
    return fit.with_experts(model, way, left) if automatic else fit.row(model, way, left)


def way_of(profile: Profile, model: Header, budget: Budget) -> Way:
    """The profile's flags as a way of running."""
    moe = profile.flag(*_MOE)
    return Way(
        context=min(profile.context, _trained(model)),
        ubatch=int(profile.flag("--ubatch-size", "-ub") or 512),
        cache_k=profile.flag("--cache-type-k", "-ctk") or "f16",
        cache_v=profile.flag("--cache-type-v", "-ctv") or "f16",
        slots=profile.slots,
        unified=profile.flag("--kv-unified") is not None,
        cpu_experts=int(moe) if moe and moe.isdigit() else 0,
        gpu=profile.gpu and budget.card > 0,
        swa_full=profile.engine == "ik_llama.cpp" or profile.flag("--swa-full") is not None,
    )


def refusal(profile: Profile, model: Header, draft: Header | None) -> str:
    """Why this can never run well, whatever the memory; empty when nothing speaks against it."""
    if profile.flag("--split-mode", "-sm") == "row":
        return "--split-mode row crashes at load on Volta; use layer, or tensor for a dense model."
    if profile.engine == "ik_llama.cpp" and any(layer.window for layer in fit.layers(model)):
        return (
            "ik_llama.cpp keeps sliding-window layers in full, which costs many times the memory for"
            f" {model.architecture}; run it on upstream llama.cpp."
        )
    if draft and not _same_words(draft, model):
        return "The draft model has another vocabulary than the model it drafts for; it cannot be used."
    return ""


def _same_words(draft: Header, model: Header) -> bool:
    """llama.cpp's own rule (common_speculative_are_compatible): Qwen2.5's 0.5B and 14B differ by 128."""
    words = "tokenizer.ggml.tokens.digest"
    digests = {header.values[words] for header in (draft, model) if words in header.values}
    return (
        draft.values.get("tokenizer.ggml.model") == model.values.get("tokenizer.ggml.model")
        and all(_added(draft, end) == _added(model, end) for end in ("bos", "eos"))
        and abs(draft.vocabulary - model.vocabulary) <= MOST_WORDS_APART
        and len(digests) <= 1
    )


def _added(model: Header, end: str) -> object:
    """The token that is put around each text by itself; None where there is none."""
    by_itself = end == "bos" and model.values.get("tokenizer.ggml.model") == "llama"
    if not model.values.get(f"tokenizer.ggml.add_{end}_token", by_itself):
        return None
    return model.values.get(f"tokenizer.ggml.{end}_token_id")


def _without_draft(budget: Budget, draft: Header | None, way: Way) -> Budget:
    """What a draft model leaves of the card: its weights and its own cache."""
    if draft is None or not way.gpu:
        return budget
    needs = fit.need(draft, replace(way, cpu_experts=0))
    return replace(budget, card=budget.card - needs.weights - needs.kv - needs.compute)


def _trained(model: Header) -> int:
    return int(model.get("context_length", 0)) or 8192


def verdict(name: str, advice: Advice) -> str:
    """The sentence before a start that would not fit; empty when it fits."""
    own = advice.own
    if advice.refusal:
        return advice.refusal
    if own.fits:
        return ""
    missing = lacking(name, own)
    best = advice.best
    if best is None:
        return f"{missing}; no window fits."
    return f"{missing}; {best.way.context:,} tokens with a {best.way.cache_k} cache would fit."


def lacking(name: str, own: Row) -> str:
    """How much memory a way lacks, and where."""
    place = "on the card" if own.way.gpu else "in memory"
    return f"{name} with a window of {own.way.context:,} tokens needs {-own.free / 2**20:,.0f} MiB more {place}"
