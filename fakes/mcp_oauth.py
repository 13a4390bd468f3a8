"""A real MCP server whose owner must sign in, with an authorization server, both of the SDK, on loopback."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass
class Accounts(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Whoever comes is let in, and is led on at once. `refuses`: nobody is. `withholds`: no scope is given. `seconds` is
    how long a token holds, `rotates` whether a refresh token is good for one time."""

    refuses: bool = False
    withholds: bool = False
    seconds: int = 3600
    rotates: bool = True
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    refreshed: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        back = str(params.redirect_uri)
        if self.refuses:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=[] if self.withholds else params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.token(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshed += 1
        if refresh_token.token not in self.refresh:
            raise TokenError("invalid_grant")
        if not self.rotates:
            made = self.token(client.client_id, scopes, refresh_token.resource)
            del self.refresh[made.refresh_token or ""]
            return made.model_copy(update={"refresh_token": None})
        del self.refresh[refresh_token.token]
        return self.token(client.client_id, scopes, refresh_token.resource)

    def token(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(16)}", f"refresh-{secrets.token_hex(16)}"
        until = int(time.time()) + self.seconds
        given = {"client_id": client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=until, **given)
        self.refresh[refresh] = RefreshToken(token=refresh, **given)
        return OAuthToken(
            access_token=access,
            refresh_token=refresh,
            expires_in=self.seconds,
            scope=" ".join(scopes),
        )

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)


@dataclass
class SignInServer:
    """`hidden`: paths that are answered with 404; `seen` are the values of Authorization that came. `greets`: everybody
    may begin. `scope`: a token without it may not call tools. `issuer` and `resource`: what it says of itself instead of
    its own. `posted` are the paths of what came by POST, `brewed` what its tool was called with."""

    url: str
    accounts: Accounts
    hidden: tuple[str, ...] = ()
    greets: bool = False
    scope: str = ""
    issuer: str = ""
    resource: str = ""
    posted: list[str] = field(default_factory=list)
    brewed: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def register(self, client_id: str, secret: str, redirect: str) -> None:
        """A client beforehand, which authenticates itself by Basic; nobody can register another."""
        self.hidden = ("/register",)
        self.accounts.clients[client_id] = OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method="client_secret_basic",
        )

    async def browse(self, link: str, *, follow: bool = True) -> str:
        """Open a link as a browser does; the address where that led to, or what stood there."""
        async with aiohttp.ClientSession() as browser:
            async with browser.get(link, allow_redirects=False) as answer:
                address = answer.headers["location"]
            if not follow:
                return address
            async with browser.get(address) as answer:
                return await answer.text()


GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "tea", "version": "1"},
}


def not_yet(scope: Scope) -> bool:
    return (
        scope["method"] == "POST"
        and scope["path"] == "/mcp"
        and not any(name == b"authorization" for name, _ in scope["headers"])
    )


def too_narrow(served: SignInServer, scope: Scope, body: bytes) -> bool:
    header = next((v.decode() for k, v in scope["headers"] if k == b"authorization"), "")
    token = served.accounts.access.get(header.removeprefix("Bearer "))
    return b"tools/call" in body and token is not None and served.scope not in token.scopes


@asynccontextmanager
async def sign_in_server(accounts: Accounts | None = None) -> AsyncIterator[SignInServer]:
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    accounts = accounts or Accounts()
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(origin),
        resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=False,
    )
    server = MCPServer("tea", auth_server_provider=accounts, auth=settings, log_level="ERROR")
    served = SignInServer(f"{origin}/mcp", accounts)

    @server.tool()
    def brew(leaf: str) -> str:
        """Brew tea; it repeats the token that came."""
        served.brewed.append(leaf)
        return f"{leaf} with {served.seen[-1]}"

    app = server.streamable_http_app()

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            served.seen += [v.decode() for k, v in scope["headers"] if k == b"authorization"]
            if any(str(scope["path"]).startswith(path) for path in served.hidden):
                scope = {**scope, "path": "/nothing"}
            if scope["method"] == "POST":
                served.posted.append(str(scope["path"]))
        inner: ASGIApp = app
        named = served.issuer or served.resource
        if named and str(scope.get("path")).startswith("/.well-known/oauth-protected-resource"):
            about: dict[str, object] = {
                "resource": served.resource or served.url,
                "authorization_servers": [served.issuer or f"{origin}/"],
            }
            inner = JSONResponse(about)
        if served.scope and scope["type"] == "http" and scope["method"] == "POST":
            body = await Request(scope, receive).body()
            if too_narrow(served, scope, body):
                told = f'Bearer error="insufficient_scope", scope="{served.scope}"'
                inner = Response(status_code=403, headers={"www-authenticate": told})
            unread = receive
            pieces: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

            async def receive() -> Message:
                return pieces.pop() if pieces else await unread()

        if served.greets and scope["type"] == "http" and not_yet(scope):
            body = await Request(scope, receive).json()
            if body.get("method") == "initialize":
                answer: dict[str, object] = {"jsonrpc": "2.0", "id": body["id"], "result": GREETING}
                inner = JSONResponse(answer)
            elif "id" not in body:
                inner = Response(status_code=202)
            else:
                inner = Response(status_code=401)
        await inner(scope, receive, send)

    config = uvicorn.Config(watched, log_level="critical", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    running.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield served
    finally:
        running.should_exit = True
        with suppress(asyncio.CancelledError):
            await serving
