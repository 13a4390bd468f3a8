"""The bot's Matrix account: its homeserver, its session in the state folder, who may own it."""

import asyncio
import importlib.util
import re
from contextlib import suppress
from pathlib import Path

import aiohttp

from bot.matrix.homeserver import CLIENT, Homeserver, HomeserverError, HomeserverRefused
from bot.matrix.session import Secret, log_in, new_device, read_session
from bot.messaging_apps import AppUnavailable, only_process
from bot.setup import SetupError
from bot.state import MATRIX

ANSWER_SECONDS = 10
USER = re.compile(r"@[^:\s]+:\S+")
MISSING = "Matrix needs the package matrix-nio: `make matrix` in a checkout, or `pip install 'voltaire-agent[matrix]'`."


def require_packages() -> None:
    if importlib.util.find_spec("nio") is None:
        raise SetupError(MISSING)


def valid_user(name: str) -> None:
    if not USER.fullmatch(name):
        raise SetupError(f"{name!r} is no Matrix account, such as @me:example.org.")


def valid_groups(policy: str) -> None:
    if policy not in ("mention", "all", "off"):
        raise SetupError(f"{policy!r} is none of mention, all and off.")


async def homeserver_of(user: str) -> str:
    """What the account's server says where its homeserver is, else the server itself
    (https://spec.matrix.org/v1.16/client-server-api/#well-known-uri)."""
    domain = f"https://{user.partition(':')[2]}"
    found = await answered(f"{domain}/.well-known/matrix/client")
    with suppress(KeyError, TypeError):
        return str(found["m.homeserver"]["base_url"]).rstrip("/")  # type: ignore[index]
    return domain


async def no_homeserver(url: str) -> str:
    """Why there is none at that address; "" where there is one."""
    found = await answered(f"{url.rstrip('/')}/_matrix/client/versions")
    if isinstance(found, str):
        return f"The homeserver {url} cannot be reached ({found})."
    return "" if "versions" in found else f"At {url} is no homeserver."


async def answered(url: str) -> dict[str, object] | str:
    """The JSON object at an address, or the kind of error."""
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),  # aiohttp's own may swallow a cancellation
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http,
            http.get(url) as answer,
        ):
            found = await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
        return type(error).__name__
    return found if isinstance(found, dict) else {}


async def logged_in(state: Path, url: str, user: str) -> bool:
    """Whether the state folder holds a session of the account that its homeserver knows. Raises
    SetupError where that cannot be asked."""
    session = read_session(state / MATRIX, url, user)
    if session is None or not session.token:
        return False
    server = Homeserver(url)
    server.token = session.token
    try:
        await server.get(f"{CLIENT}/account/whoami")
    except HomeserverRefused:
        return False
    except HomeserverError as error:
        raise SetupError(f"{error}.") from None
    finally:
        await server.close()
    return True


async def make_session(state: Path, url: str, user: str, password: str, token: str) -> None:
    """Log in with a new device. Raises SetupError; what was there before is of no more use."""
    server = Homeserver(url)
    try:
        with only_process(state / "run" / "matrix.lock", "Matrix account"):
            # A device that was begun and has not logged in is the one to go on with.
            begun = read_session(state / MATRIX, url, user)
            if begun is None or begun.token:
                begun = new_device(state / MATRIX, url, user)
            await log_in(server, state / MATRIX, begun, Secret(password, token))
    except (AppUnavailable, HomeserverError) as error:
        raise SetupError(f"{str(error).rstrip('.')}.") from None
    finally:
        await server.close()


async def unknown_owner(state: Path, url: str, user: str, owner: str) -> bool:
    """Whether the homeserver says that there is no such account."""
    session = read_session(state / MATRIX, url, user)
    server = Homeserver(url)
    server.token = session.token if session else ""
    try:
        await server.get(f"{CLIENT}/profile/{owner}")
    except HomeserverRefused as error:
        return error.status == 404  # Synapse has no errcode of its own for it
    except HomeserverError:
        return False
    finally:
        await server.close()
    return False


async def log_out(state: Path) -> str:
    """End the session at the homeserver, and with it the bot's device; a sentence where that cannot be."""
    session = read_session(state / MATRIX)
    if session is None or not session.token:
        return ""
    server = Homeserver(session.homeserver)
    server.token = session.token
    try:
        await server.post(f"{CLIENT}/logout", {})
    except HomeserverRefused:
        return ""  # it is not known there any more
    except HomeserverError as error:
        where = f"remove the device {session.device} of {session.user} there"
        return f"The Matrix session could not be ended ({error}): {where}."
    finally:
        await server.close()
    return ""
