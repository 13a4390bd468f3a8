"""Chats and their topics: getChat and its like, forum topics, leaving."""

from dataclasses import replace
from functools import partial

from bot.localgram.chat import Chat, Topic, message_json
from bot.localgram.membership import member_json
from bot.localgram.methods import Methods
from bot.localgram.wire import Call, Json, bad_request
from bot.localgram.world import World

TOPIC_NAME = 128
GIFTS = (
    "unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels",
)  # fmt: skip


def get_chat(world: World, call: Call) -> Json:
    chat = world.chat_of(call.text("chat_id"))
    shown = {
        **chat.json(),
        "accent_color_id": abs(chat.id) % 7,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(GIFTS, False),
    }
    if chat.pinned:
        shown["pinned_message"] = message_json(chat.messages[chat.pinned[-1]], chat)
    return shown


def get_chat_member(world: World, call: Call) -> Json:
    chat = world.chat_of(call.text("chat_id"))
    user = call.integer("user_id")
    if user == world.bot.id:
        return member_json(world.bot, chat.status)
    if user in chat.members:
        return member_json(chat.members[user], "creator" if user in chat.admins else "member")
    if user not in world.people:
        raise bad_request("PARTICIPANT_ID_INVALID")
    return member_json(world.people[user], "left")


def get_chat_administrators(world: World, call: Call) -> list[Json]:
    chat = world.chat_of(call.text("chat_id"))
    if chat.private:
        raise bad_request("there are no administrators in the private chat")
    shown = [member_json(chat.members[user], "creator") for user in sorted(chat.admins)]
    if chat.status == "administrator":
        shown.append(member_json(world.bot, "administrator"))
    return shown


def get_chat_member_count(world: World, call: Call) -> int:
    return len(world.chat_of(call.text("chat_id")).members) + 1


def leave_chat(world: World, call: Call) -> bool:
    chat = world.chat_of(call.text("chat_id"))
    if chat.private:
        raise bad_request("private chat can't be left")
    chat.status = "left"
    world.changed(chat)
    return True


def _forum(world: World, call: Call) -> Chat:
    chat = world.chat_of(call.text("chat_id"))
    if chat.private and world.topics_in_private:
        return chat
    if not chat.forum:
        raise bad_request("the chat is not a forum")
    if chat.status != "administrator":
        raise bad_request("not enough rights to manage topics")
    return chat


def create_forum_topic(world: World, call: Call) -> Json:
    chat = _forum(world, call)
    name = call.text("name").strip()
    if not name:
        raise bad_request("topic name must be non-empty")
    return world.create_topic(chat, world.bot, name[:TOPIC_NAME]).json()


def _named(world: World, call: Call) -> tuple[Chat, Topic]:
    chat = _forum(world, call)
    topic = chat.topics.get(call.integer("message_thread_id"))
    if topic is None:
        raise bad_request("message thread not found")
    return chat, topic


def edit_forum_topic(world: World, call: Call) -> bool:
    chat, topic = _named(world, call)
    return _put(world, chat, replace(topic, name=call.text("name")[:TOPIC_NAME] or topic.name))


def set_topic_closed(closed: bool, world: World, call: Call) -> bool:
    chat, topic = _named(world, call)
    return _put(world, chat, replace(topic, closed=closed))


def _put(world: World, chat: Chat, topic: Topic) -> bool:
    if chat.topics[topic.thread] == topic:
        raise bad_request("TOPIC_NOT_MODIFIED")
    chat.topics[topic.thread] = topic
    world.changed(chat)
    return True


def delete_forum_topic(world: World, call: Call) -> bool:
    chat, topic = _named(world, call)
    del chat.topics[topic.thread]
    world.delete(chat, [m.id for m in chat.messages.values() if m.thread == topic.thread])
    world.changed(chat)
    return True


def get_user_profile_photos(_: World, __: Call) -> Json:
    return {"total_count": 0, "photos": []}


METHODS: Methods = {
    "getChat": get_chat,
    "getChatMember": get_chat_member,
    "getChatAdministrators": get_chat_administrators,
    "getChatMemberCount": get_chat_member_count,
    "leaveChat": leave_chat,
    "createForumTopic": create_forum_topic,
    "editForumTopic": edit_forum_topic,
    "closeForumTopic": partial(set_topic_closed, True),
    "reopenForumTopic": partial(set_topic_closed, False),
    "deleteForumTopic": delete_forum_topic,
    "getUserProfilePhotos": get_user_profile_photos,
}
