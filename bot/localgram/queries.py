"""Pressed buttons and inline queries, and their answers."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bot.localgram.clock import Clock
from bot.localgram.feed import Answered
from bot.localgram.wire import Json, bad_request

ANSWER_SECONDS = 15.0  # assumed: Telegram does not document the window
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


@dataclass(slots=True, eq=False)
class Query:
    """One press. `answer` stays None until the bot answers."""

    user: int
    chat: int
    id: str = field(default_factory=lambda: str(secrets.randbits(62)))
    answer: Answered | None = None


@dataclass(slots=True, eq=False)
class InlineQuery:
    """Words behind the bot's name in some chat, or a call there as a guest. `results` stays None until the
    bot answers."""

    id: str = field(default_factory=lambda: str(secrets.randbits(62)))
    results: Sequence[Json] | None = None


Asked = TypeVar("Asked", Query, InlineQuery)


class Queries:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[Query | InlineQuery, float]] = {}  # and when it was asked

    def open(self, query: Asked) -> Asked:
        self._open[query.id] = query, self._clock()
        return query

    def close(self, id: str, kind: type[Asked]) -> Asked:
        """The query that is answered now.

        Raises: ApiError 400 when it is unknown, late, or answered already.
        """
        query, asked = self._open.pop(id, (None, 0.0))
        if not isinstance(query, kind) or self._clock() - asked > ANSWER_SECONDS:
            raise bad_request(TOO_OLD)
        return query
