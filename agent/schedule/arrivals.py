"""Has the watches of mail look as soon as something comes (IMAP IDLE), not at their times alone."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from agent.aio import set_within
from agent.channels import Channels
from agent.errors import ToolError
from agent.schedule.watches import WATCH, Seen
from agent.store import Store
from agent.store.errors import StoreError
from agent.store.inbox import JOB
from agent.store.jobs import Job

if TYPE_CHECKING:  # loaded where accounts are configured
    from agent.mail.account import MailAccount

log = logging.getLogger(__name__)

PASS_SECONDS = 60.0  # between two readings of the jobs
IDLE_SECONDS = 300.0  # of one IDLE: routers forget connections on which nothing is said
BUSY_SECONDS = 10.0  # before another look while one goes on
RETRY_SECONDS, MOST_RETRY = 5.0, 300.0  # before another connection
Place = tuple[str, str]  # an account and a folder


@dataclass(frozen=True)
class Arrivals:
    store: Store
    accounts: Mapping[str, "MailAccount"]
    channels: Channels

    async def run(self) -> None:
        """Wait, in each folder that is watched, for what comes there; until cancelled."""
        changed, waits = asyncio.Event(), dict[Place, asyncio.Task[None]]()
        self.store.jobs.on_wake.append(changed.set)
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    changed.clear()
                    try:
                        places = (await self.watches()).keys()
                    except StoreError as error:
                        log.warning("the watches of mail could not be read: %s", error)
                    else:
                        for gone in waits.keys() - places:
                            waits.pop(gone).cancel()
                        for place in places - waits.keys():
                            waits[place] = tasks.create_task(self.wait(place))
                    await set_within(changed, PASS_SECONDS)
        finally:
            self.store.jobs.on_wake.remove(changed.set)

    async def watches(self) -> Mapping[Place, Sequence[Job]]:
        """The active watches of mail by what they look at."""
        found = defaultdict[Place, list[Job]](list)
        for job in await self.store.jobs.active():
            watch = job.spec.options.get(WATCH, {})
            if watch.get("look") == "mail" and self.channels.owns(job.spec.chat, JOB):
                name, _, folder = watch["subject"].partition("/")
                if account := self.accounts.get(name or next(iter(self.accounts))):
                    place = account.config.name, folder or account.config.folders[0]
                    found[place].append(job)
        return found

    async def wait(self, place: Place) -> None:
        """Have the watches of a folder look when something comes. Returns only if its server has no IDLE: then they look
        at their own times alone."""
        account, pause = self.accounts[place[0]], RETRY_SECONDS
        while True:
            began = monotonic()
            try:
                await account.follow(place[1], partial(self.look, place))
                return
            except (ToolError, StoreError) as error:
                log.info("waiting for mail account=%s: %s", place[0], error)
            pause = RETRY_SECONDS if monotonic() - began > IDLE_SECONDS else pause
            await asyncio.sleep(pause)
            pause = min(2 * pause, MOST_RETRY)

    async def look(self, place: Place, state: str) -> float:
        """Have each watch look that has not told this state of its folder; return the seconds until the next call."""
        seconds, now, due = IDLE_SECONDS, self.store.clock(), False
        open_ones = {each.job: each.state for each in await self.store.occurrences.open()}
        for job in (await self.watches()).get(place, ()):
            seen = Seen(**json.loads(await self.store.jobs.seen(job.id) or "{}"))
            if seen.last in (None, state) or open_ones.get(job.id) == "due":
                continue
            early = seen.told_at + job.spec.options[WATCH]["least"] - now
            if open_ones.get(job.id):
                early = BUSY_SECONDS
            if early > 0:
                seconds = min(seconds, early + 1)
                continue
            if await self.store.occurrences.trigger(job.id, ""):
                due = True
            else:  # one of this very second has looked already
                seconds = min(seconds, BUSY_SECONDS)
        if due:
            self.store.jobs.wake()
        return seconds
