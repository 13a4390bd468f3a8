"""The night shift: a message is done again at a quiet, cool and cheap hour, in several attempts, of which the best is told
in the morning.

Its job falls due every few minutes of the night. A run makes one attempt, if the hour allows it; the first run after
the night tells. What the attempts came to is kept in the job's row, in one transaction with the end of the run, so
that a kill costs the attempt under way and no other.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path

from pydantic import TypeAdapter

from agent.errors import AgentError, NothingToDo
from agent.events import Reason
from agent.language import translated
from agent.schedule.scheduler import QuietHours
from agent.schedule.times.rule import Cron
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.jobs import Job, LookResult, Occurrence

HOURS = QuietHours(time(1), time(6), "UTC")
MINUTES = 5  # between two runs
LONGEST_WAIT = 3 * 86_400.0  # for an hour that allows an attempt
SHORT = 30  # words of an answer that is compared by the figures or names in it
WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W_]+")


@dataclass(frozen=True, slots=True)
class Night:
    """When attempts are made, and how many. No attempt begins while the hottest card is above `most_celsius`, nor while
    the price in `price_file` is above `most_price`. `price` is that of a kilowatt-hour, 0 where it is unknown."""

    hours: QuietHours = HOURS
    attempts: int = 5
    most_celsius: float = 70
    price: float = 0
    price_file: Path | None = None
    most_price: float = 0

    @property
    def rule(self) -> Cron:
        first = self.hours.start.hour
        count = (self.hours.end.hour - first) % 24 + 2  # with an hour in which the answer is told
        hours = ",".join(str((first + number) % 24) for number in range(count))
        return Cron(f"*/{MINUTES} {hours} * * *", self.hours.zone)

    def too_dear(self) -> bool:
        """Whether the price in the file is too high; one that cannot be read is."""
        if self.price_file is None:
            return False
        try:
            return float(self.price_file.read_text("utf-8")) > self.most_price
        except (OSError, ValueError):
            return True


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt's answer, how its turn ended, how many commands it ran and whether the last one failed, what its model
    calls drew (None where nothing measures that), the files of the workspace that hold what it wrote, and their digest."""

    text: str
    reason: Reason
    commands: int = 0
    failed: bool = False
    watt_hours: float | None = None
    files: tuple[str, ...] = ()
    digest: str = ""
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shift:
    """What is known of one job's attempts."""

    attempts: tuple[Attempt, ...] = ()
    told: bool = False


SHIFT = TypeAdapter(Shift)


def meaning(task: str, attempt: Attempt) -> tuple[str, ...]:
    """The key of an attempt: attempts with equal keys count as the same answer. It is the first of these that is not
    empty: figures that only a short answer has, not the task; digests of the files written; such names; all words."""
    known, text = {*WORD.findall(task.casefold())}, re.sub(r"(?<=\d),(?=\d{3}\b)", "", attempt.text)
    words = WORD.findall(text)
    new = [word for word in words if word.casefold() not in known and len(words) <= SHORT]
    figures = [word for word in new if word[0].isdigit()]
    names = [word for word in new if word[0].isupper() and len(word) > 3]
    held = figures or attempt.digest.split() or names or map(str.casefold, words)
    return tuple(dict.fromkeys(held))


def best(task: str, attempts: Sequence[Attempt]) -> tuple[int, int]:
    """The index of the best attempt, and how many gave its answer. What counts, in this order: that it was finished;
    that its last command did not fail, and that it ran one if the first did; how many gave its answer; who was first."""
    answers = [meaning(task, each) for each in attempts]
    least = min(attempts[0].commands, 1)
    ranks = [
        (each.reason == "done", not each.failed and each.commands >= least, answers.count(answer))
        for each, answer in zip(attempts, answers, strict=True)
    ]
    index = ranks.index(max(ranks))
    return index, ranks[index][-1]


def report(task: str, attempts: Sequence[Attempt], price: float) -> str:
    """Compose, in Markdown, the best answer, how it was checked, and the energy and cost (`price` a kWh) of all."""
    index, same = best(task, attempts)
    chosen = attempts[index]
    form = translated("{same} of {count} attempts gave this answer.")
    checks = [form.format(same=same, count=len(attempts))]
    form = translated("It ran no command.")
    if chosen.failed:
        form = translated("Commands that it ran: {count}; the last one failed.")
    elif chosen.commands:
        form = translated("Commands that it ran: {count}; the last one ended without an error.")
    checks.append(form.format(count=chosen.commands))
    if chosen.files:
        names = ", ".join(f"`{name}`" for name in chosen.files)
        checks.append(translated("Its files: {files}.").format(files=names))
    known = [each.watt_hours for each in attempts if each.watt_hours is not None]
    form = translated("What it cost is not known: no card tells its power.")
    if known:
        form = translated("All attempts cost {energy:.1f} Wh.")
        if price:
            form = translated("All attempts cost {energy:.1f} Wh, {cost:.2f} at {price:g} a kWh.")
    energy = sum(known)
    checks.append(form.format(energy=energy, cost=energy / 1000 * price, price=price))
    return f"🌙 {task}\n\n{chosen.text}\n\n{' '.join(checks)}"


@dataclass(frozen=True)
class NightShift:
    """A JobAction. `obstacle` says why no attempt may begin now ("" if one may), `attempt` makes one within so many
    seconds, and keeps its files under its number."""

    store: Store
    night: Night
    obstacle: Callable[[], Awaitable[str]]
    attempt: Callable[[Job, Occurrence, int, float], Awaitable[Attempt]]
    payload: Callable[[str], str]

    async def __call__(self, job: Job, occurrence: Occurrence) -> None:
        raw = await self.store.jobs.seen(job.id)
        shift = SHIFT.validate_json(raw) if raw else Shift()
        attempts, count = shift.attempts, len(shift.attempts)
        now = datetime.fromtimestamp(self.store.clock(), UTC)
        left = self.night.hours.left(now)
        text = data = ""
        if not shift.told and left and count < self.night.attempts:
            if why := await self.obstacle():
                raise NothingToDo(why)
            try:
                made = await self.attempt(job, occurrence, count + 1, left)
            except StoreError:
                raise
            except (AgentError, OSError) as error:  # a full disk, say
                made = Attempt(str(error), "error")
            attempts = *attempts, made
            detail = translated("attempt {count}").format(count=count + 1)
        elif not shift.told and (left or not count):
            if now.timestamp() - job.created_at > LONGEST_WAIT and not count:
                await self.store.jobs.set_state(job.id, "ended")
                raise AgentError(translated("No hour of the nights since then allowed it."))
            raise NothingToDo(translated("attempts: {count}").format(count=count))
        else:
            index, _ = best(job.spec.task, attempts)
            detail = text = "" if shift.told else report(job.spec.task, attempts, self.night.price)
            data = ", ".join(attempts[index].strangers) if text else ""
        state = SHIFT.dump_json(Shift(attempts, told=shift.told or bool(text))).decode()
        result = LookResult(state, detail[:80], False, data, self.payload(text) if text else "")
        if await self.store.occurrences.looked(occurrence.id, result) and text:
            self.store.outbox.wake()
        if text or shift.told:
            await self.store.jobs.set_state(job.id, "ended")
