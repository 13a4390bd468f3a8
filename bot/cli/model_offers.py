"""The models that /model offers (bot.commands.context.ModelSource): what fits, downloads, and rehearsals.

A download is a `voltaire model pull` in a process of its own: it ends with the bot, and resumes when it is
asked for again.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent.errors import AgentError
from agent.files import bytes_below
from backend.protocol import Status
from bot.commands.context import ModelOffer, Rehearsal
from bot.settings import Settings

LOOK_SECONDS = 5.0
STOP_SECONDS = 5.0
TURNS = 20  # of a rehearsal from the chat


@dataclass
class MachineModels:
    """Finds, downloads and rehearses models on this machine. `demo`: commands shown are those of `make demo`."""

    settings: Settings
    demo: bool = False
    running: set[str] = field(default_factory=set)

    async def offers(self, report: Status) -> Sequence[ModelOffer]:
        from backend import proc
        from backend.models.outlook import MIB, PREFERRED, Machine
        from bot.cli.backend_config import backend_config
        from bot.cli.model import all_candidates, next_step

        free, models = int(proc.available_mib() * MIB), backend_config(self.settings).models_folder
        sizes = [free / MIB if gpu.unified else gpu.memory_total_mib or 0 for gpu in report.gpus]
        cards = tuple(size / 1024 for size in sizes if size)
        unified = any(gpu.unified for gpu in report.gpus)
        machine = Machine(cards, free, models, unified)
        found = await asyncio.to_thread(all_candidates, machine)
        serves = "make demo MODEL=" if self.demo else "voltaire run --model "
        return [
            ModelOffer(
                each.name, each.line, each.size, next_step(each, serves) if each.place else ""
            )
            for each in found
            if each.runs and each.name != PREFERRED[-1]
            if each.place or not each.path
        ]

    async def download(self, name: str) -> AsyncGenerator[tuple[int, int | None]]:
        from backend.models.profile import ProfileError
        from bot.cli.backend_config import backend_config, profile_of

        self.running.add(name)
        try:
            sizes = [source.size for source in profile_of(name).sources]
            size = sum(filter(None, sizes)) if all(sizes) else None
            folder = backend_config(self.settings).models_folder
            before = bytes_below(folder)
            process = await self.start("pull", name)
            ending = asyncio.create_task(process.communicate())
            try:
                while not (await asyncio.wait({ending}, timeout=LOOK_SECONDS))[0]:
                    yield max(0, await asyncio.to_thread(bytes_below, folder) - before), size
            finally:
                if process.returncode is None:
                    await stop(process)
                await asyncio.wait({ending})
        except (ProfileError, OSError) as error:
            raise AgentError(str(error)) from None
        finally:
            self.running.discard(name)
        output_of(process, ending.result())

    async def rehearse(self, name: str) -> Rehearsal:
        """`voltaire model try` with the owner's last turns."""
        process = await self.start("try", name, "--turns", str(TURNS), "--json")
        try:
            ended = await process.communicate()
        finally:
            if process.returncode is None:
                await stop(process)
        found = json.loads(output_of(process, ended))["all"]
        return Rehearsal(**{key: found[key] for key in Rehearsal.__dataclass_fields__})

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """Start a `voltaire model` command on the same configuration and state."""
        program = Path(sys.executable).with_name("voltaire")
        config = self.settings.path or os.devnull
        return await asyncio.create_subprocess_exec(
            *(str(program), "--config", str(config), "model", *words),
            env={**os.environ, "VOLTAIRE_STATE__DIR": str(self.settings.state_dir)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


def output_of(process: asyncio.subprocess.Process, ended: tuple[bytes, bytes]) -> str:
    """Return the command's output. Raises AgentError with its last line if it failed."""
    out, err = (stream.decode("utf-8", "replace").strip() for stream in ended)
    if process.returncode:
        raise AgentError(err.splitlines()[-1] if err else f"exit code {process.returncode}")
    return out


async def stop(process: asyncio.subprocess.Process) -> None:
    """End the command's process group: TERM, a bounded wait, KILL."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        # In a task that is cancelled asyncio.timeout raises no TimeoutError before Python 3.11.3.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
            return
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
