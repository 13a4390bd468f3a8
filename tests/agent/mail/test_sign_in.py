"""A mail account to which an owner signs in on another device; Dovecot asks the authorization server about each token."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agent.errors import ToolError
from agent.mail.account import AccountConfig, tokens_file, try_account
from agent.mail.oauth import Tokens, access_token, sign_in
from bot.cli.command import Failed, Misused
from bot.cli.doctor_machine import mail as doctor
from bot.cli.setup import sign_in_to_mail
from bot.settings import MailSection, Settings
from fakes.device_sign_in import DeviceSignIn, device_sign_in
from fakes.mail_server import PASSWORD, USER, Dovecot
from fakes.mails import plain
from fakes.patience import SECONDS
from fakes.words import saying
from tests.agent.mail.conftest import Mails, mail


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DeviceSignIn]:
    monkeypatch.setattr("agent.mail.oauth.SLOWER", 0.01)
    async with device_sign_in(USER) as served:
        yield served


def account(server: DeviceSignIn, tmp_path: Path) -> AccountConfig:
    return AccountConfig("work", imap="imap://127.0.0.1:1", user=USER, **server.section(tmp_path))


async def signed_in(config: AccountConfig, file: Path) -> list[tuple[str, str]]:
    shown: list[tuple[str, str]] = []
    await sign_in(config, file, lambda *words: shown.append(words))
    return shown


async def test_an_owner_signs_in_and_letters_are_read_and_sent(
    tmp_path: Path, mails: Mails, server: DeviceSignIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    dovecot = Dovecot(mails.relay.port)
    dovecot.more = server.dovecot(dovecot.folder)
    with dovecot.running():
        dovecot.deliver([plain("one", "tea")])
        config = dovecot.config(**server.section(tmp_path))
        file = tokens_file(mails.state / "mail", "work")
        server.answers = ["authorization_pending", "slow_down", "authorization_pending"]
        assert await signed_in(config, file) == [("https://login.example/device", "WDJB-MJHT")]
        assert server.answers == []
        assert file.stat().st_mode & 0o777 == 0o600
        fields: dict[str, Any] = {
            **server.section(tmp_path),
            "user": config.user,
            "imap": config.imap,
            "smtp": config.smtp,
        }
        box = await mails.open(**fields)
        assert await mail(box, "list") == saying("one")
        assert await mail(box, "send --to bob@example.com --subject Tea Yes") == "It was sent."
        assert await try_account(config, file.parent) == f"{USER} is signed in, and can send."
        server.access.clear()
        with pytest.raises(ToolError, match="mail server of work fails") as refused:
            await try_account(config, file.parent)
    told = f"{caplog.text} {refused.value} {box.asked}"
    assert [secret for secret in server.issued if secret and secret in told] == []


async def test_tokens_are_renewed_before_their_end_and_a_refusal_is_told(
    tmp_path: Path, server: DeviceSignIn
) -> None:
    config, file = account(server, tmp_path), tmp_path / "mail" / "work.tokens"
    with pytest.raises(ToolError, match="Nobody has signed in .*voltaire setup mail work"):
        await access_token(config, file)
    server.seconds = 30
    await signed_in(config, file)
    first = await access_token(config, file)
    server.seconds = 3600
    second = await access_token(config, file)
    assert len({first, second} & server.access) == 2  # the first was about to end
    assert await access_token(config, file) == second
    assert [form.get("grant_type") for form in server.forms[-2:]] == ["refresh_token"] * 2
    other = replace(config, token_url=f"http://127.0.0.1:{server.port}/elsewhere")
    with pytest.raises(ToolError, match="Nobody has signed in"):  # of another server
        await access_token(other, file)
    kept = Tokens.model_validate_json(file.read_bytes())
    server.seconds, server.rotates = 0, False
    file.write_text(kept.model_copy(update={"expires_at": 1.0}).model_dump_json())
    third = await access_token(config, file)
    assert third in server.access - {first, second}
    again = Tokens.model_validate_json(file.read_bytes())
    assert (again.access_token, again.refresh_token) == (third, kept.refresh_token)
    server.refuses = "temporarily_unavailable"
    with pytest.raises(ToolError, match="gives no usable answer"):  # it has not ended
        await access_token(config, file)
    server.refuses = "invalid_grant"
    with pytest.raises(ToolError, match=r"has ended \(invalid_grant\): voltaire setup mail work"):
        await access_token(config, file)


async def test_a_sign_in_goes_on_over_faults_of_the_server_until_its_code_ends(
    tmp_path: Path, server: DeviceSignIn
) -> None:
    config, file = account(server, tmp_path), tmp_path / "work.tokens"
    server.answers = ["authorization_pending", "temporarily_unavailable"]
    assert await signed_in(config, file)
    server.answers, server.status = ["authorization_pending", "slow_down"], 200
    assert await signed_in(config, file)
    server.interval, server.expires = 3600, 0.05
    async with asyncio.timeout(SECONDS):
        with pytest.raises(ToolError, match="not entered in time"):
            server.answers = ["authorization_pending"]
            await signed_in(config, file)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("access_denied", "it was refused there"),
        ("expired_token", "the code was not entered in time"),
        ("invalid_scope", "the server says invalid_scope"),
    ],
)
async def test_a_sign_in_that_fails_says_why_and_keeps_nothing(
    tmp_path: Path, server: DeviceSignIn, answer: str, told: str
) -> None:
    config, file = account(server, tmp_path), tmp_path / "work.tokens"
    server.answers = ["authorization_pending", answer]
    with pytest.raises(ToolError, match=f"account work: {told}"):
        await signed_in(config, file)
    server.answers, server.expires = [], 0
    with pytest.raises(ToolError, match="not entered in time"):
        await signed_in(config, file)
    with pytest.raises(ToolError, match=r"cannot be reached \(Connection refused\)"):
        await signed_in(replace(config, device_url="http://127.0.0.1:1/"), file)
    with pytest.raises(ToolError, match="invalid_client"):
        await signed_in(replace(config, client_id="another"), file)
    with pytest.raises(ToolError, match="no usable answer|says 404"):
        await signed_in(replace(config, device_url=f"http://127.0.0.1:{server.port}/x"), file)
    assert not file.exists()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "password_file or client_id"),
        ({"password_file": "p", "client_id": "c"}, "not both"),
        ({"client_id": "c"}, "belong together"),
        ({"client_id": "c", "token_url": "http://a.example/t"}, "not an address"),
    ],
)
def test_what_is_no_section(fields: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        MailSection(imap="imaps://a.example", user="x", **fields)


async def test_doctor_and_setup_name_each_account(
    tmp_path: Path,
    dovecot: Dovecot,
    server: DeviceSignIn,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("hunter2-hunter2")
    ours = dovecot.section()
    settings = Settings(
        state={"dir": tmp_path / "state"},
        agent={
            "mail": {
                "good": ours,
                "reads": {**ours, "smtp": ""},
                "wrong": {**ours, "password_file": str(wrong)},
                "away": {**ours, "imap": "imaps://127.0.0.1:1"},
                "silent": {**ours, "smtp": "smtp://127.0.0.1:1"},
                "bare": {**ours, "imap": f"imap://127.0.0.2:{dovecot.imap}"},
                "folder": {**ours, "folders": ["Nowhere"]},
                "signed": {**ours, **server.section(tmp_path)},
            }
        },
    )
    found = {each.detail.partition(":")[0]: each for each in await doctor(settings)}
    told = {name: (each.status, each.detail.partition(": ")[2]) for name, each in found.items()}
    assert told["good"] == ("pass", f"{dovecot.user} is signed in, and can send.")
    assert told["reads"] == ("pass", f"{dovecot.user} is signed in; it cannot send.")
    for name, why in {
        "wrong": "AUTHENTICATIONFAILED",
        "away": "refused",
        "silent": "server for letters of silent fails",
        "bare": "TLS not supported",
        "folder": "Nowhere",
        "signed": "voltaire setup mail signed",
    }.items():
        assert told[name] == ("fail", saying(why)), name
    assert "hunter2" not in str(found) and PASSWORD not in str(found)

    await sign_in_to_mail(settings, "signed")
    said = capsys.readouterr().out
    assert said == saying("Open https://login.example/device on any device, and enter WDJB-MJHT")
    assert [secret for secret in server.issued if secret and secret in said] == []
    server.answers = ["access_denied"]
    with pytest.raises(Failed, match="refused there"):
        await sign_in_to_mail(settings, "signed")
    for name in ("good", "nobody"):
        with pytest.raises(Misused, match="no client_id"):
            await sign_in_to_mail(settings, name)

    async def missing(*_: object) -> str:
        raise ToolError("The package for mail is not installed; the owner can install it.")

    monkeypatch.setattr("agent.mail.account.connections", missing)
    assert all("not installed" in each.detail for each in await doctor(settings))
