"""Letters that are written: their bytes, and all that an owner sees of them."""

import hashlib
import re
from collections.abc import Sequence
from email import policy
from email.message import EmailMessage
from email.utils import formatdate, getaddresses, make_msgid

from agent.errors import UsageError
from agent.files import media_type

ADDRESS = re.compile(r"[!-~]+@[!-~]+")
TO = ("To", "Cc", "Bcc")


def compose(
    fields: dict[str, str], text: str, files: Sequence[tuple[str, bytes]], answered: Sequence[str]
) -> EmailMessage:
    """A letter with these headers, without those that are empty. `answered` are the ids of the messages that it answers,
    the last one's last. UsageError for what no letter can hold."""
    letter = EmailMessage(policy.SMTP.clone(cte_type="7bit"))
    for name, value in fields.items():
        if value and re.search(r"[\r\n]", value):
            raise UsageError(f"{name} has one line")
        if value:
            letter[name] = value
    if wrong := [each for each in recipients(letter) if not ADDRESS.fullmatch(each)]:
        raise UsageError(f"{wrong[0]!r} is no address such as anna@example.org")
    letter["Date"] = formatdate(localtime=True)
    letter["Message-ID"] = make_msgid(domain=fields["From"].rpartition("@")[2].strip("> "))
    if answered:
        letter["In-Reply-To"], letter["References"] = answered[-1], " ".join(answered)
    letter.set_content(text)
    for name, content in files:
        known = re.sub("^message/.*", "application/octet-stream", media_type(name))
        kind, _, of = known.partition("/")
        letter.add_attachment(content, maintype=kind, subtype=of, filename=name)
    return letter


def recipients(letter: EmailMessage) -> list[str]:
    given = [str(letter[name]) for name in TO if letter[name]]
    return [address for _, address in getaddresses(given)]


def shown(letter: EmailMessage) -> str:
    """The whole letter as an owner reads it."""
    head = [f"{name}: {letter[name]}" for name in ("From", *TO, "Subject") if letter[name]]
    for file in letter.iter_attachments():
        size = len(file.get_payload(decode=True) or b"")
        head.append(f"+ {file.get_filename()} ({size:,} bytes)")
    body = letter.get_body()
    return "\n".join([*head, "", body.get_content() if body else ""])


def digest(letter: EmailMessage) -> str:
    """A digest of what a letter says and to whom: a letter that was sent before is recognized by it."""
    files = (hashlib.sha256(bytes(each)).digest() for each in letter.iter_attachments())
    parts = [shown(letter).encode("utf-8", "replace"), *files]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:40]
