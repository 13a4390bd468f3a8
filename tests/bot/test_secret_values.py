"""Which secrets a configuration holds or names, and that what they are made into knows them."""

import logging
from pathlib import Path

import pytest
from pydantic import BaseModel, SecretStr

from agent.leaks import Leak
from backend.client import BackendClient
from backend.protocol import Phrase
from bot.agent_config import open_agent
from bot.secret_values import secret_values
from bot.settings import BackendSection, Settings, StateSection, TelegramSection, load
from fakes.words import saying

TOKEN = "7311804495:AAHk3-9xTqLr_0vBwZyE2mNcD8sUuPfGa1o"


class Server(BaseModel):
    url: str = ""
    env_file: str = ""


class Matrix(BaseModel):
    password_file: Path | None = None
    keys: list[SecretStr] = []
    servers: dict[str, Server] = {}


def test_every_kind_of_setting_that_holds_a_secret(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("correct horse\n")
    (tmp_path / "env").write_text(
        "# a comment\nexport API_TOKEN='tok-1 2'\nPORT=8080\nURL=https://example.org/v1/2024\n"
        "OTHER=9f8e7d6c5b4a39281706abcd\nPASSWORD = pa55\nTZ=Europe/Paris\nempty=\n"
    )
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials" / "telegram-token").write_text(TOKEN)
    (tmp_path / "credentials" / "binary").write_bytes(b"\xff\xfe")
    matrix = Matrix(
        password_file=tmp_path / "password",
        keys=[SecretStr("one"), SecretStr("two")],
        servers={
            "a": Server(env_file=str(tmp_path / "env"), url="https://me:s%40cret@host/x?a@b"),
            "b": Server(env_file=str(tmp_path / "none"), url="https://key@host/"),
            "c": Server(url="mail me@example.org"),
        },
    )
    assert secret_values(matrix, {"CREDENTIALS_DIRECTORY": str(tmp_path / "credentials")}) == {
        "password_file": "correct horse",
        "keys.1": "one",
        "keys.2": "two",
        "servers.a.url": "s@cret",
        "servers.a.env_file: API_TOKEN": "tok-1 2",
        "servers.a.env_file: OTHER": "9f8e7d6c5b4a39281706abcd",
        "servers.a.env_file: PASSWORD": "pa55",
        "servers.b.url": "key",
        "credential telegram-token": TOKEN,
    }


def test_a_token_from_a_file_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "c.toml").write_text(
        f'[telegram]\ntoken_file = "{tmp_path}/token"\n[backend]\napi_key = "sk-abc12345"\n'
        'url = ["http://u:pass-77-word@10.0.0.1:8080"]\nlocal_key = "lk-abc12345"\n'
    )
    assert secret_values(load(tmp_path / "c.toml"), {}) == {
        "telegram.token": TOKEN,
        "backend.url.1": "pass-77-word",
        "backend.api_key": "sk-abc12345",
        "backend.local_key": "lk-abc12345",
    }


async def test_the_agent_knows_the_secrets_and_no_log_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = Settings(
        state=StateSection(dir=tmp_path),
        telegram=TelegramSection(token=SecretStr(TOKEN)),
        backend=BackendSection(api_key=SecretStr("hush-9")),
    )
    async with open_agent(settings, BackendClient(tmp_path / "none.sock")) as agent:
        leaks = (await agent.tool_context("cli")).leaks
        assert leaks.find(TOKEN[::-1]) == Leak(Phrase("the secret telegram.token"), secret=True)
    assert caplog.text == saying("too plain", ": backend.api_key")
    assert TOKEN not in caplog.text
    assert "hush-9" not in caplog.text
