"""Tells of entries before they begin, or at the times of their own alarms; no model is asked.

What was told is stored in one transaction with the message that tells it, so that a kill at any step has it told once. A
reminder is known by its entry, the entry's time and its own: a moved entry has another one.
"""

import json
import logging
import math
from asyncio import sleep
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.calendar.accounts import Calendars
from agent.calendar.spans import DAY
from agent.errors import ToolError
from agent.language import speaking
from agent.sandbox.observer import Observer
from agent.schedule.scheduler import block
from agent.schedule.watches import shortened
from agent.store import Store, chats, outbox
from agent.store.errors import StoreError
from agent.store.key_values import PUT

log = logging.getLogger(__name__)

LOOK_SECONDS = 300.0  # between two looks at the server
PASS_SECONDS = 30.0  # the clock may jump, and the host sleep
MOST_A_DAY = 24  # of an entry
KEPT_SECONDS = 2 * 86_400  # of what was told, after it was needed: the clock may be set back
OWN, OWN_DAYS = "own", 29  # the alarms of entries that begin in so many days
UNITS = {"m": 60, "h": 3600, "d": 86_400}


@dataclass
class Reminders:
    """Reminds chats of the entries of one account, in the time zone of `calendars`.

    `remind` is as configured, `listeners` are the chats, `payload` makes a message of Markdown.
    """

    store: Store
    calendars: Calendars
    name: str
    remind: str
    listeners: Callable[[], Awaitable[Collection[str]]]
    payload: Callable[[str], str]
    _known: list[dict[str, Any]] = field(default_factory=list)  # as the client gives them
    _looked_at: float = -math.inf
    _problem: str = ""

    async def run(self) -> None:
        while True:
            wait = PASS_SECONDS
            try:
                wait = await self.run_pass()
            except StoreError as error:
                log.warning("reminders of the calendar %s wait: %s", self.name, error)
            await sleep(min(wait, PASS_SECONDS))

    async def run_pass(self) -> float:
        """Tell what is due; return the seconds to the next reminder or look."""
        key, now = f"calendar-told:{self.name}", self.store.clock()
        told = await self.store.key_values.get(key, dict[str, float]) or {}
        if self._due(told, now) or not 0 <= now - self._looked_at < LOOK_SECONDS:
            await self._look(now)
        due = self._due(told, now)
        if due and await self.store.freeze.since() is None:
            kept = {one: until for one, until in told.items() if until > now - KEPT_SECONDS}
            kept |= {one["key"]: one["until"] for one in due}
            messages = dict[str, str]()
            for chat in await self.listeners():
                with speaking(await self.store.chats.spoken(chat)):
                    lines = block(shortened([one["text"] for one in due]))
                messages[chat] = self.payload(f"🔔\n\n{lines}")
            async with self.store.database.write() as tx:
                await tx.run(PUT, key, json.dumps(kept))
                for chat, payload in messages.items():
                    await chats.ensure(tx, chat)
                    await outbox.put(tx, chat, [payload])
            self.store.outbox.wake()
        later: list[float] = [one["at"] for one in self._known if one["at"] > now]
        return max(0.0, min([*later, self._looked_at + LOOK_SECONDS]) - now)

    def _due(self, told: Mapping[str, float], now: float) -> list[dict[str, Any]]:
        """Those to tell now, of an entry so many a day that no invitation floods a chat."""
        today = Counter(
            key.partition("-")[0] for key, until in told.items() if until > now - UNITS["d"]
        )
        return [
            one
            for one in self._known
            if one["at"] <= now < one["until"] and one["key"] not in told
            if today[one["key"].partition("-")[0]] < MOST_A_DAY
        ]

    async def _look(self, now: float) -> None:
        """Ask the server; where it is away, what is known stays."""
        before = None if self.remind == OWN else int(self.remind[:-1]) * UNITS[self.remind[-1]]
        today = datetime.fromtimestamp(now, ZoneInfo(self.calendars.zone)).date()
        days = OWN_DAYS if before is None else before // UNITS["d"] + 2
        span = {"first": str(today - DAY), "last": str(today + days * DAY), "now": now}
        observer, problem = Observer(self.store.ledger), ""
        try:
            answer = await self.calendars.ask(self.name, "remind", observer, before=before, **span)
            self._known = answer["reminders"]
        except ToolError as error:
            problem = str(error)
        if problem and problem != self._problem:
            log.warning("no look at the calendar %s: %s", self.name, problem)
        self._looked_at, self._problem = now, problem
