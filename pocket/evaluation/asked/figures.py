"""What people ask of the machine: disk, memory, uptime, clock, name."""

from collections.abc import Iterator

from pocket.evaluation.case import Case, case
from pocket.evaluation.checks import figure

CLOCK = frozenset({"time", "day", "date", "year"})  # stand in the context block as well

ASKED = {
    ("disk", "disk free"): (
        "how much room is left on this thing?",
        "whats my free space looking like",
        "Could you tell me how many gigs I have left, please?",
        "do i need to worry about storage, how much is left",
        "disk space left??",
        "Hi! Is there still enough space to download a 20 GB game? how much is free",
        "space thats not taken yet, pls",
        "remaining capacity of the drive?",
        "gimme the available disk space",
        "How full or empty is the hard drive, i mean how much is still free?",
        "hw much storge is free",
        "before i copy the holiday photos over: how much space have we got left",
    ),
    ("disk", "disk percent"): (
        "Roughly what share of the disk is taken, in percent?",
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
        "how much ram can i still use at this moment",
        "Is there any memory left over?",
        "memory thats still to be had?",
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
        "How much of the memory do the programs eat up?",
        "used ram",
        "What amount of RAM is in use?",
    ),
    ("memory", "memory"): (
        "have a peek at the memory",
        "hows it going with the memory, enough there?",
        "Would you mind looking at the RAM situation?",
    ),
    ("uptime", "uptime"): (
        "For how long has this computer been on by now?",
        "uptime, how much is it?",
        "When did we last reboot, how long has it been up?",
        "how much time has gone by since it was last restarted",
        "been on for how long now",
        "Has the machine been up for a while? Tell me how long.",
        "whats the uptime of the box",
        "how many days without a reboot on the server",
        "Could you check for how long the system has been awake?",
        "up since when? i mean how long",
        "how long is it runing already",
        "did it reboot over night? show me the uptime",
    ),
    ("clock", "time"): (
        "what does your clock show, hour and minute",
        "Could you look at the clock for me, please?",
        "the hour please",
        "whats the clock say",
        "how late is it where you are",
        "current time on the machine pls",
    ),
    ("clock", "date"): (
        "which date do i write on a letter today",
        "todays day and month?",
        "Which day of the month do we have?",
        "need the calendar date",
        "I lost track, what date is it?",
    ),
    ("clock", "day"): (
        "whats today, a monday a tuesday or what",
        "is it friday yet? which weekday is it",
        "Which weekday are we on?",
    ),
    ("clock", "year"): (
        "in which year are we now",
    ),
    ("host", "host"): (
        "under what name does this machine go",
        "which hostname was it?",
        "Which computer am I talking to? Its name please.",
        "whats the name of the server",
        "the host name, could you look it up",
        "this box, what name does it go by?",
        "Do you know what your computer is named?",
        "how is this pc called on the network",
        "the host you live on, what is its name",
        "give me the hostname of the machine plz",
        "I have three servers, which one is this?",
    ),
}  # fmt: skip


def cases() -> Iterator[Case]:
    for (family, name), asked in ASKED.items():
        for words in asked:
            yield case(family, words, figure(name, bare=name in CLOCK))
