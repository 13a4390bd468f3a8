"""Terminals that go from one holder of the state to the next."""

from agent.channels import NoChannels
from agent.messages import Assistant, User
from agent.model import Request
from agent.store import Incoming
from agent.store.inbox import CLI
from bot.connected_terminals import BotChannels, ConnectedTerminal, ConnectedTerminals, JsonFields
from tests.agent.chats.conftest import Bench, Gate, bench, calling

__all__ = ["bench"]


async def test_whoever_comes_late_to_the_next_holder_is_answered(bench: Bench) -> None:
    """The next one dropped the questions of terminals that had not connected yet: they were told "Stopped."."""
    gate = Gate()
    bench.tools = [gate.tool()]
    bench.model.answer = lambda request: calling("gate")
    async with bench.running() as chats:
        await chats.submit(Incoming("cli", CLI, "begun", "one"))
        await gate.began.wait()
        await chats.store.inbox.add(Incoming("cli", CLI, "waiting", "two"))

    def answer(request: Request) -> Assistant:
        return Assistant(f"To {[m.text for m in request.messages if isinstance(m, User)][-1]}")

    class Terminals(NoChannels):
        def attends(self, incoming: Incoming) -> bool:
            return BotChannels(terminals).attends(incoming)

    again = Bench(bench.path, channels=Terminals())
    again.model.answer = answer
    async with again.running() as chats:
        terminals = ConnectedTerminals(chats.store, None)
        told: list[JsonFields] = []
        for number, (update, text) in enumerate(
            (("new", "three"), ("waiting", "two"), ("begun", "one"))
        ):
            terminal = ConnectedTerminal("cli", False, told.append)
            terminals.enter(terminal)
            await terminals.say(terminal, chats, text, update)
            replies = await again.heard.replies("cli", number + 1)
            assert text in replies[-1]
            assert "turn.finished" not in [each["type"] for each in told]
        assert await chats.store.inbox.count_waiting() == 0
