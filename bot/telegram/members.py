"""Being blocked, added, removed; groups that become supergroups."""

from telegram import ChatMember, Update

from bot.channel import Choice
from bot.telegram.access import SOURCE, Speaker
from bot.telegram.chat_key import Place
from bot.telegram.handler_context import HandlerContext
from bot.telegram.pairing import LET_IN

_AWAY = (ChatMember.BANNED, ChatMember.LEFT)


async def changed(room: HandlerContext, update: Update) -> None:
    """Our own membership: a chat that has put us out rests until it takes us back."""
    change = update.my_chat_member
    assert change
    key = Place(change.chat.id).key
    away = change.new_chat_member.status in _AWAY
    await room.store.chats.set_blocked(key, blocked=away)
    if away:
        return
    room.store.outbox.added.set()  # what waited for this chat may go out
    group = change.chat.id if change.chat.id < 0 else None
    speaker = Speaker(change.from_user.id, change.from_user.full_name, group)
    was_away = change.old_chat_member.status in _AWAY
    if group and was_away and room.config.groups != "off" and _by_owner(room, speaker):
        buttons = [[Choice(f"{LET_IN}:{change.chat.id}", room.texts.let_in)]]
        await room.say(key, room.texts.added_to_group, buttons)


def _by_owner(room: HandlerContext, speaker: Speaker) -> bool:
    return speaker.user in room.door.owners and speaker.group not in room.door.members


async def migrated(room: HandlerContext, update: Update) -> None:
    """A group got another id; Telegram tells it in both chats, once each."""
    message = update.message
    assert message
    old = message.migrate_from_chat_id or message.chat.id
    new = message.migrate_to_chat_id or message.chat.id
    await room.store.chats.rename(Place(old).key, Place(new).key)
    if old in room.door.members:
        await room.store.people.put(SOURCE, str(new), message.chat.title or "", "member", str(old))
        await room.door.remember()
