"""What an operator does to the container's image, which is built already (bench.container).

    python -m bench.operate.container [--away 30] [--corruptions 100] [--seed 1] [--only REGEX]

Prints one line per step; exit code 1 when one failed. Needs root and podman; the image of the next
version, the containers and their volumes are gone afterwards.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bench.campaign.clock import Clock
from bench.campaign.line import Line
from bench.container import IMAGE, LIMITS, OPTIONS, OWN_BASE, RUNTIME, WALLS
from bench.operate.releases import ROOT, advance
from bench.operate.site import ANSWER, OWNER, QUESTION, TOKEN, StepFailed
from bench.operate.steps import (
    BY_COMMAND,
    REFUSE,
    RESTART_SECONDS,
    RESTARTS,
    Course,
    best,
    clock_set,
    corruption,
    fingerprint,
)
from bench.reader import Reader
from bot.localgram import Localgram, Message, is_final

NEXT = f"{IMAGE}:next"
QUADLET = ROOT / "container" / "voltaire.container"
USER, OTHER = 10001, 20002  # the image's user, and another one
STATE, CONFIG = "state/voltaire", "config/voltaire/config.toml"  # in the volume
DISK = "4g"
SECONDS = 240.0
CHECK_SECONDS = 5.0
ENVIRONMENT = {**os.environ, "DISABLE_HC_SYSTEMD": "true"}  # health is asked for by this bench
READY = " ready version="


@dataclass
class Container:
    """`data` is its volume on this machine; `owner` the user it runs as."""

    name: str
    data: Path
    gram: Localgram
    line: Line
    clock: Clock
    reader: Reader
    image: str = IMAGE
    owner: int = USER
    count: int = 0
    options: list[str] = field(default_factory=list)

    def words(self) -> list[str]:
        security = [word for option in OPTIONS for word in ("--security-opt", option)]
        user = f"--user={self.owner}:{self.owner}"
        where = ("--network=host", f"--volume={self.data}:/data", "--init", user)
        return [*RUNTIME, "run", *LIMITS, *WALLS, *security, *where, *self.options]

    async def podman(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        process = await asyncio.create_subprocess_exec(
            *("podman", *words), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(), 600)
        said = out.decode(errors="replace").strip()
        if process.returncode not in codes:
            raise StepFailed(
                f"`podman {' '.join(words[-6:])}`: {process.returncode}: {said[-800:]}"
            )
        return said

    async def once(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        """A command in a container of its own."""
        run, *rest = self.words()[len(RUNTIME) :]
        return await self.podman(*RUNTIME, run, "--rm", *rest, self.image, *words, codes=codes)

    async def voltaire(self, *words: str) -> str:
        return await self.podman("exec", self.name, "voltaire", *words)

    async def start(self) -> None:
        polls = self.gram.world.updates.polls
        run, *rest = self.words()[len(RUNTIME) :]
        named = ("--detach", "--restart=always", f"--name={self.name}")
        await self.podman(*RUNTIME, run, *named, *rest, self.image)
        await self.polled(polls)

    async def stop(self) -> None:
        await self.podman("rm", "--force", "--ignore", "--time=20", self.name)

    async def polled(self, polls: int) -> None:
        async with asyncio.timeout(SECONDS):
            while self.gram.world.updates.polls <= polls:
                await asyncio.sleep(0.02)

    async def log(self) -> Path:
        """Its file: `podman logs` takes so long that it would be measured, too."""
        form = "{{.HostConfig.LogConfig.Path}}"
        return Path(await self.podman("inspect", "--format", form, self.name))

    async def pid(self, words: str) -> int:
        """The process whose command has these words, as this machine numbers it."""
        for line in (await self.podman("top", self.name, "hpid", "args")).splitlines():
            number, _, args = line.strip().partition(" ")
            if words in args and " -- " not in args:  # not the container's init, which has them too
                return int(number)
        raise StepFailed(f"no process {words!r}")

    async def asked(self) -> Message:
        self.count += 1
        return await self.reader.person.send(QUESTION)

    async def answered(self, said: Message) -> None:
        def later(said: Message) -> list[str]:
            known = self.reader.chat.messages.values()
            return [m.text for m in known if m.id > said.id and m.sender.is_bot and is_final(m)]

        def answers(said: Message) -> list[str]:
            return [text for text in later(said) if ANSWER.search(text)]

        if not await self.reader.answered(said, answers, SECONDS):
            raise StepFailed(f"no answer, but {later(said)}")
        await asyncio.sleep(1.0)  # in which a second one would come
        if len(answers(said)) != 1:
            raise StepFailed(f"the answers were {answers(said)}")

    async def talk(self) -> str:
        began = time.monotonic()
        await self.answered(await self.asked())
        return f"answered in {time.monotonic() - began - 1:.1f} s"

    def owned(self) -> None:
        """All of the volume is its user's."""
        for path in self.data.rglob("*"):
            if path.lstat().st_uid != self.owner:
                raise StepFailed(f"{path} is of {path.lstat().st_uid}")

    async def schema(self) -> int:
        program = (
            "import sqlite3; print(sqlite3.connect('/data/state/voltaire/voltaire.db')"
            ".execute('PRAGMA user_version').fetchone()[0])"
        )
        return int(await self.podman("exec", self.name, "python", "-c", program))


# -- steps ------------------------------------------------------------------------


async def setup(it: Container, _: Course) -> str:
    await it.once(
        "setup", "--yes", "--no-units", "--token", TOKEN, "--base-url", it.line.url,
        "--owner", str(OWNER), "--timezone", "Europe/Paris", "--profile", "pocket",
    )  # fmt: skip
    await it.start()
    return await it.voltaire("--version")


async def message(it: Container, _: Course) -> str:
    return await it.talk()


async def doctor_as_root(it: Container, _: Course) -> str:
    """Root there has no capability, and is told the way."""
    said = await it.podman("exec", "--user=0", it.name, "voltaire", "doctor", codes=(1,))
    if "leave out `--user`" not in said or len(said.splitlines()) != 1:
        raise StepFailed(said)
    said = await it.voltaire("doctor")
    it.owned()
    return f"{said.count('✓')} checks passed, {said.count('! ')} warnings; {await it.talk()}"


async def restart(it: Container, _: Course) -> str:
    """podman's own share is what a container of `true` takes."""
    took, bare, log = [], [], await it.log()
    for _number in range(RESTARTS):
        began = time.monotonic()
        await it.podman(*RUNTIME, "run", "--rm", *LIMITS, "--entrypoint=true", it.image)
        bare.append(time.monotonic() - began)
        ready, began = log.read_text().count(READY), time.monotonic()
        await it.podman("restart", "--time=20", it.name)
        async with asyncio.timeout(SECONDS):
            while log.read_text().count(READY) == ready:
                await asyncio.sleep(0.02)
        took.append(time.monotonic() - began)
        await asyncio.sleep(2.0)  # it is idle again
    shown = f"{best(took)}, of them podman's {best(bare)}"
    if min(took) - min(bare) >= RESTART_SECONDS:
        raise StepFailed(shown)
    return f"{shown}; {await it.talk()}"


def killed(words: str, number: signal.Signals) -> "Operation":
    async def step(it: Container, _: Course) -> str:
        pid = await it.pid(words)
        said, began = await it.asked(), time.monotonic()
        if number == signal.SIGKILL:
            await asyncio.sleep(0.15)  # an answer is under way
        os.kill(pid, number)
        await it.answered(said)
        return f"the message is answered {time.monotonic() - began - 1:.1f} s later"

    return step


async def hangs(it: Container, _: Course) -> str:
    """The program is stopped: the quadlet's health options end it, and it starts again.

    What systemd's timer does once a minute is done here, sooner, and so is what it does with
    `Restart=always`: podman's own `--restart` follows no kill.
    """
    plain = it.options
    await it.stop()
    it.options = [*plain, *health_options(), "--health-start-period=0s"]
    await it.start()
    await it.podman("healthcheck", "run", it.name)
    pid = await it.pid("voltaire run")
    os.kill(pid, signal.SIGSTOP)
    said, began, failed = await it.asked(), time.monotonic(), 0
    async with asyncio.timeout(SECONDS):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(CHECK_SECONDS)
            await it.podman("healthcheck", "run", it.name, codes=(0, 1, 125))
            failed += 1
    ended = time.monotonic() - began
    it.options = plain
    await it.stop()
    await it.start()
    await it.answered(said)
    took = time.monotonic() - began - 1
    return (
        f"killed after {failed} checks, {ended:.1f} s; the message is answered {took:.1f} s later"
    )


def health_options() -> list[str]:
    """Those of the quadlet, as `podman run` has them."""
    found = re.findall(r"^(Health\w+)=(.*)$", QUADLET.read_text("utf-8"), re.MULTILINE)
    return ["-" + re.sub("([A-Z])", r"-\1", key).lower() + f"={value}" for key, value in found]


async def full_disk(it: Container, _: Course) -> str:
    told = os.statvfs(it.data)
    used = (told.f_blocks - told.f_bfree) * told.f_frsize
    remount = ("mount", "-o", "remount")
    subprocess.run([*remount[:2], f"remount,size={used}", it.data], check=True)
    try:
        said = await it.asked()
        await asyncio.sleep(8.0)
        found = await it.podman("exec", it.name, "voltaire", "doctor", codes=(1,))
        if "Traceback" in found or not re.search(r"✗ (disk|database)", found):
            raise StepFailed(found)
    finally:
        subprocess.run([*remount[:2], f"remount,size={DISK}", it.data], check=True)
    began = time.monotonic()
    await it.answered(said)
    return f"doctor says so; answered {time.monotonic() - began - 1:.1f} s after there was room"


async def telegram_away(it: Container, course: Course) -> str:
    await it.line.cut()
    try:
        await it.podman("restart", "--time=20", it.name)
        pid, said = await it.pid("voltaire run"), await it.asked()
        await asyncio.sleep(course.away)
        if await it.pid("voltaire run") != pid:
            raise StepFailed("it ended meanwhile")
        problem = json.loads(await it.voltaire("status", "--json"))["bot"]["problem"]
        if "cannot be reached" not in str(problem):
            raise StepFailed(f"the status says {problem!r}")
    finally:
        await it.line.mend()
    began = time.monotonic()
    await it.answered(said)
    return f"no exit in {course.away:.0f} s, answered {time.monotonic() - began - 1:.1f} s later"


async def clock_off(it: Container, _: Course) -> str:
    pid = await it.pid("voltaire run")
    said = await clock_set(it.clock, it.talk)
    if await it.pid("voltaire run") != pid:
        raise StepFailed("it ended")
    return said


async def backup(it: Container, _: Course) -> str:
    return (await it.voltaire("backup", "--secrets", "/data/backup.tar.gz")).partition(": ")[2]


async def upgrade(it: Container, _: Course) -> str:
    """The next version's image takes the volume."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "clone", "-q", ROOT, tree], check=True)
        advance(tree)
        await it.podman(
            "build", "--isolation=chroot", "--network=host", "--layers", "--quiet",
            f"--build-arg=BASE={OWN_BASE}", f"--file={tree}/container/Containerfile", f"--tag={NEXT}", str(tree),
        )  # fmt: skip
    schema = await it.schema()
    await it.stop()
    it.image = NEXT
    await it.start()
    if await it.schema() != schema + 1:
        raise StepFailed(f"schema {await it.schema()}")
    return f"{await it.voltaire('--version')}, schema {schema} to {schema + 1}; {await it.talk()}"


async def rollback(it: Container, _: Course) -> str:
    """The old image refuses the newer state, and takes the backup."""
    await it.stop()
    it.image = IMAGE
    said = await it.once("run", codes=(1, 2))
    if "Traceback" in said:
        raise StepFailed(said[-800:])
    await it.once("restore", "/data/backup.tar.gz")
    await it.start()
    it.owned()
    return f"{await it.voltaire('--version')}, schema {await it.schema()}; {await it.talk()}"


async def corrupted(it: Container, course: Course) -> str:
    """Each is refused in one sentence, and the state is what it was."""
    await it.stop()
    whole, folder = (it.data / "backup.tar.gz").read_bytes(), it.data / "corrupted"
    folder.mkdir(mode=0o777)
    chance = Random(course.seed)
    made = [corruption(whole, chance) for _ in range(course.corruptions)]
    for number, (_, content) in enumerate(made):
        (folder / f"{number}.tar.gz").write_bytes(content)
    before = fingerprint(it.data / STATE)
    for number, (name, _) in enumerate(made[:BY_COMMAND]):
        said = await it.once("restore", f"/data/corrupted/{number}.tar.gz", codes=(1,))
        if len(said.splitlines()) != 1 or fingerprint(it.data / STATE) != before:
            raise StepFailed(f"corruption {number} ({name}): {said}")
    # The others by the same function of the same program: a command takes a second.
    (it.data / "refuse.py").write_text(REFUSE)
    run, *rest = it.words()[len(RUNTIME) :]
    said = await it.podman(
        *(*RUNTIME, run, "--rm", *rest, "--entrypoint=python", it.image),
        *("/data/refuse.py", "/data/corrupted", f"/data/{STATE}"),
    )
    if said or fingerprint(it.data / STATE) != before:
        raise StepFailed(f"not refused, or the state is another one: {said}")
    shutil.rmtree(folder)
    (it.data / "refuse.py").unlink()
    return f"{len(made)} of {len(made)} refused, the state untouched"


async def restored(it: Container, _: Course) -> str:
    said = await it.once("restore", "/data/backup.tar.gz")
    if f"The state before is at /data/{STATE}-before-" not in said:
        raise StepFailed(said)
    await it.start()
    it.owned()
    return await it.talk()


async def elsewhere(it: Container, _: Course) -> str:
    """In another volume as another user."""
    await it.stop()
    home, owner, other = it.data, it.owner, it.data.with_name("elsewhere")
    other.mkdir()
    shutil.copy(home / "backup.tar.gz", other)
    for path in (other, other / "backup.tar.gz"):
        os.chown(path, OTHER, OTHER)
    it.data, it.owner = other, OTHER
    try:
        await it.once("restore", "/data/backup.tar.gz")
        await it.start()
        it.owned()
        return await it.talk()
    finally:
        await it.stop()
        it.data, it.owner = home, owner
        await it.start()


async def story(it: Container, _: Course) -> str:
    """The container's log since it was made."""
    await it.talk()
    said = await it.podman("logs", it.name)
    if found := re.search(r"Traceback[\s\S]{,1500}", said):
        raise StepFailed(found[0])
    if " turn turn=" not in said or READY not in said:
        raise StepFailed(said[-800:])
    return f"{said.count(' turn turn=')} turns, {said.count(READY)} starts"


async def remove(it: Container, _: Course) -> str:
    await it.stop()
    left = await it.podman("ps", "--all", "--quiet", f"--filter=name={it.name}")
    if left:
        raise StepFailed(left)
    return "with the volume nothing is left"


Operation = Callable[[Container, Course], Awaitable[str]]
STEPS: dict[str, Operation] = {
    "setup": setup,
    "message": message,
    "doctor as root": doctor_as_root,
    "restart": restart,
    "kill the program": killed("voltaire run", signal.SIGKILL),
    "kill the model server": killed("backend.embedded", signal.SIGKILL),
    "stop the program": hangs,
    "stop the model server": killed("backend.embedded", signal.SIGSTOP),
    "full disk": full_disk,
    "Telegram away at a start": telegram_away,
    "clock an hour off": clock_off,
    "backup": backup,
    "upgrade with a migration": upgrade,
    "rollback": rollback,
    "corrupted backups": corrupted,
    "restore": restored,
    "restore elsewhere": elsewhere,
    "the log": story,
    "remove": remove,
}


@asynccontextmanager
async def container(folder: Path) -> AsyncIterator[Container]:
    data, clock = folder / "data", Clock(folder)
    data.mkdir()
    folder.chmod(0o755)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "disk", data], check=True
    )
    os.chown(data, USER, USER)
    try:
        async with Localgram(TOKEN) as gram, Line(gram.port) as line:
            person = gram.user("Ada", id=OWNER, started=True)
            reader = Reader(person, person.chat())
            it = Container(f"operate-{os.getpid()}", data, gram, line, clock, reader)
            if not clock.missing:
                for name in ("clock.so", "clock"):
                    it.options.append(f"--volume={folder / name}:/{name}")
                it.options += ["--env=LD_PRELOAD=/clock.so", "--env=CLOCK_OFFSET=/clock"]
            try:
                yield it
            finally:
                await it.stop()
                await it.podman("rmi", "--force", NEXT, codes=(0, 1))
    finally:
        subprocess.run(["umount", data], check=True)


async def passed(course: Course, only: str) -> bool:
    failures = 0
    with tempfile.TemporaryDirectory(prefix="vo") as place:
        async with container(Path(place)) as it:
            for name, step in STEPS.items():
                if name != "setup" and not re.search(only, name):
                    continue
                began = time.monotonic()
                try:
                    good, found = True, await step(it, course)
                except (StepFailed, TimeoutError, OSError) as error:
                    good, found = False, str(error) or type(error).__name__
                failures += not good
                took = f"{time.monotonic() - began:6.1f} s"
                mark = "ok" if good else "FAILED"
                print(f"{'container':12} {name:26} {mark:6} {took}  {found}", flush=True)
                if not good and name == "setup":
                    break
    return not failures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--away", type=float, default=30.0, help="seconds without Telegram")
    parser.add_argument("--corruptions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", default="", help="steps whose names this regular expression finds"
    )
    given = parser.parse_args()
    course = Course(given.away, given.corruptions, given.seed)
    sys.exit(not asyncio.run(passed(course, given.only)))


if __name__ == "__main__":
    main()
