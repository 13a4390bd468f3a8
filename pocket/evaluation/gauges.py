"""Commands that print the machine's figures: df, free, uptime, date, uname, and its report.

Each takes the machine and the command's arguments, and returns what it prints.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from pocket.evaluation.machine import GIB, Machine, gibibytes, human, report

COLUMNS = {"source": "Filesystem", "size": "Size", "used": "Used", "avail": "Avail",
           "pcent": "Use%", "target": "Mounted on"}  # fmt: skip
LAYOUT = {"source": "{:<14}", "size": "{:>5}", "used": "{:>5}", "avail": "{:>5}",
          "pcent": "{:>4}", "target": "{}"}  # fmt: skip
MOUNTED = frozenset(("/", ".", "/workspace", "/repos", "/home", "~", "$HOME", "/tmp"))


class Refused(Exception):
    """The command failed; the text is its error output."""


def df(machine: Machine, arguments: Sequence[str]) -> str:
    flags = _flags(arguments)
    paths = [a.rstrip("/") or "/" for a in arguments if not a.startswith("-")]
    strange = [path for path in paths if path not in MOUNTED]
    if strange:
        raise Refused(f"df: {strange[0]}: No such file or directory")
    sizes = [_df_size(kib, flags) for kib in (machine.disk, machine.disk_used, machine.disk_free)]
    mount = "/workspace" if {".", "/workspace"} & set(paths) else "/"
    head = COLUMNS if re.search("[hH]", flags) else COLUMNS | {"size": "1K-blocks"}
    body = dict(zip(head, [machine.device, *sizes, f"{machine.percent}%", mount], strict=True))
    return _columns(_wanted(flags), head, body)


def _flags(arguments: Sequence[str]) -> str:
    return " ".join(a.lstrip("-") for a in arguments if a.startswith("-"))


def _wanted(flags: str) -> list[str]:
    """The names of the columns that --output asks for; all without it."""
    found = re.search(r"output=([\w,]+)", flags)
    columns = found[1].split(",") if found else list(COLUMNS)
    if not set(columns) <= set(COLUMNS):
        raise Refused("df: option --output: field unknown")
    return columns


def _columns(names: Sequence[str], *rows: Mapping[str, str]) -> str:
    return "\n".join(" ".join(LAYOUT[name].format(row[name]) for name in names) for row in rows)


def _df_size(kib: int, flags: str) -> str:
    if "BG" in flags:
        return f"{-(-kib // GIB)}G"
    if "H" in flags:
        return human(kib, 1000)
    return human(kib) if re.search(r"(?<!t)h|human", flags) else str(kib)


def free(machine: Machine, arguments: Sequence[str]) -> str:
    flags = _flags(arguments)
    m = machine
    cached = m.memory - m.memory_used - m.memory_free
    memory = (m.memory, m.memory_used, m.memory_free, m.memory // 97, cached, m.memory_available)
    names = ("total", "used", "free", "shared", "buff/cache", "available")
    rows = {
        "": names,
        "Mem:": [_free_size(kib, flags) for kib in memory],
        "Swap:": [_free_size(kib, flags) for kib in (m.swap, 0, m.swap)],
    }
    return "\n".join(f"{name:<8}" + "".join(f"{c:>12}" for c in row) for name, row in rows.items())


def _free_size(kib: int, flags: str) -> str:
    if "h" in flags:
        return gibibytes(kib) if kib else "0B"
    return str(kib // 1024 if "m" in flags else kib)


def uptime(machine: Machine, arguments: Sequence[str]) -> str:
    m = machine
    if any("s" in a for a in arguments):
        return f"{m.now - m.up:%Y-%m-%d %H:%M:%S}"
    if any("p" in a for a in arguments):
        return "up " + in_words(m.up)
    hours, minutes = divmod(m.up.seconds // 60, 60)
    days = f"{m.up.days} day{'s' if m.up.days > 1 else ''}"
    load = f"{m.load:.2f}, {m.load * 0.9:.2f}, {m.load * 0.8:.2f}"
    clock = f" {m.now:%H:%M:%S} up {days}, {hours:2}:{minutes:02}"
    return f"{clock},  0 users,  load average: {load}"


def in_words(up: timedelta) -> str:
    """As uptime -p has it, with weeks."""
    weeks, days = divmod(up.days, 7)
    return _parts(("week", weeks), ("day", days), *_clock_parts(up))


def _clock_parts(up: timedelta) -> tuple[tuple[str, int], tuple[str, int]]:
    hours, minutes = divmod(up.seconds // 60, 60)
    return ("hour", hours), ("minute", minutes)


def _parts(*parts: tuple[str, int]) -> str:
    return ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for name, n in parts if n)


def date(machine: Machine, arguments: Sequence[str]) -> str:
    now = machine.now
    form = next((a[1:] for a in arguments if a.startswith("+")), "")
    if form:
        return now.strftime(form.replace("%Z", machine.abbreviation))
    if any(a.startswith(("-I", "--iso")) for a in arguments):
        return f"{now:%Y-%m-%d}"
    return f"{now:%a %b} {now.day:>2} {now:%H:%M:%S} {machine.abbreviation} {now:%Y}"


def uname(machine: Machine, arguments: Sequence[str]) -> str:
    if list(arguments) == ["-n"]:
        return machine.host
    if not arguments:
        return "Linux"
    return f"Linux {machine.host} 6.1.0-37-amd64 #1 SMP PREEMPT_DYNAMIC x86_64 GNU/Linux"


def du(machine: Machine, arguments: Sequence[str]) -> str:
    where = next((a for a in arguments if not a.startswith("-")), ".")
    if where.rstrip("/") not in (".", "/workspace", "/workspace/*"):
        raise Refused(f"du: cannot access '{where}': No such file or directory")
    size = machine.folder
    return f"{human(size) if 'h' in _flags(arguments) else size}\t{where}"


def meminfo(m: Machine) -> str:
    """/proc/meminfo, its first lines."""
    free, available = m.memory_free, m.memory_available
    return f"MemTotal: {m.memory} kB\nMemFree: {free} kB\nMemAvailable: {available} kB"


def host_report(m: Machine) -> str:
    """/host.txt, the product's own report of the machine."""
    busy = m.memory - m.memory_available
    memory = (
        f"{report(m.memory)} total, {report(busy)} used, {report(m.memory_available)} available"
    )
    disk = f"{report(m.disk)} total, {report(m.disk_used)} used, {report(m.disk_free)} free"
    lines = (
        f"name: {m.host}",
        f"time: {m.now:%a %Y-%m-%d %H:%M} {m.zone}",
        f"uptime: {_parts(('day', m.up.days), *_clock_parts(m.up))}",
        f"load: {m.load:.2f} on {m.cores} cores",
        f"memory: {memory}",
        f"disk /: {disk} ({m.percent}%)",
        "gpu: none",
        "model: pocket",
    )
    return "\n".join(lines)


def _name(machine: Machine, arguments: Sequence[str]) -> str:  # noqa: ARG001 - one form for all
    return machine.host


Gauge = Callable[[Machine, Sequence[str]], str]
GAUGES: Mapping[str, Gauge] = {
    "df": df, "free": free, "uptime": uptime, "date": date, "uname": uname, "du": du, "hostname": _name,
    "hostnamectl": lambda machine, arguments: f"Static hostname: {machine.host}",
    "nproc": lambda machine, arguments: str(machine.cores),
}  # fmt: skip
