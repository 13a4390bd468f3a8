"""What an operator does, in order. Each step says what it found; StepFailed says what it missed."""

import asyncio
import gzip
import hashlib
import io
import json
import re
import tarfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.campaign.clock import Clock
from bench.operate.releases import CHANGE, MIGRATION, NEXT
from bench.operate.site import BACKEND, BOT, OWNER, TOKEN, Site, StepFailed
from fakes.booted import CHANGED, SHARED

RESTART_SECONDS = 2.0
RESTARTS = 5
STOP_SECONDS = 60.0
HOUR = 3600.0
BACKUP = "/srv/backup.tar.gz"
HEADER = 64  # bytes: of gzip's header nothing is read but its magic number
ELSEWHERE = "/srv/elsewhere"
CORRUPTED = "/srv/corrupted"
BY_COMMAND = 3
TRIES, TRY_SECONDS = 3, 3.5  # the units try again after three seconds, where that helps
SERVER = "model server"


@dataclass(frozen=True)
class Course:
    """`away`: how long Telegram is away at a start, in seconds."""

    away: float
    corruptions: int
    seed: int


Step = Callable[[Site, Course], Awaitable[str]]


async def install(it: Site, _: Course) -> str:
    wheel = it.releases.wheel("this") if it.kind.wheel else ""
    script = it.kind.install.format(shared=SHARED, wheel=wheel)
    await it.done(script, user=it.kind.user)
    return (await it.voltaire("--version")).splitlines()[-1]


async def setup(it: Site, _: Course) -> str:
    await it.voltaire(
        f"setup --yes --token {TOKEN} --base-url {it.line.url} --owner {OWNER} --timezone Europe/Paris"
        " --profile pocket"
    )
    await it.active()
    return "both services are active"


async def message(it: Site, _: Course) -> str:
    return await it.talk()


async def doctor_as_root(it: Site, _: Course) -> str:
    said = await it.done(f"{it.kind.program} --config {it.kind.config} doctor")
    if said.count(".service is active") != 2 or not re.search(r"each took: .*\blog \d", said):
        raise StepFailed(said)
    await _owned(it, it.kind.state)
    return f"{said.count('✓')} checks passed, {said.count('! ')} warnings; {await it.talk()}"


async def set_up_again(it: Site, _: Course) -> str:
    """With nothing but what is configured."""
    await it.voltaire("setup --yes")
    await it.active()
    await _owned(it, it.kind.state)
    return await it.talk()


async def _owned(it: Site, folder: str) -> None:
    """All of the folder is its owner's."""
    strangers = await it.done(f'find {folder} ! -user "$(stat -c %U {folder})"')
    if strangers:
        raise StepFailed(f"not the owner's: {strangers}")


async def restart(it: Site, _: Course) -> str:
    """Judged by the best: what others do on the machine makes the rest slower, and nothing makes one faster."""
    took = {unit: [await _restarted(it, unit) for _ in range(RESTARTS)] for unit in (BOT, BACKEND)}
    shown = f"bot {best(took[BOT])}, backend {best(took[BACKEND])}"
    if min(took[BOT]) >= RESTART_SECONDS:
        raise StepFailed(shown)
    await it.talk()
    return shown


def best(seconds: Sequence[float]) -> str:
    all_of_them = " ".join(f"{each:.1f}" for each in seconds)
    return f"{min(seconds):.1f} s (the best of {all_of_them})"


async def _restarted(it: Site, unit: str) -> float:
    timed = f"b=$(date +%s%N); systemctl {it.flags} restart {unit}; echo $(($(date +%s%N) - b))"
    seconds = int((await it.done(timed, user=it.kind.user)).splitlines()[-1]) / 1e9
    await asyncio.sleep(2.0)  # it is idle again
    return seconds


def killed(which: str) -> Step:
    """While an answer is under way."""

    async def step(it: Site, _: Course) -> str:
        pid = await it.pid(which)
        said, began = await it.asked(), time.monotonic()
        await asyncio.sleep(0.15)
        await it.done(f"kill -KILL {pid}")
        it.killed.append(which)
        await it.answered(said)
        await it.active()
        if (await it.pids())[which] == pid:
            raise StepFailed("it was not killed")
        seconds = time.monotonic() - began - 1
        await it.also_answers()
        return f"the message under way is answered {seconds:.1f} s later"

    return step


def stopped(which: str) -> Step:
    async def step(it: Site, _: Course) -> str:
        pid = await it.pid(which)
        # A busy machine stops it when it runs again, and the backend makes a server go on at once.
        look = (
            f"kill -STOP {pid}; until ps -o stat= -p {pid} | grep -q ^T; do kill -STOP {pid}; done"
        )
        await it.done(f"timeout {STOP_SECONDS:.0f} sh -c '{look}'")
        said, began = await it.asked(), time.monotonic()
        try:
            await it.answered(said, it.patience * 2 + 240)
        finally:
            await it.sh(f"kill -CONT {pid}")
        await it.active()
        seconds = time.monotonic() - began - 1
        await it.also_answers()
        return f"a message is answered {seconds:.1f} s later"

    return step


async def full_disk(it: Site, _: Course) -> str:
    before = await _restarts(it)
    await it.fill()
    try:
        said = await it.asked()
        await asyncio.sleep(8.0)
        code, found = await it.sh(f"{it.kind.program} doctor", user=it.kind.user)
        if code != 1 or "Traceback" in found or not re.search(r"✗ (disk|database)", found):
            raise StepFailed(f"doctor ended with {code}: {found}")
    finally:
        await it.empty()
    began = time.monotonic()
    await it.answered(said)
    await it.active()
    ended = {unit: n - before[unit] for unit, n in (await _restarts(it)).items()}
    return (
        f"doctor says so; answered {time.monotonic() - began - 1:.1f} s after there was room;"
        f" restarts: {sum(ended.values())}"
    )


async def _restarts(it: Site) -> dict[str, int]:
    return {unit: int(await it.shown(unit, "NRestarts")) for unit in (BOT, BACKEND)}


async def telegram_away(it: Site, course: Course) -> str:
    await it.line.cut()
    try:
        seconds = await _restarted(it, BOT)
        before, pid = await _restarts(it), await it.shown(BOT, "MainPID")
        said = await it.asked()
        await asyncio.sleep(course.away)
        if (await _restarts(it), await it.shown(BOT, "MainPID")) != (before, pid):
            raise StepFailed("the bot ended meanwhile")
        line = await it.shown(BOT, "StatusText")
        problem = (await it.status())["bot"]["problem"]
        if "cannot be reached" not in line or "cannot be reached" not in str(problem):
            raise StepFailed(f"the status says {line!r} and {problem!r}")
    finally:
        await it.line.mend()
    began = time.monotonic()
    await it.answered(said)
    back = time.monotonic() - began - 1
    return f"ready in {seconds:.1f} s, no exit in {course.away:.0f} s, answered {back:.1f} s later"


async def no_credential(it: Site, _: Course) -> str:
    """The token cannot be read: one try, not one every three seconds; once it can be, a start is enough."""
    token = str(Path(it.kind.config).with_name("telegram-token"))
    away, back = (
        (f"mv {token} {token}-away", f"mv {token}-away {token}")
        if it.kind.root
        else (f"chmod 0 {token}", f"chmod 600 {token}")
    )
    await it.done(away)
    try:
        code, _said = await it.sh(f"systemctl {it.flags} restart {BOT}", user=it.kind.user)
        await asyncio.sleep(TRIES * TRY_SECONDS)
        state, tries = await it.shown(BOT, "SubState"), await it.shown(BOT, "NRestarts")
        if not code or state != "failed" or tries != "0":
            raise StepFailed(f"the unit is {state} after {tries} more tries")
    finally:
        await it.done(back)
    await it.systemctl(f"start {BOT}")
    return f"failed after one try; {await it.talk()}"


async def clock_off(it: Site, _: Course) -> str:
    before = await _restarts(it)
    said = await clock_set(it.clock, it.talk)
    if await _restarts(it) != before:
        raise StepFailed("a service ended")
    return said


async def clock_set(clock: Clock, talk: Callable[[], Awaitable[str]]) -> str:
    """An hour ahead, back, an hour behind, and back; a message after each."""
    if clock.missing:
        return f"left out: {clock.missing}"
    took = []
    try:
        for offset in (HOUR, 0.0, -HOUR, 0.0):
            clock.set(offset)
            took.append((await talk()).split()[-2])
    finally:
        clock.set(0)
    return f"ahead, back, behind, back: answered in {', '.join(took)} s"


async def nothing_new(it: Site, _: Course) -> str:
    pids, took = await it.pids(), []
    for _number in range(RESTARTS):
        began = time.monotonic()
        said = await it.voltaire(_upgrade(it, "this"))
        took.append(time.monotonic() - began)
        if not said.startswith("Nothing new") or await it.pids() != pids:
            raise StepFailed(f"{said!r}, or something was restarted")
    if min(took) >= RESTART_SECONDS:
        raise StepFailed(f"it took {best(took)}")
    return f"{said} {best(took)}"


def _upgrade(it: Site, which: str) -> str:
    return f"upgrade --from {SHARED}/{it.releases.wheel(which)}" if it.kind.wheel else "upgrade"


async def upgrade(it: Site, _: Course) -> str:
    it.releases.publish()
    schema = await _schema(it)
    said = await it.voltaire(_upgrade(it, "next"))
    version = (await it.voltaire("--version")).split()[-1]
    if CHANGE not in said or version != NEXT or await _schema(it) != schema + 1:
        raise StepFailed(f"version {version}, schema {await _schema(it)}: {said}")
    await it.active()
    return f"{version}, schema {schema} to {schema + 1}; {await it.talk()}"


async def _schema(it: Site) -> int:
    program = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version').fetchone()[0])"
    database = f"{it.kind.state}/voltaire.db"
    owner = await it.done(f"stat -c %U {it.kind.state}")
    return int(await it.done(f'python3 -c "{program}" {database}', user=owner))


async def rollback(it: Site, _: Course) -> str:
    schema = await _schema(it)
    await it.voltaire("upgrade --rollback")
    version = (await it.voltaire("--version")).split()[-1]
    if version == NEXT or await _schema(it) != schema - 1:
        raise StepFailed(f"version {version}, schema {await _schema(it)}")
    await it.active()
    await _owned(it, it.kind.state)
    return f"{version}, schema {schema - 1}; {await it.talk()}"


async def newer_schema(it: Site, _: Course) -> str:
    """The program is older than its database: doctor's remedy is carried out."""
    await it.systemctl(f"stop {BOT} {BACKEND}")
    schema = await _schema(it)
    change = f"{MIGRATION.strip()} PRAGMA user_version = {schema + 1};"
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"
    owner = await it.done(f"stat -c %U {it.kind.state}")
    await it.done(f"python3 -c '{program}' {it.kind.state}/voltaire.db '{change}'", user=owner)
    found = {
        row["check"]: row for row in json.loads(await it.voltaire("doctor --json", codes=(1,)))
    }
    if found["database"]["remedy"] != "voltaire upgrade":
        raise StepFailed(str(found["database"]))
    await it.voltaire(_upgrade(it, "next"))
    await it.active()
    await _owned(it, it.kind.state)
    found = {row["check"]: row for row in json.loads(await it.voltaire("doctor --json"))}
    return f"{found['database']['detail']}; {await it.talk()}"


async def backup(it: Site, _: Course) -> str:
    await it.done(f"chmod 1777 /srv; rm -f {BACKUP}")
    return (await it.voltaire(f"backup --secrets {BACKUP}")).partition(": ")[2]


async def corrupted(it: Site, course: Course) -> str:
    """Each is refused in one sentence, and the state is what it was."""
    await it.systemctl(f"stop {BOT} {BACKEND}")
    whole, folder = it.path(BACKUP).read_bytes(), it.path(CORRUPTED)
    state = it.path(it.kind.state)
    before, chance = fingerprint(state), Random(course.seed)
    await it.done(f"mkdir -m 777 {CORRUPTED}")
    made = [corruption(whole, chance) for _ in range(course.corruptions)]
    for number, (_, content) in enumerate(made):
        (folder / f"{number}.tar.gz").write_bytes(content)
    for number, (name, _) in enumerate(made[:BY_COMMAND]):
        code, said = await it.sh(
            f"{it.kind.program} restore {CORRUPTED}/{number}.tar.gz", user=it.kind.user
        )
        if code != 1 or len(said.strip().splitlines()) != 1 or fingerprint(state) != before:
            raise StepFailed(f"corruption {number} ({name}) ended with {code}: {said}")
    # The others by the same function of the program that is installed: a command takes a second.
    (it.machine.shared / "refuse.py").write_text(REFUSE)
    said = await it.done(
        f'"$(dirname "$(readlink -f {it.kind.program})")"/python {SHARED}/refuse.py {CORRUPTED} {it.kind.state}',
        user=it.kind.user,
    )
    kept = [f"{number} ({made[int(number)][0]})" for number in said.split()]
    if kept or fingerprint(state) != before:
        raise StepFailed(f"not refused, or the state is another one: {', '.join(kept)}")
    await it.done(f"rm -r {CORRUPTED}")
    return f"{len(made)} of {len(made)} refused, the state untouched"


REFUSE = """\
import asyncio, pathlib, sys
try:  # a wheel has its packages in there
    import voltaire_agent
    sys.path.insert(0, str(pathlib.Path(voltaire_agent.__file__).parent))
except ImportError:
    pass
from bot.restore import BackupError, restore
for path in pathlib.Path(sys.argv[1]).iterdir():
    try:
        asyncio.run(restore(path, pathlib.Path(sys.argv[2])))
    except BackupError as error:
        assert len(str(error).splitlines()) == 1
    else:
        print(path.name.removesuffix(".tar.gz"))
"""


def corruption(whole: bytes, chance: Random) -> tuple[str, bytes]:
    """One way in which a backup is not what was written."""
    if chance.random() < 0.3:  # the checksum of the file itself is right
        return "a file of it", gzip.compress(_content_changed(gzip.decompress(whole), chance), 1)
    at, length = chance.randrange(HEADER, len(whole) - 64), chance.randint(1, 64)
    ways: Mapping[str, bytes] = {
        "other bytes": whole[:at]
        + bytes(b ^ chance.randint(1, 255) for b in whole[at : at + length])
        + whole[at + length :],
        "an end that is missing": whole[:at],
        "a hole": whole[:at] + whole[at + length :],
        "zeros": whole[:at] + bytes(4096) + whole[at + 4096 :],
        "bytes of nothing": chance.randbytes(len(whole) // 8),
        "nothing": b"",
    }
    name = chance.choice(list(ways))
    return name, ways[name]


def _content_changed(tar: bytes, chance: Random) -> bytes:
    """A byte of a file in it is another one."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        files = [member for member in opened if member.isreg() and member.size]
    member = chance.choices(files, [member.size for member in files])[0]
    at = member.offset_data + chance.randrange(member.size)
    return tar[:at] + bytes([tar[at] ^ 1 << chance.randrange(8)]) + tar[at + 1 :]


def fingerprint(state: Path) -> tuple[object, ...]:
    """The state's own identity and contents, and what lies beside it."""
    files = sorted(path for path in state.rglob("*") if path.is_file() and not path.is_symlink())
    digest = hashlib.sha256()
    for path in files:
        digest.update(str(path).encode() + path.read_bytes())
    beside = sorted(path.name for path in state.parent.iterdir())
    return state.stat().st_ino, digest.hexdigest(), beside


async def restored(it: Site, _: Course) -> str:
    """In its own place."""
    said = await it.voltaire(f"restore {BACKUP}")
    if f"The state before is at {it.kind.state}-before-" not in said:
        raise StepFailed(said)
    await _owned(it, it.kind.state)
    await it.systemctl(f"start {BACKEND} {BOT}")
    return await it.talk()


async def elsewhere(it: Site, _: Course) -> str:
    """As another user at another path: what was said is there, and a message is answered."""
    await it.systemctl(f"stop {BOT} {BACKEND}")
    await it.done(
        f"useradd -m bob; install -d -o bob -m 755 {ELSEWHERE}; chmod 644 {BACKUP};"
        f" install -o bob -m 600 {BACKUP} {ELSEWHERE}/b.tar.gz"
    )
    if it.kind.user == "root" and it.kind.wheel:
        await it.done("chmod 711 /root /root/.local /root/.local/share")
    config, state = f"{ELSEWHERE}/config.toml", f"{ELSEWHERE}/state"
    command = f"VOLTAIRE_STATE__DIR={state} {it.kind.program} --config {config}"
    await it.done(f"{command} restore {ELSEWHERE}/b.tar.gz", user="bob")
    command = f"{it.kind.program} --config {config}"
    kept = await it.done(f"{command} doctor | grep 'messages are kept'", user="bob")
    await _owned(it, ELSEWHERE)
    said = await it.asked()
    run = asyncio.create_task(it.sh(f"echo $$ > {ELSEWHERE}/pid; exec {command} run", user="bob"))
    try:
        await it.answered(said)
    finally:
        await it.sh(f"kill $(cat {ELSEWHERE}/pid)")
        code, out = await run
    # On Matrix what was said after the backup comes again, and is answered by a state that does not know it.
    if code or len(re.findall(r" turn turn=\w+ chat=tg:", out)) != 1:
        raise StepFailed(f"run ended with {code}: {out[-800:]}")
    it.count -= 1  # its line is in no journal
    await it.done(f"userdel -r bob 2>/dev/null; rm -rf {ELSEWHERE}")
    await it.systemctl(f"start {BACKEND} {BOT}")
    return f"{kept.split()[2]} messages came along, and one more is answered"


async def story(it: Site, _: Course) -> str:
    """The journal alone tells it: starts with versions, deaths, causes, alerts, one line a turn.

    Telegram's turns are counted: after a rollback Matrix sends once more what the state forgot.
    """
    bot, backend = await it.journal(BOT), await it.journal(BACKEND)
    turns = re.findall(r" turn turn=(\w+) chat=tg:.* reason=", bot)
    if len(turns) != it.count or len(set(turns)) != it.count:
        raise StepFailed(f"{len(set(turns))} turns in {len(turns)} lines, {it.count} messages")
    if found := re.search(r"Traceback[\s\S]{,1500}", bot + backend):
        raise StepFailed(found[0])
    versions = re.findall(r" ready version=(\S+)", bot)
    deaths = (bot + backend).count("Main process exited, code=")
    causes = backend.count(" restart cause=")
    servers = it.killed.count(SERVER)
    if deaths < len(it.killed) - servers or causes < servers:
        raise StepFailed(f"{deaths} deaths and {causes} causes, and killed were {it.killed}")
    told = {
        "turns": len(turns),
        f"starts of the bot ({', '.join(dict.fromkeys(versions))})": len(versions),
        "deaths of a service": deaths,
        "causes of a restart": causes,
        "alerts": backend.count(" alert name="),
    }
    return ", ".join(f"{count} {name}" for name, count in told.items())


async def remove(it: Site, _: Course) -> str:
    said = await it.voltaire("setup --remove --yes")
    if f"Left: {it.kind.state}" not in said or not it.path(it.kind.state).exists():
        raise StepFailed(said)
    code, found = await it.sh(f"systemctl {it.flags} status {BOT}", user=it.kind.user)
    if code != 4:
        raise StepFailed(found)
    return "what is left is said"


async def purge(it: Site, _: Course) -> str:
    await it.voltaire("setup --remove --purge --yes")
    await it.done(it.kind.uninstall, user=it.kind.user)
    await it.done(f"rm -f {BACKUP}")
    left = await it.done(
        f"find {CHANGED} {it.kind.disk} /tmp /run -xdev -iname '*voltaire*' ! -type c"
        " ! -path '*/etc/systemd/*.service.d*' ! -path '*/.cache/uv/*' | sort -u;"
        " getent passwd voltaire; getent group voltaire; ls /var/lib/systemd/linger 2>/dev/null; true"
    )
    if left:
        raise StepFailed(f"left: {left}")
    return "nothing is left"


STEPS: Mapping[str, Step] = {
    "install": install,
    "setup": setup,
    "message": message,
    "doctor as root": doctor_as_root,
    "setup again": set_up_again,
    "restart": restart,
    **{f"kill the {which}": killed(which) for which in ("bot", "backend", SERVER)},
    **{f"stop the {which}": stopped(which) for which in ("bot", "backend", SERVER)},
    "full disk": full_disk,
    "Telegram away at a start": telegram_away,
    "credential gone": no_credential,
    "clock an hour off": clock_off,
    "upgrade, nothing new": nothing_new,
    "upgrade with a migration": upgrade,
    "rollback": rollback,
    "newer schema": newer_schema,
    "backup": backup,
    "corrupted backups": corrupted,
    "restore": restored,
    "restore elsewhere": elsewhere,
    "the journal": story,
    "remove": remove,
    "purge": purge,
}
