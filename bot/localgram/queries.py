"""Pressed buttons and inline queries, and their answers."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
    message: int
    pressed: float
    id: str = field(default_factory=lambda: str(secrets.randbits(62)))
    answer: Answered | None = None


@dataclass(slots=True, eq=False)
class InlineQuery:
    """Words behind the bot's name in some chat, or a call there as a guest. `results` stays None until the
    bot answers."""

    asked: float
    id: str = field(default_factory=lambda: str(secrets.randbits(62)))
    results: Sequence[Json] | None = None


class Queries:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, Query] = {}
        self._inline: dict[str, InlineQuery] = {}

    def ask(self) -> InlineQuery:
        query = InlineQuery(self._clock())
        self._inline[query.id] = query
        return query

    def offer(self, number: str, results: Sequence[Json]) -> None:
        """Close an inline query. Raises ApiError 400 when it is unknown, late, or answered already."""
        query = self._inline.pop(number, None)
        if query is None or self._clock() - query.asked > ANSWER_SECONDS:
            raise bad_request(TOO_OLD)
        query.results = results

    def press(self, user: int, chat: int, message: int) -> Query:
        query = Query(user, chat, message, self._clock())
        self._open[query.id] = query
        return query

    def answer(self, number: str, build: Callable[[Query], Answered]) -> Answered:
        """Close a query with an answer.

        Raises: ApiError 400 when it is unknown, late, or answered already.
        """
        query = self._open.pop(number, None)
        if query is None or self._clock() - query.pressed > ANSWER_SECONDS:
            raise bad_request(TOO_OLD)
        query.answer = build(query)
        return query.answer
