"""Disk, memory, uptime, date, host, processor, graphics card, commands to run."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from pocket.dialogue import Answer, Exchange, Result, World, call, quote, shell
from pocket.lexicon import PEOPLE
from pocket.wishes import hosts
from pocket.wordings.machine import (
    CORES,
    DATE,
    DISK,
    HOST,
    KERNEL,
    LOAD,
    MEMORY,
    PWD,
    PYTHON,
    UPTIME,
    WHOAMI,
)
from pocket.words import invented, noun, number, path, scrap


@dataclass(frozen=True, slots=True)
class Reading:
    """A question that one fixed command answers."""

    command: str
    wordings: tuple[str, ...]
    output: Callable[[Random], str]
    answer: Callable[[str], str]


def size(random: Random) -> str:
    shown = (
        number(random, random.choice((1, 2, 3)))
        if random.random() < 0.6
        else f"{random.randint(1, 9)}.{random.randint(0, 9)}"
    )
    return shown + random.choice("GGGMTK")


def binary(random: Random) -> str:
    shown = (
        number(random, random.choice((1, 2, 3)))
        if random.random() < 0.5
        else f"{random.randint(0, 99)}.{random.randint(0, 9)}"
    )
    return shown + random.choice(("Gi", "Gi", "Mi", "Ti", "Ki", "B"))


def _shown(amount: float, binary: str = "") -> str:
    """GiB as df and free show them: whole, below ten with a decimal."""
    units = "KMGT"
    place = 2
    while amount >= 1000 and place < 3:
        amount, place = amount / 1024, place + 1
    while amount < 1 and place > 0:
        amount, place = amount * 1024, place - 1
    return (
        f"{amount:.0f}{units[place]}{binary}"
        if amount >= 10
        else f"{amount:.1f}{units[place]}{binary}"
    )


def _sizes(random: Random) -> tuple[str, str, str, str]:
    """Of a disk: in all, used, free, share used; half of the time what a real one has."""
    if random.random() < 0.4:
        return size(random), size(random), size(random), f"{random.randint(0, 100)}%"
    total = random.choice(
        (
            8,
            16,
            20,
            40,
            60,
            80,
            100,
            120,
            250,
            256,
            500,
            512,
            930,
            1862,
            3725,
            random.uniform(1, 1000),
        )
    )
    total *= random.uniform(0.9, 1)
    used = total * random.uniform(0, 1) ** random.choice((1, 1, 3))
    free = (total - used) * random.choice((1, 0.95, 0.949))
    return _shown(total), _shown(used), _shown(free), f"{100 * used / (used + free):.0f}%"


def _df(random: Random) -> str:
    device = random.choice(
        (
            f"/dev/sd{random.choice('abcd')}{random.randint(1, 5)}",
            f"/dev/vd{random.choice('abc')}",
            "overlay",
            "tmpfs",
            f"/dev/nvme{random.randint(0, 2)}n1p{random.randint(1, 3)}",
            f"/dev/mapper/{noun(random)}-{noun(random)}",
            f"/dev/{scrap(random)}",
            f"/dev/dm-{random.randint(0, 9)}",
            "/dev/root",
            "none",
            f"{noun(random)}/{noun(random)}",
        )
    )
    row = (device, *_sizes(random), random.choice(("/workspace", "/workspace", "/workspace", "/")))
    heads = ("Filesystem", "Size", "Used", "Avail", "Use%", "Mounted on")
    widths = [max(len(a), len(b)) for a, b in zip(heads, row, strict=True)]
    return "\n".join(_columns(cells, widths) for cells in (heads, row))


def _columns(cells: tuple[str, ...], widths: list[int]) -> str:
    first, *middle, last = cells
    shown = [first.ljust(widths[0])] + [
        c.rjust(max(w, 5)) if len(c) < 5 else c.rjust(w)
        for c, w in zip(middle, widths[1:-1], strict=True)
    ]
    return " ".join([*shown, last])


def _disk_answer(output: str) -> str:
    _, total, used, free, share, _ = output.split("\n")[1].split()
    return f"The disk has {total} in all, {used} used, {free} free ({share} full)."


def _free(random: Random) -> str:
    heads = "               total        used        free      shared  buff/cache   available"
    mem = "Mem:    " + "".join(amount.rjust(12) for amount in _amounts(random))
    swap = "Swap:   " + "".join(random.choice((binary(random), "0B")).rjust(12) for _ in range(3))
    return "\n".join((heads, mem, swap))


def _amounts(random: Random) -> list[str]:
    """Of memory: in all, used, free, shared, cached, available; half of the time what a real machine has."""
    if random.random() < 0.4:
        return [binary(random) for _ in range(6)]
    total = random.choice((2, 4, 8, 16, 24, 32, 64, 128, 256)) * random.uniform(0.93, 1)
    used = total * random.uniform(0.02, 0.95)
    cached = (total - used) * random.uniform(0, 1)
    shared = random.uniform(0.001, 0.5)
    parts = (total, used, total - used - cached, shared, cached, (total - used) * 0.98)
    return [_shown(part, "i") for part in parts]


def _memory_answer(output: str) -> str:
    _, total, used, free, _, _, available = output.split("\n")[1].split()
    return f"Memory: {total} in all, {used} used, {free} free, {available} available."


def _uptime(random: Random) -> str:
    units = ("year", "week", "day", "hour", "minute")
    start = random.choice((1, 2, 2, 2, 3, 3, 4))
    parts = []
    for unit in units[start : start + random.randint(1, 3)]:
        count = random.randint(1, {"week": 12, "day": 30, "hour": 23, "minute": 59}[unit])
        parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return "up " + ", ".join(parts)


def _date(random: Random) -> str:
    day = random.choice("Mon Tue Wed Thu Fri Sat Sun".split())
    month = random.choice("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
    clock = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
    zone = random.choice(("UTC", "CET", "CEST", "EST", "PDT", "GMT", "JST", "+03"))
    year = random.randint(2024, 2031)
    number_ = random.randint(1, 28)
    if random.random() < 0.15:
        return f"{day} {month} {number_:2} {clock.lstrip('0') or clock} {random.choice('AP')}M {zone} {year}"
    return f"{day} {month} {number_:2} {clock} {zone} {year}"


def _host(random: Random) -> str:
    return random.choice(
        (
            invented(random),
            f"{noun(random)}-{number(random)}",
            noun(random),
            f"{noun(random)}{number(random, 1)}",
            random.choice(PEOPLE).lower(),
            f"{scrap(random)}{number(random)}{scrap(random)}".lower(),
            f"{noun(random)}.{noun(random)}.{random.choice(('lan', 'local', 'net', 'home'))}",
            f"{noun(random)}-{noun(random)}",
        )
    )


def _kernel(random: Random) -> str:
    return f"{random.randint(4, 7)}.{random.randint(0, 19)}.{random.randint(0, 220)}{random.choice(('', '-generic', '-amd64', f'-{random.randint(1, 99)}-generic', '-cloud-amd64', '+'))}"


def _load(random: Random) -> str:
    loads = ", ".join(f"{random.randint(0, 20)}.{random.randint(0, 99):02}" for _ in range(3))
    clock = f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"
    return f" {clock} up {random.randint(1, 90)} days, {random.randint(0, 23)}:{random.randint(0, 59):02},  {random.randint(0, 5)} users,  load average: {loads}"


READINGS = (
    Reading("df -h /workspace", DISK, _df, _disk_answer),
    Reading("free -h", MEMORY, _free, _memory_answer),
    Reading("uptime -p", UPTIME, _uptime, lambda text: f"The machine has been {text}."),
    Reading("date", DATE, _date, lambda text: f"It is {text}."),
    Reading("hostname", HOST, _host, lambda text: f"The host name is {text}."),
    Reading("uname -r", KERNEL, _kernel, lambda text: f"The kernel is {text}."),
    Reading(
        "nproc",
        CORES,
        lambda r: str(r.choice((1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128))),
        lambda text: f"The machine has {text} cores.",
    ),
    Reading(
        "whoami",
        WHOAMI,
        lambda r: r.choice(("user", "agent", "sandbox", invented(r), noun(r))),
        lambda text: f"The user is {text}.",
    ),
    Reading(
        "pwd",
        PWD,
        lambda r: r.choice(("/workspace", "/workspace", f"/workspace/{noun(r)}")),
        lambda text: f"The working directory is {text}.",
    ),
    Reading(
        "python3 --version",
        PYTHON,
        lambda r: f"Python 3.{r.randint(6, 16)}.{r.randint(0, 20)}",
        lambda text: f"It is {text}.",
    ),
    Reading(
        "uptime",
        LOAD,
        _load,
        lambda text: f"The load average is {text.split('load average: ')[1]}.",
    ),
)
_WEIGHTS = (8, 6, 5, 5, 4, 1, 1, 1, 1, 1, 1)


def reading(world: World) -> Exchange:
    random = world.random
    chosen = random.choices(READINGS, _WEIGHTS)[0]
    words = world.say(chosen.wordings, n=number(random))
    output = chosen.output(random)
    answer = chosen.answer(output)
    return [words, shell(chosen.command), Result(bash_result(random, output)), Answer(answer)]


def bash_result(random: Random, output: str) -> str:
    """The forms in which a tool may show output that ended well."""
    return random.choice(
        (output, output, output, output, f"{output}\nexit code: 0", f"exit code: 0\n{output}")
    )


RUN = (
    "{run|execute|please run|try|call|type|use bash to run|run the command|execute the command|run this|launch}{:|} `$command`",
    "in {the shell|bash} {run|execute|type|do} `$command`",
    "{run|execute|run the command|execute the command|run in bash:|run this command:|bash:|shell:|in the shell:} $command",
    "{what's the output of|show me the output of|show the output of|what is the result of|what do you get from} `$command`",
    "what does `$command` {say|print|give|show|return}",
    "`$command`",
    "use {the shell|bash|a command} to run `$command`",
)


def command(world: World) -> Exchange:
    random = world.random
    line = _command(random)
    words = world.say(RUN, command=line)
    roll = random.random()
    if roll < 0.15:
        return [
            words,
            shell(line),
            Result(random.choice(("", "(no output)", "exit code: 0", "no output"))),
            Answer("Done, it printed nothing."),
        ]
    if roll < 0.3:
        wrong = random.choice(
            (
                f"bash: line 1: {line.split()[0]}: command not found\nexit code: 127",
                f"{line.split()[0]}: cannot access '{path(random)}': No such file or directory\nexit code: {random.randint(1, 2)}",
            )
        )
        return [words, shell(line), Result(wrong), Answer(f"It failed: {quote(wrong)}")]
    output = "\n".join(_output_line(random) for _ in range(random.choice((1, 1, 1, 2, 3, 4, 6))))
    return [words, shell(line), Result(output), Answer(f"Output:\n{quote(output)}")]


def _command(random: Random) -> str:
    tool = random.choice(
        (
            "ls",
            "ls -la",
            "ls -l",
            "cat",
            "wc -l",
            "head -n 3",
            "tail -5",
            "du -sh",
            "file",
            "sort",
            "stat -c %s",
            "md5sum",
            "sha256sum",
            "touch",
            "mkdir -p",
            "echo",
            invented(random),
            f"{invented(random)} --{noun(random)}",
            f"python3 {path(random, ['py'])}",
            f"bash {path(random, ['sh'])}",
            "uname -a",
            "env",
            "id",
            "ps aux",
            "lscpu",
            "cal",
            f"seq {number(random, 1)}",
            f"echo {noun(random)} {noun(random)}",
        )
    )
    if (
        tool in ("uname -a", "env", "id", "ps aux", "lscpu", "cal")
        or (" " in tool and tool.split()[0] in ("seq", "python3", "bash", "echo"))
        or random.random() < 0.2
    ):
        return tool
    return f"{tool} {path(random)}"


def _output_line(random: Random) -> str:
    return random.choice(
        (
            f"{noun(random)} {number(random)}",
            f"{number(random)} {path(random)}",
            f"{invented(random)}: {noun(random)}",
            path(random),
            f"{number(random)}K\t{noun(random)}",
            f"{noun(random)} {invented(random)} {noun(random)}",
        )
    )


def host_file(world: World) -> Exchange:
    sheet = hosts.sheet(world.random)
    words = world.say(sheet.wordings)
    return [words, call("read_file", path="/host.txt"), Result(sheet.text), Answer(sheet.answer)]
