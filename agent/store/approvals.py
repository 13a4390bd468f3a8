"""Questions to owners and standing permissions (agent.approvals asks them)."""

from dataclasses import dataclass
from typing import Any

from agent.approvals import ApprovalRequest
from agent.events import Decision
from agent.store import chats
from agent.store.chats import Clock
from agent.store.database import Database


@dataclass(frozen=True, slots=True)
class Grant:
    """A standing permission: `scope` such as "commit:website"."""

    chat: str
    scope: str
    granted_by: str
    granted_at: float


@dataclass(frozen=True)
class ApprovalTable:
    """The ApprovalRows of agent.approvals, and what the owners' buttons need."""

    database: Database
    clock: Clock

    async def find(
        self, turn: str, call: str, what: str
    ) -> tuple[ApprovalRequest, Decision | None] | None:
        """The newest request of that step, with its decision if there is one; an expired one was denied."""
        async with self.database.read() as tx:
            row = await tx.one(
                f"SELECT {_COLUMNS}, state FROM approvals WHERE turn = ? AND call = ? AND what = ?"
                " ORDER BY asked_at DESC LIMIT 1",
                turn,
                call,
                what,
            )
        return (ApprovalRequest(*row[:7]), _decision(row[7])) if row else None

    async def open(self, request: ApprovalRequest) -> None:
        async with self.database.write() as tx:
            await chats.ensure(tx, request.chat, self.clock())
            await tx.run(
                "INSERT INTO approvals (id, turn, call, chat, what, scope, expires_at, asked_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                request.id,
                request.turn,
                request.call,
                request.chat,
                request.what,
                request.scope,
                request.expires,
                self.clock(),
            )

    async def decide(
        self, id: str, decision: Decision, at: float, by: str = ""
    ) -> ApprovalRequest | None:
        """Record the first decision; None when there is no such open request.

        "chat" also records a standing permission of the request's chat for its scope.
        """
        async with self.database.write() as tx:
            row = await tx.one(
                "UPDATE approvals SET state = ?, decided_at = ?, decided_by = ?"
                f" WHERE id = ? AND state = 'asked' RETURNING {_COLUMNS}",
                decision,
                at,
                by,
                id,
            )
            if row and decision == "chat":
                await tx.run(
                    "INSERT INTO grants (chat, scope, granted_by, granted_at) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT DO NOTHING",
                    row[3],
                    row[5],
                    by,
                    at,
                )
        return ApprovalRequest(*row) if row else None

    async def granted(self, chat: str, scope: str) -> bool:
        """Whether a standing permission covers the scope in that chat."""
        async with self.database.read() as tx:
            return bool(
                await tx.value("SELECT 1 FROM grants WHERE chat = ? AND scope = ?", chat, scope)
            )

    async def undecided(self, turn: str) -> frozenset[str]:
        """Ids of that turn's calls which wait for an answer."""
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT call FROM approvals WHERE turn = ? AND state = 'asked'", turn
            )
        return frozenset(row[0] for row in rows)

    async def open_requests(self, chat: str | None = None) -> list[ApprovalRequest]:
        """Questions without an answer, oldest first, of one chat or of all."""
        async with self.database.read() as tx:
            rows = await tx.all(
                f"SELECT {_COLUMNS} FROM approvals WHERE state = 'asked' AND (?1 IS NULL OR chat = ?1)"
                " ORDER BY asked_at",
                chat,
            )
        return [ApprovalRequest(*row) for row in rows]

    async def get(self, id: str) -> ApprovalRequest | None:
        async with self.database.read() as tx:
            row = await tx.one(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", id)
        return ApprovalRequest(*row) if row else None

    async def shown(self, id: str, message_id: str) -> None:
        """Which message of the app shows the question."""
        async with self.database.write() as tx:
            await tx.run("UPDATE approvals SET message_id = ? WHERE id = ?", message_id, id)

    async def message_of(self, id: str) -> str:
        """The app's id of the message that shows the question; empty when it was not shown."""
        async with self.database.read() as tx:
            return str(await tx.value("SELECT message_id FROM approvals WHERE id = ?", id) or "")

    async def decided(self, id: str) -> tuple[str, str, float] | None:
        """(state, by whom, when) of a request that is decided or expired."""
        async with self.database.read() as tx:
            row = await tx.one(
                "SELECT state, decided_by, decided_at FROM approvals WHERE id = ? AND state <> 'asked'",
                id,
            )
        return (row[0], row[1], row[2]) if row else None

    async def grants(self, chat: str) -> list[Grant]:
        async with self.database.read() as tx:
            rows = await tx.all(
                "SELECT chat, scope, granted_by, granted_at FROM grants WHERE chat = ? ORDER BY scope",
                chat,
            )
        return [Grant(*row) for row in rows]

    async def grant(self, chat: str, scope: str, by: str) -> None:
        async with self.database.write() as tx:
            await chats.ensure(tx, chat, self.clock())
            await tx.run(
                "INSERT INTO grants (chat, scope, granted_by, granted_at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                chat,
                scope,
                by,
                self.clock(),
            )

    async def revoke(self, chat: str, scope: str) -> bool:
        async with self.database.write() as tx:
            return bool(
                await tx.all(
                    "DELETE FROM grants WHERE chat = ? AND scope = ? RETURNING 1", chat, scope
                )
            )


_COLUMNS = "id, turn, call, chat, what, scope, expires_at"


def _decision(state: Any) -> Decision | None:
    decisions: dict[str, Decision] = {
        "once": "once",
        "chat": "chat",
        "denied": "denied",
        "expired": "denied",
    }
    return decisions.get(state)
