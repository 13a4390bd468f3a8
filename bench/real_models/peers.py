"""Other agents on the same server, as their users would run them, judged by the same checks.

Each is installed into an environment of its own, and runs in bubblewrap with a copy of the task's files, where it sees
the machine read-only and reaches the model. It is judged kindly: what it remembered or planned may stand in any file
that it wrote, and a file counts as sent when the answer names it.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from agent.evaluate.runner import prepared_sandbox
from agent.evaluate.tasks import EvalTask, TurnRecorder, failed_check
from agent.schedule.times.parser import parse
from backend.protocol import Endpoint
from bench.real_models.trial import Bench, Trial, with_transcript
from bench.real_models.weights import CACHE
from fakes.answer_faults import faults_of

PEER_SECONDS = 600  # of a task: their prompts are long, and read from nothing
WORKSPACE, HOME = "/tmp/workspace", "/tmp/home"  # inside
TEXT_BYTES = 1 << 16  # of a file that is searched for what was remembered


@dataclass(frozen=True)
class Peer:
    """A package of the index. `command` makes the arguments after the environment's python; `answer` finds
    the answer below its place (home/ and workspace/ as it left them), or in what it printed."""

    package: str
    version: str
    command: Callable[[str, Path, Endpoint], Sequence[str]]
    answer: Callable[[Path, str], str]
    env: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return CACHE.resolve() / self.package


# -- nanobot -------------------------------------------------------------------


def nanobot_command(ask: str, place: Path, endpoint: Endpoint) -> Sequence[str]:
    provider = {"apiBase": f"{endpoint.url}/v1", "apiKey": endpoint.api_key or "none"}
    # Its window stays at its default: without the network it takes bytes for tokens, and would refuse to ask.
    defaults = {"workspace": WORKSPACE, "model": "local", "provider": "custom", "maxTokens": 2048}
    config = {"agents": {"defaults": defaults}, "providers": {"custom": provider}}
    (place / "home" / "config.json").write_text(json.dumps(config))
    options = ("--no-markdown", "-c", f"{HOME}/config.json", "-w", WORKSPACE)
    return ("-m", "nanobot", "agent", "-m", ask, *options)


def nanobot_answer(place: Path, printed: str) -> str:
    """The last words of its session."""
    said = printed
    for path in sorted(place.glob("home/sessions/*/*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            message = json.loads(line)
            if message.get("role") == "assistant" and message.get("content"):
                said = str(message["content"])
    return said


# -- mini-swe-agent --------------------------------------------------------------


def mini_command(ask: str, _place: Path, endpoint: Endpoint) -> Sequence[str]:
    """With commands as text, its form for models that call no tools."""
    key = endpoint.api_key or "none"
    options = {
        "model.model_kwargs.api_base": f"{endpoint.url}/v1",
        "model.model_kwargs.api_key": key,
        "model.cost_tracking": "ignore_errors",
        "agent.step_limit": "24",
    }
    set_ = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    form = ("--model-class", "litellm_textbased", "-m", "openai/local", "-c", "mini_textbased.yaml")
    ends = ("-y", "--exit-immediately", "-o", f"{HOME}/trajectory.json")
    return ("-m", "minisweagent.run.mini", "-t", ask, *form, *set_, *ends)


def mini_answer(place: Path, printed: str) -> str:
    """What it wrote around its commands and what these printed, as its screen shows it to its user."""
    path = place / "home" / "trajectory.json"
    messages = json.loads(path.read_text("utf-8"))["messages"] if path.exists() else []
    said = [str(message.get("content") or "") for message in messages[2:]]
    return re.sub(r"```mswea_bash_command.*?```", "", "\n".join(said), flags=re.DOTALL) or printed


PEERS = {
    "nanobot": Peer("nanobot-ai", "0.3.5", nanobot_command, nanobot_answer, {}),
    "mini-swe-agent": Peer(
        "mini-swe-agent",
        "2.4.6",
        mini_command,
        mini_answer,
        {"MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1", "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "2", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
}  # fmt: skip


def install(peer: Peer) -> None:
    """Into an environment of its own, once."""
    done = peer.folder / f".{peer.version}"
    if not done.exists():
        uv = (sys.executable, "-m", "uv")
        subprocess.run([*uv, "venv", "-q", "--clear", "--python", sys.executable, peer.folder], check=True)  # fmt: skip
        into = ("--python", peer.folder / "bin" / "python")
        subprocess.run([*uv, "pip", "install", "-q", *into, f"{peer.package}=={peer.version}"], check=True)  # fmt: skip
        done.touch()


async def peer_trial(bench: Bench, task: EvalTask, name: str, seed: int) -> Trial:
    """The task by a peer; what it says of itself (its log) is not looked at."""
    peer, endpoint = PEERS[name], await bench.agent.backend.endpoint()
    await asyncio.to_thread(install, peer)
    async with prepared_sandbox(bench.stage, task) as sandbox:
        with tempfile.TemporaryDirectory(prefix="peer-", dir=CACHE) as scratch:
            place, workspace = Path(scratch), Path(scratch, "workspace")
            (place / "home").mkdir()
            await asyncio.to_thread(shutil.copytree, sandbox.workspace, workspace, symlinks=True)
            began = time.monotonic()
            reason, printed = await isolated(peer, place, peer.command(task.ask, place, endpoint))
            seconds = time.monotonic() - began
            answer = peer.answer(place, printed)
            written = list(texts(workspace))
            await asyncio.to_thread(put_back, workspace, sandbox.workspace)
        now = datetime.now(ZoneInfo("UTC"))
        due = [(parse(task.due, now), text) for text in written if task.due]
        recorder = TurnRecorder(now, written, due, sent=[answer], ran=list(task.uses))
        fault = await failed_check(task, answer, recorder, sandbox)
    trial = Trial(
        model=bench.name,
        agent=name,
        seed=seed,
        task=task.name,
        revision=peer.version,
        fault=fault,
        reason=reason,
        answer_faults=faults_of(answer, [tool.name for tool in bench.agent.tools]),
        calls=0,
        seconds=round(seconds, 3),
        model_calls=(),
    )
    text = f"== PRINTED\n{printed}\n== ANSWER\n{answer}"
    return await asyncio.to_thread(with_transcript, trial, task, text)


async def isolated(peer: Peer, place: Path, arguments: Sequence[str]) -> tuple[str, str]:
    """How it ended, and what it printed."""
    bwrap = ("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp")
    place = place.resolve()
    folders = {peer.folder: peer.folder, place / "home": HOME, place / "workspace": WORKSPACE}
    binds = [
        str(p) for f, t in folders.items() for p in ("--ro-bind" if f == t else "--bind", f, t)
    ]
    process = await asyncio.create_subprocess_exec(
        *(*bwrap, *binds, "--cap-drop", "ALL", "--unshare-pid", "--die-with-parent", "--new-session", "--chdir", WORKSPACE),
        *(str(peer.folder / "bin" / "python"), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "HOME": HOME, "LANG": "C.UTF-8", "NO_COLOR": "1", **peer.env},
    )  # fmt: skip
    assert process.stdout
    printed = bytearray()
    try:
        async with asyncio.timeout(PEER_SECONDS):
            while block := await process.stdout.read(1 << 16):
                printed += block
            code = await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        return "seconds", printed.decode("utf-8", "replace")
    return "done" if not code else f"exit {code}", printed.decode("utf-8", "replace")


def texts(workspace: Path) -> "list[str]":
    """What its files say, each in one line."""
    files = [path for path in workspace.rglob("*") if path.is_file() and ".git" not in path.parts]
    return [" ".join(p.read_bytes()[:TEXT_BYTES].decode("utf-8", "replace").split()) for p in files]


def put_back(workspace: Path, into: Path) -> None:
    """Replace the sandbox's files by those that the peer left, owned as before."""
    owner = into.stat()
    for path in into.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    shutil.copytree(workspace, into, symlinks=True, dirs_exist_ok=True)
    for path in into.rglob("*"):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
