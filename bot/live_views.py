"""What the live views of messaging apps have in common: marks, and what is to remain of a view should the
process be killed."""

import logging
from collections.abc import Mapping
from typing import Generic, TypeVar

from agent.plan import Plan
from agent.store.errors import StoreError
from agent.store.key_values import KeyValueTable

log = logging.getLogger(__name__)

MARKS = {"running": "⏳", "ok": "✓", "failed": "✗"}
DETAIL_CHARACTERS = 700  # of a tool's output

Left = TypeVar("Left")


def plan_steps(plan: Plan) -> list[str]:
    """A line for each step, as people are shown them."""
    return [f"{'☑' if step.done else '☐'} {step.text}" for step in plan]


class UnfinishedViews(Generic[Left]):
    """Messages of live views that no turn has finished yet, each with what is to remain of it; after a kill
    the next start ends them so. `prefix` is that of their keys in the database."""

    def __init__(self, key_values: KeyValueTable, prefix: str, kind: type[Left]) -> None:
        self._key_values = key_values
        self._prefix = prefix
        self._kind = kind
        self.left: Mapping[str, Left] = {}  # by a killed process

    async def load(self) -> None:
        """Read what a killed process left; before any turn goes on."""
        found = await self._key_values.with_prefix(self._prefix, self._kind)
        self.left = {key.removeprefix(self._prefix): left for key, left in found.items()}

    async def keep(self, message: str, left: Left) -> None:
        try:
            await self._key_values.put(self._prefix + message, left)
        except StoreError as error:
            log.warning("the live message %s is not kept: %s", message, error)

    async def remove(self, message: str) -> None:
        try:
            await self._key_values.remove(self._prefix + message)
        except StoreError as error:
            log.warning("the live message %s is not forgotten: %s", message, error)
