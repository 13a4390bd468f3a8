"""Figures for Prometheus: what happened since the start, what is now, in base units, and nothing that can act."""

import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.errors import AgentError
from agent.store.terms import add_functions
from backend.client import BackendClient
from bot.metrics import serve_metrics
from bot.settings import Settings
from fakes.page_state import backend_with_card, fill_state, seem_running

DASHBOARD = Path("docs/grafana.json")
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def settings_of(folder: Path, listen: str = "127.0.0.1:0") -> Settings:
    return Settings(
        state={"dir": folder},
        backend={"socket": str(folder / "b.sock")},
        metrics={"listen": listen},
    )


@asynccontextmanager
async def scraped(folder: Path) -> AsyncIterator[str]:
    async with (
        backend_with_card(folder / "b.sock"),
        BackendClient(folder / "b.sock") as backend,
        serve_metrics(settings_of(folder), backend) as address,
    ):
        yield address


async def text_of(address: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as http, http.get(address, headers=headers) as answer:
        return answer.status, await answer.text()


async def figures(address: str) -> Figures:
    status, text = await text_of(address)
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(found: Figures, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def run(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "voltaire.db")) as db, db:
        add_functions(db)
        for statement in statements:
            db.execute(statement)


async def test_what_is_and_what_has_happened(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=20)
    seem_running(tmp_path)
    async with scraped(tmp_path) as address:
        before = await figures(address)
        assert of(before, "voltaire_inbox_messages") == 2  # one of them in work
        assert of(before, "voltaire_outbox_messages", state="uncertain") == 1
        assert of(before, "voltaire_turns_open") == of(before, "voltaire_questions") == 1
        assert of(before, "voltaire_jobs") == 3 and of(before, "voltaire_chats") == 3
        assert of(before, "voltaire_listening") == of(before, "voltaire_up") == 1
        assert of(before, "voltaire_frozen") == 0
        assert of(before, "voltaire_gpu_memory_used_bytes", gpu="0") == 14820 * 2**20
        assert of(before, "voltaire_gpu_clock_hertz", gpu="0") == 1312e6
        assert of(before, "voltaire_time_to_first_token_seconds") == pytest.approx(0.42)
        size = sum(path.stat().st_size for path in tmp_path.glob("voltaire.db*"))
        assert of(before, "voltaire_database_bytes") == size
        # what was there before the start is not counted
        assert not [
            key for key in before if key[0] in ("voltaire_turns_total", "voltaire_tokens_total")
        ]
        run(
            tmp_path,
            "UPDATE turns SET state = 'done', reason = 'cancelled', ended_at = started_at + 7,"
            " started_at = started_at - 100 WHERE id = 'open'",
            "UPDATE turns SET ended_at = started_at + 7 WHERE id = 'open'",
            "INSERT INTO transcript (conversation, position, turn, role, text, extra, at, origin)"
            " VALUES (1, 1000001, 'open', 'tool', 'out', '{\"name\": \"bash\"}', 1, 'person')",
            "INSERT INTO usage (chat, conversation, turn, prompt_tokens, cached_tokens, new_tokens,"
            " completion_tokens, reread, at) VALUES ('tg:111', 1, 'open', 1000, 900, 60, 50, 40, 1)",
        )
        after = await figures(address)
        assert of(after, "voltaire_turns_total", reason="cancelled") == 1
        assert of(after, "voltaire_turn_duration_seconds_sum") == pytest.approx(7)
        assert of(after, "voltaire_tool_calls_total", tool="bash") == 1
        kinds = ("cached", "read", "reread", "written")
        tokens = [of(after, "voltaire_tokens_total", kind=k, purpose="turn") for k in kinds]
        assert tokens == [900, 60, 40, 50]
        parts = {
            dict(key[1])["part"]: n
            for key, n in after.items()
            if key[0] == "voltaire_turn_part_seconds_total"
        }
        assert parts["approvals"] > 0 and set(parts) >= {"waiting", "reading", "writing", "tools"}
        run(tmp_path, "DELETE FROM usage", "DELETE FROM turns WHERE id = 'open'")
        again = await figures(address)
        for key, value in after.items():  # counters never fall, and nothing counts twice
            if key[0].startswith("voltaire_") and key[0].endswith("_total"):
                assert again[key] == value


async def test_a_model_that_makes_up_tools_makes_no_more_names(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with scraped(tmp_path) as address:
        names = ["bash", *(f"made_up_{n}" for n in range(80)), 'a"b\\nc', "x" * 500]
        run(
            tmp_path,
            "UPDATE turns SET state = 'done', reason = 'done', ended_at = 2, started_at = 1 WHERE id = 'open'",
            *(
                "INSERT INTO transcript (conversation, position, turn, role, text, extra, at, origin) VALUES"
                f" (1, {2000000 + n}, 'open', 'tool', '', '{json.dumps({'name': name})}', 1, 'person')"
                for n, name in enumerate(names)
            ),
        )
        found = await figures(address)
        tools = {
            dict(key[1])["tool"]: n
            for key, n in found.items()
            if key[0] == "voltaire_tool_calls_total"
        }
        assert len(tools) <= 61 and sum(tools.values()) == len(names) and tools["other"] >= 22


async def test_without_a_backend_the_bot_is_told_of(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with (
        BackendClient(tmp_path / "b.sock") as backend,
        serve_metrics(settings_of(tmp_path), backend) as address,
    ):
        found = await figures(address)
        assert of(found, "voltaire_up") == 0 and of(found, "voltaire_jobs") == 3
        assert of(found, "voltaire_listening") is None


async def test_browsers_get_nothing(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    async with scraped(tmp_path) as address:
        assert (await text_of(address, Host="rebound.example"))[0] == 403
        assert (await text_of(address, Host="[x"))[0] == 403
        assert (await text_of(address, Origin="https://evil.example"))[0] == 403
        assert (await text_of(address.replace("/metrics", "/")))[0] == 404
        port = address.rpartition(":")[2].partition("/")[0]
        with pytest.raises(AgentError, match="metrics.listen, 127.0.0.1:.*in use"):
            settings = settings_of(tmp_path, f"127.0.0.1:{port}")
            async with (
                BackendClient(tmp_path / "b.sock") as backend,
                serve_metrics(settings, backend),
            ):
                pass


async def test_the_dashboard_names_what_is_there(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=3)
    seem_running(tmp_path)
    async with scraped(tmp_path) as address:
        _, text = await text_of(address)
    known = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    known |= {f"{name}_bucket" for name in known}
    expressions = [
        target["expr"]
        for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]
        for target in panel.get("targets", ())
    ]
    assert len(expressions) > 12
    named = {
        name for each in expressions for name in re.findall(r"\b(?:voltaire|process)_\w+", each)
    }
    assert named - known == set()
