"""voltaire setup with Matrix, with Telegram or without; and nothing of it is left by --remove --purge."""

import asyncio
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.cli.setup import READY_TO_RUN
from bot.matrix.session import only_process
from bot.messaging_apps import AppUnavailable
from bot.setup import SetupError, matrix
from bot.setup.units import UNITS, Installation, SystemdScope, render
from fakes.command_line import start_voltaire
from fakes.homeserver_proxy import HomeserverProxy
from fakes.localgram import Localgram
from fakes.matrix_person import MatrixPerson
from fakes.matrix_running import MatrixScenario
from fakes.patience import SECONDS
from fakes.synapse import PASSWORD, Synapse


async def setup(home: Path, *words: str, said: str = "") -> tuple[int | None, str, str]:
    """`voltaire setup` to its end; `said` are the answers, a line each."""
    folders = {"XDG_CONFIG_HOME": str(home / "c"), "XDG_STATE_HOME": str(home / "s")}
    pipe = asyncio.subprocess.PIPE
    process = await start_voltaire(
        *("--config", str(home / "c" / "voltaire" / "config.toml"), "setup", *words),
        env={**os.environ, **folders},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    out, err = await asyncio.wait_for(process.communicate(said.encode()), SECONDS)
    return process.returncode, out.decode(), err.decode()


def configured(home: Path) -> dict[str, Any]:
    return tomllib.loads((home / "c" / "voltaire" / "config.toml").read_text())


async def answers_as_the_owner(olga: MatrixPerson, bot: str) -> str:
    """The first message of the bot, whose invitation the owner accepts."""
    await olga.until(lambda: olga.client.invited_rooms)
    (room,) = olga.client.invited_rooms
    await olga.client.join(room)
    message = await olga.next(lambda e: e.sender == bot and e.final)
    assert message.encrypted
    return message.body


async def test_matrix_alone_by_options(
    server: Synapse, olga: MatrixPerson, scenario: MatrixScenario, tmp_path: Path
) -> None:
    words = ("--yes", "--no-units", "--homeserver", server.url, "--matrix-user", scenario.account)
    given = ("--matrix-owner", olga.id, "--matrix-groups", "all", "--matrix-password")
    code, _, err = await setup(tmp_path, *words, *given, "wrong")
    assert code == 1 and err.startswith(f"{server.url} refuses the password of {scenario.account}")
    assert err.count("\n") == 1 and not (tmp_path / "c" / "voltaire").exists()

    finished = asyncio.create_task(setup(tmp_path, *words, *given, PASSWORD))
    assert await answers_as_the_owner(olga, scenario.account) == READY_TO_RUN
    code, out, err = await finished
    assert code == 0 and f"Bot: {scenario.account}" in out, err
    config = configured(tmp_path)
    assert config["matrix"] == {
        "user": scenario.account,
        "owners": [olga.id],
        "groups": "all",
        "homeserver": server.url,
    }
    assert "telegram" not in config and PASSWORD not in str(config) + out + err
    session = tmp_path / "s" / "voltaire" / "matrix" / "session.json"
    assert session.stat().st_mode & 0o077 == 0
    before = session.read_text()

    # Once more: what is configured holds, nobody logs in anew, and no password is needed.
    code, _, err = await setup(tmp_path, "--yes", "--no-units")
    assert (code, err, session.read_text()) == (0, "", before)

    # All of it goes, the bot's device at the homeserver included.
    token = json.loads(before)["token"]
    code, out, err = await setup(tmp_path, "--remove", "--purge", "--yes")
    assert code == 0 and "Deleted:" in out, err
    assert not (tmp_path / "c" / "voltaire").exists() and list((tmp_path / "s").iterdir()) == []
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
        http.get(f"{server.url}/_matrix/client/v3/account/whoami") as answer,
    ):
        assert answer.status == 401


@pytest.mark.slow
async def test_its_questions_and_wrong_answers(
    server: Synapse, olga: MatrixPerson, scenario: MatrixScenario, tmp_path: Path
) -> None:
    answers = [
        *("pigeons", "matrix", "voltaire", scenario.account, "http://127.0.0.1:9", server.url),
        *("wrong", PASSWORD, "me", "@nobody:voltaire.test", "some", "mention", "UTC", "pocket"),
    ]
    code, out, err = await setup(
        tmp_path, "--no-units", "--server", "/absent", said="\n".join(answers) + "\n"
    )
    assert (code, err.count("/absent is missing")) == (1, 1), out + err
    for told in (
        "'voltaire' is not a Matrix account",
        "The homeserver http://127.0.0.1:9 cannot be reached",
        "refuses the password",
        "'me' is not a Matrix account",
        "knows no account @nobody:voltaire.test",
        "'some' is none of mention, all and off",
    ):
        assert told in out
    assert configured(tmp_path)["matrix"]["owners"] == ["@nobody:voltaire.test"]
    assert PASSWORD not in out + err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(("--matrix-user", "voltaire"), "is not a Matrix account", id="user"),
        pytest.param(("--matrix-owner", "me"), "is not a Matrix account", id="owner"),
        pytest.param(("--matrix-groups", "some"), "is none of mention", id="groups"),
    ],
)
async def test_a_wrong_option_is_told_before_anything(
    tmp_path: Path, words: tuple[str, str], told: str
) -> None:
    code, _, err = await setup(tmp_path, "--yes", "--homeserver", "http://127.0.0.1:9", *words)
    assert code == 2 and told in err and not (tmp_path / "c" / "voltaire").exists()


@pytest.mark.slow
async def test_a_homeserver_that_is_away_changes_nothing(tmp_path: Path) -> None:
    words = (
        "--homeserver",
        "http://127.0.0.1:9",
        "--matrix-user",
        "@v:x",
        "--matrix-owner",
        "@o:x",
    )
    code, _, err = await setup(tmp_path, "--yes", *words, "--matrix-password", "p")
    assert code == 1 and "cannot be reached" in err and err.count("\n") == 1
    assert not (tmp_path / "c" / "voltaire").exists()


@pytest.mark.slow
async def test_it_joins_a_telegram_that_is_there(
    server: Synapse, olga: MatrixPerson, scenario: MatrixScenario, tmp_path: Path
) -> None:
    async with Localgram("1000001:abc") as gram:
        phone = gram.user("Olga", id=7, started=True)
        telegram = ("--token", "1000001:abc", "--base-url", gram.url, "--owner", "7")
        code, _, err = await setup(tmp_path, "--yes", "--no-units", *telegram)
        assert code == 0, err
        assert (await phone.next_message(seconds=SECONDS)).text == READY_TO_RUN
        words = ("--homeserver", server.url, "--matrix-user", scenario.account)
        more = ("--matrix-owner", olga.id, "--matrix-password", PASSWORD)
        finished = asyncio.create_task(setup(tmp_path, "--yes", "--no-units", *words, *more))
        assert await answers_as_the_owner(olga, scenario.account) == READY_TO_RUN
        code, _, err = await finished
    assert code == 0, err
    assert {"telegram", "matrix"} <= configured(tmp_path).keys()


@pytest.mark.parametrize("root", [True, False], ids=["system", "user"])
def test_units_without_a_telegram_token_ask_for_none(tmp_path: Path, root: bool) -> None:
    scope = SystemdScope(root, tmp_path)
    with_token = Installation(tmp_path / "config.toml", tmp_path / "50%", tmp_path / "state")
    without = Installation(tmp_path / "config.toml", None, tmp_path / "state")
    before, after = render(scope, with_token)[UNITS[1]], render(scope, without)[UNITS[1]]
    assert f"\nLoadCredential=telegram-token:{tmp_path}/50%%\n" in before
    assert "Credential" not in after and "telegram-token" not in after


async def test_a_session_that_the_homeserver_has_ended_is_made_anew(
    scenario: MatrixScenario, proxy: HomeserverProxy, tmp_path: Path
) -> None:
    account = tmp_path, proxy.url, scenario.account
    assert not await matrix.logged_in(*account)
    await matrix.make_session(*account, PASSWORD, "")
    assert await matrix.logged_in(*account)
    session = tmp_path / "matrix" / "session.json"
    before = json.loads(session.read_text())
    gone = {"errcode": "M_UNKNOWN_TOKEN", "error": "Unknown token"}
    proxy.rule(r"GET .*/account/whoami", "refuse", status=401, body=gone)
    assert not await matrix.logged_in(*account)
    await matrix.make_session(*account, PASSWORD, "")
    after = json.loads(session.read_text())
    assert after["device"] != before["device"] and after["token"] not in ("", before["token"])
    proxy.rule(r"GET .*/account/whoami", "refuse", body="<html>")
    with pytest.raises(SetupError, match="answers with an error"):  # nobody logs in anew for that
        await matrix.logged_in(*account)


def test_the_compose_file_of_the_documentation_is_one() -> None:
    text = (Path(__file__).parents[3] / "docs" / "matrix.md").read_text("utf-8")
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    (service,) = compose["services"].values()
    assert service["ports"] == ["127.0.0.1:8008:8008"]
    assert set(service["environment"]) == {"SYNAPSE_SERVER_NAME", "SYNAPSE_REPORT_STATS"}


def test_a_session_is_used_by_one_process(tmp_path: Path) -> None:
    folder, taken = tmp_path / "matrix", pytest.raises(AppUnavailable, match="uses this Matrix")
    with only_process(folder), taken, only_process(folder):
        pass
    with only_process(folder):
        pass
