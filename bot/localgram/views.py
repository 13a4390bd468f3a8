"""What the chat page is told: the Bot API's own shapes, and what only a client knows."""

from dataclasses import asdict

from bot.localgram.chat import Chat, message_json
from bot.localgram.feed import (
    Acted,
    Answered,
    Changed,
    Deleted,
    Drafted,
    DraftEnded,
    Edited,
    Event,
    Posted,
    Reacted,
)
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.wire import Json
from bot.localgram.world import World

SHOWN = 200  # messages of a chat, the newest


def message_view(chat: Chat, message: Message, me: Account) -> Json:
    return {
        **message_json(message, chat),
        "out": message.sender.id == me.id,
        "reactions": [{"emoji": emoji, "mine": user == me.id} for user, emoji in message.reactions],
    }


def chat_view(world: World, chat: Chat, me: Account) -> Json:
    """A line of the chat list and the head of an open chat."""
    last = next(reversed(chat.messages.values()), None)
    title = world.bot_json()["first_name"] if chat.private else chat.title
    return {
        "id": chat.id,
        "type": chat.type,
        "title": title,
        "about": world.profile.get_text("short_description", me.language),
        "greeting": world.profile.get_text("description", me.language),
        "forum": chat.forum or (chat.private and world.topics_in_private),
        "topics": [topic.json() for topic in chat.topics.values()],
        "members": len(chat.members) + (0 if chat.private else 1),
        "commands": world.profile.shown_commands(chat, me.id, me.language),
        "pinned": chat.pinned,
        "closed": chat.migrated_to is not None or chat.deactivated,
        "blocked": chat.private and chat.status == "kicked",
        "last": None if last is None else message_view(chat, last, me),
    }


def history_view(world: World, chat: Chat, me: Account) -> Json:
    """An open chat. `event` is the number after which the page goes on listening."""
    now = world.clock()
    drafts = [event_view(world, draft, me) for draft in chat.draft.values() if draft.until > now]
    actions = [event_view(world, act, me) for act in chat.action.values() if act.until > now]
    newest = list(chat.messages.values())[-SHOWN:]
    return {
        **chat_view(world, chat, me),
        "messages": [message_view(chat, message, me) for message in newest],
        "waiting": drafts + actions,
        "event": world.feed.last,
    }


def home_view(world: World, me: Account) -> Json:
    """`event` is the number after which the page goes on listening to `feed`."""
    chats = [chat_view(world, chat, me) for chat in world.chats.values() if chat.holds(me.id)]
    feed = {"feed": world.feed.name, "event": world.feed.last}
    return {"me": me.json(), "bot": world.bot_json(), "chats": chats, **feed}


def chat_of(event: Event) -> int:
    return event.message.chat if isinstance(event, Posted | Edited | Reacted) else event.chat


def event_view(world: World, event: Event, me: Account) -> Json:
    """One line of the event stream; `chat` says where it happened."""
    chat = world.chats[chat_of(event)]
    return {"chat": chat.id, **_happened(world, chat, event, me)}


def _happened(world: World, chat: Chat, event: Event, me: Account) -> Json:
    match event:
        case Posted(message):
            return {"event": "posted", "message": message_view(chat, message, me)}
        case Edited(message) | Reacted(message):
            return {"event": "edited", "message": message_view(chat, message, me)}
        case Deleted(ids=ids):
            return {"event": "deleted", "ids": list(ids)}
        case Drafted() | Acted():
            fields = asdict(event)
            fields["seconds"] = max(0.0, fields.pop("until") - world.clock())
            return {"event": "drafted" if isinstance(event, Drafted) else "acted", **fields}
        case DraftEnded(thread=thread):
            return {"event": "draft_ended", "thread": thread}
        case Answered(query=query, text=text, alert=alert, url=url):
            return {"event": "answered", "query": query, "text": text, "alert": alert, "url": url}
        case Changed():
            return {"event": "changed", "view": chat_view(world, chat, me)}
