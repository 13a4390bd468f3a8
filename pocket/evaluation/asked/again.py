"""A first try that fails: the tool's error says what to change."""

from collections.abc import Iterator

from pocket.evaluation.asked.files import CODE, HOUSE, KITCHEN, LAB
from pocket.evaluation.asked.git import REPOSITORIES
from pocket.evaluation.case import Case, Wanted, case
from pocket.evaluation.checks import (
    commits,
    difference,
    edits,
    plans,
    reads,
    retried_figure,
    status,
)
from pocket.evaluation.world import Setup

FLASKS = LAB["chores.txt"].replace("beakers", "flasks")
PORT = CODE["conf/server.ini"].replace("8137", "8200")

MISNAMED = (
    ("read shoping.txt", HOUSE, reads("shopping.txt", "oat milk", "12 eggs", before="failure")),
    ("open results.jsn please", LAB, reads("results.json", "0.873", before="failure")),
    ("whats in jottings/trips.md", HOUSE, reads("jottings/trip.md", "08:47", before="failure")),
    ("show me guest.txt", KITCHEN, reads("guests.txt", "Amara", "Yuki", before="failure")),
    ("read recipes/soups.txt", KITCHEN, reads("recipes/soup.txt", "2 leeks", before="failure")),
    ("cat conf/servers.ini", CODE, reads("conf/server.ini", "8137", before="failure")),
    ("in chore.txt replace beakers with flasks", LAB, edits("chores.txt", FLASKS, "flasks", "failure")),
    ("change port=8137 to port=8200 in conf/server.ini", CODE, edits("conf/server.ini", PORT, "8200", "failure")),
)  # fmt: skip
REPOS: tuple[tuple[str, Wanted], ...] = (
    ("git status of the bakerys repo", status("bakery", "oven.rs", before="failure")),
    ("diff shelrc", difference("shellrc", "vimrc", before="failure")),
    ("status of radioapi", status("radio-api", "clean", before="failure")),
    (
        "commit treetise with message spellcheck",
        commits("treatise", "spellcheck", "cc5926e", before="failure"),
    ),
)
LACKING = (
    ("how long is it up for by now?", "uptime", "uptime"),
    ("whats the free ram", "free", "memory free"),
    ("what was the name of this host again?", "hostname", "host"),
)
TIMES = (
    ("remind me tomorrow after breakfastish 7 30 to post the letter", "tomorrow at 7:30", "letter"),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for words, files, wanted in MISNAMED:
        yield case("second try", words, wanted, Setup(files))
    for words, wanted in REPOS:
        yield case("second try", words, wanted, Setup(repositories=REPOSITORIES))
    for words, command, name in LACKING:
        yield case("second try", words, retried_figure(name), Setup(missing=frozenset({command})))
    for words, when, key in TIMES:
        yield case("second try", words, plans(when, key, before="failure"))
