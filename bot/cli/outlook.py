"""What a profile would do on this machine, in one line: its window, its speed, and why it or another.

Decided as before each start (backend.models.placement), from the header of the
model's file, or of the hub's while it is not here yet.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backend.models.gguf_header import Header
    from backend.models.profile import Profile, Source

GIB, MIB = 2**30, 2**20
# The strongest first; each but the last has a speed that somebody measured.
PREFERRED = ("qwen3.6-35b-a3b-q6-2x", "gemma4-26b-a4b", "qwen2.5-3b", "pocket")


@dataclass(frozen=True, slots=True)
class Machine:
    """`cards` in GiB each, `host` the free memory in bytes; `models` is where files lie."""

    cards: tuple[float, ...]
    host: int
    models: Path

    def room(self, profile: "Profile") -> float:
        """GiB on the card that is used, or on all that are shared."""
        split = profile.flag("--split-mode") in ("layer", "tensor")
        return sum(self.cards) if split else max(self.cards)


@dataclass(frozen=True, slots=True)
class Outlook:
    """`line` says what will run and why, or why it will not."""

    name: str
    runs: bool
    line: str


def propose(machine: Machine, load: "Callable[[str], Profile]") -> Outlook:
    """The first of PREFERRED that runs, with why none before it does."""
    refused: list[str] = []
    for name in PREFERRED if machine.cards else PREFERRED[-1:]:
        found = outlook(load(name), machine)
        if found.runs:
            break
        refused.append(found.line)
    return Outlook(found.name, found.runs, "\n".join([found.line, *refused]))


def outlook(profile: "Profile", machine: Machine) -> Outlook:
    """What would run; by the figures of the profile itself where the header cannot be read. Blocks."""
    from backend.models.gguf_header import NotAModel
    from backend.models.pull import PullError

    if profile.gpu and not machine.cards:
        return Outlook(profile.name, False, f"{profile.name} wants a card, and none was found.")
    try:
        target, *draft = [header(source, machine.models) for source in _sources(profile)]
    except (PullError, NotAModel, OSError):
        return _expected(profile, machine)
    return _placed(profile, machine, target, draft[0] if draft else None)


def header(
    source: "Source", models: Path, say: "Callable[[str], None]" = lambda line: None
) -> "Header":
    """From the file, or from the hub while it is not here: PullError, OSError, NotAModel."""
    from backend.models.gguf_header import read_header
    from backend.models.profile import locate
    from backend.models.remote_gguf import read_remote_header

    path = locate(source, models)
    if path.is_file() or source.repo is None:
        return read_header(path)
    say(f"{path.name} is not here; its header is read at the hub.")
    return read_remote_header(source)


def _sources(profile: "Profile") -> "Iterator[Source]":
    yield profile.model
    if profile.draft:
        yield profile.draft


def _placed(
    profile: "Profile", machine: Machine, target: "Header", draft: "Header | None"
) -> Outlook:
    from backend.models.devices import Device
    from backend.models.fit import FreeMemory, fit_profile
    from backend.models.placement import DoesNotFit, place

    cards = [Device(index, int(size * GIB)) for index, size in enumerate(machine.cards)]
    try:
        placed = place(profile, target, draft, cards, machine.host).profile
    except DoesNotFit as error:
        return Outlook(profile.name, False, str(error))
    room = machine.room(placed) if placed.gpu else 0
    fit = fit_profile(placed, target, draft, FreeMemory(int(room * GIB), machine.host))
    if placed.gpu:
        why = f"it takes {fit.need.gpu / GIB:.1f} of {room:.1f} GiB{_cards(placed, machine.cards)}"
        line = _line(placed, fit.options.context, why, fit.need.host_weights)
    else:
        why = f"it needs no card, and {_size(fit.need.host)} of memory"
        line = _line(placed, fit.options.context, why)
    if 2 * placed.context < profile.context:  # it would not be what its profile promises
        line = f"{profile.name} would have a window of only {placed.context:,} of its {profile.context:,} tokens."
        return Outlook(profile.name, False, line)
    return Outlook(profile.name, True, line)


def _expected(profile: "Profile", machine: Machine) -> Outlook:
    """By the profile's own figures."""
    unread = "its header could not be read"
    if not profile.vram_mib or not machine.cards:
        return Outlook(profile.name, False, f"What {profile.name} needs is not known: {unread}.")
    needed, room = profile.vram_mib / 1024, machine.room(profile)
    where, ram = _cards(profile, machine.cards), (profile.ram_mib or 0) * MIB
    if needed > room:
        lacks = f"{needed:.1f} GiB{where}, and there are {room:.1f}"
    elif ram > machine.host:
        lacks = f"{_size(ram)} of RAM, and {_size(machine.host)} are free"
    else:
        why = f"its profile expects {needed:.1f} of {room:.1f} GiB{where} ({unread})"
        return Outlook(profile.name, True, _line(profile, profile.context, why, ram))
    return Outlook(profile.name, False, f"{profile.name} does not fit: it expects {lacks}.")


def _line(profile: "Profile", window: int, why: str, ram: int = 0) -> str:
    known = profile.reference
    speed = f"{known.decode_tok_s:g} tokens/s reported ({known.source})" if known.decode_tok_s else "no speed reported"  # fmt: skip
    host = f" and {_size(ram)} of RAM" if ram else ""
    return f"{profile.name}: a window of {window:,} tokens, {speed}, because {why}{host}."


def _cards(profile: "Profile", cards: Sequence[float]) -> str:
    split = profile.flag("--split-mode") in ("layer", "tensor")
    return f" of {len(cards)} cards" if split and len(cards) > 1 else " on the card"


def _size(size: float) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
