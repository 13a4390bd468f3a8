"""Who may talk: owners, those they let in, and strangers. Ids are numeric; names change hands."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent.store.people import PeopleTable

SOURCE = "telegram"
BURST = 40  # messages of one person at once
SECONDS = 2.0  # and then one every so often

Standing = Literal["owner", "member", "stranger"]


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who said something, and where; `group` is None in a private chat."""

    user: int
    name: str
    group: int | None = None


class Access:
    """Knows everybody's standing. `remember` is called once at the start and after each change."""

    def __init__(
        self,
        people: PeopleTable,
        owners: frozenset[int],
        allow: frozenset[int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._people = people
        self._configured = owners
        self._allow = allow
        self._owners = owners
        self._members = allow
        self._clock = clock
        self._floods: dict[int, _Flood] = {}

    @property
    def owners(self) -> frozenset[int]:
        return self._owners

    @property
    def members(self) -> frozenset[int]:
        """Users and groups that may talk, besides the owners."""
        return self._members

    async def remember(self) -> None:
        people = await self._people.all(SOURCE)
        of = {role: {int(p.person) for p in people if p.role == role} for role in _ROLES}
        self._owners = self._configured | of["owner"]
        self._members = self._allow | of["member"]

    def standing(self, speaker: Speaker) -> Standing:
        """In a group that may talk everybody may; elsewhere each for themselves."""
        if speaker.user in self._owners:
            return "owner"
        if speaker.user in self._members or speaker.group in self._members:
            return "member"
        return "stranger"

    def floods(self, speaker: Speaker) -> Literal["no", "first", "more"]:
        """Whether somebody writes more than is answered; "first" is when to say so."""
        if speaker.user in self._owners:
            return "no"
        flood = self._floods.setdefault(speaker.user, _Flood(float(BURST), self._clock()))
        return flood.take(self._clock())

    async def let_in(self, person: int, name: str, by: int) -> None:
        await self._people.put(SOURCE, str(person), name, "member", str(by))
        await self.remember()

    async def shut_out(self, person: int, name: str, by: int) -> None:
        await self._people.put(SOURCE, str(person), name, "refused", str(by))
        await self.remember()

    async def asks(self, speaker: Speaker) -> bool:
        """A stranger asks to be let in; False when they asked already, or were refused."""
        known = await self._people.get(SOURCE, str(speaker.user))
        if known is not None and known.role != "stranger":
            return False
        await self._people.put(SOURCE, str(speaker.user), speaker.name, "asked")
        return True

    async def use_code(self, speaker: Speaker, code: str) -> Standing | None:
        """Pair by a one-time code; None when it is unknown, used or expired."""
        role = await self._people.use_code(SOURCE, str(speaker.user), speaker.name, code)
        await self.remember()
        return role if role in ("owner", "member") else None

    async def is_due_a_line(self, speaker: Speaker) -> bool:
        """Whether a stranger is to get the fixed line now: once a day."""
        known = await self._people.get(SOURCE, str(speaker.user))
        if known is not None and known.role in ("asked", "refused"):
            return False
        return await self._people.stranger_notice_due(SOURCE, str(speaker.user), speaker.name)


_ROLES: tuple[Literal["owner", "member"], ...] = ("owner", "member")


@dataclass(slots=True)
class _Flood:
    tokens: float
    counted: float
    told: bool = False

    def take(self, now: float) -> Literal["no", "first", "more"]:
        self.tokens = min(float(BURST), self.tokens + (now - self.counted) / SECONDS)
        self.counted = now
        if self.tokens >= 1:
            self.tokens -= 1
            self.told = False
            return "no"
        told, self.told = self.told, True
        return "more" if told else "first"
