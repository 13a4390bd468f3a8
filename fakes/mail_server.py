"""A real Dovecot on loopback (IMAP, and submission that hands letters on), and the SMTP server behind it, which fails on
demand.

Dovecot runs as an ordinary user with a configuration of its own; nothing of the machine's is touched.
"""

import asyncio
import contextlib
import grp
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.mail.account import AccountConfig
from backend.server.launch import free_port
from fakes.patience import SECONDS

DOVECOT = shutil.which("dovecot", path=f"{os.environ['PATH']}:/usr/sbin")
DOVEADM = shutil.which("doveadm", path=f"{os.environ['PATH']}:/usr/bin") or ""
SUBMISSION = Path("/usr/lib/dovecot/submission-login")
USER, PASSWORD = "anna@example.org", "quince-7-lantern-42"
CONFIG = """
protocols = imap submission
listen = 127.0.0.1, 127.0.0.2
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = {ssl}
disable_plaintext_auth = no
auth_failure_delay = 0
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:{folder}/mail/%u
mail_fsync = never
{more}
submission_relay_host = 127.0.0.1
submission_relay_port = {relay}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={folder}/home/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Entwürfe {{
    auto = create
    special_use = \\Drafts
  }}
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service submission-login {{
  chroot =
  inet_listener submission {{
    port = {submission}
  }}
  inet_listener submissions {{
    port = {submissions}
    ssl = yes
  }}
}}
"""


def own_folder() -> Path:
    """A new one with a short path, which the sockets in it need, and that its user reaches."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="dovecot-", dir=memory if memory.is_dir() else None))


@dataclass
class Dovecot:
    """Mailboxes of one user after the other, on 127.0.0.1 and 127.0.0.2; `relay` is the port of the server that letters are handed on to."""

    relay: int = 1
    imap: int = field(default_factory=free_port)
    submission: int = field(default_factory=free_port)
    imaps: int = 0  # 0: nothing is encrypted
    submissions: int = 0
    more: str = ""  # lines of its configuration
    folder: Path = field(default_factory=own_folder)
    user: str = USER
    _count: int = 0

    @property
    def inbox(self) -> Path:
        return self.folder / "mail" / self.user

    def move(self) -> None:
        """Be the mailbox of another user, which is empty."""
        self._count += 1
        self.user = f"{USER}.{self._count}"
        self.inbox.mkdir()
        self.hand_over(self.inbox)

    def section(self, **fields: object) -> dict[str, object]:
        """The fields of agent.mail.NAME."""
        secret = self.folder / "password"
        secret.write_text(f"{PASSWORD}\n")
        return {
            "imap": f"imap://127.0.0.1:{self.imap}",
            "smtp": f"smtp://127.0.0.1:{self.submission}",
            "user": self.user,
            "password_file": str(secret),
            "sender": f"Anna <{USER}>",
            **fields,
        }

    def config(self, **fields: object) -> AccountConfig:
        return AccountConfig("work", **self.section(**fields))  # type: ignore[arg-type]

    @property
    def certificate(self) -> Path:
        """Its own, for 127.0.0.2, with the key."""
        return self.folder / "certificate.pem"

    def encrypt(self) -> None:
        """Have it encrypt, with a certificate of its own; before it runs."""
        self.imaps, self.submissions = free_port(), free_port()
        words = (
            "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -days 2 -subj /CN=mail"
        )
        made = ["-addext", "subjectAltName=IP:127.0.0.2", "-keyout", "-", "-out", "-"]
        done = subprocess.run(["openssl", *words.split(), *made], capture_output=True, check=True)
        self.certificate.write_bytes(done.stdout)

    def drafts(self) -> list[Path]:
        return [*self.inbox.glob(".Entw*/*/*,S=*")]

    def deliver(self, messages: Iterable[bytes], folder: str = "", *, old: bool = False) -> None:
        """Put messages into the inbox, or the folder; each a second newer than the one before. `old`: a client has seen
        them before, so that the server need not look through them at each command."""
        place = self.inbox / (f".{folder}" if folder else "")
        for name in ("cur", "new", "tmp"):
            (place / name).mkdir(parents=True, exist_ok=True)
        now = int(time.time()) - 100_000
        for raw in messages:
            self._count += 1
            name = f"{now + self._count}.M{self._count}.test,S={len(raw)}"
            path = place / ("cur" if old else "new") / (f"{name}:2,S" if old else name)
            path.write_bytes(raw)
            os.utime(path, (now + self._count,) * 2)
            if os.getuid() == 0:
                os.chown(path, *account()[:2])
        self.hand_over(place)

    def index(self) -> None:
        """Have Dovecot index the inbox, beside its clients."""
        doveadm = [
            DOVEADM,
            "-c",
            str(self.folder / "dovecot.conf"),
            "index",
            "-u",
            self.user,
            "INBOX",
        ]
        subprocess.run(doveadm, check=True, capture_output=True, **ids())

    def hand_over(self, *places: Path) -> None:
        """Give folders to the user that Dovecot runs as."""
        for place in places if os.getuid() == 0 else ():
            for each in (place, *place.glob("*")):
                os.chown(each, *account()[:2])

    @contextmanager
    def running(self) -> Iterator["Dovecot"]:
        assert DOVECOT
        uid, gid, user, group = account()
        for name in ("run", "state", "mail", "home"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.inbox.mkdir(exist_ok=True)
        self.hand_over(self.folder, self.inbox)
        config = self.folder / "dovecot.conf"
        values = {"uid": uid, "gid": gid, "user": user, "group": group, "password": PASSWORD}
        names = ("folder", "more", "relay", "imap", "submission", "imaps", "submissions")
        places = {name: getattr(self, name) for name in names}
        certificate = f"yes\nssl_cert = <{self.certificate}\nssl_key = <{self.certificate}"
        places["ssl"] = certificate if self.imaps else "no"
        config.write_text(CONFIG.format(**values, **places))
        process = subprocess.Popen(
            [DOVECOT, "-F", "-c", str(config)],
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **ids(),
        )
        try:
            for port in (self.imap, self.submission):
                self._wait(process, port)
            yield self
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)
            shutil.rmtree(self.folder)

    def _wait(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        end = time.monotonic() + SECONDS
        while True:
            log = self.folder / "log"
            said = log.read_text() if log.exists() else ""
            assert process.poll() is None and time.monotonic() < end, said
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.01)


@dataclass
class Line:
    """A port that leads to another one; while it is `cut`, no connection is accepted and none goes on."""

    to: int
    port: int = 0
    cut: bool = False
    came: int = 0
    _ends: list[asyncio.StreamWriter] = field(default_factory=list)
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    def sever(self) -> None:
        self.cut = True
        for end in self._ends:
            end.close()

    async def lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.cut:
            writer.close()
            return
        self.came += 1
        task = asyncio.current_task()
        assert task
        self._tasks.append(task)
        there, onward = await asyncio.open_connection("127.0.0.1", self.to)
        self._ends += [writer, onward]
        await asyncio.gather(pump(reader, onward), pump(there, writer))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


@asynccontextmanager
async def line(to: int) -> AsyncIterator[Line]:
    served = Line(to)
    server = await asyncio.start_server(served.lead, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        served.sever()
        server.close()
        await asyncio.wait(served._tasks)


def installed() -> bool:
    return bool(DOVECOT) and SUBMISSION.exists()


def ids() -> dict[str, Any]:
    """Options of a process that runs as the user of account()."""
    uid, gid, *_ = account()
    return {"user": uid, "group": gid, "extra_groups": []} if os.getuid() == 0 else {}


def account() -> tuple[int, int, str, str]:
    """Ids and names of an ordinary user: this one, or nobody where it is root."""
    found = pwd.getpwnam("nobody") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    return found.pw_uid, found.pw_gid, found.pw_name, grp.getgrgid(found.pw_gid).gr_name


@dataclass
class Relay:
    """An SMTP server: `came` are the letters, each with its recipients. `refuses` recipients; `fails` with an answer to
    the letter, or "drops" the connection once it has all of it."""

    port: int = 0
    came: list[tuple[list[str], bytes]] = field(default_factory=list)
    refuses: str = ""
    fails: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._talk(reader, writer)
        writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())

        recipients: list[str] = []
        say("220 relay.test ESMTP")
        while line := (await reader.readline()).decode().strip():
            verb, _, rest = line.partition(" ")
            match verb.upper():
                case "EHLO" | "HELO":
                    say("250-relay.test\r\n250-PIPELINING\r\n250 8BITMIME")
                case "RCPT" if self.refuses and self.refuses in rest:
                    say("550 5.1.1 no such mailbox here")
                case "RCPT":
                    recipients.append(rest.partition("<")[2].partition(">")[0])
                    say("250 2.1.5 ok")
                case "DATA":
                    say("354 go on")
                    raw = await reader.readuntil(b"\r\n.\r\n")
                    if self.fails != "drops" and self.fails:
                        say(self.fails)
                        continue
                    self.came.append((recipients, raw[:-5]))
                    recipients = []
                    if self.fails == "drops":
                        return
                    say("250 2.0.0 queued")
                case "QUIT":
                    say("221 bye")
                    return
                case _:
                    say("250 ok")


@asynccontextmanager
async def relay(port: int = 0) -> AsyncIterator[Relay]:
    served = Relay()
    server = await asyncio.start_server(served.serve, "127.0.0.1", port)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
