"""What kind of job the words of a task ask for: a reminder, a summary, the digest, a switch, or a turn."""

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from agent.errors import ToolError

KINDS = ("remind", "task", "summary")
_DIGEST = re.compile(r"(?:send me |give me )?(?:the |a )?(?:daily |health |gpu )*digest")
_SWITCH = re.compile(
    r"(?:please )?(?:(?:switch|change|go)(?: back)?(?: the (?:model|profile|backend))? to|use|load)"
    r"(?P<said>(?: the)?(?: model| profile)*) (?P<name>\S+?)(?P<after> (?:model|profile))?[.!]?"
)
_REMIND = ("remind me to ", "remind me of ", "remind me about ", "remind me that ", "remind me ")


async def _none() -> Collection[str]:
    return ()


@dataclass(frozen=True)
class Wishes:
    """`repos` and `profiles` (asked for only when a switch is meant) are the names known here."""

    repos: Collection[str] = ()
    profiles: Callable[[], Awaitable[Collection[str]]] = _none

    async def read(self, task: str, kind: str = "") -> tuple[str, str]:
        """The kind, and the task as that kind has it; ToolError with what to ask back."""
        if not kind and _DIGEST.fullmatch(task.lower()):
            return "digest", "health digest"
        if kind in ("", "task") and (profile := await self._profile(task)):
            return "profile", profile
        named = [repo for repo in self.repos if repo.lower() in task.lower().split()]
        if kind == "summary" or (not kind and named and "summar" in task.lower()):
            return "summary", self._repo(task, named)
        if kind in KINDS:
            return kind, _reminder(task) if kind == "remind" else task
        return ("remind", _reminder(task)) if task.lower().startswith("remind") else ("task", task)

    async def _profile(self, task: str) -> str:
        """The profile to switch to; empty where the words mean something else."""
        match = _SWITCH.fullmatch(task.lower())
        if match is None:
            return ""
        known = await self.profiles()
        if match["name"] in known:
            return match["name"]
        if not (match["said"].strip(" the") or match["after"]):
            return ""
        others = f" There are: {', '.join(sorted(known))}." if known else ""
        raise ToolError(f"There is no model {match['name']}.{others}")

    def _repo(self, task: str, named: list[str]) -> str:
        if named:
            return named[0]
        if task in (".",) or not self.repos:
            return task
        raise ToolError(f"Which repository? There are: {', '.join(sorted(self.repos))}.")


def _reminder(task: str) -> str:
    """ "remind me to call" is sent as "call"."""
    start = next((start for start in _REMIND if task.lower().startswith(start)), "")
    return task[len(start) :]


def told(kind: str, task: str) -> str:
    """What a job does, in words."""
    return {
        "remind": f"Reminder “{task}”",
        "summary": f"Summary of {task}",
        "digest": "Health digest",
        "profile": f"Switch to the model {task}",
    }.get(kind, f"Task “{task}”")
