"""What a profile would do on this machine, in one line: its window, its speed, and why it or another.

Decided as before each start (`placement`), from the header of the model's file,
or of the hub's while it is not here yet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backend import proc
from backend.gpu.nvml import installed_gpus
from backend.models.fit import FreeMemory, fit_profile
from backend.models.found import FoundModel
from backend.models.gguf_header import Header, NotAModel, read_header
from backend.models.placement import Device, DoesNotFit, place
from backend.models.profile import Profile, Source, locate, of_file
from backend.models.projector import with_projector
from backend.models.pull import PullError, read_remote_header

GIB, MIB = 2**30, 2**20
# The strongest first; each but the last has a speed that somebody measured.
PREFERRED = ("qwen3.6-35b-a3b-q6-2x", "gemma4-26b-a4b", "qwen2.5-3b", "pocket")


@dataclass(frozen=True, slots=True)
class Machine:
    """`cards` in GiB each, `host` the free memory in bytes; `models` is where files lie."""

    cards: tuple[float, ...]
    host: int
    models: Path

    @classmethod
    def here(cls, models: Path) -> "Machine":
        """This machine. Blocks."""
        cards = tuple(gpu.memory / GIB for gpu in installed_gpus().gpus if gpu.memory)
        return cls(cards, int(proc.available_mib() * MIB), models)

    def card(self, profile: Profile) -> float:
        """GiB on the card that is used, or on all that are shared."""
        return sum(self.cards) if profile.splits else max(self.cards)

    def free(self, profile: Profile) -> list[FreeMemory]:
        """One for each size of card, the largest first; all cards together when the profile splits."""
        if profile.splits:
            return [FreeMemory(int(sum(self.cards) * GIB), self.host, max(1, len(self.cards)))]
        sizes = sorted(set(self.cards) or {0.0}, reverse=True)
        return [FreeMemory(int(size * GIB), self.host) for size in sizes]


@dataclass(frozen=True, slots=True)
class Outlook:
    """`line` says what will run and why, or why it will not."""

    name: str
    runs: bool
    line: str


def propose(machine: Machine, load: Callable[[str], Profile]) -> Outlook:
    """The first of PREFERRED that runs, with why none before it does."""
    refused: list[str] = []
    for name in PREFERRED if machine.cards else PREFERRED[-1:]:
        found = outlook(load(name), machine)
        if found.runs:
            break
        refused.append(found.line)
    return Outlook(found.name, found.runs, "\n".join([found.line, *refused]))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model to choose: a profile, or a file that another program has left here (`place`).

    `runs` is None where nobody can tell without the hub; `size` in bytes, of all its files, None
    where it is not known; `path` is the file where it is here.
    """

    name: str
    runs: bool | None
    line: str
    size: int | None = None
    path: Path | None = None
    place: str = ""


def candidates(
    machine: Machine, profiles: Sequence[Profile], found: Sequence[FoundModel]
) -> list[Candidate]:
    """What fits first, the best of it first; the toy is the last of what fits. Asks no hub. Blocks."""
    rated = [profile_candidate(profile, machine) for profile in profiles]
    rated += [file_candidate(model, machine) for model in found]
    order = {name: place for place, name in enumerate(PREFERRED[:2])}
    expected = {profile.name: (profile.vram_mib or 0) * MIB for profile in profiles}

    def rank(each: Candidate) -> tuple[int, int, bool, int]:
        fits = {True: 0, None: 1, False: 2}[each.runs]
        # Among those of whose speed nobody knows, the larger knows more.
        toy = each.name == PREFERRED[-1]
        return (
            fits,
            len(PREFERRED) if toy else order.get(each.name, len(order)),
            toy,
            -(each.size or expected.get(each.name, 0)),
        )

    return sorted(rated, key=rank)


def profile_candidate(profile: Profile, machine: Machine) -> Candidate:
    """By the header of its file where that is here, and else by the profile's own figures."""
    paths = [locate(source, machine.models) for source in profile.sources]
    here = all(path.is_file() for path in paths[: len(profile.needed)])
    sizes = [
        p.stat().st_size if p.is_file() else s.size
        for p, s in zip(paths, profile.sources, strict=True)
    ]
    size = sum(filter(None, sizes)) if all(sizes) else None
    if profile.gpu and not machine.cards:
        seen = Outlook(profile.name, False, f"{profile.name} wants a card, and none was found.")
    elif here:
        seen = outlook(profile, machine)
    else:
        seen = expected_outlook(profile, machine, "it is not here yet", size)
    known = here or profile.vram_mib or size or not machine.cards
    return Candidate(
        profile.name, seen.runs if known else None, seen.line, size, paths[0] if here else None
    )


def file_candidate(model: FoundModel, machine: Machine) -> Candidate:
    profile = replace(of_file(model.path, gpu=bool(machine.cards)), name=model.name)
    seen = outlook(profile, machine)
    return Candidate(model.name, seen.runs, seen.line, model.size, model.path, model.place)


def outlook(profile: Profile, machine: Machine) -> Outlook:
    """What would run; by the figures of the profile itself where the header cannot be read. Blocks."""
    if profile.gpu and not machine.cards:
        return Outlook(profile.name, False, f"{profile.name} wants a card, and none was found.")
    try:
        model, draft = profile_headers(profile, machine.models)
    except (PullError, NotAModel, OSError):
        return expected_outlook(profile, machine)
    profile = with_projector(profile, machine.models)
    cards = [Device(index, int(size * GIB)) for index, size in enumerate(machine.cards)]
    try:
        placed = place(profile, model, draft, cards, machine.host).profile
    except DoesNotFit as error:
        return Outlook(profile.name, False, str(error))
    card = machine.card(placed) if placed.gpu else 0
    free = machine.free(placed)[0] if placed.gpu else FreeMemory(0, machine.host)
    fit = fit_profile(placed, model, draft, free)
    if placed.gpu:
        why = f"it takes {fit.need.gpu / GIB:.1f} of {card:.1f} GiB{where(placed, machine)}"
        line = sentence(placed, fit.options.context, why, fit.need.host_weights)
    else:
        why = f"it needs no card, and {size_text(fit.need.host)} of memory"
        line = sentence(placed, fit.options.context, why)
    if 2 * placed.context < profile.context:  # it would not be what its profile promises
        line = f"{profile.name} would have a window of only {placed.context:,} of its {profile.context:,} tokens."
        return Outlook(profile.name, False, line)
    return Outlook(profile.name, True, line)


def profile_headers(
    profile: Profile, models: Path, say: Callable[[str], None] = lambda line: None
) -> tuple[Header, Header | None]:
    """The headers of the model and its draft: from the files, or from the hub while they are not here.

    Raises PullError, OSError, NotAModel.
    """

    def header(source: Source) -> Header:
        path = locate(source, models)
        if path.is_file() or source.repo is None:
            return read_header(path)
        say(f"{path.name} is not here; its header is read at the hub.")
        return read_remote_header(source)

    draft = header(profile.draft) if profile.draft else None
    return header(profile.model), draft


def expected_outlook(
    profile: Profile,
    machine: Machine,
    unread: str = "its header could not be read",
    size: int | None = None,
) -> Outlook:
    """By the profile's own figures, else by the `size` of its files; `unread` says why by no better ones."""
    expects, its = ("expects", "its profile") if profile.vram_mib else ("alone take", "its files")
    bytes = profile.vram_mib * MIB if profile.vram_mib else size
    if profile.needs_two_cards and len(machine.cards) == 1:
        line = f"{profile.name} is made for two cards, and there is one."
        return Outlook(profile.name, False, line)
    if not bytes or not machine.cards:
        return Outlook(profile.name, False, f"What {profile.name} needs is not known: {unread}.")
    needed, card, ram = bytes / GIB, machine.card(profile), (profile.ram_mib or 0) * MIB
    on = where(profile, machine)
    if needed > card:
        lacks = f"{needed:.1f} GiB{on}, and there are {card:.1f}"
    elif ram > machine.host:
        its, expects = "its profile", "expects"
        lacks = f"{size_text(ram)} of RAM, and {size_text(machine.host)} are free"
    else:
        why = f"{its} {expects} {needed:.1f} of {card:.1f} GiB{on} ({unread})"
        return Outlook(profile.name, True, sentence(profile, profile.context, why, ram))
    return Outlook(profile.name, False, f"{profile.name} does not fit: {its} {expects} {lacks}.")


def sentence(profile: Profile, window: int, why: str, ram: int = 0) -> str:
    known = profile.reference
    speed = f"{known.decode_tok_s:g} tokens/s reported ({known.source})" if known.decode_tok_s else "no speed reported"  # fmt: skip
    host = f" and {size_text(ram)} of RAM" if ram else ""
    return f"{profile.name}: a window of {window:,} tokens, {speed}, because {why}{host}."


def where(profile: Profile, machine: Machine) -> str:
    several = profile.splits and len(machine.cards) > 1
    return f" of {len(machine.cards)} cards" if several else " on the card"


def size_text(size: float) -> str:
    """Bytes as GiB or MiB."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
