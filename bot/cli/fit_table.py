"""What fits, as a table with a bar, and in one sentence."""

from typing import TYPE_CHECKING

import click

from backend.server.launch import LEAST_CRAM_MIB, MOST_CRAM_MIB

if TYPE_CHECKING:
    from backend.models.advice import Advice
    from backend.models.fit import Budget, Row
    from backend.models.profile import Profile

GIB, MIB = 2**30, 2**20
BAR = 32


def show(profile: "Profile", budget: "Budget", advice: "Advice") -> None:
    model, own = advice.model, advice.own
    where = f"card {_size(budget.card)}" if own.way.gpu else "no card"
    click.echo(
        f"{profile.name}: {model.architecture}, {_size(model.weights)} of weights;"
        f" {where}, RAM {_size(budget.host)}"
    )
    click.echo(
        f"  {'window':>7}  {'cache':5}  {'weights':>9}  {'KV':>9}  {'compute':>9}"
        f"  {'experts in RAM':>14}  {'RAM':>9}  fits"
    )
    for row in advice.rows:
        same = (row.way.context, row.way.cache_k) == (own.way.context, own.way.cache_k)
        click.echo(_line(row, budget, own=same))


def outlook(profile: "Profile", budget: "Budget", advice: "Advice") -> str:
    """What will run, how fast, and what the memory that is left is used for."""
    way, known = advice.own.way, profile.reference
    speed = (
        f" {known.decode_tok_s:g} tokens/s reported ({known.source})." if known.decode_tok_s else ""
    )
    experts = f", experts of {way.cpu_experts} layers in RAM" if way.cpu_experts else ""
    left = (budget.host - _in_host(advice.own)) / MIB
    prompts = min(MOST_CRAM_MIB, max(LEAST_CRAM_MIB, (left - 1024) / 2))
    kept = f" {_size(prompts * MIB)} of RAM will keep prompts." if profile.flag("--cache-ram", "-cram") == "auto" else ""  # fmt: skip
    return (
        f"It runs with a window of {way.context:,} tokens and a {way.cache_k} cache{experts}."
        f"{speed}{kept}"
    )


def expected(profile: "Profile") -> str:
    """What the profile itself says, for want of the model's header."""
    sizes = [
        f"{_size(mib * MIB)} {place}"
        for mib, place in ((profile.vram_mib, "on the card"), (profile.ram_mib, "of RAM"))
        if mib
    ]
    if not sizes:
        return ""
    return f"Its profile expects {' and '.join(sizes)} for a window of {profile.context:,} tokens."


def _line(row: "Row", budget: "Budget", *, own: bool) -> str:
    need, way = row.need, row.way
    whole = budget.card if way.gpu else budget.host
    share = min(1, (need.card if way.gpu else _in_host(row)) / max(1, whole))
    bar = "█" * round(share * BAR) + "·" * (BAR - round(share * BAR))
    weights = need.weights if way.gpu else need.host_weights
    sizes = "  ".join(f"{_size(size):>9}" for size in (weights, need.kv, need.compute))
    experts = f"{way.cpu_experts} layers" if way.cpu_experts else "-"
    fits = "yes" if row.fits else "no "
    mark = "*" if own else " "
    return f"{mark} {way.context:>7}  {way.cache_k:5}  {sizes}  {experts:>14}  {_size(_in_host(row)):>9}  {fits} {bar}"


def _in_host(row: "Row") -> int:
    return row.need.host_weights + (0 if row.way.gpu else row.need.card)


def _size(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
