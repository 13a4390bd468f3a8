"""The results for a person, as a table, and for a program, as JSON."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pocket.evaluation.asked import BEYOND
from pocket.evaluation.measure import Measured, Outcome, rates
from pocket.evaluation.targets import Model, Target

WIDTH = 38


def table(measured: Measured, model: Model, targets: Sequence[Target]) -> str:
    return "\n".join([*_families(measured), "", *_verdict(targets), "", *_facts(measured, model)])


def _families(measured: Measured) -> Iterator[str]:
    yield f"{'':<{WIDTH}}{'fresh':^24}{'after ten exchanges':^24}"
    yield f"{'family':<{WIDTH - 6}}{'turns':>6}{'call':>12}{'answer':>12}{'call':>12}{'answer':>12}"
    for family in dict.fromkeys(o.family for o in measured.fresh):
        yield _row(family, _of(measured.fresh, family), _of(measured.late, family))
    within = [[o for o in part if o.family != BEYOND] for part in (measured.fresh, measured.late)]
    yield _row("all but beyond", *within)


def _of(outcomes: Sequence[Outcome], family: str) -> list[Outcome]:
    return [o for o in outcomes if o.family == family]


def _row(name: str, fresh: Sequence[Outcome], late: Sequence[Outcome]) -> str:
    shares = "".join(f"{cell:>12}" for part in (fresh, late) for cell in _shares(part))
    return f"{name:<{WIDTH - 6}}{len(fresh):>6}{shares}"


def _shares(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    valued = [o for o in outcomes if o.held is not None]
    held = f"{sum(o.held is True for o in valued)}/{len(valued)}" if valued else "-"
    return f"{sum(o.right for o in outcomes)}/{len(outcomes)}", held


def _verdict(targets: Sequence[Target]) -> Iterator[str]:
    for target in targets:
        yield f"{target.name:<{WIDTH}}{target.measured:>18}{target.wanted:>14}   {'ok' if target.met else 'MISSED'}"


def _facts(measured: Measured, model: Model) -> Iterator[str]:
    yield f"{'model':<{WIDTH}}{model.name}, {model.parameters:,} parameters, {model.vocabulary:,} tokens"
    yield f"{'training time':<{WIDTH}}{_minutes(model.training_seconds)}"
    yield f"{'longest conversation of ten exchanges':<{WIDTH}}{measured.late_tokens} tokens"


def _minutes(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds / 60:.0f} min"


def failures(measured: Measured) -> str:
    """Each miss with what came, for a person. Not for whoever writes training templates."""
    parts = (("fresh", measured.fresh), ("after ten exchanges", measured.late))
    missed = [(name, o) for name, part in parts for o in part if not o.right or o.held is False]
    return "\n".join(_miss(name, outcome) for name, outcome in missed)


def _miss(name: str, outcome: Outcome) -> str:
    played = outcome.played
    kind = "answer" if outcome.right else "call"
    lines = [f"[{outcome.family}, {name}, {kind}] {played.words}"]
    for step in played.steps:
        lines += [
            f"    {step.name} {json.dumps(step.arguments, ensure_ascii=False)}",
            f"      = {step.result!r}",
        ]
    return "\n".join([*lines, f"    > {played.answer}"])


def as_json(measured: Measured, model: Model, targets: Sequence[Target]) -> dict[str, Any]:
    return {
        "met": all(target.met for target in targets),
        "targets": [_target(target) for target in targets],
        "fresh": _rates(measured.fresh),
        "after_ten_exchanges": _rates(measured.late),
        "families": {
            family: {
                "fresh": _rates(_of(measured.fresh, family)),
                "late": _rates(_of(measured.late, family)),
            }
            for family in dict.fromkeys(o.family for o in measured.fresh)
        },
        "prefix_tokens": measured.prefix_tokens,
        "window": measured.window,
        "longest_conversation_tokens": measured.late_tokens,
        "model": {
            "name": model.name,
            "size_bytes": model.size,
            "parameters": model.parameters,
            "vocabulary": model.vocabulary,
            "training_seconds": model.training_seconds,
        },
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "measured": target.measured,
        "wanted": target.wanted,
        "met": target.met,
    }


def _rates(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    of = rates(outcomes)
    shares = {"call": of.call, "answer": of.answer, "decline": of.decline}
    rounded = {k: None if share is None else round(share, 4) for k, share in shares.items()}
    return {name: getattr(of, name) for name in of.__slots__} | rounded
