"""Signing in to a mail account without a password: the device authorization grant (RFC 8628), and fresh access tokens."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from pydantic import AliasChoices, BaseModel, Field, ValidationError

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


class Code(BaseModel, frozen=True):
    """What the owner enters, and where."""

    device_code: str
    user_code: str
    verification_uri: str = Field(
        validation_alias=AliasChoices("verification_uri", "verification_url")
    )
    expires_in: float
    interval: float = 5.0


class Issued(BaseModel, frozen=True):
    access_token: str
    refresh_token: str = ""
    expires_in: float = 0.0


class Tokens(Issued, frozen=True):
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
        begun = Code.model_validate(await ask(config, config.device_url, scope=config.scope))
        show(clean(begun.verification_uri), clean(begun.user_code))
        interval, end = begun.interval, time.monotonic() + begun.expires_in
        while time.monotonic() < end:
            await asyncio.sleep(interval)
            try:
                form = {"grant_type": DEVICE, "device_code": begun.device_code}
                keep(
                    config, file, Issued.model_validate(await ask(config, config.token_url, **form))
                )
                return
            except Refused as error:
                if str(error) not in ("authorization_pending", "slow_down"):
                    raise
                interval += SLOWER if str(error) == "slow_down" else 0.0
            except (OSError, TimeoutError, aiohttp.ClientError):  # it goes on once the network does
                interval += SLOWER
        raise Refused("expired_token")
    except Refused as error:
        why = SAID.get(str(error), f"the server says {error}")
    except (OSError, TimeoutError, ValueError, aiohttp.ClientError) as error:
        why = problem(error)
    raise ToolError(f"Nobody is signed in to the mail account {config.name}: {why}.")


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
        issued = Issued.model_validate(await ask(config, config.token_url, **form))
        return keep(config, file, issued, kept.refresh_token).access_token
    except Refused as error:
        newer = tokens_in(config, file)  # another process has renewed it meanwhile
        if newer and newer != kept:
            return newer.access_token
        raise ToolError(
            f"The sign-in to the mail account {config.name} has ended ({error}): {again}"
        ) from None
    except (OSError, TimeoutError, ValueError, aiohttp.ClientError) as error:
        why = f"The sign-in to the mail account {config.name} cannot be renewed now: {problem(error)}."
        raise ToolError(why) from None


def tokens_in(config: AccountConfig, file: Path) -> Tokens | None:
    """The tokens in the file, where they are of this client of this server."""
    with suppress(OSError, ValueError):
        kept = Tokens.model_validate_json(file.read_bytes())
        if (kept.token_url, kept.client_id) == (config.token_url, config.client_id):
            return kept
    return None


def keep(config: AccountConfig, file: Path, issued: Issued, refresh: str = "") -> Tokens:
    kept = Tokens(
        token_url=config.token_url,
        client_id=config.client_id,
        access_token=issued.access_token,
        refresh_token=issued.refresh_token or refresh,
        expires_at=time.time() + issued.expires_in,
    )
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(file, sync=True) as fresh:
        fresh.write_text(kept.model_dump_json())
    return kept


async def ask(config: AccountConfig, url: str, **form: str) -> Mapping[str, Any]:
    """The server's answer to a form; Refused with the code where that is an error."""
    form["client_id"] = config.client_id
    if config.client_secret_file:
        what = f"The client_secret_file of the mail account {config.name}"
        form["client_secret"] = read_secret_file(config.client_secret_file, what).strip()
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with (
        aiohttp.ClientSession(headers=PLAIN, auto_decompress=False, timeout=timeout) as session,
        session.post(url, data=form, allow_redirects=False) as answer,
    ):
        found = await bounded_json(answer)
    if not isinstance(found, dict):
        raise ValueError("no object")  # noqa: TRY004 - as of other answers
    if answer.status != 200:
        raise Refused(clean(str(found.get("error") or answer.status))[:60])
    return found


def problem(error: Exception) -> str:
    """What is wrong, without what was sent or received."""
    if isinstance(error, ValidationError):
        return f"the server's answer lacks {error.errors()[0]['loc'][0]}"
    if isinstance(error, ValueError):
        return "the server's answer is no JSON"
    return f"its server cannot be reached ({type(error).__name__})"
