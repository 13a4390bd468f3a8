"""Codes of an authenticator app (RFC 6238: SHA-1, six digits, 30 s), with which an owner thaws from a chat."""

import base64
import hashlib
import hmac
import secrets
from contextlib import suppress
from pathlib import Path

from agent.files import replacing

KEY_FILE = "thaw.key"  # in the state folder; in no backup but one with secrets
STEP_SECONDS, DIGITS = 30, 6
APART = 1  # steps by which the clocks of phone and machine may differ


def make_secret(state: Path) -> str:
    """Replace the state's secret by a new one; return it in base32, as authenticator apps expect."""
    secret = base64.b32encode(secrets.token_bytes(20)).decode()
    with replacing(state / KEY_FILE) as new:
        new.write_text(secret, "ascii")
    return secret


def read_secret(state: Path) -> bytes | None:
    """The state's secret; None where there is none, it is empty, or cannot be read."""
    with suppress(OSError, ValueError):
        return base64.b32decode((state / KEY_FILE).read_text("ascii").strip()) or None
    return None


def address(secret: str) -> str:
    """The otpauth URI of a secret, which an authenticator app reads from a QR code or a link."""
    return f"otpauth://totp/Voltaire:thaw?secret={secret}&issuer=Voltaire"


def code(secret: bytes, step: int) -> str:
    mac = hmac.digest(secret, step.to_bytes(8), hashlib.sha1)
    begin = mac[-1] & 15
    number = int.from_bytes(mac[begin : begin + 4]) & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def matching_step(secret: bytes, typed: str, at: float) -> int | None:
    """The time step around `at` (seconds since the epoch) whose code was typed; None where it is wrong."""
    digits = "".join(str(int(sign)) for sign in typed if sign.isdecimal())  # of any script
    now = int(at // STEP_SECONDS)
    right = [
        step
        for step in range(now - APART, now + APART + 1)
        if hmac.compare_digest(code(secret, step).encode(), digits.encode())
    ]
    return right[-1] if right else None
