"""The plan of a conversation's task."""

import json
from dataclasses import astuple, dataclass

from pydantic import TypeAdapter

from agent.plan import Plan, PlanStep
from agent.store.database import Database, Transaction

STEPS = TypeAdapter(tuple[tuple[str, bool], ...])


def decoded_plan(column: str | None) -> Plan:
    return tuple(PlanStep(*each) for each in STEPS.validate_json(column)) if column else ()


@dataclass(frozen=True)
class PlanTable:
    database: Database

    async def of_turn(self, turn: str) -> Plan:
        """Of the conversation of a turn."""
        sql = (
            "SELECT plan FROM conversations"
            " WHERE id = (SELECT conversation FROM turns WHERE id = ?)"
        )
        return decoded_plan(await self.database.value(sql, turn))

    async def of_chat(self, chat: str) -> Plan:
        """Of its current conversation."""
        sql = (
            "SELECT plan FROM conversations"
            " WHERE id = (SELECT conversation FROM chats WHERE key = ?)"
        )
        return decoded_plan(await self.database.value(sql, chat))

    async def set(self, chat: str, plan: Plan, turn: str = "") -> None:
        """`turn` is the one that keeps it, empty where a person has corrected it."""
        sql = (
            "UPDATE conversations SET plan = ?1, plan_turn = CASE ?2 WHEN '' THEN plan_turn ELSE ?2 END"
            " WHERE id = coalesce((SELECT conversation FROM turns WHERE id = ?2),"
            " (SELECT conversation FROM chats WHERE key = ?3))"
        )
        steps = json.dumps([astuple(each) for each in plan]) if plan else None
        await self.database.execute(sql, steps, turn, chat)


async def end_plan(tx: Transaction, conversation: int, turn: str) -> None:
    """The turn has answered: a plan that is done, or that this turn had no use for, ends with it."""
    sql = (
        "UPDATE conversations SET plan = NULL WHERE id = ?1 AND plan IS NOT NULL AND (plan_turn <> ?2"
        " OR NOT EXISTS (SELECT 1 FROM json_each(plan) WHERE NOT json_extract(value, '$[1]')))"
    )
    await tx.run(sql, conversation, turn)
