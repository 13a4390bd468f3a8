"""A chat's summaries: from datetime import UTC, datetime
from the last that was delivered on, once per range, without the model too."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.channels import NoChannels
from agent.errors import BackendAway, NothingToDo
from agent.schedule.scheduler import SummarizeRepo
from agent.schedule.times.rule import Once, dump
from agent.store import Store, open_store
from agent.store.jobs import JobSpec, Occurrence
from agent.summary.git_facts import (
    RepoLocation,
    collect,
    commit_range,
)
from agent.summary.repo_summaries import RepoSummaries
from fakes import repository_large
from fakes.stored import fall_due
from fakes.words import saying
from tests.agent.summary.test_summary import Repository, git

CHAT = "tg:1"


class Scene:
    def __init__(self, store: Store, repository: Repository) -> None:
        self.store = store
        self.repository = repository
        self.asked: list[str] = []
        self.away = self.copies = False
        self.due = 0
        self.location = RepoLocation(str(repository.path))
        self.summaries = RepoSummaries(
            store, lambda chat: git, self._ask, self._prompt_bytes, self._locate, days=9000
        )

    async def _ask(self, question: str) -> str:
        if self.away:
            raise BackendAway("No model backend is running.")
        self.asked.append(question)
        if self.copies:
            return "```text\n+++ b/tests/f6.txt"
        return "Ada worked on it. There were 4711 mistakes."

    async def _locate(self, chat: str, repo: str) -> RepoLocation:
        return self.location

    async def _prompt_bytes(self) -> int:
        return 4000

    async def occurrence(self) -> Occurrence:
        self.due += 1
        job = await self.store.jobs.add(
            JobSpec(CHAT, "summary", "", dump(Once(datetime.now(UTC))), "UTC", "site", {})
        )
        made = await fall_due(self.store, job.id, self.due)
        assert made
        return made

    async def make(self, occurrence: Occurrence) -> str:
        return await self.summaries.make(CHAT, "site", occurrence.id)

    async def delivered(self, occurrence: Occurrence, *, refused: bool = False) -> None:
        await self.store.occurrences.begin(occurrence.id)
        await self.store.occurrences.post(occurrence.id, CHAT, ["{}"])
        parcel = await self.store.outbox.claim(CHAT)
        assert parcel
        if refused:
            await self.store.outbox.failed(parcel.id, "Refused.")
        else:
            await self.store.outbox.delivered(parcel.id, ["7"])


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    repository = Repository(tmp_path / "r")
    repository.commit("Start the thing", a="1\n")
    async with open_store(tmp_path / "s.db") as store:
        yield Scene(store, repository)


async def test_prose_stands_before_the_facts_without_what_is_not_in_them(scene: Scene) -> None:
    text = await scene.make(await scene.occurrence())
    prose, _, facts = text.partition("\n\n")
    assert prose == "Ada worked on it."
    assert facts.startswith("**site**") and facts == saying(" 1 commit ", "main")


async def test_a_range_is_told_once_and_again_when_it_was_not_delivered(scene: Scene) -> None:
    first, second, third, fourth = [await scene.occurrence() for _ in range(4)]
    cut_off = await scene.make(first)
    assert await scene.make(first) == cut_off  # killed before it was posted, and begun again
    await scene.delivered(first)
    with pytest.raises(NothingToDo, match="since the last summary"):
        await scene.make(second)
    scene.repository.commit("Go on", at=10, a="1\n2\n")
    assert "1 commit on" in await scene.make(second)
    await scene.delivered(second, refused=True)
    scene.repository.commit("And on", at=20, a="1\n2\n3\n")
    assert "2 commits on" in await scene.make(third)
    await scene.delivered(third)
    with pytest.raises(NothingToDo):
        await scene.make(fourth)


async def test_one_cut_off_leaves_its_commits_to_the_next(scene: Scene) -> None:
    first, second = await scene.occurrence(), await scene.occurrence()
    await scene.make(first)  # killed here
    scene.repository.commit("Go on", at=10, a="1\n2\n")
    assert "2 commits on" in await scene.make(second)
    await scene.delivered(second)
    with pytest.raises(NothingToDo):
        await scene.make(first)


async def test_without_the_model_the_facts_go_out_alone(scene: Scene) -> None:
    scene.away = True
    text = await scene.make(await scene.occurrence())
    assert text.startswith("**site**, 1 commit on main")
    assert text.splitlines()[-1] == saying("model", "only the facts")


async def test_a_model_without_words_does_not_swallow_the_facts(scene: Scene) -> None:
    scene.copies = True
    text = await scene.make(await scene.occurrence())
    assert text.startswith("**site**, 1 commit on main")
    assert text.splitlines()[-1] == saying("model", "only the facts")
    assert len(scene.asked) == 2  # it may find words yet


async def test_days_are_a_small_chart(scene: Scene) -> None:
    for day, count in enumerate((1, 0, 4, 2)):
        for number in range(count):
            scene.repository.commit("x", at=86_400 * day + number)
    text = await scene.make(await scene.occurrence())
    assert text == saying("`▄ █▄`", "21 Sep to 24 Sep")


class Payloads(NoChannels):
    def payload(self, text: str) -> str:
        return json.dumps(text)


async def test_two_at_once_tell_each_commit_once(scene: Scene) -> None:
    kind = SummarizeRepo(scene.summaries, Payloads())
    both = [await scene.occurrence() for _ in range(2)]
    jobs = [await scene.store.jobs.get(each.job) for each in both]
    for each in both:
        await scene.store.occurrences.begin(each.id)
    ends = await asyncio.gather(*map(kind, jobs, both), return_exceptions=True)  # type: ignore[arg-type]
    assert [type(end) for end in ends] == [type(None), NothingToDo]
    (state,) = (await scene.store.outbox.counts()).items()
    assert state == ("waiting", 1)


# -- right in every number ----------------------------------------------------


@pytest.mark.parametrize("commits", [500, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_a_hundred_thousand_commits(tmp_path: Path, commits: int) -> None:
    truth = repository_large.make(tmp_path / "r", commits)
    span = await commit_range(git, str(tmp_path / "r"), days=9000)
    facts = await collect(git, str(tmp_path / "r"), span)
    assert (facts.commits, facts.merges, facts.renamed, facts.removed) == (commits, 0, 0, 0)
    assert dict(facts.by_author) == dict(truth.by_author)
    assert (facts.files, facts.added, facts.todos) == (
        len(truth.lines),
        truth.lines.total(),
        truth.todos,
    )
    assert sum(folder.files for folder in facts.folders) == facts.files
    assert sum(folder.added for folder in facts.folders) == facts.added
    assert facts.tests == sum(name.startswith("tests/") for name in truth.lines)
    most = sorted(truth.lines.items(), key=lambda item: (-item[1], item[0]))[:8]
    assert sorted(facts.grew.values()) == sorted(count for _, count in most)
