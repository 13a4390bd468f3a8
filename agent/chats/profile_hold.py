"""A turn is open from its message to its answer, and the model stays the same for as long."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from agent.aio import move_on_when
from agent.chats.assignment import Assignment, Emit
from agent.events import Notice
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import QueueState


@asynccontextmanager
async def open_turn(
    backend: BackendClient, assignment: Assignment, emit: Emit
) -> AsyncIterator[None]:
    """Wait out a switch of the model, and say so; without a backend the turn itself will tell."""
    async with AsyncExitStack() as stack:
        await _opened(stack, backend, assignment, emit)
        yield


async def _opened(
    stack: AsyncExitStack, backend: BackendClient, assignment: Assignment, emit: Emit
) -> None:
    def told(state: QueueState) -> None:
        if state.reason:
            emit(Notice(state.reason))

    turn = backend.turn(assignment.chat, told)
    with suppress(BackendUnavailable):
        async with move_on_when(assignment.stop):
            await stack.enter_async_context(turn)
