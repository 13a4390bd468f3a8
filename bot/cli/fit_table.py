"""What fits, as a table with a bar, and in one sentence."""

from typing import TYPE_CHECKING

import click

from backend.server.launch import LEAST_CRAM_MIB, MOST_CRAM_MIB

if TYPE_CHECKING:
    from backend.models.fit import Fit, FitReport, FreeMemory
    from backend.models.profile import Profile

GIB, MIB = 2**30, 2**20
BAR = 32


def show(profile: "Profile", free: "FreeMemory", report: "FitReport") -> None:
    model, own = report.model, report.own
    where = f"card {_size(free.gpu)}" if own.options.gpu else "no card"
    click.echo(
        f"{profile.name}: {model.architecture}, {_size(model.weights)} of weights;"
        f" {where}, RAM {_size(free.host)}"
    )
    click.echo(
        f"  {'window':>7}  {'cache':5}  {'weights':>9}  {'KV':>9}  {'compute':>9}"
        f"  {'experts in RAM':>14}  {'RAM':>9}  fits"
    )
    for row in report.rows:
        same = (row.options.context, row.options.cache_k) == (
            own.options.context,
            own.options.cache_k,
        )
        click.echo(_line(row, free, own=same))


def outlook(profile: "Profile", free: "FreeMemory", report: "FitReport") -> str:
    """What will run, how fast, and what the memory that is left is used for."""
    options, known = report.own.options, profile.reference
    speed = (
        f" {known.decode_tok_s:g} tokens/s reported ({known.source})." if known.decode_tok_s else ""
    )
    experts = f", experts of {options.cpu_experts} layers in RAM" if options.cpu_experts else ""
    left = (free.host - report.own.need.host) / MIB
    prompts = min(MOST_CRAM_MIB, max(LEAST_CRAM_MIB, (left - 1024) / 2))
    kept = f" {_size(prompts * MIB)} of RAM will keep prompts." if profile.flag("--cache-ram") == "auto" else ""  # fmt: skip
    return (
        f"It runs with a window of {options.context:,} tokens and a {options.cache_k} cache{experts}."
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


def _line(row: "Fit", free: "FreeMemory", *, own: bool) -> str:
    need, options = row.need, row.options
    used, whole = (need.gpu, free.gpu) if need.on_gpu else (need.host, free.host)
    share = min(1, used / max(1, whole))
    bar = "█" * round(share * BAR) + "·" * (BAR - round(share * BAR))
    weights = need.weights if need.on_gpu else need.host_weights
    sizes = "  ".join(f"{_size(size):>9}" for size in (weights, need.kv, need.compute))
    experts = f"{options.cpu_experts} layers" if options.cpu_experts else "-"
    fits = "yes" if row.fits else "no "
    mark = "*" if own else " "
    return f"{mark} {options.context:>7}  {options.cache_k:5}  {sizes}  {experts:>14}  {_size(need.host):>9}  {fits} {bar}"


def _size(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
