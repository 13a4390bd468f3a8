"""How a profile would run on this machine, in one line: its window, its speed, and whether it fits.

Computed as before each start (`placement`), from the header of the model's file, or of the
hub's file while it is not downloaded yet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backend import proc
from backend.gpu.nvml import NO_LIBRARY, installed_gpus
from backend.models.fit import FreeMemory, fit_profile
from backend.models.found import FoundModel
from backend.models.gguf_header import Header, NotAModel, read_header, with_projector
from backend.models.placement import Device, DoesNotFit, place
from backend.models.profile import Profile, Source, locate, of_file
from backend.models.pull import PullError, read_remote_header
from backend.protocol import Phrase

GIB, MIB = 2**30, 2**20
EXPECTED = {  # by whether the profile says what it needs, and whether it runs on several cards
    (True, False): Phrase("its profile expects {part} of {all} GiB on the card ({why})"),
    (True, True): Phrase("its profile expects {part} of {all} GiB of {count} cards ({why})"),
    (False, False): Phrase("its files alone take {part} of {all} GiB on the card ({why})"),
    (False, True): Phrase("its files alone take {part} of {all} GiB of {count} cards ({why})"),
}
UNREAD = Phrase("its header could not be read")
# The strongest first; for all but the last somebody measured the speed.
PREFERRED = ("qwen3.6-35b-a3b-q6-2x", "gemma4-26b-a4b", "qwen2.5-3b", "pocket")
# Without a card, of models that call tools.
PREFERRED_CPU = (
    "qwen2.5-coder-1.5b",
    "qwen3-1.7b",
    "qwen2.5-1.5b",
    "qwen2.5-3b",
    "smollm3-3b",
    "qwen3-4b",
    "lfm2-1.2b",
)


@dataclass(frozen=True, slots=True)
class Machine:
    """The memory and model files of a machine.

    `cards` is the GiB of each GPU, `host` the free memory in bytes, `models` the folder of model files.
    `unified`: the cards' memory is the host's. `problem`: why cards that may be here cannot be used.
    """

    cards: tuple[float, ...]
    host: int
    models: Path
    unified: bool = False
    problem: str = ""

    @classmethod
    def here(cls, models: Path) -> "Machine":
        """Describe this machine. Blocks."""
        found = installed_gpus()
        gpus, problem = found.gpus, found.problem if found.code != NO_LIBRARY else ""
        cards = tuple(gpu.memory / GIB for gpu in gpus if gpu.memory)
        unified = any(gpu.unified for gpu in gpus)
        return cls(cards, int(proc.available_mib() * MIB), models, unified, problem)

    def card(self, profile: Profile) -> float:
        """GiB on the GPU that is used, or on all GPUs if the profile splits."""
        return sum(self.cards) if profile.splits else max(self.cards)

    def free(self, profile: Profile) -> list[FreeMemory]:
        """The free memory for each size of GPU, largest first; of all GPUs together if the profile splits."""
        if profile.splits:
            cards = max(1, len(self.cards))
            return [FreeMemory(int(sum(self.cards) * GIB), self.host, cards, self.unified)]
        sizes = sorted(set(self.cards) or {0.0}, reverse=True)
        return [FreeMemory(int(size * GIB), self.host, unified=self.unified) for size in sizes]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Whether a model runs here: a profile, or a file of another program (`place`).

    `runs` is None if that cannot be known without the hub; `line` says what will run and why, or why
    not. `size` in bytes, of all its files, is None if unknown; `path` is the file if it is here.
    """

    name: str
    runs: bool | None
    line: str
    size: int | None = None
    path: Path | None = None
    place: str = ""


def propose(machine: Machine, load: Callable[[str], Profile]) -> Outlook:
    """The first of PREFERRED that runs, with the reasons why those before it do not; without a card, its line
    names a small real model too."""
    refused: list[str] = []
    for name in PREFERRED if machine.cards else PREFERRED[-1:]:
        found = outlook(load(name), machine)
        if found.runs:
            break
        refused.append(found.line)
    lines = [found.line, *refused]
    if machine.problem:
        lines.append(f"No card can be used: {machine.problem}. voltaire doctor says what helps.")
    if not machine.cards:
        small = (profile_candidate(load(name), machine) for name in PREFERRED_CPU)
        if best := next((each for each in small if each.runs and each.size), None):
            size = size_text(best.size or 0)
            lines.append(f"A small real model runs without a card, too: {best.name} ({size}).")
    return replace(found, line="\n".join(lines))


def candidates(
    machine: Machine, profiles: Sequence[Profile], found: Sequence[FoundModel]
) -> list[Outlook]:
    """Models that fit first, the best of them first and the toy model last. Does not ask the hub. Blocks."""
    rated = [profile_candidate(profile, machine) for profile in profiles]
    rated += [file_candidate(model, machine) for model in found]
    preferred = PREFERRED[:2] if machine.cards else PREFERRED_CPU
    order = {name: place for place, name in enumerate(preferred)}
    # On a card what the profile expects counts, without one the size of the file.
    vram = {each.name: (each.vram_mib or 0) * MIB for each in profiles if machine.cards}

    def rank(each: Outlook) -> tuple[int, bool, int, int]:
        fits = {True: 0, None: 1, False: 2}[each.runs]
        # Among models of unknown speed the larger one is assumed to be better.
        size = max(each.size or 0, vram.get(each.name, 0))
        return fits, each.name == PREFERRED[-1], order.get(each.name, len(order)), -size

    return sorted(rated, key=rank)


def profile_candidate(profile: Profile, machine: Machine) -> Outlook:
    """Judge if a profile fits the machine, by the header of its file if that is here, else by its own figures."""
    profile = profile.for_machine(gpu=bool(machine.cards))
    paths = [locate(source, machine.models) for source in profile.sources]
    here = all(path.is_file() for path in paths[: len(profile.needed)])
    size = size_of(profile, machine)
    if here or (profile.gpu and not machine.cards):
        found = outlook(profile, machine)
    else:
        found = expected_outlook(profile, machine, Phrase("it is not here yet"), size)
    known = here or profile.vram_mib or size or (profile.gpu and not machine.cards)
    runs, path = found.runs if known else None, paths[0] if here else None
    return replace(found, runs=runs, size=size, path=path)


def size_of(profile: Profile, machine: Machine) -> int | None:
    """The bytes of all its files, of one that is not here as the profile says; None if one is unknown."""
    paths = [(locate(source, machine.models), source) for source in profile.sources]
    sizes = [path.stat().st_size if path.is_file() else source.size for path, source in paths]
    return sum(filter(None, sizes)) if all(sizes) else None


def file_candidate(model: FoundModel, machine: Machine) -> Outlook:
    profile = replace(of_file(model.path), name=model.name)
    found = outlook(profile, machine)
    return replace(found, size=model.size, path=model.path, place=model.place)


def outlook(profile: Profile, machine: Machine) -> Outlook:
    """How it would run; from the profile's own figures if the header cannot be read. Blocks."""
    profile = profile.for_machine(gpu=bool(machine.cards))
    if profile.gpu and not machine.cards:
        return Outlook(profile.name, False, f"{profile.name} wants a card, and none was found.")
    try:
        model, draft = profile_headers(profile, machine.models)
    except (PullError, NotAModel, OSError):
        return expected_outlook(profile, machine, size=size_of(profile, machine))
    profile = with_projector(profile, machine.models)
    cards = [
        Device(index, int(size * GIB), unified=machine.unified)
        for index, size in enumerate(machine.cards)
    ]
    try:
        placed = place(profile, model, draft, cards, machine.host).profile
    except DoesNotFit as error:
        return Outlook(profile.name, False, Phrase.of(error))
    free = machine.free(placed)[0] if placed.gpu else FreeMemory(0, machine.host)
    fit = fit_profile(placed, model, draft, free)
    if placed.gpu:
        form, count = "it takes {part} of {all} GiB on the card", cards_used(placed, machine)
        if count > 1:
            form = "it takes {part} of {all} GiB of {count} cards"
        part, whole = fit.need.gpu / GIB, free.gpu / GIB
        why, ram = Phrase(form, part=part, all=whole, count=count), fit.need.host_weights
    else:
        needed = size_text(fit.need.host)
        why, ram = Phrase("it needs no card, and {size} of memory", size=needed), 0
    if 2 * placed.context < profile.context:  # far less than the profile promises
        line = f"{profile.name} would have a window of only {placed.context:,} of its {profile.context:,} tokens."
        return Outlook(profile.name, False, line)
    return Outlook(profile.name, True, sentence(placed, fit.options.context, why, ram))


def profile_headers(
    profile: Profile, models: Path, say: Callable[[str], None] = lambda line: None
) -> tuple[Header, Header | None]:
    """The headers of the model and its draft model, from the files or, if they are not here, from the hub.

    Raises PullError, OSError, NotAModel.
    """

    def header(source: Source) -> Header:
        path = locate(source, models)
        if path.is_file() or source.repo is None:
            return read_header(path)
        say(f"{path.name} is not here; its header is read at Hugging Face.")
        return read_remote_header(source)

    draft = header(profile.draft) if profile.draft else None
    return header(profile.model), draft


def expected_outlook(
    profile: Profile,
    machine: Machine,
    unread: Phrase = UNREAD,
    size: int | None = None,
) -> Outlook:
    """Computed from the profile's own figures, else from the `size` of its files.

    `unread` says why its header is not used.
    """
    if not profile.gpu and size:
        if size > machine.host:
            lacks = f"{size_text(size)} of RAM, and {size_text(machine.host)} are free"
            line = f"{profile.name} does not fit: its files alone take {lacks}."
            return Outlook(profile.name, False, line)
        why = Phrase("it needs no card, and more than {size} of memory", size=size_text(size))
        return Outlook(profile.name, True, sentence(profile, profile.context, why))
    bytes = profile.vram_mib * MIB if profile.vram_mib else size
    if profile.needs_two_cards and len(machine.cards) == 1:
        line = f"{profile.name} is made for two cards, and there is one."
        return Outlook(profile.name, False, line)
    if not bytes or not machine.cards:
        return Outlook(profile.name, False, f"What {profile.name} needs is not known: {unread}.")
    needed, card, ram = bytes / GIB, machine.card(profile), (profile.ram_mib or 0) * MIB
    cards = cards_used(profile, machine)
    if needed + (ram / GIB if machine.unified else 0) > card:
        expects = "its profile expects" if profile.vram_mib else "its files alone take"
        on = "on the card" if cards == 1 else f"of {cards} cards"
        lacks = f"{expects} {needed:.1f} GiB {on}, and there are {card:.1f}"
    elif ram > machine.host:
        free = size_text(machine.host)
        lacks = f"its profile expects {size_text(ram)} of RAM, and {free} are free"
    else:
        form = EXPECTED[bool(profile.vram_mib), cards > 1]
        why = Phrase(form, part=needed, all=card, count=cards, why=unread)
        return Outlook(profile.name, True, sentence(profile, profile.context, why, ram))
    return Outlook(profile.name, False, f"{profile.name} does not fit: {lacks}.")


def sentence(profile: Profile, window: int, why: Phrase, ram: int = 0) -> Phrase:
    known, speed = profile.reference, Phrase("no speed reported")
    if known.decode_tok_s:
        form, measured = "{speed} tokens/s reported ({source})", known.decode_tok_s
        measured = int(measured) if measured.is_integer() else measured
        speed = Phrase(form, speed=measured, source=known.source)
    if ram:
        why = Phrase("{why} and {ram} of RAM", why=why, ram=size_text(ram))
    form = "{name}: a window of {window} tokens, {speed}; {why}."
    return Phrase(form, name=profile.name, window=window, speed=speed, why=why)


def cards_used(profile: Profile, machine: Machine) -> int:
    return len(machine.cards) if profile.splits else 1


def size_text(size: float) -> str:
    """Bytes as GiB, MiB or KiB."""
    less = f"{size / MIB:.0f} MiB" if size >= MIB else f"{size / 1024:.0f} KiB"
    return f"{size / GIB:.1f} GiB" if size >= GIB else less
