"""How many functions of ours a message passes: from the update to the inbox, from the outbox to the request.

A reader who follows one message turns as many pages.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from agent.store.inbox import InboxTable
from agent.store.outbox import OutboxTable
from bot.delivery import Delivery
from bot.telegram.connection import Connection
from bot.telegram.update_gate import UpdateGate
from fakes.bot_running import TelegramScenario

ROOT = Path(__file__).parents[3]
OURS = (f"{ROOT}/bot/", f"{ROOT}/agent/")
MOST = 12


@contextmanager
def calls() -> Iterator[list[list[CodeType]]]:
    """Our functions from the task's first to the one called, for each call inside the block."""
    seen: list[list[CodeType]] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            chain = [frame.f_code]
            at = frame.f_back
            while at is not None:
                if at.f_code.co_filename.startswith(OURS):
                    chain.append(at.f_code)
                at = at.f_back
            seen.append(chain[::-1])

    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def longest(seen: list[list[CodeType]], first: CodeType, passing: CodeType) -> list[str]:
    """The names of the longest chain from one function on that passes the other."""
    chains = [chain[chain.index(first) :] for chain in seen if first in chain and passing in chain]
    return max(([code.co_qualname for code in chain] for chain in chains), key=len)


async def test_a_message_passes_few_functions_of_ours(scenario: TelegramScenario) -> None:
    async with scenario.open():
        await scenario.owner.ask("the first turn loads what it needs")
        with calls() as seen:
            await scenario.owner.ask("hi")
    received = longest(seen, UpdateGate.take.__code__, InboxTable.add.__code__)
    claimed = longest(seen, Delivery.deliver_chat.__code__, OutboxTable.claim.__code__)
    sent = longest(seen, Delivery.deliver.__code__, Connection.do_request.__code__)
    assert len(received) <= MOST, received
    assert len(claimed) <= MOST, claimed
    assert len(sent) <= MOST, sent
