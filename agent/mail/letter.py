"""Letters that are written: their bytes, and all that an owner sees of them."""

import hashlib
import re
from collections.abc import Sequence
from email import policy
from email.errors import InvalidHeaderDefect
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.utils import formatdate, make_msgid

from agent.errors import UsageError
from agent.files import media_type

ADDRESS = re.compile(r"[!-~]+@[!-~]+")
TO = ("To", "Cc", "Bcc")


def compose(
    fields: dict[str, str], text: str, files: Sequence[tuple[str, bytes]], answered: Sequence[str]
) -> EmailMessage:
    """Write a letter with those of the headers `fields` that are not empty, and `files` (name, content). `answered` are
    the ids of the thread it answers, oldest first. Raises UsageError for a header or address that is not valid."""
    letter = EmailMessage(policy.SMTP.clone(cte_type="7bit", refold_source="none"))
    for name, value in fields.items():
        try:
            if value:
                letter[name] = value
        except (ValueError, IndexError):
            raise UsageError(f"{name} has one line, and cannot be {value[:80]!r}") from None
        if value and name in TO:
            broken = any(isinstance(each, InvalidHeaderDefect) for each in letter[name].defects)
            found = [each.addr_spec for each in letter[name].addresses]
            if broken or not found or not all(map(ADDRESS.fullmatch, found)):
                told = (
                    f"{value[:80]!r} is no address such as anna@example.org, nor some with commas"
                )
                raise UsageError(told)
    letter["Date"] = formatdate(localtime=True)
    letter["Message-ID"] = make_msgid(domain=fields["From"].rpartition("@")[2].strip("> "))
    if ids := [each for each in answered if each.isascii()]:  # as they are: long ones, too
        letter.set_raw("In-Reply-To", ids[-1])
        letter.set_raw("References", "\r\n ".join(ids))
    if BytesHeaderParser().parsebytes(bytes(letter)).keys() != letter.keys():  # of encoded words
        raise UsageError("a header has one line")
    letter.set_content(text)
    for name, content in files:
        known = re.sub("^message/.*", "application/octet-stream", media_type(name))
        kind, _, of = known.partition("/")
        letter.add_attachment(content, maintype=kind, subtype=of, filename=name)
    return letter


def recipients(letter: EmailMessage) -> list[str]:
    return [each.addr_spec for name in TO if letter[name] for each in letter[name].addresses]


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
