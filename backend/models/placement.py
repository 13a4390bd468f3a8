"""Where a profile runs on this machine, decided before each start. Pure.

The same computation as `voltaire model fit`: experts move to host memory as
needed, a window that certainly does not fit gives way to a smaller one, and
what can never run is refused in one sentence in place of an out-of-memory
abort. What fits one card is pinned to one: two cards do not speed up a single
stream (measured on V100s, github.com/andrewleech/v100-llm-kit).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.models import advice, fit
from backend.models.fit import GIB, Budget, Row
from backend.models.gguf_header import Header
from backend.models.profile import Profile

LEAST_CONTEXT = 4096  # tokens for each slot
SPLIT = ("--split-mode", "-sm")
SHARES = ("--tensor-split", "-ts")
EXPERTS = ("--n-cpu-moe", "-ncmoe")
# More threads only add scheduling there, a larger batch takes memory (github.com/andrewleech/v100-llm-kit).
ON_CARD = ((("--threads", "-t"), 6), (("--ubatch-size", "-ub"), 1024))
VISIBLE = {"CUDA": "CUDA_VISIBLE_DEVICES", "Vulkan": "GGML_VK_VISIBLE_DEVICES"}
_SHARES = (1, 3 / 4, 1 / 2, 3 / 8, 1 / 4, 1 / 8)  # of the profile's window


class Misfit(Exception):
    """The profile cannot run here; `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU by its number in the server's own order; `free` in bytes."""

    index: int
    free: int
    kind: str = "CUDA"


@dataclass(frozen=True, slots=True)
class Placement:
    """The profile as it is to be started, the variables to start it with, and what was changed."""

    profile: Profile
    env: Mapping[str, str] = field(default_factory=dict)
    changed: str = ""


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of the cards: the profile for it, what there is to spend, which devices it sees."""

    profile: Profile
    budget: Budget
    env: Mapping[str, str] = field(default_factory=dict)


def place(
    profile: Profile, model: Header, draft: Header | None, cards: Sequence[Card], host: int
) -> Placement:
    """The use of the cards with the largest window; Misfit when there is none. `host` in bytes."""
    if refused := advice.refusal(profile, model, draft):
        raise Misfit(f"{profile.name} cannot run: {refused}")
    uses = list(_uses(profile, cards, host))
    if not uses:
        raise Misfit(_too_few(profile, cards))
    found = [fitted for use in uses if (fitted := _fitted(use, model, draft))]
    if not found:
        own = advice.row_of(uses[-1].profile, model, draft, uses[-1].budget)
        raise Misfit(f"{advice.lacking(profile.name, own)}; no window fits.")
    return max(found, key=lambda placement: placement.profile.context)


def _uses(profile: Profile, cards: Sequence[Card], host: int) -> Iterator[_Use]:
    """Each use of the cards that the profile allows, a single card first."""
    split = profile.flag(*SPLIT) in ("layer", "tensor")
    if not profile.gpu or not cards:
        if not split:
            yield _Use(profile, Budget(0, host))
        return
    largest = max(cards, key=lambda card: card.free)
    if not split or profile.slots == 1:
        alone = profile.without_flags(*SPLIT, *SHARES)
        yield _Use(alone, Budget(largest.free, host), _only(largest, cards))
    if len(cards) > 1:
        yield _Use(profile, Budget(sum(card.free for card in cards), host))


def _only(card: Card, cards: Sequence[Card]) -> dict[str, str]:
    if len(cards) == 1 or card.kind not in VISIBLE:
        return {}
    return {VISIBLE[card.kind]: str(card.index)}


def _too_few(profile: Profile, cards: Sequence[Card]) -> str:
    there = "there is one" if cards else "none was found"
    return f"{profile.name} is made for two cards, and {there}."


def _fitted(use: _Use, model: Header, draft: Header | None) -> Placement | None:
    """The largest window, up to the profile's own, that does not certainly run out of memory."""
    full = use.profile.context
    for share in _SHARES:
        context = full if share == 1 else int(full * share) // 256 * 256
        if context < min(full, LEAST_CONTEXT * use.profile.slots):
            break
        asked = replace(use.profile, context=context)
        row = advice.row_of(asked, model, draft, use.budget)
        if _may_work(row, use.budget):
            changed = "" if share == 1 else _smaller(full, context, use.budget, row)
            return Placement(_with_experts(asked, row), use.env, changed)
    return None


def _may_work(row: Row, budget: Budget) -> bool:
    """The headroom that `fit` leaves is for caution, not for refusing a start."""
    if not row.way.gpu:
        return row.fits
    return row.free + fit.HEADROOM >= 0 and row.need.host_weights <= budget.host


def _with_experts(profile: Profile, row: Row) -> Profile:
    if profile.flag(*EXPERTS) != "auto":
        return profile
    placed = profile.with_flag(str(row.way.cpu_experts), *EXPERTS)
    return placed if row.way.cpu_experts else _all_on_card(placed)


def _all_on_card(profile: Profile) -> Profile:
    """A profile whose flags are for experts in RAM, with those for a card that holds everything."""
    for names, most in ON_CARD:
        value = profile.flag(*names)
        if value and value.isdigit() and int(value) > most:
            profile = profile.with_flag(str(most), *names)
    return profile


def _smaller(full: int, context: int, budget: Budget, row: Row) -> str:
    place, free = ("card has", budget.card) if row.way.gpu else ("machine has", budget.host)
    return (
        f"The {place} {free / GIB:.1f} GiB free: "
        f"a window of {context:,} tokens in place of {full:,}."
    )
