"""mail: the mail accounts of the owner's."""

import asyncio
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from agent.errors import ToolError
from agent.language import translated
from agent.sandbox.output_buffer import plain_name
from agent.shell.command import ShellCall, UsageError, command, no_lines
from agent.timezones import local_time
from agent.tools.context import ToolContext
from backend.protocol import Phrase

if TYPE_CHECKING:  # loaded where accounts are configured
    from email.message import EmailMessage

    from agent.mail.account import MailAccount
    from agent.mail.index import KnownMessage

SHOWN, MOST_SHOWN = 20, 200  # messages
MOST_BYTES = 25 << 20  # of a letter; larger ones few servers take
UNSAFE = re.compile(r"[^\w .()+@,-]|^[. -]+")
READ = "Let this chat read the mail account {name} ({user}), from now on, all of its messages. /approve takes that back."
DRAFT, SEND = (
    "Keep this draft in the mail account {name}:",
    "Send this letter from the mail account {name}:",
)
Account = Annotated[str, "its name, where there are several"]
Folder = Annotated[str, "another folder than those that are searched"]
AsJson = Annotated[bool, "as JSON"]


FORMS = (
    "mail list | mail search WORDS...  The newest messages: number, time, sender, subject.",
    "mail read NUMBER | mail thread NUMBER  A message; those that answer each other.",
    "mail save NUMBER [ATTACHMENT...]  Its attachments, by number, into /workspace/mail/NUMBER.",
    "mail draft | mail send --to ADDRESS --subject WORDS [TEXT]  A letter, also from standard input; an owner sees it first.",
)


def lines(context: ToolContext) -> Sequence[str]:
    return FORMS if context.mail else ()


@command(lines=lines)
async def list_(
    call: ShellCall,
    *,
    folder: Folder = "",
    unread: Annotated[bool, "unread ones alone"] = False,
    limit: Annotated[int, "how many"] = SHOWN,
    account: Account = "",
    json_: AsJson = False,
) -> None:
    """List the newest messages."""
    chosen = await account_of(call, account)
    with call.questions.waiting():
        found, lacking = await chosen.find(folder, checked(limit), unread=unread)
    await show(call, chosen, found, lacking, json_=json_)


@command(lines=no_lines)
async def new(
    call: ShellCall,
    after: Annotated[str, "such a state; without it nothing is new"] = "",
    *,
    folder: Folder = "",
    account: Account = "",
) -> None:
    """Print the state of a folder, then the messages that came since an earlier one."""
    if not re.fullmatch(r"(?:\d{1,18}\.\d{1,18})?", after):
        raise UsageError("a state is what `mail new` prints first")
    chosen = await account_of(call, account)
    with call.questions.waiting():
        state, found = await chosen.news(folder, after, MOST_SHOWN)
    await call.write(f"{state}\n")
    if found:
        await show(call, chosen, found)


@command(lines=no_lines)
async def search(
    call: ShellCall,
    *words: str,
    from_: Annotated[str, "of senders whose name or address has this"] = "",
    since: Annotated[str, "that came on this day or later, such as 2026-11-28"] = "",
    folder: Folder = "",
    limit: Annotated[int, "how many"] = SHOWN,
    account: Account = "",
    json_: AsJson = False,
) -> None:
    """Find messages that have all of these words."""
    if not words and not from_:
        raise UsageError("words are missing")
    try:
        day = datetime.fromisoformat(since or "1969-01-01")
    except ValueError:
        raise UsageError("--since takes a day such as 2026-11-28") from None
    zone = local_time(0.0, call.within.sandbox.config.zone).tzinfo
    begin = day.replace(tzinfo=day.tzinfo or zone).timestamp()
    chosen = await account_of(call, account)
    with call.questions.waiting():
        query = " ".join(words)
        wanted: dict[str, Any] = {"query": query, "sender": from_, "since": begin}
        found, lacking = await chosen.find(folder, checked(limit), **wanted)
    await show(call, chosen, found, lacking, json_=json_)


@command(lines=no_lines)
async def read(
    call: ShellCall,
    number: int,
    *,
    question: Annotated[str, "to get its answer alone"] = "",
    account: Account = "",
    json_: AsJson = False,
) -> None:
    """Read a message."""
    chosen = await account_of(call, account)
    with call.questions.waiting():
        known = await chosen.known(number)
        message = await chosen.read(await chosen.whole(known))
    await call.stranger(source(chosen))
    if extract := await call.extract(question, message.text):
        await call.write(f"{extract}\n")
        return
    if json_:
        await call.write(json.dumps(message.model_dump(), ensure_ascii=False) + "\n")
        return
    head = {
        "From": message.sender,
        "To": message.recipients,
        "Subject": message.subject,
        "Date": message.sent,
        "Arrived": format_time(call, known.arrived),
    }
    await call.write("".join(f"{name}: {value}\n" for name, value in head.items() if value))
    for count, part in enumerate(message.parts, 1):
        await call.write(f"Attachment {count}: {part.name} ({part.kind}, {part.size:,} bytes)\n")
    await call.write(f"\n{message.text or '(It has no text.)'}\n")


@command(lines=no_lines)
async def thread(
    call: ShellCall, number: int, *, account: Account = "", json_: AsJson = False
) -> None:
    """List the messages that answer each other, oldest first."""
    chosen = await account_of(call, account)
    found = await asyncio.to_thread(chosen.index.thread, number)
    await show(call, chosen, found, json_=json_)


@command(lines=no_lines)
async def save(call: ShellCall, number: int, *attachments: int, account: Account = "") -> None:
    """Save attachments of a message, all unless some are named by number."""
    chosen = await account_of(call, account)
    with call.questions.waiting():
        raw = await chosen.whole(await chosen.known(number))
        parts = (await chosen.read(raw)).parts
    await call.stranger(source(chosen))
    wanted = attachments or range(1, len(parts) + 1)
    if not wanted or not all(1 <= each <= len(parts) for each in wanted):
        raise ToolError(f"Message {number} has {len(parts)} attachments.")
    await call.within.sandbox.files.mark(source(chosen))
    for each in wanted:
        with call.questions.waiting():
            content = await chosen.attachment(raw, each)
        path = f"/workspace/mail/{number}/{safe_name(parts[each - 1].name, each)}"
        await call.within.sandbox.files.write(path, content)
        await call.write(f"{path}\n")


To = Annotated[str, "addresses, with commas between them"]
Reply = Annotated[int, "the number of the message that it answers"]
Files = Annotated[list[str] | None, "a file to attach; may be repeated"]


@command(lines=no_lines)
async def draft(
    call: ShellCall,
    *words: str,
    to: To = "",
    cc: To = "",
    bcc: To = "",
    subject: str = "",
    reply: Reply = 0,
    file: Files = None,
    account: Account = "",
) -> None:
    """Keep a letter among the drafts of the account; its text may come from standard input."""
    chosen = await account_of(call, account)
    fields = {"To": to, "Cc": cc, "Bcc": bcc, "Subject": subject}
    letter = await allowed(
        call, chosen, words, fields, reply, file, translated(DRAFT), "mail-draft"
    )
    with call.questions.waiting():
        await chosen.keep(letter, "\\Drafts")
    await call.write("It is among the drafts.\n")


@command(lines=no_lines)
async def send(
    call: ShellCall,
    *words: str,
    to: To = "",
    cc: To = "",
    bcc: To = "",
    subject: str = "",
    reply: Reply = 0,
    file: Files = None,
    account: Account = "",
) -> None:
    """Send a letter, once an owner has seen it; its text may come from standard input."""
    chosen = await account_of(call, account)
    if not chosen.config.smtp:
        name = chosen.config.name
        raise ToolError(f"The account {name} cannot send; the owner can name its smtp.")
    fields = {"To": to, "Cc": cc, "Bcc": bcc, "Subject": subject}
    letter = await allowed(call, chosen, words, fields, reply, file, translated(SEND), "mail-send")
    with call.questions.waiting():
        await chosen.send(letter)
        await call.write("It was sent.\n")
        try:
            await chosen.keep(letter, "\\Sent")
        except ToolError as error:
            await call.warn(f"It is not kept among the sent ones: {error}\n")


async def allowed(
    call: ShellCall,
    account: "MailAccount",
    words: Sequence[str],
    fields: dict[str, str],
    reply: int,
    paths: Sequence[str] | None,
    form: str,
    act: str,
) -> "EmailMessage":
    """The letter, once an owner has allowed what is shown of it: all of it. ToolError where it holds a secret."""
    from agent.mail.letter import compose, shown

    answered: Sequence[str] = ()
    if reply:
        known = await account.known(reply)
        answered = await asyncio.to_thread(account.index.ids, reply)
        name, _, address = known.sender.replace('"', "").rpartition("<")
        fields["To"] = fields["To"] or f'"{name.strip()}" <{address.rstrip("> ")}>'
        fields["Subject"] = fields["Subject"] or f"Re: {known.subject.removeprefix('Re: ')}"
    for each in ("To", "Subject"):
        if not fields[each]:
            raise UsageError(f"--{each.lower()} is missing")
    pieces, left = [" ".join(words).encode()], MOST_BYTES
    while not words and left >= 0 and (piece := await call.read()):
        pieces.append(piece)
        left -= len(piece)
    text = b"".join(pieces).decode("utf-8", "replace")
    files = []
    for path in paths or ():
        place = call.path(path)
        with await call.within.sandbox.files.open(place) as file:
            content = file.read(max(0, left) + 1)
        left -= len(content)
        await call.within.reads(call.within.sandbox.files.place(place))
        if leak := await asyncio.to_thread(call.context.leaks.find, content):
            await call.within.leaves(Phrase("The file {name}", name=place), place, leak)
        files.append((plain_name(place), content))
    if left < 0:
        raise UsageError(f"a letter has at most {MOST_BYTES >> 20} MiB, with its files")
    await call.leaves("mail", text)
    letter = compose({"From": account.config.sender, **fields}, text, files, answered)
    what = form.format(name=account.config.name)
    await call.approve(f"{what}\n\n{shown(letter)}", scope=f"{act}:{account.config.name}")
    await call.reserve({"bytes": len(bytes(letter))})
    return letter


async def account_of(call: ShellCall, name: str) -> "MailAccount":
    """The account of that name, or the first, once an owner has let this chat read it."""
    accounts = call.context.mail
    if not accounts:
        raise ToolError("There is no mail account; the owner can name one (docs/mail.md).")
    account = accounts.get(name or next(iter(accounts)))
    if account is None:
        raise ToolError(f"There is no account {name[:40]}; there are {', '.join(accounts)}.")
    config = account.config
    what = translated(READ).format(name=config.name, user=config.user)
    await call.approve(what, scope=f"mail:{config.name}")
    await call.within.sandbox.observer.connection(config.imap)
    return account


async def show(
    call: ShellCall,
    account: "MailAccount",
    found: "Sequence[KnownMessage]",
    lacking: int = 0,
    *,
    json_: bool = False,
) -> None:
    if lacking:
        await call.warn(
            f"{lacking:,} older messages are not read in yet: look again in a minute.\n"
        )
    await call.stranger(source(account))
    if json_:
        fields = [{**each._asdict(), "arrived": format_time(call, each.arrived)} for each in found]
        await call.write(json.dumps(fields, ensure_ascii=False, indent=1) + "\n")
        return
    for each in found:
        files = f" [{each.files} attached]" if each.files else ""
        line = f"{each.number}  {format_time(call, each.arrived)}  {each.sender[:60]}  {each.subject[:120]}{files}"
        await call.write(f"{line}\n")
    if not found:
        await call.write("There is no such message.\n")


def source(account: "MailAccount") -> str:
    return f"mail {account.config.name}"


def format_time(call: ShellCall, at: float) -> str:
    return f"{local_time(at, call.within.sandbox.config.zone):%Y-%m-%d %H:%M}"


def checked(limit: int) -> int:
    if not 1 <= limit <= MOST_SHOWN:
        raise UsageError(f"--limit is 1 to {MOST_SHOWN}")
    return limit


def safe_name(name: str, number: int) -> str:
    """A file name that no other of the message has."""
    plain = UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2])
    return f"{number}-{plain.encode()[-120:].decode('utf-8', 'ignore')}"
