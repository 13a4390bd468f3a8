"""A repository's summary for one chat: from the last one on, once per range."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.errors import AgentError, ToolError
from agent.store import Store
from agent.summary import facts as by_git
from agent.summary.card import card
from agent.summary.facts import Facts, Git, Missing, Range
from agent.summary.fetched import Place
from agent.summary.prose import Ask, checked, prose, worded

log = logging.getLogger(__name__)

_STAGE = "summary-stage:"
AWAY = "_The model is not there, so these are the facts alone._"
WORDLESS = "_The model found no words of its own, so these are the facts alone._"


@dataclass(frozen=True, slots=True)
class Report:
    """`text` is Markdown; `nothing` says instead why there is none."""

    text: str = ""
    nothing: str = ""


@dataclass(frozen=True)
class Summaries:
    """`git` gives the runner of a chat's sandbox, `ask` a question to the model, `room` its bytes.

    `place` finds where a repository is read in a chat's sandbox.
    """

    store: Store
    git: Callable[[str], Git]
    ask: Ask
    room: Callable[[], Awaitable[int]]
    place: Callable[[str, str], Awaitable[Place]]
    days: int = 7

    async def make(self, chat: str, repo: str, occurrence: int) -> Report:
        """Facts, then prose where the model is there; from where the last one that was delivered ends.

        The same occurrence asked again, because the first time was cut off, covers
        the same range again.
        """
        git, place = self.git(chat), await self.place(chat, repo)
        path = place.path
        last = await self._last(chat, repo, occurrence)
        try:
            span = await by_git.ranges(git, path, last, self.days)
        except Missing as nothing:
            return Report(nothing=f"{nothing} {place.note}".strip())
        found = await by_git.collect(git, path, span)
        text = "\n\n".join(filter(None, [card(repo, span, found), place.note]))
        told = await self._told(git, path, repo, span, found, text)
        mark = {"head": span.head, "before": last, "by": occurrence}
        await self.store.key_values.put(_key(chat, repo), mark)
        alone = told in (AWAY, WORDLESS)
        return Report(f"{text}\n\n{told}" if alone else f"{told}\n\n{text}")

    async def _last(self, chat: str, repo: str, occurrence: int) -> str:
        """The last commit that was told of, or empty."""
        mark = await self.store.key_values.get(_key(chat, repo)) or {}
        by = mark.get("by")
        told = by != occurrence and await self.store.occurrences.delivered(by or 0)
        return str(mark.get("head" if told else "before", ""))

    async def _told(
        self, git: Git, path: str, repo: str, span: Range, found: Facts, text: str
    ) -> str:
        await self.store.key_values.remove_prefix(f"{_STAGE}{repo}:", f"{_STAGE}{repo}:{span.key}")
        room = await self.room()
        commits = await by_git.subjects(git, path, span)
        diff = await by_git.selected_diff(git, path, span, room // 3)
        try:
            said = await prose(self.ask, _Stages(self.store), repo, span, text, commits, room, diff)
        except AgentError as error:
            log.warning("summary without prose repo=%s: %s", repo, error)
            return AWAY
        good, dropped = checked(worded(said), found, "\n".join([text, *commits, diff]))
        if dropped:
            log.info("summary repo=%s sentences_left_out=%d", repo, dropped)
        return good or WORDLESS


@dataclass(frozen=True)
class _Stages:
    store: Store

    async def get(self, key: str) -> str | None:
        known = await self.store.key_values.get(f"{_STAGE}{key}")
        return None if known is None else str(known)

    async def put(self, key: str, text: str) -> None:
        await self.store.key_values.put(f"{_STAGE}{key}", text)


def _key(chat: str, repo: str) -> str:
    return f"summarised:{chat}:{repo}"


def runner(run: Callable[[Sequence[str]], Awaitable[str]]) -> Git:
    """A Git of any function that runs an argument list and gives its whole output."""

    async def git(argv: Sequence[str]) -> str:
        try:
            return await run(argv)
        except ToolError as error:
            raise AgentError(f"The repository could not be read. {error}") from None

    return git
