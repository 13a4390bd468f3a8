"""Who may talk: owners, members whom they let in, and strangers. People are known by the app's ids, never by names,
which may pass to others."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.store.people import PeopleTable

BURST = 40  # messages of one person at once, then one every SECONDS
SECONDS = 2.0
MOST_GUARDED = 10_000  # people whose rate is kept

AccessLevel = Literal["owner", "member", "stranger"]
GroupPolicy = Literal["mention", "all", "off"]


@dataclass(frozen=True, slots=True)
class Sender:
    """Who wrote or pressed something. `user` and `group` (None in a private chat) are the app's ids; `language` is
    their app's, a tag such as "pt-BR"."""

    user: str
    name: str
    group: str | None = None
    language: str = ""


class Access:
    """Access levels and message rates in one app (`source`).

    `owners` and `members` (users and groups) are those of the configuration and, after `load`, those
    who were paired. `groups`: whether messages in groups are answered that mention the bot, all, or none.
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
        """Read the paired people again."""
        people = await self._people.all(self._source)
        owners, allow = self._configured
        self.owners = owners | {p.person for p in people if p.role == "owner"}
        self.members = allow | {p.person for p in people if p.role == "member"}

    def level(self, sender: Sender) -> AccessLevel:
        """Return somebody's access level; everybody in a group of `members` is a member there."""
        if sender.user in self.owners:
            return "owner"
        if sender.user in self.members or sender.group in self.members:
            return "member"
        return "stranger"

    def flood(self, sender: Sender) -> Literal["no", "first", "more"]:
        """Count a message; return whether its sender exceeds the rate, "first" where they are to be told of that."""
        if sender.user in self.owners:
            return "no"
        if sender.user not in self._floods and len(self._floods) >= MOST_GUARDED:
            del self._floods[next(iter(self._floods))]
        guard = self._floods.setdefault(sender.user, FloodGuard(float(BURST), self._clock()))
        return guard.take(self._clock())

    async def put(
        self, person: str, role: Literal["member", "refused"], name: str, by: str
    ) -> None:
        """Store the decision of the owner `by` to let in or refuse a user or group."""
        await self._people.put(self._source, person, name, role, by)
        await self.load()

    async def name_of(self, person: str) -> str:
        known = await self._people.get(self._source, person)
        return known.name if known else ""

    async def request(self, sender: Sender) -> bool:
        """Record that a stranger asks to be let in; False when they asked before, or were refused."""
        known = await self._people.get(self._source, sender.user)
        if known is not None and known.role != "stranger":
            return False
        await self._people.put(self._source, sender.user, sender.name, "asked")
        return True

    async def use_code(self, sender: Sender, code: str) -> AccessLevel | None:
        """Pair by a one-time code. The new level; None when the code is unknown, used or expired."""
        role = await self._people.use_code(self._source, sender.user, sender.name, code)
        await self.load()
        return role if role in ("owner", "member") else None

    async def stranger_notice_due(self, sender: Sender) -> bool:
        """Whether to send a stranger the fixed notice now: once a day, until they ask to be let in."""
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
