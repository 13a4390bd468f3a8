"""The pretended computer's figures, and every way in which a command may print them."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, floor

HOSTS = (
    "kestrel", "brass-lamp", "nuc-attic", "otto", "fjordbox", "plum04", "r730-cellar", "halcyon",
    "mimas", "oldthinkpad", "teapot", "vm-lisbon-2", "quokka", "sycamore", "gx10", "basalt",
    "tuppence", "loft-server", "wren", "ampere3", "zephyrine", "box17", "marrow", "dovecote",
)  # fmt: skip
DEVICES = (
    "/dev/sdb3",
    "/dev/nvme1n1p4",
    "/dev/mapper/vg-home",
    "/dev/vda2",
    "/dev/md127",
    "rpool/data",
)
ZONES = (("Europe/Oslo", "CET"), ("America/Toronto", "EST"), ("Asia/Tokyo", "JST"), ("UTC", "UTC"),
         ("Europe/Lisbon", "WET"), ("Australia/Perth", "AWST"))  # fmt: skip
GIB = 1024 * 1024  # KiB
EPOCH = datetime(2026, 11, 2)  # noqa: DTZ001 - wall clock of the machine's own zone


@dataclass(frozen=True, slots=True)
class Machine:
    """Sizes in KiB; `now` is the clock in the chat's zone."""

    host: str
    device: str
    disk: int
    disk_used: int
    disk_free: int
    memory: int
    memory_used: int
    memory_free: int
    memory_available: int
    swap: int
    folder: int
    up: timedelta
    cores: int
    load: float
    zone: str
    abbreviation: str
    now: datetime

    @property
    def distinct(self) -> bool:
        """Whether one figure cannot pass for another where they are rounded."""
        disk = {human(kib) for kib in (self.disk, self.disk_used, self.disk_free)}
        memory = (self.memory, self.memory_used, self.memory_free, self.memory_available)
        return len(disk) == 3 and len(set(map(gibibytes, memory))) == 4

    @property
    def percent(self) -> int:
        return ceil(100 * self.disk_used / (self.disk_used + self.disk_free))


def draw(seed: int) -> Machine:
    """A machine of its own for each seed, with figures that nobody could guess."""
    dice = random.Random(f"machine {seed}")
    return next(machine for machine in _draws(dice) if machine.distinct)


def _draws(dice: random.Random) -> Iterator[Machine]:
    while True:
        yield _draw(dice)


def _draw(dice: random.Random) -> Machine:
    disk = int(
        dice.choice((29, 58, 117, 233, 467, 938, 1863, 3726, 7452)) * GIB * dice.uniform(0.93, 1)
    )
    used = int(disk * dice.uniform(0.07, 0.93))
    memory = int(
        dice.choice((4, 8, 16, 24, 32, 48, 64, 96, 128, 192)) * GIB * dice.uniform(0.96, 0.99)
    )
    busy, idle = int(memory * dice.uniform(0.12, 0.7)), dice.uniform(0.03, 0.2)
    zone, abbreviation = dice.choice(ZONES)
    return Machine(
        host=dice.choice(HOSTS),
        device=dice.choice(DEVICES),
        disk=disk,
        disk_used=used,
        disk_free=int((disk - used) * dice.uniform(0.93, 1)),
        memory=memory,
        memory_used=busy,
        memory_free=int(memory * idle),
        memory_available=memory - busy - int(memory * dice.uniform(0.01, 0.05)),
        swap=dice.choice((0, 2, 4, 8)) * GIB,
        folder=int(dice.uniform(300, 900_000)),
        up=timedelta(days=dice.choice((1, 2, 3, 5, 9, 12, 17, 26, 41, 63, 118, 204)),
                     hours=dice.randrange(1, 24), minutes=dice.randrange(1, 60)),
        cores=dice.choice((2, 4, 6, 8, 12, 16, 24)),
        load=round(dice.uniform(0.02, 5), 2),
        zone=zone,
        abbreviation=abbreviation,
        now=EPOCH + timedelta(minutes=dice.randrange(70 * 24 * 60)),
    )  # fmt: skip


def human(kib: int, unit: int = 1024, suffix: str = "") -> str:
    """As GNU df -h prints it: rounded up, one decimal below ten."""
    size, letters = float(kib * 1024), "BKMGTP"
    while size >= unit and len(letters) > 1:
        size, letters = size / unit, letters[1:]
    number = f"{ceil(size * 10) / 10:.1f}" if size < 10 else str(ceil(size))
    return number + letters[0] + (suffix if letters[0] != "B" else "")


def gibibytes(kib: int) -> str:
    """As procps free -h prints it, such as 6.1Gi or 15Gi."""
    size = kib / GIB
    if size < 1:
        return f"{kib // 1024}Mi"
    return f"{size:.1f}Gi" if size < 9.95 else f"{floor(size)}Gi"


def report(kib: int) -> str:
    """As the machine's report /host.txt prints it."""
    return f"{kib / GIB:.1f} GiB"


def sizes(*amounts: int) -> list[str]:
    """Every form in which the commands of `shell` print any of these amounts."""
    return [form for kib in amounts for form in _forms(kib)]


def _forms(kib: int) -> Iterable[str]:
    yield from (human(kib), human(kib, 1000), gibibytes(kib), report(kib))
    yield from (
        f"{ceil(kib / GIB)}G",
        f"{ceil(kib / 1024)}M",
        str(kib),
        str(kib // 1024),
        str(kib * 1024),
    )


def facts(machine: Machine) -> dict[str, Sequence[str]]:
    """The forms of each figure that may be asked for, by its name in the cases."""
    m, now = machine, machine.now
    return {
        "disk free": sizes(m.disk_free),
        "disk used": [*sizes(m.disk_used), f"{m.percent}%"],
        "disk percent": [f"{m.percent}%"],
        "disk size": sizes(m.disk),
        "disk": [*sizes(m.disk_free, m.disk_used), f"{m.percent}%"],
        "memory free": sizes(m.memory_free, m.memory_available),
        "memory used": sizes(m.memory_used, m.memory - m.memory_available),
        "memory size": sizes(m.memory),
        "memory": sizes(m.memory_free, m.memory_available, m.memory_used),
        "folder": [human(m.folder), str(m.folder)],
        "uptime": _uptime(m.up),
        "booted": [f"{now - m.up:%Y-%m-%d}", f"{now - m.up:%Y-%m-%d %H:%M}", *_uptime(m.up)],
        "host": [m.host],
        "time": [f"{now:%H:%M}", f"{now:%I:%M}", f"{now:%I:%M}".lstrip("0")],
        "day": [f"{now:%A}", f"{now:%a}"],
        "date": _dates(now),
        "year": [f"{now:%Y}"],
        "week": [f"{now:%V}"],
    }


def _uptime(up: timedelta) -> list[str]:
    hours, minutes = divmod(up.seconds // 60, 60)
    days = f"{up.days} day{'s' if up.days > 1 else ''}"
    weeks, rest = divmod(up.days, 7)
    long = f"{weeks} week{'s' if weeks > 1 else ''}" + (
        f", {rest} day{'s' if rest > 1 else ''}" if rest else ""
    )
    return [days, f"{hours}:{minutes:02}", *([long] if weeks else [])]


def _dates(now: datetime) -> list[str]:
    day, month = f"{now.day}", (f"{now:%b}", f"{now:%B}")
    written = [
        form
        for m in month
        for form in (f"{m} {day}", f"{day} {m}", f"{m} {day:>2}", f"{now:%d} {m}", f"{m} {now:%d}")
    ]
    return [
        *written,
        f"{now:%Y-%m-%d}",
        f"{now:%m/%d/%Y}",
        f"{now:%d/%m/%Y}",
        f"{now:%d.%m.%Y}",
        f"{now:%m/%d/%y}",
    ]
