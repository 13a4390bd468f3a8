"""The connections with a mail server, by imap-tools and smtplib. They block; this module is imported with the first one."""

import imaplib
import re
import smtplib
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, TypeVar
from urllib.parse import urlsplit

from imap_tools import (
    BaseMailBox,
    ImapToolsError,
    MailBox,
    MailBoxStartTls,
    MailBoxUnencrypted,
    UnexpectedCommandStatusError,
)

from agent.errors import ToolError
from agent.mail.account import AccountConfig
from agent.sandbox.output_buffer import clean

SECONDS = 30.0  # that a server may be silent
ROLES = {"\\Drafts": "Drafts", "\\Sent": "Sent"}  # folders by what servers mark them as
PORTS = {"imaps": 993, "imap": 143, "smtps": 465, "smtp": 587}
ATTRIBUTES = re.compile(rb'\bUID (\d+)|\bRFC822\.SIZE (\d+)|\b(INTERNALDATE "[^"]{20,40}")')
FAILURES = (OSError, imaplib.IMAP4.error, ImapToolsError)
Fetched = tuple[tuple[int, float, int], bytes]
T = TypeVar("T")


class Uncertain(ToolError):
    """Nobody knows whether a letter was sent: the server gave no answer."""


@dataclass
class ImapConnection:
    """A connection that is opened at its first use, and again where it was cut off; for one thread at a time."""

    config: AccountConfig
    _secret: str = ""
    _box: BaseMailBox | None = None
    _idles: bool = False

    def use(self, work: Callable[["ImapConnection"], T], secret: str) -> T:
        """Call `work` with this connection, opened if need be; ToolError says why the server fails."""
        self._secret = secret
        try:
            if self._box and not self._idles:
                self._box.client.noop()
        except FAILURES:
            self.close()
        try:
            return work(self)
        except FAILURES as error:
            self.close()
            raise ToolError(
                f"The mail server of {self.config.name} fails: {said(error)}."
            ) from None

    def close(self) -> None:
        box, self._box = self._box, None
        idled, self._idles = self._idles, False
        if box:
            with suppress(*FAILURES):
                box.client.shutdown() if idled else box.logout()

    @property
    def box(self) -> BaseMailBox:
        if self._box is None:
            host, port, secure, direct = parse_server(self.config.imap)
            if direct:
                box: BaseMailBox = MailBox(host, port, SECONDS, ssl_context=secure)
            elif secure:
                box = MailBoxStartTls(host, port, SECONDS, secure)
            else:
                box = MailBoxUnencrypted(host, port, SECONDS)
            self._box = box
            sign_in = box.xoauth2 if self.config.client_id else box.login_utf8
            sign_in(self.config.user, self._secret, None)
        return self._box

    def state(self, folder: str) -> tuple[int, int, int]:
        """Open a folder to read it; return its UIDVALIDITY, UIDNEXT and number of messages."""
        count = self.box.folder.set(folder, readonly=True)[1][0]
        validity, following = (
            self.box.client.response(k)[1][0] for k in ("UIDVALIDITY", "UIDNEXT")
        )
        return int(validity or 0), int(following or 0), int(count)

    def uids(self, folder: str, criteria: str = "ALL") -> list[int]:
        """The UIDs of the messages in a folder that match criteria of IMAP's SEARCH."""
        self.state(folder)
        return [*map(int, self.box.uids(criteria, None))]

    def fetch(self, folder: str, uids: Sequence[int], what: str) -> list[Fetched]:
        """Fetch the IMAP data item `what`: for each message found ((UID, arrival in s since 1970, bytes), item)."""
        if self.box.folder.get() != folder:
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

    def begin_idle(self) -> int | None:
        """Have the server tell of changes in the open folder; return the descriptor to read, None without IDLE."""
        client = self.box.client
        if b"IDLE" not in client.capability()[1][0].upper().split():
            return None
        self._idles = True
        self.box.idle.start()  # type: ignore[no-untyped-call]
        return int(client.sock.fileno())

    def end_idle(self) -> None:
        self.box.idle.stop()  # type: ignore[no-untyped-call]
        self._idles = False

    def append(self, raw: bytes, role: str) -> None:
        """Add a message to the folder of that role (a key of ROLES), known by its mark or name, created if missing."""
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


@contextmanager
def open_smtp(config: AccountConfig, secret: str) -> Iterator[smtplib.SMTP]:
    """A connection that is signed in. Raises OSError and SMTPException."""
    host, port, secure, direct = parse_server(config.smtp)
    kind: Any = smtplib.SMTP_SSL if direct else smtplib.SMTP
    smtp = kind(host, port, timeout=SECONDS, **({"context": secure} if direct else {}))
    try:
        if secure and not direct:
            smtp.starttls(context=secure)
        smtp.ehlo_or_helo_if_needed()
        if config.client_id:
            token = f"user={config.user}\1auth=Bearer {secret}\1\1"
            smtp.auth("XOAUTH2", lambda challenge=None: "" if challenge else token)
        elif smtp.has_extn("auth"):
            smtp.login(config.user, secret)
        yield smtp
    finally:
        smtp.close()


def try_servers(config: AccountConfig, secret: str) -> str:
    """Sign in to the servers, and open the folders; return a sentence about them. Raises ToolError."""
    with closing(ImapConnection(config)) as connection:
        for folder in config.folders:
            connection.use(methodcaller("state", folder), secret)
    if not config.smtp:
        return f"{config.user} is signed in; it cannot send."
    try:
        with open_smtp(config, secret):
            return f"{config.user} is signed in, and can send."
    except (OSError, smtplib.SMTPException) as error:
        why = f"The server for letters of {config.name} fails: {said(error)}."
        raise ToolError(why) from None


def send(config: AccountConfig, secret: str, recipients: Sequence[str], raw: bytes) -> None:
    """Hand a letter to the account's server, for all of its recipients. Raises Uncertain, or ToolError where it was not
    sent to any."""
    host, handed = parse_server(config.smtp)[0], False
    try:
        with open_smtp(config, secret) as smtp:
            accepted(smtp.mail(config.sender))
            for recipient in recipients:
                accepted(smtp.rcpt(recipient))
            handed = True
            accepted(smtp.data(raw))
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
    if isinstance(words, UnexpectedCommandStatusError):
        words = words.command_result[1][-1]
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
    return " ".join(clean(text or type(words).__name__).split())[:200].rstrip(".")


def parse_server(url: str) -> tuple[str, int, ssl.SSLContext | None, bool]:
    """A server's host and port, the TLS context (None on this machine: not encrypted), and whether TLS begins with the
    first byte or by STARTTLS."""
    parts = urlsplit(url)
    host, direct = parts.hostname or "", parts.scheme.endswith("s")
    here = host in ("127.0.0.1", "::1", "localhost") and not direct
    secure = None if here else ssl.create_default_context()
    return host, parts.port or PORTS[parts.scheme], secure, direct
