"""Which kind of job the words of a task ask for: a reminder, a summary, the digest, a switch of the
model, or a turn."""

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from agent.errors import ToolError
from agent.language import translated

KINDS = ("remind", "task", "summary")  # those that may be named; the others are read from the words
OWNERS_ONLY = ("profile",)  # kinds that touch more than their chat
_DIGEST = re.compile(r"(?:send me |give me )?(?:the |a )?(?:daily |health |gpu )*digest")
_SWITCH = re.compile(
    r"(?:please )?(?:(?:switch|change|go)(?: back)?(?: the (?:model|profile|backend))? to|use|load)"
    r"(?P<before>(?: the)?(?: model| profile)*) (?P<name>\S+?)(?P<after> (?:model|profile))?[.!]?"
)
_REMIND = re.compile(r"^remind me (?:(?:to|of|about|that) )?", re.IGNORECASE)


async def no_profiles() -> Collection[str]:
    return ()


@dataclass(frozen=True)
class JobClassifier:
    """`repos` and `profiles` (called only when a switch is meant) are the names known here."""

    repos: Collection[str] = ()
    profiles: Callable[[], Awaitable[Collection[str]]] = no_profiles

    async def classify(self, task: str, kind: str = "") -> tuple[str, str]:
        """The kind (as given, if it is one of KINDS), and the task as that kind stores it.

        Raises ToolError with the question to ask back.
        """
        words = task.lower()
        if not kind and _DIGEST.fullmatch(words):
            return "digest", "health digest"
        if kind in ("", "task") and (profile := await self.profile(words)):
            return "profile", profile
        named = [repo for repo in self.repos if repo.lower() in words.split()]
        if kind == "summary" or (not kind and named and "summar" in words):
            return "summary", self.repo(task, named)
        if kind not in KINDS:
            kind = "remind" if words.startswith("remind") else "task"
        return kind, _REMIND.sub("", task, count=1) if kind == "remind" else task

    async def profile(self, words: str) -> str:
        """The profile to switch to; empty where the words mean something else."""
        match = _SWITCH.fullmatch(words)
        if match is None:
            return ""
        known = await self.profiles()
        if match["name"] in known:
            return match["name"]
        if not (match["before"].strip(" the") or match["after"]):
            return ""
        form = translated("There is no model {name}.")
        if known:
            form = translated("There is no model {name}. There are: {known}.")
        raise ToolError(form.format(name=match["name"], known=", ".join(sorted(known))))

    def repo(self, task: str, named: list[str]) -> str:
        if named:
            return named[0]
        if task == "." or not self.repos:
            return task
        form = translated("Which repository? There are: {known}.")
        raise ToolError(form.format(known=", ".join(sorted(self.repos))))


def describe_task(kind: str, task: str) -> str:
    form = {
        "remind": translated("Reminder “{task}”"),
        "summary": translated("Summary of {task}"),
        "digest": translated("Health digest"),
        "profile": translated("Switch to the model {task}"),
    }.get(kind, translated("Task “{task}”"))
    return form.format(task=task)
