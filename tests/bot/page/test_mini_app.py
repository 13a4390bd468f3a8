"""The page inside of Telegram: it opens for an owner whom Telegram has signed for, and for nobody else."""

import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import pytest

from backend.client import BackendClient
from bot.cli.page import make_change, talk
from bot.cli.status import status_json
from bot.page.access import SignInRefused, TelegramSignIn
from bot.page.server import serve_page
from bot.settings import Settings
from fakes.page_state import fill_state

TOKEN = "123456:a-token-of-the-bot"
URL = "https://voltaire.example.org"
NOW = 1_800_000_000.0
TIM: Mapping[str, Any] = {"id": 111, "first_name": "Tim & Söhne", "username": "tim"}


def signed(
    user: object = TIM,
    at: float = NOW,
    token: str = TOKEN,
    changed: Mapping[str, str] | None = None,
) -> str:
    """What Telegram gives a mini app, by the description of core.telegram.org."""
    fields = {
        "query_id": "AAF",
        "user": json.dumps(user, ensure_ascii=False),
        "auth_date": str(int(at)),
        "signature": "of-another-kind",
    }
    lines = "\n".join(f"{name}={value}" for name, value in sorted(fields.items()))
    key = hmac.new(b"WebAppData", token.encode(), hashlib.sha256).digest()
    digest = hmac.new(key, lines.encode(), hashlib.sha256).hexdigest()
    return urlencode({**fields, "hash": digest, **(changed or {})})


async def is_owner(user: str) -> bool:
    return user == "111"


def sign_in(token: str = TOKEN) -> TelegramSignIn:
    return TelegramSignIn(token, is_owner, lambda: NOW)


async def test_an_owner_comes_in_once() -> None:
    door = sign_in()
    await door.check(signed())
    with pytest.raises(SignInRefused, match="already been used"):
        await door.check(signed())
    await door.check(signed(at=NOW - 10))


@pytest.mark.parametrize(
    "given",
    [
        signed({**TIM, "id": 222}),
        signed(at=NOW - 301),
        signed(at=NOW + 61),
        signed(token="123456:of-another-bot"),
        signed(changed={"user": json.dumps({**TIM, "id": 112})}),
        signed(changed={"hash": "0" * 64}),
        signed(changed={"hash": ""}),
        signed(changed={"hash": "é" * 64}),
        signed({"id": True}),
        signed({"id": "111"}),
        signed([111]),
        f"user={json.dumps({'id': 222})}&{signed()}",
        f"{signed()}&extra=1",
        "",
        "&&&",
        "x" * 100_000,
        "%ff=%fe",
    ],
    ids=[
        *(
            "member",
            "stale",
            "future",
            "other-bot",
            "other-user",
            "wrong",
            "empty-hash",
            "not-ascii",
        ),
        *("true", "word", "list", "twice", "more", "nothing", "broken", "long", "not-utf8"),
    ],
)
async def test_nobody_else_does(given: str) -> None:
    with pytest.raises(SignInRefused):
        await sign_in().check(given)


async def test_a_bot_without_a_token_signs_nobody_in() -> None:
    with pytest.raises(SignInRefused):
        await sign_in("").check(signed(token=""))


async def post(
    http: aiohttp.ClientSession, origin: str, body: str, **headers: str
) -> aiohttp.ClientResponse:
    given = {"Host": "voltaire.example.org", "Origin": URL, "Content-Type": "application/json"}
    return await http.post(f"{origin}/api/telegram", data=body, headers={**given, **headers})


async def test_a_session_is_what_it_gives(tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=1)
    settings = Settings(
        state={"dir": tmp_path},
        backend={"socket": str(tmp_path / "b.sock")},
        telegram={"owners": [111], "token": TOKEN},
        page={"url": URL},
    )
    fresh = signed(at=time.time())
    async with (
        BackendClient(tmp_path / "b.sock") as backend,
        serve_page(
            settings,
            backend,
            status_json,
            partial(make_change, settings),
            partial(talk, settings, backend),
            "127.0.0.1:0",
        ) as page,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
    ):
        for headers in (
            {"Origin": "https://evil.example"},
            {"Host": "evil.example"},
            {"Content-Type": "text/plain"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            assert (await post(http, page.origin, fresh, **headers)).status == 403
        other, kind = signed({"id": 222}, time.time()), "application/json; charset={}"
        assert (await post(http, page.origin, other)).status == 403
        for charset in ("hex", "punycode", "nonsense"):
            given = {"Content-Type": kind.format(charset)}
            assert (await post(http, page.origin, other, **given)).status == 403
        answer = await post(http, page.origin, fresh)
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert all(word in cookie for word in ("HttpOnly", "SameSite=Strict", "Secure"))
        headers = {"Host": "voltaire.example.org", "Cookie": cookie.partition(";")[0]}
        async with http.get(f"{page.origin}/api/session", headers=headers) as session:
            assert session.status == 200 and (await answer.json())["token"]
        assert (await post(http, page.origin, fresh)).status == 403
