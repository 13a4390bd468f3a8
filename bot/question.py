"""A question to an owner, as every channel shows it, and what its buttons mean."""

import re

from agent.approvals import ApprovalRequest
from agent.events import Decision
from bot.channel import Choice, Rows
from bot.texts import Texts

KIND = "ok"
KEYS: dict[str, Decision] = {"o": "once", "c": "chat", "d": "denied"}
LONGEST = 3000  # characters of a command or a diff; the rest is a file


def question(texts: Texts, request: ApprovalRequest, *, elsewhere: bool) -> str:
    where = texts.approval_from.format(chat=request.chat) if elsewhere else ""
    what = request.what
    if len(what) > LONGEST:
        what = what[:LONGEST] + "\n" + texts.approval_cut.format(more=len(request.what) - LONGEST)
    fence = "`" * max(3, longest_run(what) + 1)
    return f"{texts.approval}{where}\n\n{fence}\n{what}\n{fence}"


def longest_run(text: str) -> int:
    """Of backticks, so that no command can end its own block."""
    return max(map(len, re.findall("`+", text)), default=0)


def buttons(texts: Texts, id: str) -> Rows:
    labels = {"o": texts.approve_once, "c": texts.approve_chat, "d": texts.deny}
    first, second, third = (Choice(f"{KIND}:{id}:{key}", label) for key, label in labels.items())
    return [[first, third], [second]]


def decision(key: str) -> tuple[str, Decision | None]:
    """The request's id and the decision that a button's key says."""
    id, _, letter = key.removeprefix(f"{KIND}:").rpartition(":")
    return id, KEYS.get(letter)


def quoted(what: str) -> str:
    """The command or diff, whatever it holds, as a block."""
    fence = "`" * max(3, longest_run(what) + 1)
    return f"{fence}\n{what[:LONGEST]}\n{fence}"
