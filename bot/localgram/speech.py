"""What people do, as updates: messages, edits, reactions, pressed buttons, blocking."""

from dataclasses import replace

from bot.localgram.chat import Chat, Topic
from bot.localgram.entities import formatted
from bot.localgram.message import Message
from bot.localgram.people import Account
from bot.localgram.queries import Query
from bot.localgram.wire import Json
from bot.localgram.world import World


class Speech:
    """The acts of one account, each carried to the bot as Telegram would carry it."""

    def __init__(self, world: World, account: Account) -> None:
        self._world = world
        self._account = account

    def say(self, chat: Chat, message: Message) -> Message:
        _begin(chat)
        posted = self._world.post(chat, message)
        if heard(self._world, chat, posted):
            self._world.updates.put("message", self._world.json(chat, posted))
        return posted

    def edit(self, chat: Chat, message: Message, text: str) -> Message:
        kept, entities = formatted(text, "", [])
        now = self._world.now()
        edited = replace(chat.messages[message.id], text=kept, entities=entities, edited=now)
        self._world.change(chat, edited)
        if heard(self._world, chat, edited):
            self._world.updates.put("edited_message", self._world.json(chat, edited))
        return edited

    def react(self, chat: Chat, message: Message, emoji: str) -> None:
        before = [
            own for user, own in chat.messages[message.id].reactions if user == self._account.id
        ]
        self._world.react(chat, chat.messages[message.id], self._account.id, emoji)
        if not chat.private and chat.status != "administrator":
            return
        body: Json = {
            "chat": chat.json(),
            "message_id": message.id,
            "user": self._account.json(),
            "date": self._world.now(),
            "old_reaction": [_reaction(own) for own in before],
            "new_reaction": [_reaction(emoji)] if emoji else [],
        }
        self._world.updates.put("message_reaction", body)

    def press(self, chat: Chat, message: Message, label: str) -> Query:
        current = chat.messages.get(message.id)
        buttons = [] if current is None else [button for row in current.keyboard for button in row]
        for button in buttons:
            if button["text"] == label and current is not None:
                return self.press_button(chat, current, button)
        shown = ", ".join(repr(button["text"]) for button in buttons) or "none"
        raise LookupError(f"no button {label!r} under message {message.id}; there are: {shown}")

    def press_button(self, chat: Chat, message: Message, button: Json) -> Query:
        """A button without callback data (a link, a text to copy) tells the bot nothing."""
        query = self._world.queries.press(self._account.id, chat.id, message.id)
        if "callback_data" in button:
            body: Json = {
                "id": query.id,
                "from": self._account.json(),
                "message": self._world.json(chat, message),
                "chat_instance": str(chat.id * 7919),
                "data": button["callback_data"],
            }
            self._world.updates.put("callback_query", body)
        return query

    def create_topic(self, chat: Chat, name: str) -> Topic:
        _begin(chat)
        topic = self._world.create_topic(chat, self._account, name)
        told = chat.messages[topic.thread]
        if heard(self._world, chat, told):
            self._world.updates.put("message", self._world.json(chat, told))
        return topic

    def stop_draft(self, chat: Chat, thread: int | None) -> None:
        draft = chat.draft.get(thread)
        if draft is None or not draft.can_stop or draft.until <= self._world.clock():
            raise LookupError("nothing is being written that can be stopped")
        self._world.end_draft(chat, thread)
        place = {} if thread is None else {"message_thread_id": thread}
        body = {"chat": chat.json(), **place, "draft_id": draft.id}
        self._world.updates.put("stopped_message_generation", body)

    def stop_bot(self, status: str) -> None:
        """Block the bot ("kicked") or let it in again ("member")."""
        chat = self._world.chats[self._account.id]
        tell_membership(self._world, chat, self._account, status)


def _begin(chat: Chat) -> None:
    """A person's first word makes the chat known to the bot."""
    if chat.private and chat.status == "":
        chat.status = "member"


def _reaction(emoji: str) -> Json:
    return {"type": "emoji", "emoji": emoji}


def tell_membership(world: World, chat: Chat, by: Account, status: str) -> None:
    """The bot's standing in a chat changes, and my_chat_member says so."""
    before, chat.status = chat.status, status
    body: Json = {
        "chat": chat.json(),
        "from": by.json(),
        "date": world.now(),
        "old_chat_member": member_json(world.bot, before or "left"),
        "new_chat_member": member_json(world.bot, status),
    }
    world.updates.put("my_chat_member", body)
    world.changed(chat)


RIGHTS = (
    "can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "can_manage_video_chats",
    "can_restrict_members", "can_promote_members", "can_change_info", "can_invite_users",
    "can_post_stories", "can_edit_stories", "can_delete_stories", "can_pin_messages", "can_manage_topics", "can_send_welcome_messages",
)  # fmt: skip


def member_json(account: Account, status: str) -> Json:
    shown: Json = {"user": account.json(), "status": status}
    if status == "kicked":
        shown["until_date"] = 0
    if status == "administrator":
        shown |= dict.fromkeys(RIGHTS, True) | {"is_anonymous": False, "can_be_edited": False}
    if status == "creator":
        shown["is_anonymous"] = False
    return shown


def heard(world: World, chat: Chat, message: Message) -> bool:
    """Whether the bot gets to know a person's message: in groups with privacy mode only
    commands, mentions and replies to it."""
    if chat.private or not world.privacy or chat.status == "administrator":
        return chat.status in {"member", "administrator"}
    if chat.status != "member":
        return False
    replied = chat.messages.get(message.reply_to or 0)
    return (
        bool(message.service)
        or (replied is not None and replied.sender.is_bot)
        or _addressed(world, message)
    )


def _addressed(world: World, message: Message) -> bool:
    wide = message.text.encode("utf-16-le")
    for entity in message.entities:
        start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        marked = wide[start:end].decode("utf-16-le").lower()
        _, at, name = marked.partition("@")
        if entity["type"] == "bot_command" and entity["offset"] == 0 and not at:
            return True
        if entity["type"] in {"bot_command", "mention"} and name == world.bot.username.lower():
            return True
    return False
