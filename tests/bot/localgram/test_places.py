"""Groups, their privacy, topics in groups and in private chats, migration."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.localgram import Localgram, Person

from .conftest import TOKEN, Raw


async def kinds(raw: Raw) -> list[Any]:
    updates: Any = await raw.ok("getUpdates")
    return [{k: v for k, v in update.items() if k != "update_id"} for update in updates]


async def texts(raw: Raw) -> list[str]:
    return [update["message"].get("text") for update in await kinds(raw) if "message" in update]


async def test_privacy_lets_commands_mentions_and_replies_through(
    raw: Raw, gram: Localgram, alice: Person
) -> None:
    group = gram.group("Friends", alice)
    answer: Any = await raw.ok("sendMessage", chat_id=group.id, text="here I am")
    for text in ("idle talk", "/stop", "/stop@other_bot", "hey @voltaire_bot", "hey @other_bot"):
        await alice.send(text, chat=group)
    await alice.send("/stop@voltaire_bot", chat=group)
    await alice.send("a reply", chat=group, reply_to=answer["message_id"])
    assert await texts(raw) == ["/stop", "hey @voltaire_bot", "/stop@voltaire_bot", "a reply"]


async def test_an_administrator_hears_everything(raw: Raw, gram: Localgram, alice: Person) -> None:
    group = gram.group("Friends", alice, admin=True)
    await alice.send("idle talk", chat=group)
    assert await texts(raw) == ["idle talk"]


async def test_a_group_without_privacy(alice: Person) -> None:
    async with Localgram(TOKEN, privacy=False) as open_gram:
        bob = open_gram.user("Bob")
        group = open_gram.group("Friends", bob)
        await bob.send("idle talk", chat=group)
        kinds = [update.kind for update in open_gram.world.updates.pending()]
        assert kinds == ["my_chat_member", "message"]


async def test_joining_and_being_thrown_out_are_told(
    raw: Raw, gram: Localgram, alice: Person
) -> None:
    group = gram.group("Friends", alice)
    gram.kick(group, alice)
    changes = [update["my_chat_member"] for update in await kinds(raw)]
    states = [(c["old_chat_member"]["status"], c["new_chat_member"]["status"]) for c in changes]
    assert states == [("left", "member"), ("member", "kicked")]


async def test_migration_is_told_on_both_sides(raw: Raw, gram: Localgram, alice: Person) -> None:
    group = gram.group("Friends", alice)
    new = gram.migrate(group)
    told = [update["message"] for update in await kinds(raw) if "message" in update]
    assert [
        (m["chat"]["id"], m.get("migrate_to_chat_id"), m.get("migrate_from_chat_id")) for m in told
    ] == [
        (group.id, new.id, None),
        (new.id, None, group.id),
    ]
    assert new.id < -1_000_000_000_000


async def test_supergroups_count_their_own_messages(
    raw: Raw, gram: Localgram, alice: Person
) -> None:
    bob = gram.user("Bob")
    wide = gram.group("Wide", alice, supergroup=True)
    numbers = [
        (await alice.send("1")).id,
        (await bob.send("2")).id,
        (await alice.send("a", chat=wide)).id,
        (await alice.send("b", chat=wide)).id,
    ]
    assert numbers == [1, 2, 2, 3]


async def test_topics_of_a_forum(raw: Raw, gram: Localgram, alice: Person) -> None:
    forum = gram.group("Lab", alice, forum=True, admin=True)
    topic: Any = await raw.ok("createForumTopic", chat_id=forum.id, name="Cluster")
    thread = topic["message_thread_id"]
    said = await alice.send("in the topic", chat=forum, thread=thread)
    reply: Any = await raw.ok(
        "sendMessage", chat_id=forum.id, text="x", reply_parameters={"message_id": said.id}
    )
    assert (reply["message_thread_id"], reply["is_topic_message"]) == (thread, True)
    general: Any = await raw.ok("sendMessage", chat_id=forum.id, text="x")
    assert "message_thread_id" not in general
    place = {"chat_id": forum.id, "message_thread_id": thread}
    await raw.ok("editForumTopic", **place, name="Papers")
    await raw.ok("closeForumTopic", **place)
    assert await raw.refusal("closeForumTopic", **place) == "Bad Request: TOPIC_NOT_MODIFIED"
    await raw.ok("reopenForumTopic", **place)
    assert [topic.name for topic in forum.topics.values()] == ["Papers"]
    await raw.ok("deleteForumTopic", **place)
    assert await raw.refusal("sendMessage", **place, text="x") == (
        "Bad Request: message thread not found"
    )


async def test_a_member_may_not_manage_topics(raw: Raw, gram: Localgram, alice: Person) -> None:
    forum = gram.group("Lab", alice, forum=True)
    assert await raw.refusal("createForumTopic", chat_id=forum.id, name="x") == (
        "Bad Request: not enough rights to manage topics"
    )


@pytest.fixture
async def with_topics() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN, topics=True) as gram:
        yield gram


async def test_topics_in_a_private_chat(with_topics: Localgram, http: Any) -> None:
    raw, bob = Raw(http, with_topics.url), with_topics.user("Bob", id=6)
    me: Any = await raw.ok("getMe")
    assert (me["has_topics_enabled"], me["allows_users_to_create_topics"]) == (True, True)
    topic = await bob.create_topic("Work")
    await bob.send("hi", thread=topic.thread)
    created, said = [update["message"] for update in await kinds(raw)]
    assert created["forum_topic_created"]["name"] == "Work"
    assert (said["message_thread_id"], said["is_topic_message"]) == (topic.thread, True)
    await raw.ok(
        "sendMessageDraft", chat_id=6, draft_id=1, text="x", message_thread_id=topic.thread
    )
    assert bob.draft() is None
    assert bob.draft(thread=topic.thread) is not None


async def test_members(raw: Raw, gram: Localgram, alice: Person) -> None:
    bob = gram.user("Bob", id=6)
    group = gram.group("Friends", alice, bob)
    assert await raw.ok("getChatMemberCount", chat_id=group.id) == 3
    member: Any = await raw.ok("getChatMember", chat_id=group.id, user_id=6)
    assert (member["status"], member["user"]["id"]) == ("member", 6)
    owners: Any = await raw.ok("getChatAdministrators", chat_id=group.id)
    assert [(m["status"], m["user"]["id"]) for m in owners] == [("creator", 5)]
    await raw.ok("leaveChat", chat_id=group.id)
    assert await raw.refusal("sendMessage", chat_id=group.id, text="x") == (
        "Forbidden: bot is not a member of the group chat"
    )
