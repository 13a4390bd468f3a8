"""What a model did when it was first used here: the self-test, run once and kept.

    trial = await Trials(store, model, lane, schemas).of(status)

Kept by profile and model file: another file, or another profile with other
flags and another template, is another model.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agent.llm.gpu_queue import PERSON, GpuQueue
from agent.llm.selftest import RenderingModel, SelfTest, self_test
from agent.store import Store
from backend.protocol import ServerStatus


@dataclass(frozen=True)
class SelftestStore:
    store: Store
    model: RenderingModel
    lane: GpuQueue
    schemas: Sequence[Mapping[str, Any]]

    async def known(self, server: ServerStatus) -> SelfTest | None:
        """The result on record; None for a model that was never tried."""
        kept = await self.store.key_values.get(_key(server))
        return SelfTest(**kept) if isinstance(kept, dict) else None

    async def of(self, server: ServerStatus) -> SelfTest:
        """The result on record, else of one real request now. Raises as `self_test` does."""
        return await self.known(server) or await self.anew(server)

    async def anew(self, server: ServerStatus) -> SelfTest:
        """Try the model that serves now, and keep the result."""
        async with self.lane("self-test", PERSON, None):
            found = await self_test(self.model, self.schemas)
        await self.store.key_values.put(_key(server), asdict(found))
        return found


def _key(server: ServerStatus) -> str:
    return f"self-test {server.profile or '-'} {server.model or '-'}"


def sentence(found: SelfTest) -> str:
    """One line for a person."""
    calls = {
        "structured": "It calls tools as it should.",
        "salvaged": "It writes tool calls as text; they are read as well.",
        "none": "It does not call tools.",
    }[found.verdict]
    trouble = found.template_error or (
        "" if found.keeps_prefix is not False else "Its template rewrites earlier turns."
    )
    return " ".join(filter(None, [calls, trouble, found.remedy]))
