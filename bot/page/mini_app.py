"""Signing in from inside Telegram, where the page is a mini app: Telegram signs the user's id with the bot's token.

https://core.telegram.org/bots/webapps#validating-data-received-via-the-mini-app
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import time
from urllib.parse import parse_qsl

from agent.errors import AgentError

FRESH_SECONDS = 300.0  # after Telegram signed
AHEAD_SECONDS = 60.0  # that Telegram's clock may be ahead of ours
LONGEST = 8192  # characters; about 600 are usual


class SignInRefused(AgentError):
    """The page is not opened; `str` says why."""


@dataclass
class TelegramSignIn:
    """`is_owner` tells it of a Telegram user's id. Each signature opens one session."""

    token: str = field(repr=False)
    is_owner: Callable[[str], Awaitable[bool]]
    clock: Callable[[], float] = time
    _used: dict[str, float] = field(default_factory=dict, repr=False)

    async def check(self, init_data: str) -> None:
        """Raises SignInRefused."""
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
    """The user's id, the signature, and when it was made. Raises SignInRefused unless Telegram signed it for the
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
