"""The bot's and people's standing in a chat."""

from bot.localgram.chat import Chat
from bot.localgram.people import Account
from bot.localgram.wire import Json
from bot.localgram.world import World


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
