"""Every known fault of a model server, injected for real.

    python -m bench.faults_backend [--kills 50]

Prints for each fault: noticed after, ready again after, turns lost (must be 0)
and what the person was told; then what a restart costs with a 20,000-token
prefix, and the supervisor's memory over the kills. Exit code 1 when a turn was
lost or a promise broken. The product's own time limits are used, so that it
takes about eight minutes.
"""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from backend import proc
from backend.client import BackendUnavailable
from backend.config import BackendConfig
from backend.state import Timing
from fakes import gguf_maker, llama_server
from fakes.backend_running import Running, running


@dataclass
class Row:
    """One line of the table; seconds, None where nothing was to be noticed."""

    fault: str
    noticed: float | None = None
    ready: float | None = None
    lost: int = 0
    told: list[str] = field(default_factory=list)
    wrong: str = ""

    def line(self) -> str:
        told = " / ".join(self.told) or "(nothing)"
        verdict = f"  WRONG: {self.wrong}" if self.wrong else ""
        return f"{self.fault:<52} {_s(self.noticed):>9} {_s(self.ready):>9} {self.lost:>5}  {told}{verdict}"


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


@dataclass
class Stopwatch:
    """Watches the board from the moment of the fault: when it stops serving, and serves again."""

    it: Running
    began: float = field(default_factory=time.monotonic)
    noticed: float | None = None
    ready: float | None = None

    async def watch(self) -> None:
        async for status in self.it.backend.state.status.changes():
            now = time.monotonic() - self.began
            if self.noticed is None and status.state in ("restarting", "failed"):
                self.noticed = now
            if self.noticed is not None and status.serving:
                self.ready = now
                return


@asynccontextmanager
async def watching(it: Running) -> AsyncIterator[Stopwatch]:
    watch = Stopwatch(it)
    task = asyncio.create_task(watch.watch())
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait({task})


async def turn(it: Running, row: Row, chat: str = "a", text: str = "hello") -> None:
    """One turn that must end with an answer."""
    try:
        await it.ask(chat, text, tries=1000)
    except (AssertionError, BackendUnavailable) as error:
        row.lost += 1
        row.wrong = str(error)
    row.told = list(dict.fromkeys([*row.told, *it.reasons]))


def stand_in(
    folder: Path, plan: list[str], *, gpu: bool, engine: str, prefill: float, silent: float
) -> BackendConfig:
    program = llama_server.install(folder / "fake", plan, silent)
    llama_server.profile(folder / "fake", gpu=gpu, engine=engine, prefill=prefill)
    model = gguf_maker.make(folder / "noise.gguf")
    return BackendConfig(
        folder / "state",
        profile="fake",
        profiles=folder / "fake",
        server=str(program),
        model=str(model),
    )


async def one(
    fault: str, plan: list[str], *, gpu: bool = False, engine: str = "llama.cpp", prefill: float = 1000, silent: float = 150,
    restarts: int = 1, timing: Timing | None = None,
) -> Row:  # fmt: skip
    """A turn against the stand-in with this plan of faults."""
    row = Row(fault)
    with tempfile.TemporaryDirectory(prefix="vf") as name:
        config = stand_in(Path(name), plan, gpu=gpu, engine=engine, prefill=prefill, silent=silent)
        async with running(config, timing or Timing()) as it, watching(it) as watch:
            it.patience = 600
            await turn(it, row)
            row.noticed, row.ready = watch.noticed, watch.ready
            if it.backend.state.status.current.restarts != restarts:
                row.wrong = (
                    f"{it.backend.state.status.current.restarts} restarts instead of {restarts}"
                )
    return row


async def on_embedded(fault: str, inject: Callable[[int], None], *, restarts: int) -> Row:
    """A turn on the real server, whose process meets a fault while it works."""
    row = Row(fault)
    with tempfile.TemporaryDirectory(prefix="vf") as name:
        async with running(embedded(Path(name)), Timing()) as it:
            it.patience = 600
            await it.ready(60)
            asking = asyncio.create_task(turn(it, row, text="word " * 1500))
            await asyncio.sleep(0.3)  # into the middle of the prefill
            async with watching(it) as watch:
                inject(it.backend.state.status.current.pid or 0)
                await asking
                row.noticed, row.ready = watch.noticed, watch.ready
            if it.backend.state.status.current.restarts != restarts:
                row.wrong = (
                    f"{it.backend.state.status.current.restarts} restarts instead of {restarts}"
                )
    return row


async def refused(fault: str, change: Callable[[BackendConfig, Path], BackendConfig]) -> Row:
    """A start that cannot succeed: the reason must come at once."""
    row = Row(fault)
    with tempfile.TemporaryDirectory(prefix="vf") as name:
        async with running(change(embedded(Path(name)), Path(name)), Timing()) as it:
            began = time.monotonic()
            try:
                await it.ready(60)
                row.wrong = "it started"
            except BackendUnavailable as error:
                row.told.append(str(error))
            row.noticed = time.monotonic() - began
    return row


def embedded(folder: Path) -> BackendConfig:
    model = gguf_maker.make(folder / "noise.gguf")
    return BackendConfig(folder / "state", server="embedded", model=str(model))


def damaged(config: BackendConfig, folder: Path) -> BackendConfig:
    whole = Path(config.model).read_bytes()
    (folder / "half.gguf").write_bytes(whole[: len(whole) // 2])
    return replace(config, model=str(folder / "half.gguf"))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


FAULTS: list[Callable[[], Awaitable[Row]]] = [
    lambda: one("stalls in an answer, /health green, TERM ignored", ["stall", ""]),
    lambda: one("the same on an engine that tells no progress", ["stall", ""], engine="ik_llama.cpp", prefill=2000),
    lambda: one("prefills 150 s in silence (ik_llama.cpp): no fault", ["silent"], engine="ik_llama.cpp", prefill=160, restarts=0),
    lambda: one("answers 500 to everything", ["errors", ""]),
    lambda: one("killed in the middle of an answer", ["dies", ""]),
    lambda: one("CUDA out of memory at load", ["oom load", ""], gpu=True),
    lambda: one("CUDA out of memory in an answer", ["oom use", ""], gpu=True),
    lambda: one("loads for ever", ["load for ever", ""]),
    lambda: one("loads slowly and says so: no fault", ["slow load"], restarts=0),
    lambda: one("fills the log: no fault", ["flood"], restarts=0),
    lambda: one("came up on the processor", ["cpu"], gpu=True),
    lambda: one("four starts in a row that end at once", ["exit"] * 4 + [""], restarts=4),
    lambda: on_embedded("embedded: SIGKILL in a prefill", kill, restarts=1),
    lambda: on_embedded("embedded: SIGSTOP in a prefill", stop, restarts=0),
    lambda: refused("embedded: the model is missing", lambda c, _: replace(c, model="/nowhere.gguf")),
    lambda: refused("embedded: the model is damaged", damaged),
    lambda: refused("a server that is no program", lambda c, _: replace(c, server="/etc/hostname")),
]  # fmt: skip


async def kills(times: int) -> Row:
    """Killed at random moments under load from three chats: every turn ends with an answer."""
    row, chance = Row(f"killed {times} times under load of three chats"), random.Random(1)
    with tempfile.TemporaryDirectory(prefix="vf") as name:
        async with running(embedded(Path(name)), Timing()) as it:
            it.patience = 600
            await it.client.warm([{"role": "system", "content": "You are a test. " * 40}])
            over, turns = asyncio.Event(), 0

            async def chatter(chat: str) -> None:
                nonlocal turns
                while not over.is_set():
                    await turn(it, row, chat, f"{chat} {'word ' * chance.randrange(5, 400)}")
                    turns += 1

            async with asyncio.TaskGroup() as group:
                for chat in ("a", "b", "c"):
                    group.create_task(chatter(chat))
                before = after = 0.0
                for number in range(times):
                    await it.until(lambda status: status.backend.serving, 120)
                    await asyncio.sleep(chance.uniform(0, 2.0))
                    with suppress(ProcessLookupError):  # it ended by itself a moment ago
                        if pid := it.backend.state.status.current.pid:
                            kill(pid)
                    after = proc.rss_mib(os.getpid()) or 0
                    before = before or (after if number >= times // 4 else 0)
                over.set()
            row.told = [
                f"{turns} turns; our memory {before:.1f} MiB after a quarter of them, {after:.1f} MiB at the end"
            ]
            if after > before + 8:
                row.wrong = "memory grows"
    return row


async def large_prefix() -> Row:
    """A restart with a 20,000-token prefix: what the first turn re-reads of it."""
    row = Row("first turn after a restart, 20,000-token prefix")
    with tempfile.TemporaryDirectory(prefix="vf") as name:
        folder = Path(name)
        (folder / "big.toml").write_text(
            'title = "B"\ngpu = false\ncontext = 32768\n[model]\npath = "x"\n[flags.required]\n"-np" = "1"\n"-sps" = "0.95"\n'
        )
        config = replace(embedded(folder), profile="big", profiles=folder)
        system = {"role": "system", "content": "the cat and the dog " * 1700}
        async with running(config, Timing()) as it:
            await it.client.warm([system])
            cold = (
                await it.until(lambda s: s.backend.warm is not None and s.backend.serving, 300)
            ).backend.warm
            await it.client.restart()
            warm = (
                await it.until(lambda s: s.backend.restarts == 1 and s.backend.serving, 300)
            ).backend.warm
            timings = await it.complete([system, {"role": "user", "content": "hello"}])
        assert cold and warm
        reread = warm.tokens - timings["cache_n"]
        row.ready = warm.seconds
        row.told = [
            f"{warm.tokens:,} tokens: {cold.source} {cold.seconds:.1f} s at first, {warm.source} {warm.seconds:.2f} s after "
            f"the restart; the first turn re-read {reread} of them"
        ]
        row.wrong = "" if reread <= 32 else "more than 32 tokens re-read"
    return row


async def campaign(times: int) -> int:
    print(f"{'fault':<52} {'noticed':>9} {'ready':>9} {'lost':>5}  told")
    wrong = 0
    for run in [*FAULTS, lambda: kills(times), large_prefix]:
        row = await run()
        print(row.line(), flush=True)
        wrong += bool(row.lost or row.wrong)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    chosen = parser.parse_args()
    sys.exit(1 if asyncio.run(campaign(chosen.kills)) else 0)


if __name__ == "__main__":
    main()
