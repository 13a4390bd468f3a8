"""A message of Telegram's as words for the model: text, quote, forward, sender, what came along."""

from collections.abc import Sequence

from telegram import Message, MessageEntity, User

from agent.store import Incoming
from bot.telegram.attachments import attachments, written
from bot.telegram.chat_key import Place

SOURCE = "telegram"
PASTE = 3900  # a client cuts what is longer into pieces of 4,096
PASTE_SETTLE = 1.2
ALBUM_SETTLE = 1.2
FORWARD_SETTLE = 0.8
FILE_SETTLE = 0.8  # a file without words: the question often follows
QUOTE = 600


def incoming(update_id: int, message: Message, me: User, *, edited: bool = False) -> Incoming:
    """The inbox row of a message; its files are fetched when its turn begins."""
    place = place_of(message)
    return Incoming(
        chat=place.key,
        source=SOURCE,
        update=str(update_id),
        text=_words(message, me),
        kind="edit" if edited else "message",
        ref=str(message.message_id),
        sender="" if place.private else _name(message.from_user),
        quote=_quote(message, me),
        context_lines=_forwarded(message),
        body=written(attachments(message)),
        settle_s=_settle(message),
        at=message.date.timestamp(),
    )


def place_of(message: Message) -> Place:
    thread = message.message_thread_id if message.is_topic_message else None
    return Place(message.chat.id, thread)


def addressed(message: Message, me: User) -> bool:
    """Whether a group's message speaks to the bot: a mention, or a reply to it."""
    replied = message.reply_to_message
    if replied is not None and replied.from_user is not None and replied.from_user.id == me.id:
        return True
    return any(_is_me(entity, text, me) for entity, text in _entities(message))


def _is_me(entity: MessageEntity, text: str, me: User) -> bool:
    if entity.type == "text_mention":
        return entity.user is not None and entity.user.id == me.id
    return entity.type == "mention" and text.lower() == f"@{me.username}".lower()


def _entities(message: Message) -> Sequence[tuple[MessageEntity, str]]:
    if message.text is not None:
        return list(message.parse_entities().items())
    return list(message.parse_caption_entities().items())


def _words(message: Message, me: User) -> str:
    """The text with its links' targets, without the mention that called the bot."""
    words = message.text if message.text is not None else message.caption or ""
    targets = [(text, e.url) for e, text in _entities(message) if e.type == "text_link" and e.url]
    for text, url in targets:
        if url.rstrip("/") != text.rstrip("/"):
            words = words.replace(text, f"{text} ({url})", 1)
    if message.chat.id < 0 and me.username:
        words = _without_mention(words, f"@{me.username}")
    return "\n".join(filter(None, [words, *_things(message)]))


def _without_mention(words: str, mention: str) -> str:
    if words.lower().startswith(mention.lower()):
        return words[len(mention) :].lstrip(" ,:")
    return words


def _things(message: Message) -> list[str]:
    """What is neither text nor file, in words."""
    things = []
    if message.location:
        things.append(f"[location {message.location.latitude}, {message.location.longitude}]")
    if message.contact:
        things.append(f"[contact {message.contact.first_name}, {message.contact.phone_number}]")
    if message.sticker:
        things.append(f"[sticker {message.sticker.emoji or ''}]".replace(" ]", "]"))
    if message.poll:
        options = "; ".join(option.text for option in message.poll.options)
        things.append(f"[poll: {message.poll.question} ({options})]")
    return things


def _quote(message: Message, me: User) -> str:
    """What a reply answers: the part that was marked, else the beginning of the message."""
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None:
        return message.quote.text[:QUOTE] if message.quote else ""
    text = message.quote.text if message.quote else replied.text or replied.caption or ""
    whose = (
        "you" if replied.from_user and replied.from_user.id == me.id else _name(replied.from_user)
    )
    files = ", ".join(a.name for a in attachments(replied))
    said = " ".join(filter(None, [text[:QUOTE], files and f"[{files}]"]))
    return f"{whose}: {said}" if said else ""


def _forwarded(message: Message) -> tuple[str, ...]:
    origin = message.forward_origin
    if origin is None:
        return ()
    user, chat = getattr(origin, "sender_user", None), getattr(origin, "chat", None)
    hidden = getattr(origin, "sender_user_name", "")
    name = _name(user) if user else chat.effective_name if chat else hidden
    return (f"forwarded from {name or 'somebody'}, {origin.date:%Y-%m-%d}",)


def _settle(message: Message) -> float:
    """Seconds to wait for more that belongs to it."""
    if message.media_group_id:
        return ALBUM_SETTLE
    if len(message.text or "") >= PASTE:
        return PASTE_SETTLE
    if message.forward_origin is not None:
        return FORWARD_SETTLE
    return FILE_SETTLE if attachments(message) and not message.caption else 0.0


def _name(user: User | None) -> str:
    if user is None:
        return "somebody"
    return f"{user.full_name} (@{user.username})" if user.username else user.full_name
