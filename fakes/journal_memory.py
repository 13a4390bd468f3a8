"""A journal without a file, and approval rows without a table: what they hold is there to be read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.approvals import ApprovalRequest
from agent.events import Decision, Reason, TokenUsage
from agent.messages import Assistant, Message, System, ToolResult, User
from agent.model import Completion
from agent.plan import Plan
from agent.trust import Taint, named
from agent.turn.conversation import TurnState


@dataclass
class MemoryJournal:
    """agent.turn.conversation.Journal. `arriving` are messages for the next `steer`.

    `shorter` is what the next compaction makes of the transcript, if anything.
    """

    messages: list[Message] = field(default_factory=lambda: [System("You help."), User("hello")])
    own: int = 1
    turn: str = "t1"
    chat: str = "cli"
    arriving: list[User] = field(default_factory=list)
    shorter: list[Message] | None = None
    running: set[str] = field(default_factory=set)
    held: list[Taint] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    planned: Plan = ()
    completions: list[Completion] = field(default_factory=list)
    asides: list[Completion] = field(default_factory=list)
    finished: list[tuple[Assistant | None, str, Reason, TokenUsage]] = field(default_factory=list)

    async def open(self) -> TurnState:
        return TurnState(
            tuple(self.messages),
            self.own,
            frozenset(self.running),
            tuple(self.withheld),
            self.planned,
        )

    async def called(self, completion: Completion, sent: Sequence[Message] | None) -> None:
        (self.asides if sent is None else self.completions).append(completion)

    async def add(self, message: Message, *, own: bool, strangers: Sequence[str] = ()) -> Message:
        if isinstance(message, ToolResult):
            self.running.discard(message.call)
        self.held += [Taint(named(source), 0.0) for source in strangers]
        self._add(message)
        return message

    async def taints(self) -> Sequence[Taint]:
        return self.held

    async def started(self, call: str) -> None:
        self.running.add(call)

    async def withhold(self, what: str) -> None:
        self.withheld.append(what)

    async def steer(self) -> Sequence[User]:
        arrived, self.arriving = self.arriving, []
        for message in arrived:
            self._add(message)
        return arrived

    async def compact(
        self, messages: Sequence[Message], begins: Callable[[], None], *, full: bool
    ) -> TurnState | None:
        if not full or self.shorter is None:
            return None
        begins()
        self.messages, self.shorter = self.shorter, None
        return await self.open()

    async def finish(
        self,
        message: Assistant | None,
        text: str,
        reason: Reason,
        usage: TokenUsage,
        changes: int = 0,
    ) -> None:
        self.finished.append((message, text, reason, usage))
        if message:
            self._add(message)

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        self.own += 1


@dataclass
class MemoryApprovals:
    """agent.approvals.ApprovalRows."""

    requests: dict[str, ApprovalRequest] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)
    grants: set[tuple[str, str]] = field(default_factory=set)
    taken: set[tuple[str, str]] = field(default_factory=set)  # turn and call

    async def find(
        self, turn: str, call: str, what: str
    ) -> tuple[ApprovalRequest, Decision | None] | None:
        for request in self.requests.values():
            if (request.turn, request.call, request.what) == (turn, call, what):
                return request, self.decisions.get(request.id)
        return None

    async def open(self, request: ApprovalRequest, *, running: bool = False) -> None:
        self.requests[request.id] = request
        if running:
            await self.take(request, None)

    async def take(self, request: ApprovalRequest, unasked: tuple[Decision, str] | None) -> None:
        self.taken.add((request.turn, request.call))

    async def decide(
        self, id: str, decision: Decision, at: float, by: str = ""
    ) -> ApprovalRequest | None:
        request = self.requests.get(id)
        if request is None or id in self.decisions:
            return None
        self.decisions[id], self.by[id] = decision, by
        if decision == "chat" and not request.because:
            self.grants.add((request.chat, request.scope))
        return request

    async def granted(self, chat: str, scope: str) -> bool:
        return (chat, scope) in self.grants

    async def not_taken(self, turn: str) -> frozenset[str]:
        asked = {request.call for request in self.requests.values() if request.turn == turn}
        return frozenset(call for call in asked if (turn, call) not in self.taken)
