"""Who may use the owner's page: whoever has the key. A request must also come from the page itself and name one of
our hosts, because other sites that a browser visits can send requests here, too.

    the key         in a file that only its user may read; once in the page's address
    a ticket        opens the page once, for a browser that we start: all users of the machine see its address
    Telegram        the signature of a mini app, which names the owner (TelegramSignIn)
    a session       what any of these is exchanged for: a cookie that scripts and other sites do not get
    a change token  a second secret of the session, in a header of each request that changes something. It is given out
                    once, with the cookie: browsers send cookies to every port of a host, so a cookie alone yields
                    nothing that changes anything
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web

from agent.errors import AgentError
from backend.connections import Connections

KEY = Path("run") / "page.key"  # in the state folder
KEY_BYTES = 32
SHORTEST_KEY = 24  # characters
CHANGE_HEADER = "X-Voltaire-Change"
OPEN = frozenset({"/", "/api/telegram"})
OWN_SITE = frozenset({"same-origin", "none"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
MOST_SESSIONS = 64
PageHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageRefused(AgentError):
    """The page cannot be served as configured; `str` says why."""


def load_key(path: Path, what: str = "The page's key", *, create: bool = False) -> str:
    """The key in the file; `what` names it in errors. Raises PageRefused where others can read it, or it is too short."""
    if create:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(fd, "w") as new:
                new.write(secrets.token_urlsafe(KEY_BYTES))
    try:
        with path.open(encoding="utf-8") as file:
            found, key = os.fstat(file.fileno()), file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise PageRefused(f"{what}, {path}, cannot be read: {reason}.") from None
    if found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o077:
        raise PageRefused(
            f"{what}, {path}, can be read by others: `chmod 600 {path}`, after making a new one."
        )
    if len(key) < SHORTEST_KEY:
        raise PageRefused(f"{what}, {path}, needs at least {SHORTEST_KEY} characters.")
    return key


@dataclass(frozen=True, slots=True)
class Session:
    cookie: str
    token: str


@dataclass
class PageAccess:
    """Checks who may use the page. `origins` are where the page is served, such as "http://127.0.0.1:8766"."""

    key: str = field(repr=False)
    origins: set[str] = field(default_factory=set)
    connections: Connections = field(default_factory=Connections)
    _tickets: set[str] = field(default_factory=set, repr=False)
    _sessions: dict[str, Session] = field(default_factory=dict, repr=False)

    def ticket(self) -> str:
        """Create a secret that opens the page once."""
        made = secrets.token_urlsafe(KEY_BYTES)
        self._tickets.add(made)
        return made

    def enter(self, given: str) -> Session | None:
        """Start a session in exchange for the key or a ticket; None for anything else."""
        known = next((each for each in self._tickets if _same(each, given)), None)
        if known is None and not _same(self.key, given):
            return None
        self._tickets.discard(known or "")
        return self.begin()

    def begin(self) -> Session:
        made = Session(secrets.token_urlsafe(KEY_BYTES), secrets.token_urlsafe(KEY_BYTES))
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[made.cookie] = made
        return made

    def session(self, request: web.Request) -> Session | None:
        given = request.cookies.get(cookie_name(request), "")
        return next((s for s in self._sessions.values() if _same(s.cookie, given)), None)

    def refusal(self, request: web.Request) -> str:
        """Why a request is refused with or without a session; "" if it is not."""
        hosts = {urlsplit(origin).netloc for origin in self.origins}
        if request.host not in hosts:
            return "This page is not served under that name."
        origin = request.headers.get("Origin")
        if origin is not None and origin not in self.origins:
            return "Only the page itself may ask."
        if request.headers.get("Sec-Fetch-Site", "none") not in OWN_SITE and not (
            request.method == "GET"
            and request.path == "/"
            and request.headers.get("Sec-Fetch-Mode") == "navigate"
        ):
            return "Only the page itself may ask."
        return ""

    @web.middleware
    async def check(self, request: web.Request, handler: PageHandler) -> web.StreamResponse:
        """Let through requests of the page with a session, and those that need none."""
        if request.path.startswith(("/v1/", "/hooks/")):  # no browser sends their keys
            return await handler(request)
        if why := self.refusal(request):
            raise web.HTTPForbidden(text=why)
        if request.method not in ("GET", "HEAD", "POST"):
            raise web.HTTPMethodNotAllowed(request.method, ["GET", "POST"])
        open_to_all = request.path in OPEN or request.path.startswith("/static/")
        session = self.session(request)
        if session:
            self.connections.keep(request.transport)
        if session is None and not open_to_all:
            raise web.HTTPForbidden(text="Open the whole address that `voltaire page` prints.")
        if request.method == "POST":
            if request.content_type != "application/json" or request.headers.get("Origin") is None:
                raise web.HTTPForbidden(text="Only the page itself may ask.")
            if not open_to_all and (
                session is None or not _same(session.token, request.headers.get(CHANGE_HEADER, ""))
            ):
                raise web.HTTPForbidden(
                    text="To change something, open the whole address that `voltaire page` prints."
                )
        return await handler(request)


def with_session(request: web.Request, session: Session, answer: web.Response) -> web.Response:
    """Add the session's cookie to the answer."""
    secure = request.headers.get("X-Forwarded-Proto", request.scheme) == "https"
    secure = secure or request.headers.get("Origin", "").startswith("https:")
    answer.set_cookie(
        cookie_name(request),
        session.cookie,
        httponly=True,
        samesite="Strict",
        secure=secure,
        path="/",
    )
    return answer


def cookie_name(request: web.Request) -> str:
    """The cookie's name, with the port, as all ports of a host share their cookies."""
    return f"voltaire-page-{urlsplit(f'//{request.host}').port or 0}"


def _same(known: str, given: str) -> bool:
    return secrets.compare_digest(known.encode(), given.encode("utf-8", "replace"))


# -- inside Telegram ----------------------------------------------------------


FRESH_SECONDS = 300.0  # after Telegram signed
AHEAD_SECONDS = 60.0  # that Telegram's clock may be ahead of ours
LONGEST = 8192  # characters; about 600 are usual


class SignInRefused(AgentError):
    """The page is not opened; `str` says why."""


@dataclass
class TelegramSignIn:
    """Checks sign-ins from Telegram. `is_owner` takes a user's id. Each signature opens one session."""

    token: str = field(repr=False)
    is_owner: Callable[[str], Awaitable[bool]]
    clock: Callable[[], float] = time
    _used: dict[str, float] = field(default_factory=dict, repr=False)

    async def check(self, init_data: str) -> None:
        """Accept the signed fields of an owner, once. Raises SignInRefused."""
        user, signature, signed_at = signed_fields(init_data, self.token)
        now = self.clock()
        if not now - FRESH_SECONDS < signed_at < now + AHEAD_SECONDS:
            raise SignInRefused(
                "That was opened too long ago: close it, and press the button again."
            )
        if not await self.is_owner(user):
            raise SignInRefused("This page is its owner's alone.")
        self._used = {seen: at for seen, at in self._used.items() if at > now - 2 * FRESH_SECONDS}
        if signature in self._used:
            raise SignInRefused("That link has already been used: press the button again.")
        self._used[signature] = signed_at


def signed_fields(init_data: str, token: str) -> tuple[str, str, float]:
    """Parse the user's id, the signature and its time. Raises SignInRefused unless Telegram signed it for the
    bot of this token."""
    refused = SignInRefused("Telegram did not sign that for this bot.")
    if not token or len(init_data) > LONGEST:
        raise refused
    try:
        pairs = parse_qsl(init_data, keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise refused from None
    fields = dict(pairs)
    signature = fields.pop("hash", "")
    lines = "\n".join(f"{name}={fields[name]}" for name in sorted(fields))
    key = hmac.digest(b"WebAppData", token.encode(), hashlib.sha256)
    expected = hmac.new(key, lines.encode(), hashlib.sha256).hexdigest()
    signed = secrets.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
    if not signed or len(pairs) != len(fields) + 1:  # a field given twice is ambiguous
        raise refused
    try:
        user = json.loads(fields["user"])["id"]
        signed_at = float(fields["auth_date"])
    except (KeyError, TypeError, ValueError):
        raise refused from None
    if not isinstance(user, int) or isinstance(user, bool):
        raise refused
    return str(user), signature, signed_at
