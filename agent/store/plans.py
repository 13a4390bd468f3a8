"""The plan of a conversation's task."""

import json
from collections.abc import Callable
from dataclasses import astuple, dataclass

from pydantic import ConfigDict, TypeAdapter

from agent.plan import Plan, PlanStep, WrongPlan
from agent.store.database import Database, Transaction

STEPS = TypeAdapter(tuple[tuple[str, bool], ...], config=ConfigDict(defer_build=True))


def decoded_plan(column: str | None) -> Plan:
    return tuple(PlanStep(*each) for each in STEPS.validate_json(column)) if column else ()


@dataclass(frozen=True)
class PlanTable:
    database: Database

    async def of_turn(self, turn: str) -> Plan:
        """The plan of the turn's conversation."""
        sql = (
            "SELECT plan FROM conversations"
            " WHERE id = (SELECT conversation FROM turns WHERE id = ?)"
        )
        return decoded_plan(await self.database.value(sql, turn))

    async def of_chat(self, chat: str) -> Plan:
        """The plan of the chat's current conversation."""
        sql = (
            "SELECT plan FROM conversations"
            " WHERE id = (SELECT conversation FROM chats WHERE key = ?)"
        )
        return decoded_plan(await self.database.value(sql, chat))

    async def change(self, chat: str, correct: Callable[[Plan], Plan], turn: str = "") -> Plan:
        """Replace the plan by `correct(plan)` in one transaction and return it. `turn` is the turn that keeps
        the plan, "" when a person corrects it. Raises WrongPlan when there is no conversation to have one."""
        async with self.database.write() as tx:
            row = await tx.one(
                "SELECT id, plan FROM conversations WHERE id = CASE ?1"
                " WHEN '' THEN (SELECT conversation FROM chats WHERE key = ?2)"
                " ELSE (SELECT conversation FROM turns WHERE id = ?1) END",
                turn,
                chat,
            )
            if row is None:
                raise WrongPlan("There is no task to plan here.")
            known = decoded_plan(row[1])
            changed = correct(known)
            if changed != known or turn:
                steps = json.dumps([astuple(each) for each in changed]) if changed else None
                sql = (
                    "UPDATE conversations SET plan = ?2, plan_turn = coalesce(nullif(?3, ''), plan_turn)"
                    " WHERE id = ?1"
                )
                await tx.run(sql, row[0], steps, turn)
        return changed


async def end_plan(tx: Transaction, conversation: int, turn: str) -> None:
    """Delete the plan at the end of a turn if it is done, or if this turn did not keep it."""
    sql = (
        "UPDATE conversations SET plan = NULL WHERE id = ?1 AND plan IS NOT NULL AND (plan_turn <> ?2"
        " OR NOT EXISTS (SELECT 1 FROM json_each(plan) WHERE NOT json_extract(value, '$[1]')))"
    )
    await tx.run(sql, conversation, turn)
