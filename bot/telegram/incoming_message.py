"""Takes in a Telegram message: whether it is for the bot, and its row of the inbox (text, quote, forward, sender, files)."""

import mimetypes
import re
from collections.abc import Sequence
from typing import Any, cast

from telegram import ExternalReplyInfo, Message, MessageEntity, Update, User

from agent.store import Incoming
from agent.trust import Origin
from bot import intake
from bot.access import AccessLevel, Sender
from bot.attachments import Attachment, safe_name, to_json
from bot.commands.context import HandlerContext
from bot.intake import Quotation
from bot.telegram.message_calls import SOURCE, ChatKey

# Seconds to wait for more that belongs to the same message.
ALBUM_SETTLE = 1.2
PASTE_SETTLE = 1.2
FORWARD_SETTLE = 0.8
FILE_SETTLE = 0.8  # a file without a caption: the question often follows
PASTE = 3900  # characters; a client cuts what is longer into pieces of 4,096
UNREAD = ("game", "gift", "giveaway", "giveaway_winners", "invoice", "paid_media", "live_photo")
UNREADABLE = "[a message of a kind that cannot be read here: {}]"
STORY = "[a story of {}, which cannot be seen here]"
COMMAND = re.compile(r"/(\w+)(@\w+)?(?:\Z|\s+(.*))", re.DOTALL)
SUFFIXES = {"voice": ".oga", "photo": ".jpg", "video note": ".mp4"}


async def on_message(context: HandlerContext, update: Update) -> None:
    """A message that is no command."""
    message = update.message
    assert message
    if (sender := addressing_sender(context, message)) is None:
        return
    level = context.access.level(sender)
    if await intake.may_write(context, str(chat_of(message)), sender, level):
        await intake.receive(context, await inbox_row(context, update, message, level))


async def inbox_row(
    context: HandlerContext, update: Update, message: Message, level: AccessLevel
) -> Incoming:
    me = message.get_bot().bot
    edited = update.edited_message is not None
    chat, quote = str(chat_of(message)), quotation(message, me)
    if quote and (replied := message.reply_to_message):
        quote = await intake.quote_heard(context, quote, chat, SOURCE, str(replied.message_id))
    row = incoming_message(
        update.update_id, message, me, quote=quote, edited=edited, origin=intake.origin(level)
    )
    return await intake.mark_untrusted(context, row, own_message_quoted(message, me))


def incoming_message(
    update_id: int,
    message: Message,
    me: User,
    *,
    quote: Quotation | None = None,
    edited: bool = False,
    origin: Origin = "person",
) -> Incoming:
    """The inbox row of a message; its files and those of the quoted one are downloaded when its turn begins."""
    chat = chat_of(message)
    files = attachments(message, message)
    if message.media_group_id:
        settle = ALBUM_SETTLE
    elif len(message.text or "") >= PASTE:
        settle = PASTE_SETTLE
    elif message.forward_origin is not None:
        settle = FORWARD_SETTLE
    else:
        settle = FILE_SETTLE if files and not message.caption else 0.0
    return Incoming(
        chat=str(chat),
        source=SOURCE,
        update=str(update_id),
        text=message_text(message, me),
        kind="edit" if edited else "message",
        ref=str(message.message_id),
        sender="" if chat.private else display_name(message.from_user),
        quote=quote.line if quote else "",
        context_lines=forward_note(message),
        body=to_json([*files, *(quote.attachments if quote else ())]),
        settle_s=settle,
        at=message.date.timestamp(),
        origin=origin,
        stranger="; ".join(strangers_text(message, me)),
        author=author_of(message),
    )


def chat_of(message: Message) -> ChatKey:
    return ChatKey(message.chat.id, message.message_thread_id if message.is_topic_message else None)


def author_of(message: Message) -> str:
    """The id of the author: the channel or group in whose name a message was written, else the person."""
    author = message.sender_chat or message.from_user
    return str(author.id) if author else ""


def sender_of(message: Message, user: User) -> Sender:
    group = str(message.chat.id) if message.chat.id < 0 else None
    return Sender(str(user.id), user.full_name, group, user.language_code or "")


def addressing_sender(context: HandlerContext, message: Message) -> Sender | None:
    """The sender of a message that is addressed to the bot, else None. Other bots are not heard; an admin who writes
    as the group, whom Telegram shows as one, is."""
    user = message.from_user
    if user is None:
        return None
    if user.is_bot:
        meant = message.sender_chat is not None
    else:
        meant = message.chat.id > 0 or context.access.groups == "all"
        meant = meant or addressed(message, message.get_bot().bot)
    other = COMMAND.match(message.caption or "")
    if other and other[2] and other[2][1:].lower() != (message.get_bot().username or "").lower():
        return None  # a command for another bot, under a picture
    return sender_of(message, user) if meant else None


def addressed(message: Message, me: User) -> bool:
    """Whether a group's message addresses the bot, by a mention or as a reply."""
    if own_message_quoted(message, me):
        return True
    name = f"@{me.username}".lower()
    return any(
        (entity.type == "mention" and text.lower() == name)
        or (entity.type == "text_mention" and entity.user is not None and entity.user.id == me.id)
        for entity, text in entities_of(message)
    )


def entities_of(message: Message) -> Sequence[tuple[MessageEntity, str]]:
    text = message.text is not None
    found = message.parse_entities() if text else message.parse_caption_entities()
    return list(found.items())


def linked_text(message: Message) -> str:
    """The text or caption, with the address of each link behind its words."""
    if message.text is not None:
        return with_links(message.text, message.entities)
    return with_links(message.caption or "", message.caption_entities)


def with_links(text: str, entities: Sequence[MessageEntity]) -> str:
    units = text.encode("utf-16-le", "surrogatepass")  # offsets count these, two bytes each
    for entity in sorted(entities, key=lambda each: each.offset + each.length, reverse=True):
        start, end = entity.offset * 2, (entity.offset + entity.length) * 2
        words = units[start:end].decode("utf-16-le", "replace")
        if (
            entity.type == "text_link"
            and entity.url
            and entity.url.rstrip("/") != words.rstrip("/")
        ):
            units = units[:end] + f" ({entity.url})".encode("utf-16-le", "replace") + units[end:]
    return units.decode("utf-16-le", "replace")


def message_text(message: Message, me: User) -> str:
    """The text with its links' targets, without a leading mention of the bot; what is neither
    text nor file in brackets. Never empty where no file came along."""
    words = linked_text(message)
    if message.chat.id < 0 and me.username:
        words = re.sub(rf"(?i)\A@{me.username}(?!\w)[ ,:]*", "", words)
    lines = [words, *content_lines(message)]
    if not any(lines) and not attachments(message, message):
        lines.append(UNREADABLE.format("unknown"))
    return "\n".join(filter(None, lines))


def content_lines(message: Message | ExternalReplyInfo) -> list[str]:
    """What is neither text nor file, in brackets."""
    lines = []
    if message.venue:
        lines.append(f"[venue {message.venue.title}, {message.venue.address}]")
    if message.location:
        lines.append(f"[location {message.location.latitude}, {message.location.longitude}]")
    if message.contact:
        contact = message.contact
        name = " ".join(filter(None, [contact.first_name, contact.last_name]))
        lines.append(f"[contact {name}, {contact.phone_number}]")
    if message.sticker:
        lines.append(f"[{' '.join(filter(None, ['sticker', message.sticker.emoji]))}]")
    if message.poll:
        options = "; ".join(option.text for option in message.poll.options)
        lines.append(f"[poll: {message.poll.question} ({options})]")
    if message.dice:
        lines.append(f"[{message.dice.emoji} shows {message.dice.value}]")
    if message.story:
        lines.append(STORY.format(message.story.chat.effective_name))
    if message.checklist:
        done = [f"[{'x' if t.completion_date else ' '}] {t.text}" for t in message.checklist.tasks]
        lines.append("\n".join([f"[checklist: {message.checklist.title}]", *done]))
    unread = [kind for kind in UNREAD if getattr(message, kind, None)]
    return lines + [UNREADABLE.format(kind.replace("_", " ")) for kind in unread]


def quotation(message: Message, me: User) -> Quotation | None:
    """The quotation of the message that this one replies to: the selected part, else all of it."""
    replied, part = message.reply_to_message, message.quote
    text = with_links(part.text, part.entities or ()) if part else ""
    if replied is None or replied.forum_topic_created is not None:
        there, story = message.external_reply, message.reply_to_story
        lines = [STORY.format(story.chat.effective_name)] if story else []
        files = attachments(there, message) if there else ()
        if there:
            lines = [*content_lines(there), *selected(message, there)]
            if not lines and not files:
                lines = ["[a message of another chat, which cannot be seen here]"]
        text = text or "\n".join(lines)
        return Quotation("", text, files=files) if text or files else None
    ours = bool(own_message_quoted(message, me))
    whose = "you" if ours else display_name(replied.from_user)
    text = text or "\n".join([message_text(replied, me), *selected(message, replied)])
    return Quotation(whose, text, ours, attachments(replied, replied))


def selected(message: Message, replied: Message | ExternalReplyInfo) -> list[str]:
    """The task of a checklist or the option of a poll that a reply is about."""
    task, option = message.reply_to_checklist_task_id, message.reply_to_poll_option_id
    tasks = replied.checklist.tasks if task and replied.checklist else ()
    options = replied.poll.options if option and replied.poll else ()
    found = [each.text for each in tasks if each.id == task]
    found += [each.text for each in options if each.persistent_id == option]
    return [f"[namely: {text}]" for text in found]


def own_message_quoted(message: Message, me: User) -> str:
    """The id of the message of the bot that this one replies to; "" where it replies to none."""
    replied = message.reply_to_message
    if replied is None or replied.from_user is None or replied.from_user.id != me.id:
        return ""
    return str(replied.message_id)


def forward_note(message: Message) -> tuple[str, ...]:
    origin = message.forward_origin
    if origin is None:
        return ()
    user, chat = getattr(origin, "sender_user", None), getattr(origin, "chat", None)
    hidden = getattr(origin, "sender_user_name", "")
    name = display_name(user) if user else chat.effective_name if chat else hidden
    return (f"forwarded from {name or 'somebody'}, {origin.date:%Y-%m-%d}",)


def strangers_text(message: Message, me: User) -> list[str]:
    """The parts of a message that its sender need not have written; files are judged when they are fetched."""
    found = [note.replace("forwarded", "message", 1) for note in forward_note(message)]
    if message.via_bot:
        found.append(f"message by the bot {display_name(message.via_bot)}")
    if message.contact:
        found.append("contact card")
    if message.venue:
        found.append("venue")
    if message.story:
        found.append(f"story of {message.story.chat.effective_name or 'somebody'}")
    if message.checklist and message.checklist.others_can_add_tasks:
        found.append("checklist")
    replied = message.reply_to_message
    own = {me.id, message.from_user.id if message.from_user else 0}
    if replied is not None:
        author = replied.from_user.id if replied.from_user else None
        others = replied.forward_origin or replied.via_bot or attachments(replied, replied)
        if author not in own or others:
            found.append(f"message of {display_name(replied.from_user)} that is answered")
    elif message.quote or message.external_reply or message.reply_to_story:
        found.append("quotation from another chat")
    return found


def display_name(user: User | None) -> str:
    if user is None:
        return "somebody"
    return f"{user.full_name} (@{user.username})" if user.username else user.full_name


def attachments(message: Message | ExternalReplyInfo, named_by: Message) -> list[Attachment]:
    """The message's file, of a photo the largest size; a file without a name gets one."""
    files: dict[str, Any] = {
        "photo": message.photo[-1] if message.photo else None,
        "animation": message.animation,
        "document": None if message.animation else message.document,
        "voice": message.voice,
        "audio": message.audio,
        "video": message.video,
        "video note": message.video_note,
    }
    return [attachment(kind, file, named_by) for kind, file in files.items() if file is not None]


def attachment(kind: str, file: Any, message: Message) -> Attachment:
    mime = getattr(file, "mime_type", "") or ""
    suffix = SUFFIXES.get(kind) or mimetypes.guess_extension(mime) or ""
    made = f"{kind.replace(' ', '-')}-{message.date:%Y%m%d-%H%M%S}-{message.message_id}{suffix}"
    length = getattr(file, "_duration", None)
    return Attachment(
        cast(Any, kind),
        file.file_id,
        file.file_unique_id,
        safe_name(getattr(file, "file_name", "") or "") or made,
        mime,
        getattr(file, "file_size", 0) or 0,
        int(length.total_seconds()) if length else 0,
    )
