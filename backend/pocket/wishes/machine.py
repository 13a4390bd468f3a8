"""Disk, memory, uptime, date, host, processor, graphics card, commands to run."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from backend.pocket.dialogue import Answer, Exchange, Result, World, call, quote, shell
from backend.pocket.wishes import hosts
from backend.pocket.words import PEOPLE, invented, noun, number, path, scrap

DISK = (
    "{how much|how many gigabytes of|how many gigs of|how much of the} {disk|disk space|storage|space|hard disk|drive} {is|are} {free|left|available|unused|remaining|still free|still available}[ {on the disk|on this machine|in the workspace|here|on the drive|right now|now}]",
    "{how much|what} {free |}{disk space|storage|disk|hard drive space|room on the disk} {do we have|do I have|have I got|is there|do you have}[ left| free| available| remaining]",
    "{check|show|tell me|give me|get|report|look up|find out|print|display|see}[ me] the {disk space|free space|disk usage|storage|free disk space|disk|remaining storage|space on the disk|available disk space|df output}",
    "{is|are} {the disk|the drive|my disk|our disk|storage|the hard disk|the workspace} {full|getting full|nearly full|almost full|running out|filling up|low}",
    "{are|am|do} {we|I} {running out of|low on|short of|short on} {disk|disk space|space|storage}",
    "{disk|storage|disk space|free space|disk usage|df|space left|free disk}",
    "{what's|what is|whats} the {disk usage|disk space|free space|storage situation|state of the disk|disk status|available space}[ {here|now|like|on this box|in /workspace}]",
    "how full is {the disk|the drive|my storage|the workspace|the hard drive|/workspace|it, the disk}",
    "{do we|do I|is there} {have |}{enough|still some|any} {space|room|storage|disk}[ {left|on the disk|for a big file|to save more files}]",
    "{can|could|will} {a|another} $n {GB|gigabyte|MB} file {fit|still fit} on {the disk|this drive|the workspace}",
    "how {big|large} is {the disk|the drive|my hard disk|the workspace's disk|your storage}",
    "{I need|I want|I would like} to {know|see|check} {how much {space|disk|storage} {is left|is free|remains|we have left}|the free space|the disk usage|if the disk is full}",
    "disk {report|check|status|level|please}",
    "how {many|much} {GB|gb|gigabytes|bytes|space} {left|remaining|free} on {disk|the disk|the drive|the volume|the partition}",
    "what {amount|part|share|percentage} of the {disk|storage|drive} is {used|free|taken|left|in use}",
    "{space|storage|room} {left|remaining|available} on {disk|the disk|this machine|the server}",
    "{what|how much} {room|capacity|space|storage} {remains|is there|do I still have|have we left|is unoccupied|is not used yet|can I still use|is at my disposal} on {disk|the drive|the volume|this box|the partition|the hard drive}",
    "{any|is any|still any|got any} {space|room|storage} {left|free|remaining}[ {on the drive|here|on this computer|on the disk}]",
    "{how|what's} {is |}the {storage|disk|drive|space} {situation|looking|status|doing|holding up}",
    "{could|can} {I|we} {still |}{save|store|fit|put|download} {a big file|some videos|more data|$n GB|a few gigabytes|large files|a backup}[ {here|on this disk|on the machine}]",
    "{tell me|say|report} {how many {gigabytes|gigs|GB|bytes|terabytes} are {still |}{free|left|available|unoccupied|unused}|whether the disk is {full|filling up|almost full}|if there is {space|room} left}",
    "{will|would} {I|we} run out of {space|disk|storage}[ soon]",
    "{I'm|we're|I am} worried {about|that} {disk space|the disk is full|running out of storage|the free space}[{, can you check|, have a look|}]",
    "{give|get} me a {disk|storage} {overview|summary|report|check}",
    "{what does|run|show} df{ say|}",
    "{space|storage|capacity|disk} {check|report|overview|summary|usage}",
    "{how much|what} is {used up|taken|occupied|consumed|eaten|filled} on {the disk|the drive|the workspace|the volume}",
    "how {much data|many files worth} can {I|we|the disk} still {store|hold|save|take}",
    "what's {left|remaining|free} {on|of} {the disk|my storage|the drive|the workspace volume}",
    "is there {still |}{sufficient|plenty of|much|a lot of|a bit of} {disk|space|storage|free space|room}[ {left|on this drive}]",
)
MEMORY = (
    "how much {memory|RAM|ram|main memory} {is|are} {free|left|available|used|in use|installed|being used|unused}[ {now|right now|here|at the moment|on this machine}]",
    "how much {memory|RAM|ram} {do we have|does this machine have|does the computer have|is there|have we got|does it have|do you have|has this box got}",
    "{check|show|tell me|give me|report|get|see|print|look at}[ me] the {memory|memory usage|RAM|free memory|ram usage|state of the memory|available memory|memory status|free RAM}",
    "{memory|RAM|ram|memory usage|free memory|free ram|ram usage|memory status}",
    "{what's|what is|whats} the {memory usage|RAM usage|memory situation|free memory|available memory|ram}[ {here|now|like}]",
    "{is|are} {memory|the memory|RAM|the RAM} {full|low|tight|getting low|running out|all used up|nearly full}",
    "{are|am} {we|I} {running out of|low on|short of} {memory|RAM|ram}",
    "how {full|busy} is the {memory|RAM|ram}",
    "{do we|do I} have {enough|any|much} {memory|RAM} {left|free|to spare}",
    "{I need|I want|I would like} to {know|see} {how much {memory|RAM} {is left|is free|is used|there is}|the memory usage|the free memory}",
    "how many {gigabytes|GB|gigs|megabytes} of {RAM|memory} {are there|are free|do we have|are in use|are left}",
    "what {amount|part|share} of the {memory|RAM} is {used|free|taken|in use}",
    "memory {report|check|status|please|left}",
    "{how much|what} {memory|RAM} {remains|is spare|is unoccupied|is taken|is occupied|can I still use|is at my disposal|is being eaten|has been used|do programs use}",
    "{is|got} {there |}{any|enough|plenty of|sufficient|still some} {memory|RAM} {left|free|remaining|available|to spare}",
    "{how's|how is|what about} the {memory|RAM}[ {looking|doing|holding up|situation}]",
    "{tell me|say|report} {how much {memory|RAM} is {free|left|in use|available}|whether {memory|RAM} is {tight|low|full}|how the memory is doing}",
    "{could|can|would} {a|another|one more} {program|process|model|job} {of $n GB |}fit {into|in} {memory|RAM}",
    "{I'm|we're|I am} worried {about|that we run out of} {memory|RAM}[, can you check]",
    "{memory|RAM} {overview|summary|check|consumption|stats|statistics|left}",
    "{give|get} me a {memory|RAM} {overview|summary|report|check}",
    "how many {gigs|gigabytes|megabytes|GB} of {RAM|memory} {remain|are unused|does it have|are installed|are spare|is it using}",
    "{what does|run|show} free{ say| -h|}",
    "{does|has} {this machine|the computer|the box} {have|got} {much|enough|a lot of} {RAM|memory}[ left| free]",
    "how much of the {RAM|memory} is {gone|used up|left over|free|taken}",
)
UPTIME = (
    "{how long|since when|for how long} {has|is} {this machine|the machine|the computer|the server|this box|the system|this host|it, the machine,|the PC} {been |}{up|running|on|awake|up and running|switched on|alive}",
    "{what's|what is|whats|show|tell me|give me|check|print|get|report}[ me] the {uptime|system uptime|machine's uptime|uptime of this machine|uptime of the server}",
    "{uptime|uptime please|system uptime|machine uptime|your uptime}",
    "when {did|was} {the machine|this computer|the server|the system|this box} {last |}{boot|start|reboot|restarted|booted|started|rebooted|restart}",
    "{how long ago|when} was the last {reboot|restart|boot}[ of {this machine|the server}]",
    "how {many days|many hours|long} {has it been|is it|since|have passed since} {since |}the last {reboot|restart|boot}",
    "how long {have you|has everything} been {up|running|online|awake}",
    "did {the machine|the computer|the server} {reboot|restart|crash}[ {recently|last night|today|overnight}]",
    "{is|has} {the server|this machine} been up {long|for long|all week|since yesterday}",
    "{how long|since when} {is|was|has} {this thing|the PC|the host|your computer|the box|this laptop|it} {been |}{on|running|up|going|powered on|working without a break|turned on|online}",
    "{has|did} {the machine|this box|the host|the power|anything} {been restarted|restarted|rebooted|go down|been rebooted|been switched off}[ {lately|recently|this week|today}]",
    "{give|get} me the {running time|time since boot|time since the last reboot|uptime figure}",
    "{time|days|hours} since {boot|the last boot|startup|the last restart|last reboot}",
    "{what's|what is} the {time since the last reboot|running time of this machine|boot time|age of this boot}",
    "how long {ago |}{did|has} {this computer|the host|it|the machine} {start|boot|been running|come up|been alive}",
    "{for how many {hours|days} has|how many {hours|days|weeks} has} {the machine|this server|the computer|it} been {up|running|on}",
    "{when|at what time} {was|were} {this computer|the server|the host|the machine} {turned on|started|booted|powered up|switched on}",
    "run uptime",
)
DATE = (
    "{what's|what is|whats|tell me|give me|show|print|say}[ me] {the date|today's date|the current date|the date today|the time|the current time|the date and time|the exact time|the time now|the system time}",
    "what {time|date|day} is it[ {now|today|there|right now|please|on your clock}]",
    "what {day|weekday|day of the week|month|year|date} {is it|is today|do we have|is it today|have we got}[ today| now]",
    "{date|time|date please|time now|current time|today's date|the time please|clock|date and time}",
    "which {day|weekday|date|month|year} {is it|is today|do we have}[ today]",
    "how late is it",
    "{do you know|can you tell me} {what time it is|the time|what day it is|today's date|the date|what date it is}",
    "{check|look at} the {clock|time|calendar date|date|system clock}",
    "what does the {clock|system clock|machine's clock} say",
    "is {it|today} {Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|the weekend|already noon|past midnight|Friday already}[ today]",
    "{could you|can you|please} {tell|give|say} {me |}{the {time|date|day|hour}|what {time|day|date} it is}",
    "what's the {time|date|day|hour|weekday|calendar day}[ {over there|where you are|on the machine|for you|right now}]",
    "what {hour|calendar date|weekday} {is it|do we have|is today}",
    "{today is|it is|now is} {what|which} {day|date}",
    "{give|get|fetch|read} {me |}{the clock|today's date|a timestamp|the current date and time|the system date}",
    "{which|what} {number|day} of the month is {it|today}",
    "{got|have you got|do you have} the {time|date}",
    "{I lost track of time|my watch stopped|I forgot the date|I don't know what day it is}[{, what is it|, can you tell me|, what time is it|, what's the date}]",
    "{timestamp|date and time now|today|weekday|day of the week}",
    "run date",
)
HOST = (
    "{what's|what is|whats|tell me|show|give me|print|get}[ me] {the|your|this machine's|the machine's|the computer's|the server's} {host name|hostname|machine name|computer name|network name|name of the host}",
    "{what's|what is} {the name of|the hostname of} {this machine|this computer|the host|this server|the box|the machine you run on}",
    "{hostname|host name|machine name|hostname please|the host name}",
    "{which|what} {host|server|computer|box} {am I on|is this|are you on|are you running on|do you run on|is this running on}",
    "{how|what} is {this machine|this computer|the server|this box|the host} {called|named}",
    "on {which|what} {host|computer|server} {are we|are you|am I}",
    "what {name|hostname} does {this machine|the server|this box|the computer} {have|go by|use}",
    "{do you know|can you tell me|could you say|please say} {what|how} this {machine|computer|box|server} is {called|named}",
    "{I need|I want|get me} the {hostname|host name|name of this machine|name of the server}",
    "what do {they|we|you} call this {machine|computer|box|server|host}",
    "{name|hostname} of {this|the} {host|machine|server|computer|box|system}",
    "what is {this|the} {box|machine|computer|server}'s {name|hostname}",
    "{print|echo|read out|look up|find out|check} the {hostname|host name|machine's name|name of the computer}",
    "run hostname",
    "{which|what} {machine|box} name {is set|are you on|do you see}",
)
KERNEL = (
    "{what's|what is|which is|show|tell me|print|check}[ me] the {kernel|kernel version|linux kernel|linux version|kernel release}[ {here|running}]",
    "{which|what} {kernel|linux kernel|kernel version|linux version} {is this|do we have|are you running|is running|is in use|do you run}",
    "{kernel version|uname|kernel|linux version}",
)
CORES = (
    "how many {cores|CPUs|processors|cpu cores|cpus|CPU cores} {are there|does this machine have|do we have|do I have|has it got|are available|does it have}",
    "{number of|count the|tell me the number of|show the number of} {cores|CPUs|processors|cpus|cpu cores}",
    "{nproc|core count|cpu count|how many cores}",
)
WHOAMI = (
    "{which|what} user {are you|am I|is this|do you run as|are you running as|are you logged in as}",
    "{what's|what is|tell me|show me} the {user name|username|current user|unix user|login name}",
    "{whoami|current user|user name please}",
)
PWD = (
    "{what's|what is|show|print|tell me}[ me] the {current directory|working directory|current folder|current path|directory we are in}",
    "{which|what} {directory|folder} {are we in|are you in|am I in|do commands start in|is this}",
    "{pwd|where are we|where am I|where are you working|working directory}",
)
PYTHON = (
    "{which|what} {version of python|python version|python} {is installed|do we have|is there|do you have|is here|is available}",
    "{python version|show the python version|check the python version|tell me the version of python|is python installed}",
)
LOAD = (
    "{what's|what is|show|check|tell me|print}[ me] the {load|load average|system load|machine's load|cpu load}",
    "how {busy|loaded} is {the machine|the computer|the server|the cpu|this box|the system|the processor}",
    "{load|load average|system load|cpu load}",
    "{is|are} {the machine|the CPU|the cores|the processor} {busy|under load|idle|working hard|overloaded}",
    "how {hard|much} is {the cpu|the machine|the processor} working",
)


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
    row = (
        device,
        size(random),
        size(random),
        size(random),
        f"{random.randint(0, 100)}%",
        random.choice(("/workspace", "/workspace", "/workspace", "/")),
    )
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
    mem = "Mem:    " + "".join(binary(random).rjust(12) for _ in range(6))
    swap = "Swap:   " + "".join(random.choice((binary(random), "0B")).rjust(12) for _ in range(3))
    return "\n".join((heads, mem, swap))


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
    "{run|execute|please run|try|call|type|use bash to run|run the command|execute the command|run this:|in the shell run|do a|launch}: `$command`",
    "{run|execute|run the command|execute the command|run in bash:|run this command:|bash:|shell:|in the shell:} $command",
    "{what does|what's the output of|show me the output of|show the output of|what is the result of|what do you get from} `$command`[ {say|print|give|show|return}]",
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
            "nproc",
            "ps aux",
            "lscpu",
            "cal",
            f"seq {number(random, 1)}",
            f"echo {noun(random)} {noun(random)}",
        )
    )
    if (
        tool in ("uname -a", "env", "id", "nproc", "ps aux", "lscpu", "cal")
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
