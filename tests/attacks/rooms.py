"""What reaches further than it may once it has taken over the program that reads strangers' bytes: the reader of mail,
and Chromium. Each attack is a command in that program's place.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agent.documents import reading
from agent.errors import ToolError
from agent.sandbox.hosts import WholeWeb
from agent.sandbox.limits import HostRepo
from agent.sandbox.sandbox import Sandbox, open_sandboxes
from agent.web import chromium
from agent.web.fetch import Downloaded
from tests.attacks.attack import Attack, shell
from tests.attacks.cases import ATTACKS
from tests.attacks.stage import staged
from tests.attacks.suite import LIMITS, Outcome

AREAS = (
    *("reading outside", "writing outside", "environment", "processes", "survivors"),
    *("sockets", "kernel", "privileges"),
)
LISTENS = "the list of listening ports"  # where Chromium runs, the proxy's is there
_kept = partial(shell, "kept")
KEPT = (
    _kept("files for the next one", "for d in /workspace /tmp /dev/shm; do echo x > $d/left; done"),
    _kept("files of the one before", "cat /workspace/left /tmp/left /dev/shm/left && echo PWNED"),
    _kept("files of a chat", "find /workspace /repos -type f | grep -q . && echo PWNED"),
)
PRIVATE = ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433")
PROXY = tuple(
    shell("proxy", f"{host} {how}", f"curl -s --http0.9 -m 3 {how} -x http://127.0.0.1:3128 http://{host}:{{port}}/")
    for host in PRIVATE
    for how in ("", "--proxytunnel")
)  # fmt: skip


@dataclass(frozen=True)
class Taken:
    """A program that an attacker has taken over."""

    run_in_its_place: Callable[[str], Awaitable[bytes]]

    async def run(self, command: str) -> str:
        try:
            raw = await self.run_in_its_place(command)
        except ToolError as error:
            return str(error)
        return raw.decode("utf-8", "replace")

    async def use(self, tool: str, **arguments: Any) -> str:
        raise NotImplementedError(tool)


@contextmanager
def replaced(owner: Any, **values: object) -> Iterator[None]:
    before = {name: getattr(owner, name) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


async def read_mail(box: Sandbox, command: str) -> bytes:
    program = f"import os; os.execv('/bin/bash', ['bash', '-c', {command!r}])"
    with replaced(reading, program=lambda _: program):
        return await reading.parsed_mail(box, b"From: eve@example.net\r\n\r\nHello", "read")


async def render(box: Sandbox, command: str) -> bytes:
    async def permit(_: object) -> None:
        """Whatever it asks for, as for the scripts of a page."""

    page = Downloaded("http://example.org/", "text/html", "utf-8", b"")
    with replaced(chromium, PROGRAM=Path("/bin/bash"), FLAGS=("-c", command)):
        return (await chromium.render(page, WholeWeb(), permit, box)).raw


ROOMS = {"mail": read_mail, "chromium": render}


def attacks_on(room: str) -> Sequence[Attack]:
    general = [each for each in ATTACKS if each.area in AREAS]
    if room == "mail":
        return [*general, *KEPT]
    return [*(each for each in general if each.name != LISTENS), *KEPT, *PROXY]


async def against(base: Path, room: str, attacks: Sequence[Attack]) -> AsyncIterator[Outcome]:
    """Attack a room on a fresh stage, in the sandbox of a chat whose files hold the secret."""
    async with (
        staged(base) as stage,
        open_sandboxes(
            stage.state,
            limits=LIMITS,
            repos=[HostRepo("site", stage.repo)],
            zone="UTC",
            report=lambda: "name: host\n",
        ) as boxes,
    ):
        box = await boxes.of("mail:work" if room == "mail" else "other")
        subject = Taken(partial(ROOMS[room], box))
        assert await subject.run("echo at work") == "at work\n"
        for attack in attacks:
            yield Outcome(attack, await attack.success(subject, stage))
