"""The facts of `voltaire status` and of the bot's /status: gathered once, for both."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agent.store import Store
from backend.client import BackendClient, BackendUnavailable
from backend.protocol import ServerStatus, Speed, Status
from bot import presence

PRESENCE = Path("run") / "bot.json"


async def gather(state: Path, store: Store | None, backend: BackendClient) -> dict[str, Any]:
    """The JSON form of the contract. What is not known is None."""
    found = await _backend(backend)
    here = presence.read(state / PRESENCE)
    return {
        "version": version("voltaire"),
        "uptime_s": found.uptime_s if found else None,
        "backend": _server(found),
        "speed": (found.speed if found else Speed()).model_dump(
            include={"decode_tok_s", "prefill_tok_s", "ttft_ms", "cache_hit", "draft_acceptance"}
        ),
        "gpus": [gpu.model_dump(mode="json") for gpu in found.gpus] if found else [],
        "bot": await _bot(here, store),
        "chats": await store.chats.count() if store else 0,
        "jobs": await _jobs(store),
        "memory_mib": _memory(here, found),
    }


async def _backend(backend: BackendClient) -> Status | None:
    try:
        return await backend.status()
    except BackendUnavailable:
        return None


def _server(found: Status | None) -> dict[str, Any]:
    server = found.backend if found else ServerStatus(state="stopped")
    fields = server.model_dump(mode="json")
    if found is None:
        fields |= {"kind": None, "restarts": None}
    return fields


async def _bot(here: presence.Presence | None, store: Store | None) -> dict[str, Any]:
    counts: Mapping[Any, int] = await store.outbox.counts() if store else {}
    return {
        "username": here.username if here else None,
        "polling_ok": here.polling_ok if here else None,
        "last_update_at": here.last_update_at.isoformat() if here and here.last_update_at else None,
        "problem": here.problem if here else None,
        "inbox_waiting": await store.inbox.count_waiting() if store else 0,
        "outbox_waiting": counts.get("waiting", 0) + counts.get("sending", 0),
        "outbox_uncertain": counts.get("uncertain", 0),
        "outbox_failed": counts.get("failed", 0),
    }


async def _jobs(store: Store | None) -> dict[str, Any]:
    active, due = await store.jobs.active_and_next() if store else (0, None)
    return {"active": active, "next_at": due and datetime.fromtimestamp(due, UTC).isoformat()}


def _memory(here: presence.Presence | None, found: Status | None) -> dict[str, float | None]:
    return {
        "bot": presence.resident_mib(here.pid) if here else None,
        "backend": found.memory_mib.backend if found else None,
        "server": found.memory_mib.server if found else None,
    }
