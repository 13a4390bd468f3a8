"""What people ask of the machine: disk, memory, uptime, clock, name."""

from collections.abc import Iterator

from backend.pocket.evaluation.case import Case, case
from backend.pocket.evaluation.checks import figure

CLOCK = frozenset({"time", "day", "date", "year"})  # stand in the context block as well

ASKED = {
    ("disk", "disk free"): (
        "how much room is left on this thing?",
        "whats my free space looking like",
        "Could you tell me how many gigs I have left, please?",
        "am i running out of storage",
        "disk space left??",
        "Hi! Is there still enough space to download a 20 GB game? how much is free",
        "free space pls",
        "remaining capacity of the drive?",
        "gimme the available disk space",
        "How full or empty is the hard drive, i mean how much is still free?",
        "hw much storge is free",
        "before i copy the holiday photos over: how much space have we got left",
    ),
    ("disk", "disk percent"): (
        "What percentage of the disk is in use?",
        "how many percent full is the drive",
        "disk usage in percent?",
    ),
    ("disk", "disk used"): (
        "how much of the ssd is used up already",
        "How much disk have I used so far?",
        "used disk space?",
    ),
    ("disk", "disk size"): (
        "how big is the disk in this machine",
        "What is the total size of the hard disk?",
        "total storage capacity?",
    ),
    ("disk", "disk"): (
        "df",
        "check the disk for me would you",
        "I'm worried about the disk filling up. Can you have a look?",
    ),
    ("workspace", "disk free"): (
        "how much space does /workspace still have",
        "Is there room left in the workspace?",
        "free space in my workspace folder, how much?",
        "space available under /workspace please",
    ),
    ("workspace", "disk"): (
        "run df on /workspace",
        "what does the disk that holds the workspace look like",
    ),
    ("memory", "memory free"): (
        "how much ram is free right now",
        "Is there any memory left over?",
        "free memory?",
        "could you see how much RAM is still available on the box",
        "ram available pls",
        "The computer feels sluggish, how much memory is free?",
        "got any spare ram?",
    ),
    ("memory", "memory size"): (
        "how much ram does this machine have in total",
        "What's the total memory installed?",
        "how many gigs of ram are in there",
        "total ram?",
    ),
    ("memory", "memory used"): (
        "how much memory is being used at the moment?",
        "used ram",
        "What amount of RAM is in use?",
    ),
    ("memory", "memory"): (
        "memory check",
        "hows the memory doing",
        "Would you mind looking at the RAM situation?",
    ),
    ("uptime", "uptime"): (
        "how long has this computer been running?",
        "uptime?",
        "When did we last reboot, how long has it been up?",
        "how long since the last restart",
        "been on for how long now",
        "Has the machine been up for a while? Tell me how long.",
        "whats the uptime of the box",
        "how many days has the server been up",
        "Could you check for how long the system has been awake?",
        "up since when? i mean how long",
        "how long is it runing already",
        "did it reboot over night? show me the uptime",
    ),
    ("clock", "time"): (
        "what time is it",
        "Could you tell me the time please?",
        "time?",
        "whats the clock say",
        "how late is it where you are",
        "current time on the machine pls",
    ),
    ("clock", "date"): (
        "what's the date today",
        "todays date?",
        "Which day of the month do we have?",
        "date please",
        "I lost track, what date is it?",
    ),
    ("clock", "day"): (
        "what day of the week is it",
        "is it friday yet? which weekday is it",
        "Which weekday are we on?",
    ),
    ("clock", "year"): (
        "what year do we have",
    ),
    ("host", "host"): (
        "what is this machine called",
        "hostname?",
        "Which computer am I talking to? Its name please.",
        "whats the name of the server",
        "tell me the host name",
        "name of this box?",
        "Do you know what your computer is named?",
        "how is this pc called on the network",
        "on which host are you running",
        "give me the hostname of the machine plz",
        "I have three servers, which one is this?",
    ),
}  # fmt: skip


def cases() -> Iterator[Case]:
    for (family, name), asked in ASKED.items():
        for words in asked:
            yield case(family, words, figure(name, bare=name in CLOCK))
