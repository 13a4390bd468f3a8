"""Questions to owners and standing permissions (agent.approvals asks them); the freeze, while which no tool runs and no job
starts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from agent.approvals import ApprovalRequest
from agent.errors import ToolError
from agent.events import Decision
from agent.store import approvals, chats
from agent.store.database import Database, Transaction, columns, storable
from agent.store.ledger import digest, record
from agent.trust import asks


@dataclass(frozen=True, slots=True)
class Grant:
    """A standing permission: `scope` such as "commit:website"."""

    scope: str
    granted_by: str


@dataclass(frozen=True)
class ApprovalTable:
    """The stored approval requests (agent.approvals.ApprovalRows), and what the owners' buttons need."""

    database: Database

    async def find(
        self, turn: str, call: str, what: str
    ) -> tuple[ApprovalRequest, Decision | None] | None:
        """The newest request of that call for exactly `what`, with its decision if there is one."""
        row = await self.database.one(
            f"SELECT {_COLUMNS}, state FROM approvals WHERE turn = ? AND call = ? AND what = ?"
            " ORDER BY asked_at DESC LIMIT 1",
            turn,
            call,
            what,
        )
        if row is None:
            return None
        *request, state = row
        decision: Decision = state if state in ("once", "chat") else "denied"
        return ApprovalRequest(*request), None if state == "asked" else decision

    async def open(self, request: ApprovalRequest, *, running: bool = False) -> None:
        async with self.database.write() as tx:
            await chats.ensure(tx, request.chat)
            await tx.insert(
                "approvals",
                id=request.id,
                turn=request.turn,
                call=request.call,
                chat=request.chat,
                what=request.what,
                scope=request.scope,
                expires_at=request.expires,
                asked_at=tx.now,
                taken=running,
                because=storable(request.because),
            )
            facts = {"id": request.id, "scope": request.scope, "because": request.because}
            await record(tx, "question", request.chat, **facts, shown=digest(request.what))

    async def take(self, request: ApprovalRequest, unasked: tuple[Decision, str] | None) -> None:
        async with self.database.write() as tx:
            sql = "UPDATE approvals SET taken = 1 WHERE turn = ? AND call = ?"
            await tx.run(sql, request.turn, request.call)
            if unasked:
                facts = {"scope": request.scope, "decision": unasked[0], "by": unasked[1]}
                await record(tx, "decision", request.chat, **facts, shown=digest(request.what))

    async def decide(
        self, id: str, decision: Decision, at: float, by: str = ""
    ) -> ApprovalRequest | None:
        """Record the first decision; "chat" becomes "once" for a request that names untrusted text (`because`)."""
        async with self.database.write() as tx:
            sql = f"SELECT {_COLUMNS} FROM approvals WHERE id = ? AND state = 'asked'"
            row = await tx.one(sql, id)
            if row is None:
                return None
            request = ApprovalRequest(*row)
            if decision != "denied" and not (request.intact and at < request.expires):
                return None
            if decision == "chat" and request.because:
                decision = "once"
            sql = "UPDATE approvals SET state = ?, decided_at = ?, decided_by = ? WHERE id = ?"
            await tx.run(sql, decision, at, by, id)
            await record(tx, "decision", request.chat, id=id, decision=decision, by=by)
            lasts = asks(request.scope, touched=True) == "once"
            if decision == "chat" or (lasts and decision != "denied"):
                await add_grant(tx, request.chat, request.scope, by)
        return request

    async def withdraw(self, chat: str) -> None:
        """Close a chat's open questions, because its turn was stopped."""
        async with self.database.write() as tx:
            await withdraw(tx, chat=chat)

    async def withdrawn(self, turn: str) -> list[str]:
        """Ids of a turn's questions that were closed because it was stopped or ended."""
        sql = "SELECT id FROM approvals WHERE turn = ? AND decided_by = ?"
        return [row[0] for row in await self.database.all(sql, turn, WITHDRAWN)]

    async def granted(self, chat: str, scope: str) -> bool:
        sql = "SELECT 1 FROM grants WHERE chat = ? AND scope = ?"
        return bool(await self.database.value(sql, chat, scope))

    async def not_taken(self, turn: str) -> frozenset[str]:
        sql = "SELECT call FROM approvals WHERE turn = ? GROUP BY call HAVING max(taken) = 0"
        return frozenset(row[0] for row in await self.database.all(sql, turn))

    async def open_requests(self, chat: str | None = None) -> list[ApprovalRequest]:
        """Questions that can still be answered, oldest first, of one chat or of all."""
        rows = await self.database.all(
            f"SELECT {_COLUMNS} FROM approvals WHERE state = 'asked' AND expires_at > ?2"
            " AND (?1 IS NULL OR chat = ?1) ORDER BY asked_at",
            chat,
            self.database.clock(),
        )
        return [ApprovalRequest(*row) for row in rows]

    async def first_asked_at(self, turn: str) -> float:
        """When the turn first asked an owner; infinity if it has not."""
        sql = "SELECT coalesce(min(asked_at), 9e999) FROM approvals WHERE turn = ?"
        return float(await self.database.value(sql, turn))

    async def get(self, id: str) -> ApprovalRequest | None:
        row = await self.database.one(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", id)
        return ApprovalRequest(*row) if row else None

    async def shown(self, id: str, message_id: str) -> None:
        """Record which message of the app shows the question."""
        sql = "UPDATE approvals SET message_id = ? WHERE id = ?"
        await self.database.execute(sql, message_id, id)

    async def message_of(self, id: str) -> str:
        """The app's id of the message that shows the question; empty when it was not shown."""
        sql = "SELECT message_id FROM approvals WHERE id = ?"
        return str(await self.database.value(sql, id) or "")

    async def decided(self, id: str) -> tuple[str, str, float] | None:
        """(state, by whom, when) of a decided request."""
        sql = (
            "SELECT state, decided_by, decided_at FROM approvals WHERE id = ? AND state <> 'asked'"
        )
        row = await self.database.one(sql, id)
        return (row[0], row[1], row[2]) if row else None

    async def grants(self, chat: str) -> list[Grant]:
        sql = f"SELECT {columns(Grant)} FROM grants WHERE chat = ? ORDER BY scope"
        return [Grant(*row) for row in await self.database.all(sql, chat)]

    async def revoke(self, chat: str, scope: str, by: str = "") -> bool:
        async with self.database.write() as tx:
            sql = "DELETE FROM grants WHERE chat = ? AND scope = ? RETURNING 1"
            gone = await tx.all(sql, chat, scope)
            if gone:
                await record(tx, "grant-ended", chat, scope=scope, by=by)
        return bool(gone)


async def withdraw(tx: Transaction, *, chat: str | None = None, turn: str | None = None) -> None:
    """Close the open questions of a chat, of a turn or of all: a press after this grants nothing."""
    sql = (
        "UPDATE approvals SET state = 'denied', decided_by = ?1, decided_at = ?2 WHERE state = 'asked'"
        " AND (?3 IS NULL OR chat = ?3) AND (?4 IS NULL OR turn = ?4) RETURNING id, chat"
    )
    for id, asked_in in await tx.all(sql, WITHDRAWN, tx.now, chat, turn):
        await record(tx, "decision", asked_in, id=id, decision="denied", by=WITHDRAWN)


async def drop_grants(tx: Transaction, by: str) -> int:
    """End the standing permissions of all chats; returns how many."""
    gone = await tx.all("DELETE FROM grants RETURNING chat, scope")
    for chat, scope in gone:
        await record(tx, "grant-ended", chat, scope=scope, by=by)
    return len(gone)


async def add_grant(tx: Transaction, chat: str, scope: str, by: str) -> None:
    sql = (
        "INSERT INTO grants (chat, scope, granted_by, granted_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING RETURNING 1"
    )
    if await tx.all(sql, chat, scope, by, tx.now):
        await record(tx, "grant", chat, scope=scope, by=by)


WITHDRAWN = "stopped"  # `decided_by` of a question whose turn was stopped
_COLUMNS = "id, turn, call, chat, what, scope, expires_at, because"


FROZEN = "SELECT since FROM frozen"
TRIES, HOUR = 5, 3600.0  # codes that are checked in an hour


class Frozen(ToolError):
    """A tool was to run, or is running, while everything is frozen; `since` in seconds since the epoch."""

    def __init__(self, since: float) -> None:
        super().__init__("An owner has frozen all tools, so this was not run.")
        self.since = since


@dataclass(frozen=True)
class FreezeTable:
    """The freeze, while which no tool runs. `on_freeze` stop what runs when it begins; each returns how many turns."""

    database: Database
    on_freeze: list[Callable[[], int]] = field(default_factory=list)

    async def since(self) -> float | None:
        """When everything was frozen, in seconds since the epoch; None when it is not."""
        since: float | None = await self.database.value(FROZEN)
        return since

    async def freeze(self, by: str) -> tuple[int, int]:
        """Stop the running turns, end all standing permissions and open questions; returns how many turns and
        permissions. Calling it again does the same and keeps the first time."""
        async with self.database.write() as tx:
            if not await tx.all(FROZEN):
                await tx.insert("frozen", since=float(tx.now), by=by)
            grants = await approvals.drop_grants(tx, by)
            await approvals.withdraw(tx)
            await record(tx, "admin", act="freeze", by=by, grants=grants)
        return sum(stop() for stop in self.on_freeze), grants

    async def thaw(self, by: str) -> bool:
        """End the freeze; False when nothing was frozen."""
        async with self.database.write() as tx:
            gone = await tx.all("DELETE FROM frozen RETURNING 1")
            if gone:
                await record(tx, "admin", act="thaw", by=by)
        return bool(gone)

    async def thaw_by_code(self, by: str, step: int | None) -> Literal["thawed", "wrong", "often"]:
        """`step` is the time step of a right code, None for a wrong one. A code is accepted once, and no
        earlier one after it; after TRIES in an hour none is checked. A right code also "thaws" when nothing
        was frozen."""
        async with self.database.write() as tx:
            await tx.run("DELETE FROM thaw_tries WHERE at <= ? AND step IS NULL", tx.now - HOUR)
            [[(recent,)], [(last,)]] = await tx.batch(
                ("SELECT count(*) FROM thaw_tries WHERE at > ?", (tx.now - HOUR,)),
                ("SELECT coalesce(max(step), 0) FROM thaw_tries", ()),
            )
            if recent >= TRIES:
                return "often"
            right = step if step is not None and step > last else None
            await tx.insert("thaw_tries", at=float(tx.now), step=right)
            if right:
                await tx.run("DELETE FROM frozen")
            outcome: Literal["thawed", "wrong"] = "thawed" if right else "wrong"
            await record(tx, "admin", act="thaw", by=by, code=outcome)
        return outcome
