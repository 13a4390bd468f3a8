"""The product on the card: too little memory, no card at all, a turn through the whole path, doctor and status."""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.client import BackendClient
from backend.measure.probe import CannotMeasure, open_probe
from backend.models.fit import GIB, MIB, FreeMemory, run_options
from backend.models.gguf_header import read_header
from backend.models.memory import memory_need
from backend.proc import output_of
from backend.protocol import Status
from backend.service import serve_backend
from bench.card.card import memory_held
from bench.card.stage import Stage

ROOT = Path(__file__).parents[2]
PROFILE = """title = "The card"
gpu = true
context = {context}
[model]
path = "{model}"
[flags.required]
"--n-gpu-layers" = "99"
"--flash-attn" = "on"
"--parallel" = "1"
"--slot-prompt-similarity" = "0.95"
"""
WRAPPER = """#!/bin/sh
{first}
exec "{server}" "$@"
"""
# As if the memory were free that is taken away meanwhile, so that the server itself runs out of it.
CLAIM = """case "$*" in *--list-devices*)
  echo "Available devices:"; echo "  CUDA0: the card ({mib} MiB, {mib} MiB free)"; exit 0 ;;
esac"""
OUT_OF_MEMORY = """window=0; before=""
for word in "$@"; do [ "$before" = -c ] && window=$word; before=$word; done
[ "$window" -gt {most} ] && { echo "CUDA error: out of memory" >&2; exit 134; }"""
Alerts = Callable[[], Sequence[str]]
READY_SECONDS, DOCTOR_SECONDS = 150.0, 600.0
QUESTION = "How much disk space is free?"


async def memory_short(stage: Stage) -> None:
    """A window for which the memory is there when asked, and not when it is taken: what is given up."""
    window = stage.scale.windows[-1]
    model, profile = read_header(stage.model("dense")), stage.profile("dense", window)
    need = memory_need(
        model, run_options(replace(profile, gpu=True), model, FreeMemory(1 << 40, 1 << 40))
    )
    enough = (need.gpu - need.kv // 2) // MIB
    first = CLAIM.format(mib=1 << 20)
    if stage.cpu:
        first += "\n" + OUT_OF_MEMORY.replace("{most}", str(window * 3 // 5))
    server = wrapper(stage, "short", first)
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        if not stage.cpu:
            await stack.enter_async_context(memory_held(enough))
        async with supervised(stage, server, window) as (client, alerts):
            status = await ready(client)
            stage.table.row(
                "too little memory",
                f"{enough / 1024:.1f} GiB free for {need.gpu / GIB:.1f}",
                f"serves after {time.monotonic() - began:.1f} s with {status.backend.n_ctx:,} of {window:,}"
                f" tokens; given up: {', '.join(status.backend.less_memory) or 'nothing'}",
            )
            for text in alerts():
                stage.table.row("too little memory", "alert", text)
    if not status.backend.less_memory:
        raise CannotMeasure(
            "Nothing was given up: the memory was not short, or its end was not seen."
        )


async def no_card(stage: Stage) -> None:
    """The card is hidden from the server: it serves on the processor, and that is said."""
    server = wrapper(stage, "hidden", "export CUDA_VISIBLE_DEVICES=")
    began = time.monotonic()
    async with supervised(stage, server, stage.scale.windows[0]) as (client, alerts):
        status = await ready(client)
        seconds = time.monotonic() - began
        place = await client.endpoint()
        async with open_probe(place.url, place.api_key) as probe:
            timed = await probe.complete(await probe.tokens(64), write=16)
        value = f"{status.backend.state} after {seconds:.1f} s, {timed.decode_tok_s or 0:.1f} tokens/s: {status.backend.reason}"
        stage.table.row("no card", "the backend", value)
        for text in alerts():
            stage.table.row("no card", "alert", text)
    if not status.backend.reason:
        raise CannotMeasure("It serves without the card and says nothing of it.")


async def whole_turn(stage: Stage) -> None:
    """A message to the bot through a Bot API server, the pocket model on the card, a command in the sandbox."""
    began = time.monotonic()
    code, text = await voltaire(stage, "demo", "--ask", QUESTION)
    lines = [line for line in text.splitlines() if line.strip()]
    last = " / ".join(lines[-3:])
    if code:
        raise CannotMeasure(f"voltaire demo ended with code {code}: {last}")
    stage.table.row("a turn", f"“{QUESTION}”, cold, {time.monotonic() - began:.1f} s in all", last)


async def doctor_and_status(stage: Stage) -> None:
    """Both beside a backend that runs on the card."""
    window = stage.scale.windows[0]
    folder = config_folder(stage, window)
    variables = {
        "XDG_CONFIG_HOME": str(folder),
        "VOLTAIRE_BACKEND__PROFILE": "card",
        "VOLTAIRE_BACKEND__SERVER": str(stage.server),
        "VOLTAIRE_STATE__DIR": str(folder / "state"),
    }
    async with background(stage, variables, "backend"):
        status = await until_ready(stage, variables)
        server, cards = status["backend"], status["gpus"]
        stage.table.row("status", "backend", f"{server['state']}, {server['model']}, {server['n_ctx']:,} tokens; {server['reason'] or 'no trouble'}")  # fmt: skip
        for card in cards:
            stage.table.row(
                "status",
                f"GPU {card['index']}",
                ", ".join(f"{k} {v}" for k, v in card.items() if k != "index"),
            )
        _, text = await voltaire(stage, "doctor", "--json", variables=variables)
        for found in json.loads(text[text.index("[") :]):
            stage.table.row("doctor", f"{found['check']}: {found['status']}", found["detail"])


# -- how ------------------------------------------------------------------------------


def wrapper(stage: Stage, name: str, first: str) -> Path:
    """The server behind shell code of ours."""
    folder = stage.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-server"
    program.write_text(WRAPPER.format(first=first, server=stage.config().server))
    program.chmod(0o755)
    return program


def config_folder(stage: Stage, window: int) -> Path:
    """A configuration folder with the profile "card"; the state's socket needs a short path."""
    folder = stage.folder / f"x{window}"
    profiles = folder / "voltaire/profiles"
    profiles.mkdir(parents=True, exist_ok=True)
    text = PROFILE.format(context=window, model=stage.model("dense"))
    (profiles / "card.toml").write_text(text, "utf-8")
    return folder


@asynccontextmanager
async def supervised(
    stage: Stage, server: Path, window: int
) -> AsyncIterator[tuple[BackendClient, Alerts]]:
    """The product's backend with the dense model, and what it has alerted of so far."""
    profiles = config_folder(stage, window) / "voltaire/profiles"
    state = server.parent / "state"
    config = replace(stage.config(server), state_dir=state, profile="card", profiles=profiles)
    async with serve_backend(config) as backend, BackendClient(backend.socket) as client:
        yield client, lambda: [alert.text for alert in backend.state.alerts.kept]


async def ready(client: BackendClient) -> Status:
    async for _ in client.ready(READY_SECONDS):
        pass
    return await client.status()


async def voltaire(
    stage: Stage, *words: str, variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """The command line with the built server first on PATH, and folders of its own: exit code and output."""
    output = await output_of(
        command(*words), env=own_environment(stage, variables or {}), seconds=DOCTOR_SECONDS
    )
    return output.code, output.text


def command(*words: str) -> Sequence[str]:
    return sys.executable, "-c", "from bot.cli import main; main()", *words


def own_environment(stage: Stage, variables: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join([str(Path(stage.config().server).parent), os.environ["PATH"]])
    home = stage.folder / "home"
    home.mkdir(exist_ok=True)
    folders = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": str(home)}
    python = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **folders, "PATH": path, "PYTHONPATH": python, **variables}


@asynccontextmanager
async def background(
    stage: Stage, variables: Mapping[str, str], *words: str
) -> AsyncIterator[None]:
    with (stage.folder / f"{words[0]}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command(*words), env=own_environment(stage, variables), stdout=log, stderr=log
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def until_ready(stage: Stage, variables: Mapping[str, str]) -> dict[str, Any]:
    """What `voltaire status --json` says once the backend serves."""
    async with asyncio.timeout(READY_SECONDS):
        while True:
            _, text = await voltaire(stage, "status", "--json", variables=variables)
            with suppress(ValueError):
                found: dict[str, Any] = json.loads(text)
                if found["backend"]["state"] in ("ready", "failed"):
                    return found
            await asyncio.sleep(0.5)
