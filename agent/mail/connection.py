"""The connections with a mail server, by imap-tools and smtplib. They block; this module is imported with the first one."""

import imaplib
import re
import smtplib
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from imap_tools import (
    AND,
    BaseMailBox,
    ImapToolsError,
    MailBox,
    MailBoxStartTls,
    MailBoxUnencrypted,
)

from agent.errors import ToolError
from agent.mail.account import AccountConfig
from agent.sandbox.output_buffer import clean

SECONDS = 30.0  # that a server may be silent
IDLE_SECONDS = 60.0  # after which a connection is not trusted
ROLES = {"\\Drafts": "Drafts", "\\Sent": "Sent"}  # folders by what servers mark them as
PORTS = {"imaps": 993, "imap": 143, "smtps": 465, "smtp": 587}
ATTRIBUTES = re.compile(rb'\bUID (\d+)|\bRFC822\.SIZE (\d+)|\b(INTERNALDATE "[^"]{20,40}")')
FAILURES = (OSError, imaplib.IMAP4.error, ImapToolsError)
Fetched = tuple[tuple[int, float, int], bytes]
T = TypeVar("T")


class Uncertain(ToolError):
    """A letter may have been sent, or not."""


@dataclass
class ImapConnection:
    """A connection that is opened at its first use, and again after a pause; for one thread at a time."""

    config: AccountConfig
    _box: BaseMailBox | None = None
    _used: float = 0.0

    def use(self, work: Callable[["ImapConnection"], T]) -> T:
        """Call `work` with this connection, opened if need be; ToolError says why the server fails."""
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.close()
        try:
            return work(self)
        except FAILURES as error:
            self.close()
            raise ToolError(
                f"The mail server of {self.config.name} fails: {said(error)}."
            ) from None
        finally:
            self._used = time.monotonic()

    def close(self) -> None:
        box, self._box = self._box, None
        if box:
            with suppress(*FAILURES):
                box.logout()

    @property
    def box(self) -> BaseMailBox:
        if self._box is None:
            password = self.config.password()
            host, port, secure, direct = place(self.config.imap)
            if direct:
                box: BaseMailBox = MailBox(host, port, SECONDS, ssl_context=secure)
            elif secure:
                box = MailBoxStartTls(host, port, SECONDS, secure)
            else:
                box = MailBoxUnencrypted(host, port, SECONDS)
            self._box = box
            box.login_utf8(self.config.user, password, None)
        return self._box

    def state(self, folder: str) -> tuple[int, int, int]:
        """UIDVALIDITY, UIDNEXT and the number of messages of a folder, which is then open to be read."""
        count = self.box.folder.set(folder, readonly=True)[1][0]
        validity, following = (
            self.box.client.response(k)[1][0] for k in ("UIDVALIDITY", "UIDNEXT")
        )
        return int(validity or 0), int(following or 0), int(count)

    def uids(self, folder: str, *, words: Sequence[str] = (), unread: bool = False) -> list[int]:
        self.state(folder)
        criteria = AND(text=[*words]) if words else "UNSEEN" if unread else "ALL"
        return [*map(int, self.box.uids(criteria, "UTF-8" if words else None))]

    def fetch(self, folder: str, uids: Sequence[int], what: str) -> list[Fetched]:
        """(UID, arrival, size), and what was wanted, of each message that is there."""
        self.state(folder)
        wanted = f"(UID RFC822.SIZE INTERNALDATE {what})"
        answer, data = self.box.client.uid("fetch", ",".join(map(str, uids)), wanted)
        if answer != "OK":
            raise imaplib.IMAP4.error(data)
        ends = [each if isinstance(each, bytes) else b"" for each in (*data[1:], b"")]
        return [
            (attributes(each[0] + end), each[1])
            for each, end in zip(data, ends, strict=True)
            if isinstance(each, tuple)
        ]

    def append(self, raw: bytes, role: str) -> None:
        """Keep a message in the folder that the server marks with the role, or calls so."""
        folders, name = self.box.folder.list(), ROLES[role]
        names = [each.name for each in folders if role in each.flags]
        names += [each.name for each in folders if re.split(r"[/.\\]", each.name)[-1] == name]
        if not names:
            self.box.folder.create(name)
        flag = "\\Draft" if role == "\\Drafts" else "\\Seen"
        self.box.append(raw, (names or [name])[0], flag_set=[flag])


def attributes(head: bytes) -> tuple[int, float, int]:
    uid, arrived, size = 0, 0.0, 0
    for found in ATTRIBUTES.finditer(head):
        uid, size = int(found[1] or uid), int(found[2] or size)
        if found[3] and (moment := imaplib.Internaldate2tuple(found[3])):
            arrived = time.mktime(moment)
    return uid, arrived, size


def send(config: AccountConfig, recipients: Sequence[str], raw: bytes) -> None:
    """Hand a letter to the account's server, for all of its recipients. Raises Uncertain, or ToolError where it was not
    sent to any."""
    password, handed = config.password(), False
    host, port, secure, direct = place(config.smtp)
    try:
        kind: Any = smtplib.SMTP_SSL if direct else smtplib.SMTP
        smtp = kind(host, port, timeout=SECONDS, **({"context": secure} if direct else {}))
        try:
            if secure and not direct:
                smtp.starttls(context=secure)
            smtp.ehlo_or_helo_if_needed()
            if smtp.has_extn("auth"):
                smtp.login(config.user, password)
            accepted(smtp.mail(config.sender))
            for recipient in recipients:
                accepted(smtp.rcpt(recipient))
            handed = True
            accepted(smtp.data(raw))
        finally:
            smtp.close()
    except smtplib.SMTPResponseException as error:
        why = f"{error.smtp_code} {said(error.smtp_error)}"
        raise ToolError(f"It was not sent: {host} refuses it ({why}).") from None
    except (OSError, smtplib.SMTPException) as error:
        if handed:
            told = f"Nobody knows whether it was sent: the connection broke while it was handed over ({said(error)})."
            raise Uncertain(f"{told} Say so, and do not send it again.") from None
        raise ToolError(f"It was not sent: {host} cannot be used ({said(error)}).") from None


def accepted(answer: tuple[int, bytes]) -> None:
    if answer[0] not in (250, 251):
        raise smtplib.SMTPResponseException(*answer)


def said(words: object) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
    return " ".join(clean(text or type(words).__name__).split())[:200].rstrip(".")


def place(url: str) -> tuple[str, int, ssl.SSLContext | None, bool]:
    """A server's host and port, the TLS context (None on this machine: not encrypted), and whether TLS begins with the
    first byte or by STARTTLS."""
    parts = urlsplit(url)
    host, direct = parts.hostname or "", parts.scheme.endswith("s")
    here = host in ("127.0.0.1", "::1", "localhost") and not direct
    secure = None if here else ssl.create_default_context()
    return host, parts.port or PORTS[parts.scheme], secure, direct
