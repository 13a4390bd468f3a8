"""A repository's summaries for one chat: each from the last delivered one on, once per range."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from agent.errors import AgentError
from agent.store import Store
from agent.summary.commit_range import (
    CommitRange,
    Git,
    NothingToSummarize,
    commit_range,
    selected_diff,
    subjects,
)
from agent.summary.facts_text import facts_text
from agent.summary.git_facts import RepoFacts, collect
from agent.summary.mirror import RepoLocation
from agent.summary.prose import Ask, without_copied, without_unsupported, write_prose

log = logging.getLogger(__name__)

AWAY = "_The model is not there, so these are the facts alone._"
WORDLESS = "_The model found no words of its own, so these are the facts alone._"


@dataclass(frozen=True)
class RepoSummaries:
    """`git` gives the runner of a chat's sandbox, `ask` a question to the model, `prompt_bytes` how
    much material one question may hold. `locate` finds where a chat's sandbox reads a repository."""

    store: Store
    git: Callable[[str], Git]
    ask: Ask
    prompt_bytes: Callable[[], Awaitable[int]]
    locate: Callable[[str, str], Awaitable[RepoLocation]]
    days: int = 7

    async def make(self, chat: str, repo: str, occurrence: int) -> str:
        """Markdown: facts, with prose where the model is there, from where the last delivered
        summary ends. Raises NothingToSummarize.

        The same occurrence asked again, because the first time was cut off, covers
        the same range again.
        """
        git, location = self.git(chat), await self.locate(chat, repo)
        path, key = location.path, f"summarised:{chat}:{repo}"
        last = await self.last_commit(key, occurrence)
        try:
            span = await commit_range(git, path, last, self.days)
        except NothingToSummarize as nothing:
            raise NothingToSummarize(f"{nothing} {location.note}".strip()) from None
        facts = await collect(git, path, span)
        text = "\n\n".join(filter(None, [facts_text(repo, span, facts), location.note]))
        prose = await self.prose(git, path, repo, span, facts, text)
        mark = {"head": span.head, "before": last, "by": occurrence}
        await self.store.key_values.put(key, mark)
        return f"{text}\n\n{prose}" if prose in (AWAY, WORDLESS) else f"{prose}\n\n{text}"

    async def last_commit(self, key: str, occurrence: int) -> str:
        """The last commit of a delivered summary, or empty."""
        mark = await self.store.key_values.get(key, dict[str, Any]) or {}
        by = mark.get("by")
        delivered = by != occurrence and await self.store.occurrences.delivered(by or 0)
        return str(mark.get("head" if delivered else "before", ""))

    async def prose(
        self, git: Git, path: str, repo: str, span: CommitRange, facts: RepoFacts, text: str
    ) -> str:
        """The model's own words, checked, or why there are none."""
        max_bytes = await self.prompt_bytes()
        commits = await subjects(git, path, span)
        diff = await selected_diff(git, path, span, max_bytes // 3)
        answers = self.store.key_values
        try:
            words = await write_prose(self.ask, answers, repo, span, text, commits, max_bytes, diff)
        except AgentError as error:
            log.warning("summary without prose repo=%s: %s", repo, error)
            return AWAY
        material = "\n".join([text, *commits, diff])
        good, removed = without_unsupported(without_copied(words), facts, material)
        if removed:
            log.info("summary repo=%s sentences_left_out=%d", repo, removed)
        return good or WORDLESS
