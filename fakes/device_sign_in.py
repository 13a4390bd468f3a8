"""A stand-in for an authorization server with the device authorization grant (RFC 8628), which Dovecot asks about tokens,
too. It answers in the forms of the RFC and of Microsoft's documentation."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

CLIENT, CLIENT_SECRET = "voltaire-client", "cl13nt-s3cret-walnut"
SCOPE = "mail.read mail.send offline_access"
DOVECOT = """auth_mechanisms = plain xoauth2
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {file}
}}"""
CHECKED = """tokeninfo_url = http://127.0.0.1:{port}/about?access_token=
username_attribute = email
"""


@dataclass
class DeviceSignIn:
    """`answers` are the errors with which it answers questions for tokens, before it gives some to `user`; `refuses` is
    that for a refresh. Tokens hold `seconds`; `rotates`: each refresh token is good once."""

    user: str
    answers: list[str] = field(default_factory=list)
    refuses: str = ""
    status: int = 400  # of those errors
    seconds: int = 3600
    rotates: bool = True
    expires: float = 900
    interval: float = 0
    port: int = 0
    forms: list[dict[str, str]] = field(default_factory=list)
    access: set[str] = field(default_factory=set)
    refresh: set[str] = field(default_factory=set)
    device: str = ""

    def section(self, folder: Path) -> dict[str, Any]:
        """The fields of agent.mail.NAME."""
        secret = folder / "client-secret"
        secret.write_text(CLIENT_SECRET)
        return {
            "password_file": "",
            "client_id": CLIENT,
            "client_secret_file": str(secret),
            "device_url": f"http://127.0.0.1:{self.port}/devicecode",
            "token_url": f"http://127.0.0.1:{self.port}/token",
            "scope": SCOPE,
        }

    def dovecot(self, folder: Path) -> str:
        """Lines for a Dovecot that lets in who has a token; `folder` is one that it reads."""
        file = folder / "oauth2.conf"
        file.write_text(CHECKED.format(port=self.port))
        file.chmod(0o644)
        return DOVECOT.format(file=file)

    @property
    def issued(self) -> set[str]:
        return {*self.access, *self.refresh, self.device, CLIENT_SECRET}

    async def device_code(self, request: web.Request) -> web.Response:
        form = await self.taken(request)
        if form.get("scope") != SCOPE or form.get("client_id") != CLIENT:
            return web.json_response({"error": "invalid_client"}, status=401)
        self.device = secrets.token_urlsafe(24)
        fields = {"device_code": self.device, "user_code": "WDJB-MJHT", "interval": self.interval}
        where = {"verification_uri": "https://login.example/device", "message": "To sign in, ..."}
        return web.json_response({**fields, **where, "expires_in": self.expires})

    async def token(self, request: web.Request) -> web.Response:
        form = await self.taken(request)
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, CLIENT_SECRET):
            return refused("invalid_client", 401)
        if form.get("grant_type") == "refresh_token":
            if self.refuses or form.get("refresh_token") not in self.refresh:
                return refused(self.refuses or "invalid_grant")
            if self.rotates:
                self.refresh.discard(form["refresh_token"])
        elif form.get("device_code") != self.device:
            return refused("invalid_grant")
        elif self.answers:
            return refused(self.answers.pop(0), self.status)
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access.add(access)
        given = {"access_token": access, "token_type": "Bearer", "expires_in": self.seconds}
        if self.rotates or form.get("grant_type") != "refresh_token":
            self.refresh.add(refresh)
            given["refresh_token"] = refresh
        return web.json_response(given)

    async def about(self, request: web.Request) -> web.Response:
        if request.query.get("access_token") not in self.access:
            return refused("invalid_token")
        return web.json_response({"email": self.user})

    async def taken(self, request: web.Request) -> dict[str, str]:
        form = {key: str(value) for key, value in (await request.post()).items()}
        self.forms.append(form)
        return form


def refused(code: str, status: int = 400) -> web.Response:
    told = {"error": code, "error_description": f"AADSTS70016: {code}. Trace ID: 3f2504e0"}
    return web.json_response(told, status=503 if code == "temporarily_unavailable" else status)


@asynccontextmanager
async def device_sign_in(user: str) -> AsyncIterator[DeviceSignIn]:
    served = DeviceSignIn(user)
    app = web.Application()
    app.router.add_post("/devicecode", served.device_code)
    app.router.add_post("/token", served.token)
    app.router.add_get("/about", served.about)
    async with TestServer(app) as server:
        served.port = server.port or 0
        yield served
