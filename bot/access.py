"""Who may talk: owners, those they let in, and strangers. Ids are the app's; names change hands."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.store.people import PeopleTable

BURST = 40  # messages of one person at once
SECONDS = 2.0  # and then one every so often

AccessLevel = Literal["owner", "member", "stranger"]
GroupPolicy = Literal["mention", "all", "off"]


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote or pressed something, by the app's ids; `group` is None in a private chat, `language` is
    that of their app, as a tag such as "pt-BR"."""

    user: str
    name: str
    group: str | None = None
    language: str = ""


class Access:
    """Access levels and message rates in one app (`source`).

    `owners` and `members` (users and groups) are those of the configuration and,
    after `load`, those that were paired. `groups` tells what is answered there:
    what mentions the bot, everything, or nothing.
    """

    def __init__(
        self,
        people: PeopleTable,
        source: str,
        owners: frozenset[str],
        allow: frozenset[str],
        groups: GroupPolicy = "mention",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people = people
        self._source = source
        self._configured = owners, allow
        self.owners = owners
        self.members = allow
        self.groups = groups
        self._clock = clock
        self._floods: dict[str, FloodGuard] = {}

    async def load(self) -> None:
        """Read the paired people; at the start and after each change."""
        people = await self._people.all(self._source)
        owners, allow = self._configured
        self.owners = owners | {p.person for p in people if p.role == "owner"}
        self.members = allow | {p.person for p in people if p.role == "member"}

    def level(self, sender: Sender) -> AccessLevel:
        """In a group that may talk everybody may; elsewhere each person for themselves."""
        if sender.user in self.owners:
            return "owner"
        if sender.user in self.members or sender.group in self.members:
            return "member"
        return "stranger"

    def flood(self, sender: Sender) -> Literal["no", "first", "more"]:
        """Whether somebody writes more than is answered; "first" is when to say so."""
        if sender.user in self.owners:
            return "no"
        guard = self._floods.setdefault(sender.user, FloodGuard(float(BURST), self._clock()))
        return guard.take(self._clock())

    async def put(
        self, person: str, role: Literal["member", "refused"], name: str, by: str
    ) -> None:
        """A user or a group becomes a member, or is refused."""
        await self._people.put(self._source, person, name, role, by)
        await self.load()

    async def name_of(self, person: str) -> str:
        known = await self._people.get(self._source, person)
        return known.name if known else ""

    async def request(self, sender: Sender) -> bool:
        """A stranger asks to be let in; False when they asked already, or were refused."""
        known = await self._people.get(self._source, sender.user)
        if known is not None and known.role != "stranger":
            return False
        await self._people.put(self._source, sender.user, sender.name, "asked")
        return True

    async def use_code(self, sender: Sender, code: str) -> AccessLevel | None:
        """Pair by a one-time code; None when it is unknown, used or expired."""
        role = await self._people.use_code(self._source, sender.user, sender.name, code)
        await self.load()
        return role if role in ("owner", "member") else None

    async def stranger_notice_due(self, sender: Sender) -> bool:
        """Whether a stranger is sent the fixed line now: once a day, until they ask."""
        known = await self._people.get(self._source, sender.user)
        if known is not None and known.role in ("asked", "refused"):
            return False
        return await self._people.stranger_notice_due(self._source, sender.user, sender.name)


@dataclass(slots=True)
class FloodGuard:
    """A token bucket of one person."""

    tokens: float
    refilled_at: float
    warned: bool = False

    def take(self, now: float) -> Literal["no", "first", "more"]:
        self.tokens = min(float(BURST), self.tokens + (now - self.refilled_at) / SECONDS)
        self.refilled_at = now
        if self.tokens >= 1:
            self.tokens -= 1
            self.warned = False
            return "no"
        warned, self.warned = self.warned, True
        return "more" if warned else "first"
