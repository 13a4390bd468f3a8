"""Whether the configured model fits this machine's card, or its memory where there is none."""

from typing import TYPE_CHECKING

from bot.cli.checks import Finding, passed
from bot.settings import Settings

if TYPE_CHECKING:
    from backend.models.fit import FitReport, FreeMemory
    from backend.models.profile import Profile

GIB = 2**30


async def fit(settings: Settings) -> list[Finding]:
    """Nothing where the model file is not here: another check says so."""
    from backend.models.fit import fit_report, verdict
    from backend.models.gguf_header import NotAModel, read_header
    from backend.models.profile import ProfileError, load, locate
    from bot.cli.connect import backend_config, profiles_folder

    if settings.backend.kind == "external":
        return []
    try:
        profile = load(settings.backend.profile, profiles_folder())
        folder = backend_config(settings).models_folder
        sources = [source for source in (profile.model, profile.draft) if source]
        target, *draft = [read_header(locate(source, folder)) for source in sources]
    except (ProfileError, NotAModel, OSError):
        return []
    room = budgets(profile)[0]
    report = fit_report(profile, target, draft[0] if draft else None, room)
    if said := verdict(profile.name, report):
        return [Finding("fit", "fail", said, f"voltaire model fit {profile.name}")]
    return [passed("fit", f"{profile.name} needs {_needed(report, room)}")]


def _needed(report: "FitReport", room: "FreeMemory") -> str:
    need = report.own.need
    if need.on_gpu:
        return f"{need.gpu / GIB:.1f} of {room.gpu / GIB:.1f} GiB on the card"
    return f"{need.host / GIB:.1f} of {room.host / GIB:.1f} GiB of free memory"


def budgets(
    profile: "Profile", vram: float | None = None, ram: float | None = None
) -> list["FreeMemory"]:
    """One for each size of card, the largest first; all cards together when the profile splits.

    In GiB what is to be supposed in place of what is here.
    """
    from backend import proc
    from backend.models.fit import FreeMemory
    from bot.cli.checks.server import memory_of_cards

    cards = [vram] if vram is not None else memory_of_cards()
    split = profile.flag("--split-mode") in ("layer", "tensor")
    sizes = {sum(cards)} if split else set(cards) or {0}
    host = ram * GIB if ram is not None else proc.available_mib() * 2**20
    return [FreeMemory(int(size * GIB), int(host)) for size in sorted(sizes, reverse=True)]
