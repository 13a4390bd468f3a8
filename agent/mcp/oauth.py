"""Signing in to the server at an address (OAuth 2.1), by the SDK's client.

The owner opens a link, and the authorization server redirects the browser to a loopback address of this machine. Where
the browser runs here, a listener takes the answer; elsewhere (on a phone) the owner pastes the address that could not be
opened. The tokens are kept in a file of the state that only its user can read, and are refreshed without the owner.

Where a token does not allow what a call needs (403, insufficient_scope), the missing scope is kept too, and the owner is
asked to sign in again for it, once: a scope that an owner was asked for and did not grant is not asked for again.

What one authorization server registered and issued goes to no other one (mix-up attacks) and to no other resource: where
a server names another one, its owner signs in anew, and sees where.
"""

import asyncio
import logging
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import httpx2
from aiohttp import web
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import AnyUrl, BaseModel

from agent.errors import ToolError
from agent.files import replacing
from agent.mcp.config import SignInNeeded
from agent.mcp.connection import SESSION, BoundedTransport, Screen, lacks_scope
from agent.sandbox.output_buffer import visible
from backend.connections import Connections

if TYPE_CHECKING:
    from agent.mcp.config import ServerConfig

SIGN_IN_SECONDS = 3600
LOOPBACK = "127.0.0.1"
LONGEST_ANSWER = 8192  # characters that an owner pastes
SAID = 200  # characters of an authorization server's error
CODE = re.compile(r"[!-~]{4,2048}")
SCOPE = re.compile(r"[!#-\[\]-~ ]{1,2048}")  # RFC 6749, 3.3
BEGIN = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "voltaire", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
BASIC = "client_secret_basic"
ACCEPT = {"accept": "application/json, text/event-stream", "accept-encoding": "identity"}
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)  # states and answers stand in it


class KeptSignIn(BaseModel):
    """A sign-in as its file has it. `expires_at` is in seconds since the epoch; the metadata say where a token is
    refreshed. `asked` is the scope that the owner was asked for, `wanted` the one that a call was refused for lack of."""

    url: str
    redirect: str
    client: OAuthClientInformationFull
    tokens: OAuthToken
    expires_at: float | None
    metadata: OAuthMetadata | None
    resource: ProtectedResourceMetadata | None
    asked: str = ""
    wanted: str = ""

    @property
    def issuer(self) -> str:
        """The authorization server at which the owner signed in."""
        if self.metadata:
            return str(self.metadata.issuer)
        named = self.resource.authorization_servers if self.resource else []
        return str(named[0]) if named else origin(self.url)

    @property
    def lacking(self) -> str:
        """The scope that the owner has not been asked for yet."""
        return " ".join(each for each in self.wanted.split() if each not in self.asked.split())


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def kept_sign_in(path: Path, url: str) -> KeptSignIn | None:
    """The sign-in in the file; None where it is none, or one to another address."""
    with suppress(OSError, ValueError):
        kept = KeptSignIn.model_validate_json(path.read_bytes())
        return kept if kept.url == url else None
    return None


class Tokens(OAuthClientProvider):
    """The SDK's client and token storage in one: puts the stored token into requests and refreshes it. Raises
    SignInNeeded where only the owner can help, with the reason `why`. `secrets` are all tokens seen so far."""

    def __init__(self, name: str, path: Path, url: str, redirect: str) -> None:
        self.name, self.path, self.secrets = name, path, list[str]()
        self.asked = self.wanted = self._refreshing = self._issuer = self._resource = self.why = ""
        self._seen, self._forbidden = 0, False
        metadata = OAuthClientMetadata(client_name="Voltaire", redirect_uris=[AnyUrl(redirect)])
        super().__init__(url, metadata, self)

    async def _auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._changed():  # another process has refreshed it, or the owner has signed in anew
            self._initialized, self.why = False, ""
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = self._known_answer() if outgoing is request else None
                response = response or (yield outgoing)
                if outgoing is request:
                    self._forbidden = lacks_scope(response)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _known_answer(self) -> httpx2.Response | None:
        """An answer to the request that is known without sending it."""
        return None

    def _changed(self) -> bool:
        try:
            return self.path.stat().st_mtime_ns != self._seen
        except OSError:
            return True

    def _select_authorization_server(self, advertised: list[str]) -> str:
        if not self._issuer:
            return advertised[0]
        for each in advertised:
            if issuers_match(each, self._issuer):
                return each
        self._initialized = False  # else the SDK keeps the server's metadata
        before, now = host_of(self._issuer), host_of(advertised[0])
        self.why = f" anew, at {now} and no longer at {before}"
        raise SignInNeeded(self.name, why=self.why)

    async def _perform_authorization(self) -> httpx2.Request:
        if self._resource and self.context.get_resource_url() != self._resource:
            self._initialized = False
            raise SignInNeeded(self.name)
        tokens = self.context.current_tokens
        if self._forbidden and tokens:
            self.wanted = self.context.client_metadata.scope or ""
            self._keep(tokens)
            raise SignInNeeded(self.name, forbidden=True)
        if self.context.can_refresh_token() and tokens:  # it was revoked early
            self._refreshing = tokens.refresh_token or ""
            return await self._refresh_token()
        raise SignInNeeded(self.name)

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        if self._refreshing and response.status_code in (400, 401):  # it was revoked, too
            raise SignInNeeded(self.name)
        await super()._handle_token_response(response)

    # -- the SDK's TokenStorage --

    async def get_tokens(self) -> OAuthToken | None:
        kept = kept_sign_in(self.path, self.context.server_url)
        with suppress(OSError):
            self._seen = self.path.stat().st_mtime_ns
        if kept is None:
            return None
        self.context.oauth_metadata = kept.metadata
        self.context.protected_resource_metadata = kept.resource
        if kept.resource:
            self.context.auth_server_url = kept.issuer
        self._issuer, self._resource = kept.issuer, self.context.get_resource_url()
        self.context.token_expiry_time = kept.expires_at
        self.asked, self.wanted = kept.asked, kept.wanted
        self._hide(kept.tokens)
        return kept.tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        kept = kept_sign_in(self.path, self.context.server_url)
        return kept.client if kept else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the client's registration with the tokens."""

    async def set_tokens(self, tokens: OAuthToken) -> None:
        tokens.refresh_token = tokens.refresh_token or self._refreshing or None
        self._keep(tokens)

    def _keep(self, tokens: OAuthToken) -> None:
        context = self.context
        assert context.client_info and context.client_metadata.redirect_uris
        kept = KeptSignIn(
            url=context.server_url,
            redirect=str(context.client_metadata.redirect_uris[0]),
            client=context.client_info,
            tokens=tokens,
            expires_at=context.token_expiry_time,
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
            asked=self.asked,
            wanted=self.wanted,
        )
        self._hide(tokens)
        with suppress(FileExistsError):
            self.path.parent.mkdir(mode=0o700)
        with replacing(self.path, sync=True, suffix=f"{os.getpid()}") as fresh:
            fresh.write_text(kept.model_dump_json())
        self._seen = self.path.stat().st_mtime_ns

    def _hide(self, tokens: OAuthToken) -> None:
        found = [each for each in (tokens.access_token, tokens.refresh_token) if each]
        self.secrets += [each for each in found if each not in self.secrets]


def tokens_of(name: str, path: Path, url: str) -> Tokens | None:
    """The tokens of a server; None if nobody has signed in."""
    kept = kept_sign_in(path, url)
    return Tokens(name, path, url, kept.redirect) if kept else None


# -- the owner signs in ---------------------------------------------------------


def host_of(address: str) -> str:
    return visible(urlsplit(address).netloc)


@dataclass
class SignIn:
    """A sign-in that waits for its owner. `link` is to be opened in a browser; `before` is the host where the owner
    signed in the last time, if that was another one."""

    name: str
    link: str = ""
    before: str = ""
    answered: "asyncio.Future[AuthorizationCodeResult]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def host(self) -> str:
        return urlsplit(self.link).netloc

    def give(self, text: str, *, typed: bool = True) -> None:
        """Take the address that the browser was redirected to or, where the owner `typed` it, the code in it; ToolError
        where it is neither."""
        text = text.strip()
        query: dict[str, list[str]] = {}
        if "=" in text and len(text) <= LONGEST_ANSWER:
            with suppress(ValueError):  # no address at all, such as http://[
                query = parse_qs(urlsplit(text).query)
        found = {name: values[0] for name, values in query.items()}
        if not found and typed and CODE.fullmatch(text) and "://" not in text:
            found = {"code": text, "state": self._state}
        if not found.keys() & {"code", "error"} or len(text) > LONGEST_ANSWER:
            raise ToolError(
                "That is neither the address that your browser was led to, with code= in it, nor the code."
            )
        if found.get("state") != self._state:
            raise ToolError(
                f"That is the address of another sign-in. Open the last link of {self.name}."
            )
        if self.answered.done():
            raise ToolError("That sign-in has its answer already.")
        if "error" in found:
            why = visible(found.get("error_description") or found["error"])[:SAID]
            self.answered.set_exception(ToolError(f"The sign-in to {self.name} was refused: {why}"))
        else:
            result = AuthorizationCodeResult(
                code=found["code"], state=found["state"], iss=found.get("iss")
            )
            self.answered.set_result(result)

    @property
    def _state(self) -> str:
        """The link's state, which the answer has to repeat; "" before there is a link, which no answer repeats."""
        return parse_qs(urlsplit(self.link).query).get("state", [""])[0]


Show = Callable[[SignIn], Awaitable[None]]
"""Shows the owner the link, and returns; the answer goes to `give`."""


class InteractiveTokens(Tokens):
    """The tokens of a sign-in that is under way, as a newly registered client or as `client`. `wanted` is the scope
    that a call was refused for lack of."""

    def __init__(
        self,
        sign_in: SignIn,
        path: Path,
        url: str,
        redirect: str,
        show: Show,
        client: OAuthClientInformationFull | None,
    ) -> None:
        super().__init__(sign_in.name, path, url, redirect)
        self.sign_in, self.to_owner, self.client = sign_in, show, client
        kept = kept_sign_in(path, url)
        self.kept = kept
        self.wanted = kept.wanted if kept and SCOPE.fullmatch(kept.wanted) else ""
        self.context.redirect_handler, self.context.callback_handler = self.show, self.answer

    def _known_answer(self) -> httpx2.Response | None:
        """The refusal of that call: the SDK then asks the owner for its scope, too."""
        wanted, self.wanted = self.wanted, ""
        if not wanted:
            return None
        challenge = f'Bearer error="insufficient_scope", scope="{wanted}"'
        return httpx2.Response(403, headers={"www-authenticate": challenge})

    async def _perform_authorization(self) -> httpx2.Request:
        issuer = self._expected_issuer()
        if self.kept and not issuers_match(issuer, self.kept.issuer):
            self.sign_in.before = host_of(self.kept.issuer)
            if self.client and self.client.client_id == self.kept.client.client_id:
                raise ToolError(
                    f"{self.name} now wants you to sign in at {host_of(issuer)}; its client_id is registered at "
                    f"{self.sign_in.before}, and goes nowhere else. Register one there, and name that."
                )
        if self.client:
            self.client.token_endpoint_auth_method = self._authentication(self.client)
        request = await OAuthClientProvider._perform_authorization(self)
        request.headers["accept"] = "application/json"  # GitHub's else answers with a form
        return request

    def _authentication(self, client: OAuthClientInformationFull) -> str:
        metadata = self.context.oauth_metadata
        offered = metadata.token_endpoint_auth_methods_supported if metadata else None
        if not client.client_secret:
            return "none"
        # RFC 8414: a server that names no method takes Basic.
        return "client_secret_post" if offered and BASIC not in offered else BASIC

    async def show(self, link: str) -> None:
        host, own = urlsplit(link).hostname, urlsplit(self.context.server_url).hostname
        if not link.startswith("https://") and host != own:
            raise ToolError(f"{self.name} names no safe address (https) to sign in at.")
        self.sign_in.link = link
        await self.to_owner(self.sign_in)

    async def answer(self) -> AuthorizationCodeResult:
        return await self.sign_in.answered

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.asked = self.context.client_metadata.scope or ""
        await super().set_tokens(tokens)


async def sign_in(server: "ServerConfig", path: Path, show: Show) -> None:
    """Have an owner sign in, and keep the tokens in the file at `path`; ToolError says why that failed."""
    name, url = server.name, server.url
    secret, waiting = server.client_secret(), SignIn(name)
    asked = {**server.variables(), **ACCEPT}
    try:
        async with (
            asyncio.timeout(SIGN_IN_SECONDS),
            listening(waiting, server.callback_port) as redirect,
        ):
            client = None
            if server.client_id:
                client = OAuthClientInformationFull(
                    client_id=server.client_id,
                    client_secret=secret or None,
                    redirect_uris=[AnyUrl(redirect)],
                )
            tokens = InteractiveTokens(waiting, path, url, redirect, show, client)
            transport = BoundedTransport(Screen(), url)
            async with httpx2.AsyncClient(auth=tokens, transport=transport, timeout=30) as http:
                for request in (BEGIN, LIST):  # some let everybody begin, and authenticate later
                    async with http.stream("POST", url, headers=asked, json=request) as response:
                        status = response.status_code
                        if session := response.headers.get(SESSION):
                            asked[SESSION] = session
                    if tokens.secrets:
                        break
    except TimeoutError:
        raise ToolError(
            f"Nobody signed in to {name} within an hour; that link has expired."
        ) from None
    except OAuthRegistrationError as error:
        raise ToolError(
            f"{name} wants a sign-in, but where that is done no new programs are taken ({said(error)}). "
            "Register one there, and name its client_id, or put a token of yours into env_file: docs/mcp.md"
        ) from None
    except (OAuthFlowError, ValueError, httpx2.HTTPError) as error:
        raise ToolError(f"The sign-in to {name} failed: {said(error) or 'it is away'}.") from None
    if status == 401:
        raise ToolError(f"{name} takes no token of the sign-in that it asked for.")
    if not tokens.secrets:
        raise ToolError(f"{name} does not ask for a sign-in.")


def said(error: Exception) -> str:
    return visible(" ".join(str(error).split()))[:SAID].rstrip(".")


@asynccontextmanager
async def listening(sign_in: SignIn, port: int) -> AsyncIterator[str]:
    """Listen for the redirect on a loopback port (0: any), and yield its address."""

    async def take(request: web.Request) -> web.Response:
        try:
            sign_in.give(str(request.url), typed=False)
        except ToolError as error:
            return web.Response(status=400, text=str(error))
        return web.Response(text="Thank you. You can close this page and go back to your chat.")

    app = web.Application()
    app.router.add_get("/callback", take)
    async with AsyncExitStack() as stack:
        serving = Connections().serving(app, LOOPBACK, port, shutdown_timeout=1)
        try:
            port = await stack.enter_async_context(serving)
        except OSError:
            raise ToolError(
                f"The port {port}, which the browser is led to, is taken. End what has it, and sign in again."
            ) from None
        yield f"http://{LOOPBACK}:{port}/callback"
