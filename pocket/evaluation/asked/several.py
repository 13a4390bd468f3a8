"""Conversations of several turns, where a later one leans on an earlier."""

from collections.abc import Iterator

from pocket.evaluation.asked.files import CODE, HOUSE, KITCHEN, LAB
from pocket.evaluation.asked.git import REPOSITORIES
from pocket.evaluation.asked.memory import KEPT
from pocket.evaluation.case import Case, Turn
from pocket.evaluation.checks import (
    chats,
    commits,
    difference,
    edits,
    figure,
    finds,
    leaves,
    lists,
    plans,
    reads,
    recalls,
    remembers,
    same,
    status,
    total,
)
from pocket.evaluation.world import Setup

REPOS = Setup(repositories=REPOSITORIES)

CONVERSATIONS = (
    (Setup(), (
        Turn("hi to you too", chats()),
        Turn("disk ok? how much is free", figure("disk free")),
        Turn("same for ram?", figure("memory")),
        Turn("cool thx", chats()),
    )),
    (Setup(HOUSE), (
        Turn("create plan.txt with the text buy gravel", leaves("plan.txt", same("buy gravel"))),
        Turn("now read plan.txt back to me", reads("plan.txt", "buy gravel")),
        Turn("replace gravel with sand in plan.txt", edits("plan.txt", "buy sand", "sand")),
    )),
    (Setup(), (
        Turn("remember my library card is 70-5521", remembers("70-5521")),
        Turn("what was my library card number?", recalls("70-5521", bare=True)),
    )),
    (REPOS, (
        Turn("git status bakery pls", status("bakery", "oven.rs")),
        Turn("show me its diff", difference("bakery", "oven.rs")),
        Turn("ok commit it with message raise oven heat", commits("bakery", "raise oven heat", "9e41c7d")),
    )),
    (REPOS, (
        Turn("what changed in treatise", status("treatise", "proofs.tex")),
        Turn("and in shellrc?", status("shellrc", "vimrc")),
    )),
    (Setup(), (
        Turn("32 * 45", total("1440")),
        Turn("and 1440 / 9", total("160")),
        Turn("now 160 plus 77", total("237")),
    )),
    (Setup(CODE), (
        Turn("which of the files here are python", lists("app.py", "dates.py", "money.py", others=("README",))),
        Turn("open app.py", reads("app.py", "greet")),
        Turn("where is gross defined?", finds("gross", "util/money.py")),
    )),
    (Setup(), (
        Turn("the hostname first, pls", figure("host")),
        Turn("and since how long is it on", figure("uptime")),
        Turn("total memory?", figure("memory size")),
    )),
    (Setup(LAB), (
        Turn("list what i've got in here", lists("results.json", "chores.txt")),
        Turn("read chores.txt", reads("chores.txt", "beakers", "centrifuge")),
        Turn("remind me in 15 minutes to fix the centrifuge", plans("in 15 minutes", "centrifuge")),
    )),
    (Setup(KITCHEN, memory=KEPT), (
        Turn("whats in guests.txt", reads("guests.txt", "Amara", "Bastien", "Yuki")),
        Turn("change Amara to Samara there", edits("guests.txt", KITCHEN["guests.txt"].replace("Amara", "Samara"), "Samara")),
        Turn("who's the vet again?", recalls("Vesely")),
    )),
    (Setup(), (
        Turn("wake me tomorrow at 5:40 for the hike", plans("tomorrow at 5:40", "hike")),
        Turn("also remind me tonight at 21:30 to charge the headlamp", plans("tonight at 21:30", "headlamp")),
    )),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for setup, turns in CONVERSATIONS:
        yield Case("several turns", turns, setup)
