"""What is done beside the chats is in the ledger: connections, files of strangers, keys, the terminal."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import AgentError
from agent.memory.search import EmbeddingsUnavailable
from agent.sandbox.hosts import Hosts
from agent.sandbox.observer import Observer
from agent.sandbox.sandbox import Sandboxes, open_sandboxes
from agent.shell.registry import scripts
from agent.store import Store, open_store
from agent.store.errors import StoreFull
from agent.tools.bash import bash
from agent.voice.speech_to_text import ServerRecognizer
from agent.web.search import SearchRefused
from backend.client import BackendClient
from backend.protocol import Endpoint
from bot.agent_config import open_agent
from bot.cli import exit_code
from bot.service import record_configuration
from bot.settings import (
    AgentSection,
    BackendSection,
    Settings,
    StateSection,
    WebSection,
    load,
)
from fakes.sandbox_box import LIMITS, Box
from fakes.tool_servers import FakeServers, mcp
from fakes.web_server import site

VOLTAIRE = Path(sys.executable).with_name("voltaire")


async def of_kind(store: Store, kind: str) -> list[tuple[str, dict[str, Any]]]:
    assert not (await store.ledger.verify()).problem
    return [(r.chat, json.loads(r.facts)) for r in await store.ledger.rows() if r.kind == kind]


@asynccontextmanager
async def boxed(folder: Path, store: Store, hosts: Hosts) -> AsyncIterator[Box]:
    async with open_sandboxes(
        folder,
        limits=LIMITS,
        repos=(),
        zone="UTC",
        report=lambda: "",
        hosts=hosts,
        observe=partial(Observer, store.ledger),
        programs=scripts(),
    ) as sandboxes:
        yield Box(await sandboxes.of("tg:1"))


async def test_connections_of_commands_and_what_they_left(tmp_path: Path) -> None:
    async with (
        site() as web,
        open_store(tmp_path / "voltaire.db") as store,
        boxed(tmp_path, store, web.hosts()) as box,
    ):
        get = f"curl -s http://{web.host}/"
        await box.use(
            bash, command=f"{get}; {get}again -o page; {get.replace('curl', 'curl -m 5')}"
        )
        await box.use(bash, command="for n in 1 2 3; do curl -s http://elsewhere.test:81/$n; done")
        connections = await of_kind(store, "connection")
        taints = await of_kind(store, "taint")
    elsewhere = "elsewhere.test:81"
    refused = f"{elsewhere} is not among the hosts that the owner allows."
    assert connections == [
        ("tg:1", {"host": web.host}),
        ("tg:1", {"host": elsewhere, "refused": refused}),
    ]
    assert taints == [("tg:1", {"what": "files", "source": web.host})]


async def test_a_connection_that_cannot_be_recorded_is_not_made(tmp_path: Path) -> None:
    async with site() as web, open_store(tmp_path / "voltaire.db") as store:
        [(pages,)] = await store.database.all("PRAGMA page_count")
        async with store.database.without_transaction() as tx:  # a full disk
            await tx.run(f"PRAGMA max_page_count = {pages}")
        for size in (500, 20, 0):
            with pytest.raises(StoreFull):
                while True:
                    await store.ledger.record("admin", act="x" * size)
        async with boxed(tmp_path, store, web.hosts()) as box:
            text = await box.text(bash, command=f"curl -s http://{web.host}/")
    assert "cannot be recorded" in text
    assert web.seen == []


async def test_the_owners_key_of_a_model_server(tmp_path: Path) -> None:
    settings = Settings(
        state=StateSection(dir=tmp_path),
        backend=BackendSection(kind="external", api_key=SecretStr("k3y")),
    )

    class Backend(BackendClient):
        async def endpoint(self, *, vision: bool = False) -> Endpoint:
            return Endpoint(url="http://127.0.0.1:9", api_key="k3y", n_ctx=8192, kind="external")

    async with (
        open_store(tmp_path / "voltaire.db") as store,
        open_agent(settings, Backend(tmp_path / "none"), store) as agent,
    ):
        for _ in range(2):
            await agent.model._endpoint()
        assert await of_kind(store, "secret") == [
            ("", {"name": "backend.api_key", "to": "http://127.0.0.1:9"})
        ]


async def test_the_secrets_of_an_mcp_server(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "env").write_text("KEY=of-the-tea-4711\n")
    async with (
        open_store(tmp_path / "voltaire.db") as store,
        boxed(tmp_path / "state", store, Hosts([])) as box,
        AsyncExitStack() as stack,
    ):
        sandboxes = Sandboxes(box.sandbox.config, tmp_path / "state/chats")
        servers = FakeServers(tmp_path / "state", store, sandboxes, stack)
        for _ in range(2):
            await mcp(await servers.open(env_file=str(tmp_path / "env")), "tea say text=x")
        used = await of_kind(store, "secret")
    assert used == [("", {"name": "agent.mcp.tea.env_file", "to": "the program of tea"})]


async def test_skills_that_were_added_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, skill = tmp_path / "s", tmp_path / "tea"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("VOLTAIRE_STATE__DIR", str(state))
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: tea\ndescription: How tea is made.\n---\n")
    async with open_store(state / "voltaire.db") as store:
        for words in (("add", str(skill), "--yes"), ("remove", "tea")):
            process = await asyncio.create_subprocess_exec(VOLTAIRE, "skills", *words)
            assert await process.wait() == 0
        acts = [facts for _, facts in await of_kind(store, "admin")]
    assert [facts.get("added") or facts.get("removed") for facts in acts] == ["tea", "tea"]
    assert len(acts[0]["sha256"]) == 64 and acts[0]["act"] == "skill"


async def test_a_configuration_that_was_changed(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    async with open_store(tmp_path / "voltaire.db") as store:
        for text in ("", "", "[agent]\nmax_tool_calls = 9\n"):
            path.write_text(text)
            await record_configuration(load(path), store)
        changes = await of_kind(store, "admin")
        await record_configuration(Settings(), store)  # without a file
        assert await of_kind(store, "admin") == changes
    assert [facts["act"] for _, facts in changes] == ["configuration", "version", "configuration"]


def test_audit_after_backup_and_restore(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state, file = tmp_path / "s" / "voltaire.db", tmp_path / "b.tar.gz"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    monkeypatch.setenv("VOLTAIRE_STATE__DIR", str(state.parent))
    monkeypatch.setenv("VOLTAIRE_BACKEND__SOCKET", str(tmp_path / "b.sock"))

    def voltaire(*words: str) -> tuple[int, str, str]:
        code = exit_code(list(words))
        return code, *capsys.readouterr()

    async def changed(sql: str = "") -> None:
        async with open_store(state) as store:
            if sql:
                await store.database.execute(sql)
            else:
                await store.ledger.record("admin", "tg:1", act="first")

    asyncio.run(changed())
    assert voltaire("backup", str(file))[0] == 0
    assert voltaire("audit")[1].splitlines()[-1].split()[4:6] == ["-", "act=backup"]
    assert voltaire("restore", "--yes", str(file))[0] == 0
    code, out, err = voltaire("audit")
    assert (code, err) == (0, "")
    assert [line.split()[5] for line in out.splitlines()] == ["act=first", "act=restore"]
    code, out, _ = voltaire("audit", "--json", "--chat", "tg:1", "--since", "1d")
    assert (code, [row["facts"] for row in json.loads(out)]) == (0, [{"act": "first"}])
    code, out, _ = voltaire("audit", "--verify", "--json")
    whole = json.loads(out)
    assert (code, whole["whole"], whole["rows"]) == (0, True, 2)
    assert voltaire("audit", "--verify", whole["head"])[0] == 0
    asyncio.run(changed("DELETE FROM ledger WHERE number = 2"))
    code, _, err = voltaire("audit", "--verify", whole["head"])
    assert (code, "ends at row 1" in err) == (1, True)
    assert voltaire("audit", "--verify")[0] == 0  # only the head shows it
    asyncio.run(changed("UPDATE ledger SET chat = 'tg:2' WHERE number = 1"))
    assert voltaire("audit")[0] == 1
    assert voltaire("audit", "--since", "soon")[0] == 2
    code, _, err = voltaire("audit", "--verify", "1234")
    assert (code, "not whole" in err, "1234 is no head" in err) == (2, False, True)


async def test_passwords_in_the_addresses_of_servers(tmp_path: Path) -> None:
    """They go along with each request; the row has the address without them."""
    url = "http://olga:hunter2@127.0.0.1:9"
    web = WebSection(search_url=url)
    agent_section = AgentSection(embedding_url=f"{url}/v1", transcribe_url=url, web=web)
    backend = BackendSection(kind="external", api_key=SecretStr("k3y"))
    settings = Settings(state=StateSection(dir=tmp_path), agent=agent_section, backend=backend)

    class Backend(BackendClient):
        async def endpoint(self, *, vision: bool = False) -> Endpoint:
            return Endpoint(url=f"{url}/x", api_key="k3y", n_ctx=8192, kind="external")

    async with (
        open_store(tmp_path / "voltaire.db") as store,
        open_agent(settings, Backend(tmp_path / "none"), store) as agent,
    ):
        embedder, engine = agent._embedder, agent.browser("c").engine
        recognizer = await agent.speech_to_text().recognizer()
        assert embedder and engine and isinstance(recognizer, ServerRecognizer)
        for _ in range(2):
            with pytest.raises(EmbeddingsUnavailable):
                await embedder.vectors(["a"], 5.0)
            with pytest.raises(AgentError):
                await recognizer.words(await agent.sandboxes.of("c"), b"RIFF")
            with pytest.raises(SearchRefused):
                await engine.search("tea")
            await agent.model._endpoint()
        here = "http://127.0.0.1:9"
        assert await of_kind(store, "secret") == [
            ("", {"name": "agent.embedding_url", "to": f"{here}/v1"}),
            ("", {"name": "agent.transcribe_url", "to": here}),
            ("", {"name": "agent.web.search_url", "to": here}),
            ("", {"name": "backend.api_key", "to": f"{here}/x"}),
            ("", {"name": "backend.url", "to": f"{here}/x"}),
        ]
