"""Tool calls that an owner must allow: once, for the chat, or not at all.

`ask` shows a question to the owners; a button press that arrives later, even
after a restart, goes to `Approvals.decide`.
"""

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from agent.errors import ToolError
from agent.events import ApprovalAsked, ApprovalPending, Decision, Emit
from agent.trust import Taint, asks, told

EXPIRY_SECONDS = 300.0
LOOK_SECONDS = 1.0  # how often the clock is looked at: it goes on while the host sleeps
DENIED = "Error: denied by the owner."
EXPIRED = "Error: not allowed, nobody answered in time."
TOO_LONG = (
    "This chat holds text of strangers, so an owner must see this step whole, and it is too long to be "
    "shown. Do it in smaller parts."
)
LONGEST = 200_000  # characters of a step that somebody can still look through
NOBODY = "Nobody can be asked here, so nothing was done.\nAn owner has to approve this step; voltaire chat and messaging apps ask, watches cannot."


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One question to an owner. `expires` is in seconds since the epoch. `because` says which
    strangers' text has touched the chat, and when; empty where none has.

    `id` ends with a digest of what is asked. Buttons carry it, so that a press is a decision about
    the bytes that were shown, and about no others.
    """

    id: str
    turn: str
    call: str
    chat: str
    what: str
    scope: str
    expires: float
    because: str = ""

    @property
    def intact(self) -> bool:
        """Whether the request is unchanged, by the digest in its id."""
        token = self.id.partition(".")[0]
        return self.id == question_id(token, self.chat, self.what, self.scope, self.because)


def question_id(token: str, chat: str, what: str, scope: str, because: str = "") -> str:
    """Create a request's id from `token` and 160 bits of the SHA-256 of what is asked, short enough for a button."""
    asked = json.dumps([chat, what, scope, because]).encode()
    return f"{token}.{hashlib.sha256(asked).hexdigest()[:40]}"


@dataclass(frozen=True, slots=True)
class GuardedCall:
    """A tool call that asks for approval. `taints` gives the strangers' text that has touched it."""

    turn: str
    call: str
    chat: str
    taints: Callable[[], Awaitable[Sequence[Taint]]]


class ApprovalRows(Protocol):
    """Stores approval requests. Each method returns once its row is committed."""

    async def find(
        self, turn: str, call: str, what: str
    ) -> tuple[ApprovalRequest, Decision | None] | None:
        """The request of that call for exactly `what`, with its decision if there is one."""
        ...

    async def open(self, request: ApprovalRequest, *, running: bool) -> None:
        """Store a new request. `running`: its call has done something already."""
        ...

    async def take(self, request: ApprovalRequest, unasked: tuple[Decision, str] | None) -> None:
        """Record that the call has its answer. `unasked`: the decision, and why nobody was asked."""
        ...

    async def decide(
        self, id: str, decision: Decision, at: float, by: str = ""
    ) -> ApprovalRequest | None:
        """Record the first decision; None when there is no such open request, when it has expired
        or when it is not what was asked (ApprovalRequest.intact).

        "chat" also records a standing permission of the request's chat for its scope,
        except where the request has a `because`; so does every yes to an act that asks "once".
        """
        ...

    async def granted(self, chat: str, scope: str) -> bool:
        """Whether a standing permission covers the scope in that chat."""
        ...

    async def not_taken(self, turn: str) -> frozenset[str]:
        """Ids of the turn's calls that had asked and had no answer when it was cut off: they have not run."""
        ...


AskOwners = Callable[[ApprovalRequest], Awaitable[Decision | None]]
"""Shows the question to the owners. Returns the answer where it gets one itself
(a terminal), or None once the question is shown and the answer comes by `decide`."""


@dataclass
class Approvals:
    """Asks owners about tool calls and waits for their answers.

    With `ask` None nobody can be asked, so what is not granted is denied. A question expires after
    `seconds`; `zone` is that of the times in it.
    """

    rows: ApprovalRows
    ask: AskOwners | None
    _: KW_ONLY
    seconds: float = EXPIRY_SECONDS
    clock: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: secrets.token_urlsafe(9)
    zone: str = "UTC"
    _waiting: dict[str, asyncio.Future[Decision]] = field(default_factory=dict)

    async def decide(self, id: str, decision: Decision, by: str = "") -> ApprovalRequest | None:
        """An owner's answer; None when the question is answered, expired or withdrawn already."""
        request = await self.rows.decide(id, decision, self.clock(), by)
        waiting = self._waiting.get(id)
        if request and waiting and not waiting.done():
            waiting.set_result(decision)
        return request

    def approver(self, call: GuardedCall, emit: Emit) -> "CallApprover":
        """The approver of one tool call."""
        return CallApprover(self, call, emit)

    async def settle(
        self,
        call: GuardedCall,
        what: str,
        scope: str,
        taints: Sequence[Taint] = (),
        *,
        running: bool = False,
        emit: Emit = lambda event: None,
    ) -> tuple[ApprovalRequest, Decision, str]:
        """Ask, wait for the decision up to the expiry, and return question, decision and the reason of a denial.

        In a chat that strangers' text has touched only permissions of acts that ask "once" hold. `running`:
        the call has done something already, so that it is not run again after a crash.
        """
        found = await self.rows.find(call.turn, call.call, what)
        request, decision = found or (self._request(call, what, scope, taints), None)
        reason, unasked = DENIED, ""
        standing = asks(scope, touched=bool(taints)) in ("unless granted", "once")
        if decision is not None:
            pass
        elif standing and await self.rows.granted(call.chat, scope):
            decision, unasked = "chat", "standing permission"
        elif taints and len(what) > LONGEST:
            decision, reason, unasked = "denied", TOO_LONG, "too long to be shown"
        elif self.ask is None:
            decision, reason, unasked = "denied", NOBODY, "nobody to ask"
        else:
            if found is None:
                await self.rows.open(request, running=running)
            self._waiting[request.id] = asyncio.get_running_loop().create_future()
            emit(ApprovalPending())
            try:
                async with asyncio.timeout(min(self.seconds, request.expires - self.clock())):
                    decision = await self._answer(request, self.ask)
            except TimeoutError:
                decided = await self.rows.decide(request.id, "denied", self.clock(), "expired")
                late = None if decided else await self._decided(request)
                decision, reason = "denied", EXPIRED
                if late is not None:  # the answer has been quicker
                    decision, reason = late, DENIED
            finally:
                del self._waiting[request.id]
        await self.rows.take(request, (decision, unasked) if unasked else None)
        return request, decision, reason

    def _request(
        self, call: GuardedCall, what: str, scope: str, taints: Sequence[Taint] = ()
    ) -> ApprovalRequest:
        expires, because = self.clock() + self.seconds, told(taints, self.zone)
        because = because.encode("utf-8", "replace").decode()  # as it is stored
        id = question_id(self.new_id(), call.chat, what, scope, because)
        return ApprovalRequest(id, call.turn, call.call, call.chat, what, scope, expires, because)

    async def _answer(self, request: ApprovalRequest, ask: AskOwners) -> Decision:
        # A button that was shown before a restart may have been pressed since the row was read.
        if (known := await self._decided(request)) is not None:
            return known
        answer = await ask(request)
        if answer is not None:
            await self.decide(request.id, answer, "terminal")
        waiting = self._waiting[request.id]
        while not waiting.done() and self.clock() < request.expires:
            await asyncio.wait([waiting], timeout=LOOK_SECONDS)
        if not waiting.done():
            raise TimeoutError
        return waiting.result()

    async def _decided(self, request: ApprovalRequest) -> Decision | None:
        found = await self.rows.find(request.turn, request.call, request.what)
        return found[1] if found else None


@dataclass(slots=True)
class CallApprover:
    """The agent.tools.context.Approver of one call. `waited` is the time spent on waiting for owners, in seconds."""

    approvals: Approvals
    call: GuardedCall
    emit: Emit
    waited: float = 0.0

    async def __call__(self, what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        taints = [*await self.call.taints(), *touched]
        if asks(scope, touched=bool(taints)) == "never":
            return
        began = asyncio.get_running_loop().time()
        request, decision, reason = await self.approvals.settle(
            self.call, what, scope, taints, running=asked_midway(scope), emit=self.emit
        )
        self.waited += asyncio.get_running_loop().time() - began
        self.emit(ApprovalAsked(request.id, what, decision))
        if decision == "denied":
            raise ToolError(reason)


def asked_midway(scope: str) -> bool:
    """Whether a call may already have had effects when it asks for this, as a shell script's later command can."""
    act, _, of = scope.partition(":")
    if act == "budget":
        return of in ("bytes", "hosts")
    if act == "key":
        return of != ""
    return act not in ("remember", "plan", "schedule", "write", "commit", "send")
