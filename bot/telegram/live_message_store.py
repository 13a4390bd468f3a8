"""Live messages that no turn has settled yet, each with how it is to end.

After a kill the next start ends them so: what ran is marked as interrupted.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Protocol

from agent.store.errors import StoreError
from agent.store.key_values import KeyValueTable
from bot.channel import Away, ChannelError, Step, Uncertain, View
from bot.telegram import view as views
from bot.telegram.styled import Span, Styled
from bot.texts import Texts

log = logging.getLogger(__name__)

PREFIX = "live:"
AGAIN_SECONDS = 10.0


class Board(Protocol):
    """Where live messages are (bot.telegram.channel.Post)."""

    async def finish(self, chat: str, message: str, text: Styled) -> None: ...


@dataclass
class LiveMessageStore:
    facts: KeyValueTable
    texts: Texts
    _left: Mapping[str, Any] = field(default_factory=dict)

    async def recall(self) -> None:
        """What a killed process left; before any turn goes on."""
        self._left = await self.facts.with_prefix(PREFIX)

    async def keep(self, chat: str, message: str, view: View) -> None:
        steps = tuple(self._interrupted(step) for step in view.steps)
        end = views.log(View(steps))
        try:
            await self.facts.put(_key(chat, message), [end.text, [*map(astuple, end.spans)]])
        except StoreError as error:
            log.warning("a live message of %s is not kept: %s", chat, error)

    async def settled(self, chat: str, message: str) -> None:
        try:
            await self.facts.remove(_key(chat, message))
        except StoreError as error:
            log.warning("a live message of %s is not forgotten: %s", chat, error)

    async def end(self, board: Board) -> None:
        """End what was left, each in its own time."""
        async with asyncio.TaskGroup() as group:
            for key, (text, spans) in self._left.items():
                styled = Styled(text, tuple(Span(*span) for span in spans))
                group.create_task(self._end(board, key, styled))

    async def _end(self, board: Board, key: str, text: Styled) -> None:
        chat, _, message = key.removeprefix(PREFIX).rpartition("/")
        while True:
            try:
                await board.finish(chat, message, text)
            except (Away, Uncertain):
                await asyncio.sleep(AGAIN_SECONDS)
            except ChannelError:
                break  # it is gone, or its chat is
            else:
                break
        await self.settled(chat, message)

    def _interrupted(self, step: Step) -> Step:
        if step.state != "running":
            return step
        detail = "\n".join(filter(None, [step.detail, self.texts.interrupted]))
        return replace(step, state="failed", detail=detail)


def _key(chat: str, message: str) -> str:
    return f"{PREFIX}{chat}/{message}"
