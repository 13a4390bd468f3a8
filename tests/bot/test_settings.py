"""The configuration says what is wrong in one sentence, and never a secret."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.budgets import CallBudget, DailyBudgets
from agent.store import open_store
from agent.store.retention import Retention
from agent.trust import Taint
from bot.agent_config import agent_config, instructions_of, retention_of
from bot.settings import ConfigurationError, Settings, check_environment, find_file, keys, load


@pytest.fixture(autouse=True)
def _no_outer_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("VOLTAIRE_CONFIG", raising=False)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return path


def test_defaults_are_those_of_the_reference(tmp_path: Path) -> None:
    settings = load(written(tmp_path, ""))
    sandbox = settings.agent.sandbox
    assert (sandbox.memory_mib, sandbox.pids, sandbox.disk_mib, sandbox.files) == (
        2048,
        256,
        1024,
        50_000,
    )
    assert (sandbox.command_seconds, sandbox.output_kib, sandbox.network) == (120, 8, False)
    assert (settings.agent.max_tool_calls, settings.agent.turn_seconds) == (24, 1800)
    assert (settings.backend.kind, settings.backend.profile) == ("managed", "pocket")
    assert settings.backend.url == ["http://127.0.0.1:8080", "http://127.0.0.1:9931"]


WRONG = {
    "unknown key": ("[agent.sandbox]\nmemory_mb = 3", "Unknown key agent.sandbox.memory_mb in FILE. Did you mean agent.sandbox.memory_mib?"),
    "unknown section": ("[telegrm]\ntoken = '1:x'", "Unknown key telegrm in FILE. Did you mean telegram?"),
    "unknown in a named table": ("[agent.repos.web]\npath = '/x'\nwrit = true", "Unknown key agent.repos.web.writ in FILE. Did you mean write?"),
    "missing": ("[agent.repos.web]\nwrite = true", "agent.repos.web.path is missing in FILE."),
    "wrong kind": ("[agent]\nmax_tool_calls = 'x'", "agent.max_tool_calls in FILE: Input should be a valid integer, unable to parse string as an integer (it is 'x')."),
    "zone": ("[agent]\ntimezone = 'Mars'", "agent.timezone in FILE: not a time zone of this machine, such as Europe/Paris (it is 'Mars')."),
    "secret of a wrong kind": ("[telegram]\ntoken = 5551234", "telegram.token in FILE: Input should be a valid string."),
    "host": ("[agent.sandbox]\nallow_hosts = ['https://a.org']", "agent.sandbox.allow_hosts in FILE: 'https://a.org' is no host such as docs.python.org, git.example.org:8443 or POST api.example.org/v1/, without http:// (it is ['https://a.org'])."),
    "language": ("[telegram]\nlanguage = 'tlh'", "telegram.language in FILE: not one of en, de, es, fr, ru, zh (it is 'tlh')."),
    "language in Matrix": ("[matrix]\nlanguage = 'auto'", "matrix.language in FILE: not one of en, de, es, fr, ru, zh (it is 'auto')."),
    "time": ("[[backend.schedule]]\nat = '25:00'\nprofile = 'a'", "backend.schedule.0.at in FILE: String should match pattern '^([01]\\d|2[0-3]):[0-5]\\d$' (it is '25:00')."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_told_in_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert str(caught.value) == sentence.replace("FILE", str(path))


def test_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "[backend]\nurl = 'http://a'\n[telegram]\nowners = [1]")
    monkeypatch.setenv("VOLTAIRE_BACKEND__URL", "http://b")
    monkeypatch.setenv("VOLTAIRE_TELEGRAM__ALLOW", "[2, -3]")
    settings = load(path)
    assert settings.backend.url == ["http://b"]
    assert (settings.telegram.owners, settings.telegram.allow) == ([1], [2, -3])


def test_an_unknown_variable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOLTAIRE_BACKEN__URL", "x")
    with pytest.raises(ConfigurationError, match="Did you mean VOLTAIRE_BACKEND__URL?"):
        load(written(tmp_path, ""))


@pytest.mark.parametrize("key", [key for key in keys() if key.startswith("agent.") and "*." in key])
def test_a_section_with_a_name_of_its_own_is_set_by_variables_too(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("VOLTAIRE_" + key.replace("*", "own").replace(".", "__").upper(), "x")
    check_environment()


def test_token_comes_from_its_file_or_a_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "telegram-token").write_text("12:abc\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert load(written(tmp_path, "")).telegram.token.get_secret_value() == "12:abc"
    (tmp_path / "t").write_text("34:def\n")
    path = written(tmp_path, f"[telegram]\ntoken_file = '{tmp_path}/t'")
    assert load(path).telegram.token.get_secret_value() == "34:def"
    assert "34:def" not in repr(load(path))


def test_files_are_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = tmp_path / "none" / "voltaire" / "config.toml"
    user.parent.mkdir(parents=True)
    user.write_text("")
    assert find_file(None) == user
    monkeypatch.setenv("VOLTAIRE_CONFIG", "/named.toml")
    assert find_file(None) == Path("/named.toml")
    assert find_file(Path("/given.toml")) == Path("/given.toml")


def test_what_is_kept_is_the_owners_choice(tmp_path: Path) -> None:
    assert retention_of(load(written(tmp_path, ""))) == Retention()
    text = "[state]\nkeep_days = 90\nrecords_days = 7\nusage_days = 0"
    kept = retention_of(load(written(tmp_path, text)))
    assert kept == Retention(transcript=90, records=7, usage=0)


READ = """
import os, sys; from pathlib import Path; from bot.settings import load
load(None)  # what is imported late comes from where others may not read
if os.geteuid() == 0: os.seteuid(12345)
telegram = load(Path(sys.argv[1])).telegram
print(telegram.token.get_secret_value() or f"none in {telegram.token_file}")
"""


def test_a_service_that_may_not_read_the_token_file_goes_without_or_by_its_credential() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)
        path = written(place, f"[telegram]\ntoken_file = '{place}/t'")
        path.chmod(0o644)
        (place / "t").write_text("1:secret")
        (place / "t").chmod(0)
        (place / "telegram-token").write_text("1:credential")
        plain = {k: v for k, v in os.environ.items() if not k.startswith("VOLTAIRE_")}
        plain["XDG_CONFIG_HOME"] = folder
        told = [
            subprocess.run(
                [sys.executable, "-c", READ, path],
                env={**plain, **more},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for more in ({}, {"CREDENTIALS_DIRECTORY": folder})
        ]
        assert told == [f"none in {place}/t\n", "1:credential\n"]


@pytest.mark.parametrize("value", ["0", '"none"'])
async def test_a_budget_without_limit(tmp_path: Path, value: str) -> None:
    names = ("calls", "out_mib", "new_hosts", "files", "jobs")
    text = "\n".join(["[agent.budgets]", *(f"{name} = {value}" for name in names)])
    limits = agent_config(load(written(tmp_path, text))).budgets
    assert limits == dict.fromkeys(("calls", "bytes", "hosts", "files", "jobs"), 0)
    async with open_store(tmp_path / "v.db") as store:
        budgets = DailyBudgets(store.budgets, limits)
        call = CallBudget(budgets, "tg:1", nobody_is_asked, "a call")
        for _ in range(3):
            await call.reserve({"calls": 10**6, "files": 10**6, "jobs": 10**6})
            await call.sends(1 << 30)
        assert await budgets.half_used("tg:1") == []


async def nobody_is_asked(what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
    raise AssertionError(what)


def test_a_budget_that_is_neither_number_nor_none(tmp_path: Path) -> None:
    for value in ('"lots"', "-1", "1.5"):
        with pytest.raises(ConfigurationError, match="agent.budgets.calls"):
            load(written(tmp_path, f"[agent.budgets]\ncalls = {value}"))


def test_instructions_are_a_short_text(tmp_path: Path) -> None:
    file = tmp_path / "orders.md"
    settings = Settings(agent={"instructions": file})
    with pytest.raises(ConfigurationError, match="agent.instructions: .* cannot be read: No such"):
        instructions_of(settings)
    file.write_text("é" * 601, "utf-8")
    with pytest.raises(ConfigurationError, match=r"agent.instructions: .* has 1,202 bytes"):
        instructions_of(settings)
    file.write_text(" " + "é" * 600 + "\n", "utf-8")
    assert instructions_of(settings) == "é" * 600
    file.write_text("\ufeffBe brief.\r\n")  # as Windows' editors save it
    assert instructions_of(settings) == "Be brief."
