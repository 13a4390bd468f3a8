"""Memory as we compute it beside the log of a server on the card, and what the card's context takes itself."""

import asyncio
import re
from dataclasses import dataclass

from backend.gpu.nvml import Sample
from backend.measure.bench import LOAD_SECONDS
from backend.measure.probe import CannotMeasure
from backend.models.fit import MIB, FreeMemory, run_options
from backend.models.gguf_header import read_header
from backend.models.memory import MemoryNeed, memory_need
from backend.server.launch import CannotStart, loaded_server, prepare
from bench.card.card import sampled
from bench.card.stage import Stage

DRAFTS = {"--spec-type": "draft-mtp", "--spec-draft-n-max": "3"}
BUFFER = re.compile(
    r"(?P<place>\S+) +(?P<kind>model|KV|RS|compute) buffer size *= *(?P<mib>[\d.]+) MiB"
)
HOST = re.compile(r"CPU|Host|host")
REPACKED = "REPACK"  # copies of weights for the processor
LATE_SECONDS = 1.0  # the log of what was allocated last


@dataclass
class LoggedMemory:
    """MiB on the card, or in memory without one."""

    weights: float = 0
    kv: float = 0
    compute: float = 0

    @property
    def together(self) -> float:
        return self.weights + self.kv + self.compute


async def beside_the_log(stage: Stage) -> None:
    for kind in stage.models:
        drafts = (None, DRAFTS) if kind == "hybrid" else (None,)
        for flags in drafts:
            for window in stage.scale.windows:
                name = f"{kind}{', drafting' if flags else ''}, {window // 1024}k"
                try:
                    stage.table.row("fit, MiB", name, await compared(stage, kind, window, flags))
                except (CannotMeasure, CannotStart) as error:
                    stage.table.failed("fit, MiB", f"{name}: {error}")


async def compared(stage: Stage, kind: str, window: int, flags: dict[str, str] | None) -> str:
    """One start: "part ours / logged", the error of the sum, and the context's share where there is a card."""
    profile = stage.profile(kind, window, {**(flags or {}), "--no-warmup": ""})
    model = read_header(stage.model(kind))
    free = FreeMemory(0 if stage.cpu else 1 << 40, 1 << 40)
    need = memory_need(model, run_options(profile, model, free))
    idle = await sampled(stage)
    launch = await prepare(stage.config(), profile, measure=False)
    record = stage.folder / "state/run/fit.json"
    async with loaded_server(launch, record, LOAD_SECONDS) as (process, _):
        await asyncio.sleep(LATE_SECONDS)
        loaded = await sampled(stage)
        log = logged("\n".join(process.log.everything()), on_card=not stage.cpu)
    if not log.together:
        raise CannotMeasure("The server's log names no buffers.")
    return line(need, log, taken(idle, loaded))


def logged(log: str, *, on_card: bool) -> LoggedMemory:
    """The sizes of all buffers, summed over contexts: one that drafts has buffers of its own."""
    found = LoggedMemory()
    for match in BUFFER.finditer(log):
        if on_card == bool(HOST.search(match["place"])) or REPACKED in match["place"]:
            continue
        mib = float(match["mib"])
        if match["kind"] == "model":
            found.weights += mib
        elif match["kind"] == "compute":
            found.compute += mib
        else:
            found.kv += mib
    return found


def taken(idle: Sample, loaded: Sample) -> float | None:
    """MiB that the cards hold more than before."""
    pairs = zip(idle.gpus, loaded.gpus, strict=False)
    more = [now.memory_used_mib - was.memory_used_mib for was, now in pairs if now.memory_used_mib is not None and was.memory_used_mib is not None]  # fmt: skip
    return sum(more) if more else None


def line(need: MemoryNeed, log: LoggedMemory, card: float | None) -> str:
    weights = (need.weights or need.host_weights) / MIB
    ours = LoggedMemory(weights, need.kv / MIB, need.compute / MIB)
    parts = [
        f"{part} {getattr(ours, part):,.0f} / {getattr(log, part):,.0f}"
        for part in ("weights", "kv", "compute")
    ]
    words = [*parts, f"sum {ours.together / log.together - 1:+.1%}"]
    if card:
        words.append(
            f"the context's own {card - log.together:,.0f}, counted {need.overhead / MIB:,.0f}"
        )
    return "; ".join(words)
