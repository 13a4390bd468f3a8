"""The bot's session at the homeserver: made once, by password or token, and kept in the state folder.

It holds an access token and the key of the encryption keys' store: readable to the bot's user alone.
"""

import fcntl
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from agent.files import replacing
from bot.matrix.homeserver import CLIENT, Homeserver, HomeserverRefused
from bot.messaging_apps import AppUnavailable
from bot.secret_values import text_of

SESSION = "session.json"
KEYS = "keys.db"
DEVICE_NAME = "Voltaire"


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Let no other process use the account's session and keys, in `folder`, for the block. Raises AppUnavailable."""
    lock = folder.parent / "run" / "matrix.lock"
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AppUnavailable("A bot that runs uses this Matrix account.") from None
        yield


class MatrixSession(BaseModel):
    """A device of the bot's account; `token` is empty until it has logged in."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    homeserver: str
    user: str
    device: str
    pickle_key: str
    token: str = ""


def read_session(folder: Path, homeserver: str = "", user: str = "") -> MatrixSession | None:
    """Read the stored session of this account (or of any); None if there is none."""
    try:
        kept = MatrixSession.model_validate_json((folder / SESSION).read_text("utf-8"))
    except (OSError, ValueError):  # damaged, or no text
        return None
    same = (kept.homeserver, kept.user) == (homeserver.rstrip("/"), user)
    return kept if same or not user else None


def write_session(folder: Path, session: MatrixSession) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(folder / SESSION, sync=True) as new:
        new.write_text(session.model_dump_json(), "utf-8")


def new_device(folder: Path, homeserver: str, user: str) -> MatrixSession:
    """Create a device that has not logged in, and delete the keys of the one before.

    Its id is chosen here and stored before it logs in, so that a killed login leaves no other device behind.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for kept in folder.glob(f"{KEYS}*"):
        kept.unlink()
    session = MatrixSession(
        homeserver=homeserver.rstrip("/"),
        user=user,
        device=f"VOLTAIRE{secrets.token_hex(4).upper()}",
        pickle_key=secrets.token_urlsafe(32),
    )
    write_session(folder, session)
    return session


class Secret(NamedTuple):
    """What an account logs in with: a password, or an access token that no other program uses."""

    password: str = ""
    token: str = ""

    @classmethod
    def of(cls, password_file: Path | None, token_file: Path | None) -> "Secret":
        return cls(text_of(password_file or ""), text_of(token_file or ""))


async def log_in(
    server: Homeserver, folder: Path, session: MatrixSession, secret: Secret
) -> MatrixSession:
    """Log in and return the session with its token. Raises AppUnavailable, HomeserverError."""
    try:
        if secret.token:
            server.token = secret.token
            answer: dict[str, Any] = await server.get(f"{CLIENT}/account/whoami")
            answer["access_token"] = secret.token
        elif secret.password:
            login = {
                "type": "m.login.password",
                "identifier": {"type": "m.id.user", "user": session.user},
                "password": secret.password,
                "device_id": session.device,
                "initial_device_display_name": DEVICE_NAME,
            }
            answer = await server.post(f"{CLIENT}/login", login)
        else:
            raise AppUnavailable(
                f"{session.user} has to log in: run `voltaire setup`, or put its password into a"
                " file and name that in matrix.password_file.",
                refused=True,
            )
    except HomeserverRefused as error:
        given = "token" if secret.token else "password"
        raise AppUnavailable(
            f"{server.url} refuses the {given} of {session.user}: {error}.", refused=True
        ) from None
    if answer.get("user_id") != session.user:
        raise AppUnavailable(
            f"matrix.user is {session.user}, but the token is of {answer.get('user_id')}.",
            refused=True,
        )
    known = {"token": answer["access_token"], "device": answer.get("device_id") or session.device}
    session = session.model_copy(update=known)
    write_session(folder, session)
    return session
