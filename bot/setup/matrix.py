"""The bot's Matrix account: its homeserver, its session in the state folder, who may own it."""

import importlib.util
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bot.matrix.homeserver import CLIENT, Homeserver, HomeserverError, HomeserverRefused
from bot.matrix.session import MatrixSession, Secret, log_in, new_device, only_process, read_session
from bot.messaging_apps import AppUnavailable
from bot.setup import SetupError, json_object
from bot.state import MATRIX

USER = re.compile(r"@[^:\s]+:\S+")
MISSING = "Matrix needs the package matrix-nio: `make matrix` in a checkout, or `pip install 'voltaire-agent[matrix]'`."


def require_packages() -> None:
    if importlib.util.find_spec("nio") is None:
        raise SetupError(MISSING)


def valid_user(name: str) -> None:
    if not USER.fullmatch(name):
        raise SetupError(f"{name!r} is not a Matrix account, such as @me:example.org.")


def valid_groups(policy: str) -> None:
    if policy not in ("mention", "all", "off"):
        raise SetupError(f"{policy!r} is none of mention, all and off.")


async def homeserver_of(user: str) -> str:
    """Return the address of the account's homeserver: the one that its server name publishes, else the server name
    itself (https://spec.matrix.org/v1.16/client-server-api/#well-known-uri)."""
    domain = f"https://{user.partition(':')[2]}"
    found: Any = await json_object(f"{domain}/.well-known/matrix/client")
    with suppress(KeyError, TypeError):
        return str(found["m.homeserver"]["base_url"]).rstrip("/")
    return domain


async def no_homeserver(url: str) -> str:
    """Why no homeserver answers at that address; "" where one does."""
    found = await json_object(f"{url.rstrip('/')}/_matrix/client/versions")
    if isinstance(found, str):
        return f"The homeserver {url} cannot be reached ({found})."
    return "" if "versions" in found else f"There is no homeserver at {url}."


@asynccontextmanager
async def connected(url: str, session: MatrixSession | None = None) -> AsyncIterator[Homeserver]:
    """Open a connection to the homeserver, with the session's token if it has logged in."""
    server = Homeserver(url)
    server.token = session.token if session else ""
    try:
        yield server
    finally:
        await server.close()


async def logged_in(state: Path, url: str, user: str) -> bool:
    """Whether the state folder holds a session of the account that the homeserver accepts. Raises
    SetupError where the homeserver cannot be asked."""
    session = read_session(state / MATRIX, url, user)
    if session is None or not session.token:
        return False
    try:
        async with connected(url, session) as server:
            await server.get(f"{CLIENT}/account/whoami")
    except HomeserverRefused:
        return False
    except HomeserverError as error:
        raise SetupError(f"{error}.") from None
    return True


async def make_session(state: Path, url: str, user: str, password: str, token: str) -> None:
    """Log in with a new device, which takes the place of the session that was there. Raises SetupError."""
    try:
        with only_process(state / MATRIX):
            # A device that was made and has not logged in yet is used.
            begun = read_session(state / MATRIX, url, user)
            if begun is None or begun.token:
                begun = new_device(state / MATRIX, url, user)
            async with connected(url) as server:
                await log_in(server, state / MATRIX, begun, Secret(password, token))
    except (AppUnavailable, HomeserverError) as error:
        raise SetupError(f"{str(error).rstrip('.')}.") from None


async def unknown_owner(state: Path, url: str, user: str, owner: str) -> bool:
    """Whether the homeserver says that there is no such account."""
    try:
        async with connected(url, read_session(state / MATRIX, url, user)) as server:
            await server.get(f"{CLIENT}/profile/{owner}")
    except HomeserverRefused as error:
        return error.status == 404  # Synapse has no errcode of its own for it
    except HomeserverError:
        pass
    return False


async def log_out(state: Path) -> str:
    """End the session at the homeserver, which removes the bot's device; return a sentence where that fails."""
    session = read_session(state / MATRIX)
    if session is None or not session.token:
        return ""
    try:
        async with connected(session.homeserver, session) as server:
            await server.post(f"{CLIENT}/logout", {})
    except HomeserverRefused:
        pass  # the homeserver does not know it any more
    except HomeserverError as error:
        where = f"remove the device {session.device} of {session.user} there"
        return f"The Matrix session could not be ended ({error}): {where}."
    return ""
