"""Steps that an owner must allow: asked, answered once, for the chat, or denied.

Whoever can ask a person passes `ask`; a button press that arrives later, also
after a restart, goes to `Approvals.decide`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from agent.events import Decision


@dataclass(frozen=True, slots=True)
class Request:
    """One question to an owner. `expires` is in seconds since the epoch."""

    id: str
    turn: str
    call: str
    chat: str
    what: str
    scope: str
    expires: float


class ApprovalRows(Protocol):
    """The durable side. Each method returns once its row is committed."""

    async def find(self, turn: str, call: str, what: str) -> tuple[Request, Decision | None] | None:
        """The request of that step, with its decision if there is one."""
        ...

    async def open(self, request: Request) -> None: ...

    async def decide(self, id: str, decision: Decision, at: float) -> Request | None:
        """Record the first decision; None when there is no such open request.

        "chat" also records a standing permission of the request's chat for its scope.
        """
        ...

    async def granted(self, chat: str, scope: str) -> bool:
        """Whether a standing permission covers the scope in that chat."""
        ...

    async def undecided(self, turn: str) -> frozenset[str]:
        """Ids of that turn's calls which wait for an answer."""
        ...


Ask = Callable[[Request], Awaitable[Decision | None]]
"""Shows the question to the owners. Returns the answer where it gets one itself
(a terminal), or None once the question is shown and the answer comes by `decide`."""


class Approvals:
    """Asks, waits, remembers. `ask` None: nobody can be asked, so all is denied at once."""
