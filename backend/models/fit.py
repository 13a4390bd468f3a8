"""Whether a profile fits this machine. Used by `voltaire model fit`, the doctor, and before each start.

    report = fit_report(profile, model, draft, FreeMemory(gpu, host))

Pure: the input is headers and free bytes. What a model needs is computed in `memory`.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, replace

from backend.models.gguf_header import Header
from backend.models.memory import (
    EXPERT,
    MemoryNeed,
    RunOptions,
    cached_layers,
    expert_layers,
    memory_need,
    trained_context,
)
from backend.models.profile import Profile
from backend.protocol import Phrase

MIB, GIB = 2**20, 2**30
HEADROOM = 300 * MIB  # left free: estimates are not exact, and a desktop may use the GPU
CONTEXTS = (8192, 16384, 32768, 65536, 131072)
CACHE_TYPES = ("f16", "q8_0")  # never below q8_0: q4_0 loses JSON and recall first
HOST_BUFFER = "CPU"  # llama.cpp's name for host memory
CHECKPOINTS, DRAFTED = 32, 3  # llama-server's defaults
VOCABULARY_DIFFERENCE = 128  # llama.cpp's SPEC_VOCAB_MAX_SIZE_DIFFERENCE


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Free bytes on the GPU (0: there is none), or on `devices` GPUs together, and in host memory.

    `unified`: both are the same memory.
    """

    gpu: int
    host: int
    devices: int = 1
    unified: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """Options, what they need, and whether the free memory holds it."""

    options: RunOptions
    need: MemoryNeed
    fits: bool
    free: int  # bytes left on the GPU, or in host memory without a GPU; negative: bytes missing


@dataclass(frozen=True, slots=True)
class FitReport:
    """Whether a profile fits, as written and with other windows and cache types.

    `own` is the profile as written; `refusal` is one sentence why it cannot run at all.

    `draft_refusal` is one sentence why its draft model is left out.
    """

    model: Header
    own: Fit
    rows: tuple[Fit, ...]
    refusal: Phrase | None = None
    draft_refusal: Phrase | None = None

    @property
    def best(self) -> Fit | None:
        """The largest window that fits with the profile's own cache type, else with any cache type."""
        fitting = [row for row in self.rows if row.fits]
        same = [row for row in fitting if row.options.cache_k == self.own.options.cache_k]
        return max(same or fitting, key=lambda row: row.options.context, default=None)


def fit_report(
    profile: Profile, model: Header, draft: Header | None, free: FreeMemory
) -> FitReport:
    """The profile as written, and each usual window with each cache type."""
    draft_refused = draft_refusal(model, draft)
    if draft_refused:
        profile, draft = profile.without_drafting(), None
    profile = with_fitting_projector(profile, model, draft, free)
    options = run_options(profile, model, free)
    contexts = {options.context, *(c for c in CONTEXTS if c <= trained_context(model))}
    rows = [
        fit_with_experts(
            model, replace(options, context=c, cache_k=kind, cache_v=kind), free, draft
        )
        for c in sorted(contexts)
        for kind in CACHE_TYPES
    ]
    own = fit_profile(profile, model, draft, free)
    return FitReport(model, own, tuple(rows), refusal(profile, model), draft_refused)


def fit_profile(profile: Profile, model: Header, draft: Header | None, free: FreeMemory) -> Fit:
    """Compute whether the profile fits as it is written. If its `--n-cpu-moe` is "auto", move as many experts to host
    memory as that takes."""
    options = run_options(profile, model, free)
    if profile.flag("--n-cpu-moe") == "auto" and options.gpu:
        return fit_with_experts(model, options, free, draft)
    return fit_options(model, options, free, draft)


def with_fitting_projector(
    profile: Profile, model: Header, draft: Header | None, free: FreeMemory
) -> Profile:
    """Place the projector on the GPU, else on the CPU, else leave it out; unchanged if nothing fits."""
    if not profile.mmproj_bytes:
        return profile
    ways = (profile, profile.with_mmproj_on_host(), profile.without_mmproj())
    return next((each for each in ways if fit_profile(each, model, draft, free).fits), profile)


def run_options(profile: Profile, model: Header, free: FreeMemory) -> RunOptions:
    """The profile's flags that affect memory."""
    experts = profile.flag("--n-cpu-moe") or ""
    engine = profile.engine == "ik_llama.cpp"
    return RunOptions(
        context=min(profile.context, trained_context(model)),
        ubatch=int(profile.flag("--ubatch-size") or 512),
        cache_k=profile.flag("--cache-type-k") or "f16",
        cache_v=profile.flag("--cache-type-v") or "f16",
        slots=profile.slots,
        unified=profile.flag("--kv-unified") is not None,
        cpu_experts=int(experts) if experts.isdigit() else 0,
        on_host=host_patterns(profile),
        gpu=profile.gpu and free.gpu > 0,
        devices=free.devices,
        mtp_tokens=mtp_tokens(profile),
        draft_k=profile.flag("--spec-draft-type-k") or "f16",
        draft_v=profile.flag("--spec-draft-type-v") or "f16",
        expert_cache=int(profile.flag("--moe-cache-mib") or 0) * MIB,
        checkpoints=0 if engine else int(profile.flag("--ctx-checkpoints") or CHECKPOINTS),
        swa_full=engine or profile.flag("--swa-full") is not None,
        all_logits=engine,
        projector=profile.mmproj_bytes,
        projector_on_host=profile.mmproj_on_host,
    )


def host_patterns(profile: Profile) -> tuple[str, ...]:
    """The patterns of tensors that stay in host memory, from `--override-tensor` and `--cpu-moe`."""
    named = (each.rpartition("=") for each in (profile.flag("--override-tensor") or "").split(","))
    patterns = [pattern for pattern, _, buffer in named if pattern and buffer == HOST_BUFFER]
    every = [] if profile.flag("--cpu-moe") is None else [EXPERT.pattern]
    return tuple(pattern for pattern in patterns + every if is_regex(pattern))


def is_regex(text: str) -> bool:
    """Whether `text` can be compiled; otherwise the server's own error message is better."""
    with suppress(re.error):
        re.compile(text)
        return True
    return False


def mtp_tokens(profile: Profile) -> int:
    """Tokens that the model's own (MTP) head drafts at once; 0 if it does not draft."""
    kinds = profile.flag("--spec-type") or ""
    if "mtp" not in kinds or profile.draft:  # the drafting model is a separate file
        return 0
    inline = re.search(r"n_max=(\d+)", kinds)  # ik_llama.cpp: "mtp:n_max=3,p_min=0.75"
    return int(inline[1] if inline else profile.flag("--spec-draft-n-max") or DRAFTED)


def fit_options(
    model: Header, options: RunOptions, free: FreeMemory, draft: Header | None = None
) -> Fit:
    need = memory_need(model, options, draft)
    left = free.gpu - need.gpu - HEADROOM if options.gpu else free.host - need.host
    if options.gpu and free.unified:
        left -= need.host
    return Fit(options, need, left >= 0 and need.host <= free.host, left)


def fit_with_experts(
    model: Header, options: RunOptions, free: FreeMemory, draft: Header | None = None
) -> Fit:
    """Place the experts of as few layers as possible in host memory, so that the rest fits on the GPU."""
    best = fit_options(model, options, free, draft)
    for count in range(1, expert_layers(model) + 1):
        if best.fits:
            break
        best = fit_options(model, replace(options, cpu_experts=count), free, draft)
    return best


# -- what cannot run, whatever the memory -------------------------------------


def refusal(profile: Profile, model: Header) -> Phrase | None:
    """One sentence why this can never run well, whatever the memory; None if it can."""
    if profile.flag("--split-mode") == "row":
        return Phrase(
            "--split-mode row crashes at load on Volta; use layer, or tensor for a dense model."
        )
    if profile.engine == "ik_llama.cpp" and any(layer.window for layer in cached_layers(model)):
        return Phrase(
            "ik_llama.cpp keeps sliding-window layers in full, which costs many times the memory for"
            " {kind}; run it on upstream llama.cpp.",
            kind=model.architecture,
        )
    return None


def draft_refusal(model: Header, draft: Header | None) -> Phrase | None:
    """One sentence why llama.cpp would refuse this draft model; None if it can be used."""
    if draft is None or same_vocabulary(draft, model):
        return None
    own, other = model.vocabulary, draft.vocabulary
    sizes = Phrase("{draft} tokens, and the model's {own}", draft=other, own=own)
    if other == own:
        sizes = Phrase("other tokens among its {count}", count=own)
    why = "The draft model has another vocabulary ({sizes}), so it runs without drafting."
    return Phrase(why, sizes=sizes)


def same_vocabulary(draft: Header, model: Header) -> bool:
    """Whether a draft model has the model's vocabulary, by llama.cpp's common_speculative_are_compatible.

    Some tokens may differ: those of Qwen2.5's 0.5B and 14B differ by 128.
    """
    key = "tokenizer.ggml.tokens.digest"
    digests = {header.values[key] for header in (draft, model) if key in header.values}
    return (
        draft.values.get("tokenizer.ggml.model") == model.values.get("tokenizer.ggml.model")
        and all(added_token(draft, end) == added_token(model, end) for end in ("bos", "eos"))
        and abs(draft.vocabulary - model.vocabulary) <= VOCABULARY_DIFFERENCE
        and len(digests) <= 1
    )


def added_token(model: Header, end: str) -> object:
    """The token that the tokenizer adds at the beginning ("bos") or end ("eos") of a text, or None."""
    default = end == "bos" and model.values.get("tokenizer.ggml.model") == "llama"
    if not model.values.get(f"tokenizer.ggml.add_{end}_token", default):
        return None
    return model.values.get(f"tokenizer.ggml.{end}_token_id")


# -- in words -----------------------------------------------------------------


def verdict(name: str, report: FitReport) -> str:
    """One sentence why the profile cannot run here; empty if it fits."""
    if report.refusal or report.own.fits:
        return report.refusal or ""
    missing, best = shortage(name, report.own), report.best
    if best is None:
        return f"{missing}; no window fits."
    return (
        f"{missing}; {best.options.context:,} tokens with a {best.options.cache_k} cache would fit."
    )


def shortage(name: str, fit: Fit) -> Phrase:
    """How much memory is missing, where, and what the memory is needed for."""
    form = "{name} with a window of {window} tokens needs {missing} MiB more on the card ({parts})"
    if not fit.options.gpu:
        form = (
            "{name} with a window of {window} tokens needs {missing} MiB more in memory ({parts})"
        )
    elif fit.options.devices > 1:
        form = "{name} with a window of {window} tokens needs {missing} MiB more on the {count} cards ({parts})"
    return Phrase(
        form,
        name=name,
        window=fit.options.context,
        missing=round(-fit.free / MIB),
        count=fit.options.devices,
        parts=sum_text(fit),
    )


def sum_text(fit: Fit) -> str:
    """The memory needed where it runs, such as "12.1 weights + 1.3 cache + ... = 14.9 GiB"."""
    need, gpu = fit.need, fit.options.gpu
    parts = {
        "weights": need.weights if gpu else need.host_weights,
        "cache": need.kv,
        "compute": need.compute,
        "draft": need.draft,
        "projector": need.projector,
        "CUDA": need.overhead - fit.options.expert_cache if gpu else 0,
        "cached experts": fit.options.expert_cache if gpu else 0,
        "checkpoints": 0 if gpu else need.checkpoints,
        "headroom": HEADROOM if gpu else 0,
    }
    words = " + ".join(f"{size / GIB:.2f} {name}" for name, size in parts.items() if size)
    return f"{words} = {sum(parts.values()) / GIB:.2f} GiB"
