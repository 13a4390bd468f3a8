"""Signing in to a mail account without a password: the device authorization grant (RFC 8628), and fresh access tokens."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import aiohttp
from pydantic import BaseModel

from agent.aio import no_answer
from agent.bounded_json import PLAIN, bounded_json
from agent.errors import ToolError
from agent.files import replacing
from agent.mail.account import AccountConfig
from agent.mcp.config import read_secret_file
from agent.sandbox.output_buffer import clean

SECONDS = 30.0  # that an authorization server may be silent
SLOWER = 5.0  # seconds more between two questions, once it says slow_down
EARLY = 60.0  # seconds before its end that an access token is renewed
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
SAID = {
    "access_denied": "it was refused there",
    "expired_token": "the code was not entered in time",
}
T = TypeVar("T", bound=BaseModel)


class Code(BaseModel):
    """What the owner enters, and where."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: float
    interval: float = 5.0


class Issued(BaseModel):
    access_token: str
    refresh_token: str = ""
    expires_in: float = 0.0


class Tokens(Issued):
    """As their file has them: they go to the server that issued them alone. `expires_at` is in seconds since the epoch."""

    token_url: str
    client_id: str
    expires_at: float


class Refused(Exception):
    """An authorization server's answer is an error; `str` is its code (RFC 6749, 5.2)."""


async def sign_in(config: AccountConfig, file: Path, show: Callable[[str, str], None]) -> None:
    """Have the owner sign in: `show` gets an address and the code to enter there; the tokens are kept in the file.
    Raises ToolError."""
    try:
        begun = await post_form(config, config.device_url, Code, scope=config.scope)
        show(clean(begun.verification_uri), clean(begun.user_code))
        form = {"grant_type": DEVICE, "device_code": begun.device_code}
        interval, end = begun.interval, time.monotonic() + begun.expires_in
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(interval, left))
            try:
                save_tokens(config, file, await post_form(config, config.token_url, Issued, **form))
                return
            except Refused as error:
                if str(error) not in ("authorization_pending", "slow_down"):
                    raise
                interval += SLOWER if str(error) == "slow_down" else 0.0
            except ToolError:  # of the network: it is asked again
                interval += SLOWER
        raise Refused("expired_token")
    except Refused as error:
        why = SAID.get(str(error), f"the server says {error}")
        told = f"Nobody is signed in to the mail account {config.name}: {why}."
        raise ToolError(told) from None


async def access_token(config: AccountConfig, file: Path) -> str:
    """A token for the account's servers, renewed where its time is over. Raises ToolError."""
    again = f"voltaire setup mail {config.name}"
    kept = tokens_in(config, file)
    if kept is None:
        raise ToolError(f"Nobody has signed in to the mail account {config.name}: {again}")
    if kept.expires_at - EARLY > time.time():
        return kept.access_token
    try:
        form = {"grant_type": "refresh_token", "refresh_token": kept.refresh_token}
        issued = await post_form(config, config.token_url, Issued, **form)
    except Refused as error:
        why = f"The sign-in to the mail account {config.name} has ended ({error}): {again}"
        raise ToolError(why) from None
    issued.refresh_token = issued.refresh_token or kept.refresh_token
    return save_tokens(config, file, issued)


def tokens_in(config: AccountConfig, file: Path) -> Tokens | None:
    """The tokens in the file; None where they were issued to another client or by another server, or there are none."""
    with suppress(OSError, ValueError):
        kept = Tokens.model_validate_json(file.read_bytes())
        if (kept.token_url, kept.client_id) == (config.token_url, config.client_id):
            return kept
    return None


def save_tokens(config: AccountConfig, file: Path, issued: Issued) -> str:
    """Write the issued tokens to the file; return the access token."""
    until, of = time.time() + issued.expires_in, {"client_id": config.client_id}
    kept = Tokens(**issued.model_dump(), **of, token_url=config.token_url, expires_at=until)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(file, sync=True) as fresh:
        fresh.write_text(kept.model_dump_json())
    return kept.access_token


async def post_form(config: AccountConfig, url: str, kind: type[T], **form: str) -> T:
    """Post a form to the sign-in server; return its answer as a `kind`. Raises Refused, ToolError if none comes."""
    form["client_id"] = config.client_id
    if config.client_secret_file:
        what = f"The client_secret_file of the mail account {config.name}"
        form["client_secret"] = read_secret_file(config.client_secret_file, what).strip()
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            aiohttp.ClientSession(headers=PLAIN, auto_decompress=False, timeout=timeout) as session,
            session.post(url, data=form, allow_redirects=False) as answer,
        ):
            found = await bounded_json(answer)
        if answer.status >= 500 or answer.status == 429 or not isinstance(found, dict):
            raise ValueError  # it says nothing of the sign-in
        if not (code := found.get("error")):
            return kind.model_validate(found)
    except (OSError, TimeoutError, ValueError, aiohttp.ClientError) as error:
        away = not isinstance(error, ValueError)
        why = f"cannot be reached ({no_answer(error)})" if away else "gives no usable answer"
        told = f"The server for the sign-in to the mail account {config.name} {why}."
        raise ToolError(told) from None
    raise Refused(clean(str(code))[:60])
