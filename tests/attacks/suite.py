"""Runs the attacks, one after the other, on a fresh stage."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.limits import HostRepo, SandboxLimits
from agent.sandbox.sandbox import open_sandboxes
from agent.shell.registry import scripts
from tests.attacks.attack import CHORE, Attack
from tests.attacks.stage import WRITABLE, Stage, staged
from tests.attacks.subject import SECONDS, Plain, Sandboxed

LIMITS = SandboxLimits(
    memory_mib=256, pids=64, disk_mib=64, files=2000, command_seconds=SECONDS, output_kib=8
)


class IdleSandboxError(Exception):
    """Commands do not run at all; `str` is what was answered."""


@dataclass(frozen=True)
class Outcome:
    attack: Attack
    success: str  # why it succeeded; empty when it was blocked


async def against_sandbox(base: Path, attacks: Sequence[Attack]) -> AsyncGenerator[Outcome, None]:
    async with staged(base) as stage:
        repos = [HostRepo("site", stage.repo)]
        repos += [HostRepo(name, stage.base / name, write=True) for name in WRITABLE]
        async with open_sandboxes(
            stage.state,
            limits=LIMITS,
            repos=repos,
            zone="UTC",
            report=lambda: "name: host\n",
            programs=scripts(),
        ) as sandboxes:
            subject = Sandboxed(await sandboxes.of("attacker"))
            await _at_work(subject)
            async for outcome in _each(attacks, subject, stage):
                yield outcome
            await _at_work(subject)


async def against_nothing(base: Path, attacks: Sequence[Attack]) -> AsyncIterator[Outcome]:
    """Each attack on a stage of its own, as many of them break it."""
    for number, attack in enumerate(attacks):
        folder = base / str(number)
        folder.mkdir()
        async with staged(folder) as stage:
            workspace = stage.state / "chats/attacker/work"
            workspace.mkdir(parents=True)
            async for outcome in _each([attack], Plain(workspace), stage):
                yield outcome


async def _at_work(subject: Sandboxed) -> None:
    """Tools that do nothing block everything."""
    said = [
        await subject.run("echo at > work; cat work"),
        await subject.use("read_file", path="work"),
        await subject.use("write_file", path="work", content="done"),
    ]
    if [text.strip() for text in said] != ["at", "at", "replaced work, 4 bytes"]:
        raise IdleSandboxError(" ".join(said))


async def _each(
    attacks: Sequence[Attack], subject: Sandboxed | Plain, stage: Stage
) -> AsyncIterator[Outcome]:
    for attack in attacks:
        success = await attack.success(subject, stage)
        if attack.area != CHORE:
            yield Outcome(attack, success)
