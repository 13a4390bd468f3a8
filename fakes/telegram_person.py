"""What a person does in Telegram that the demo's page cannot do: topics, forwarding, reactions,
blocking the bot."""

from bot.localgram import Chat, Message
from bot.localgram.chat import Topic
from bot.localgram.person import start_private
from fakes import localgram
from fakes.localgram import Person


async def create_topic(person: Person, name: str, *, chat: Chat | int | None = None) -> Topic:
    place = start_private(person.chat(chat))
    topic, told = localgram.create_topic(person.world, place, person.account, name)
    person.tell("message", place, told)
    return topic


async def block(person: Person) -> None:
    localgram.set_standing(person.world, person.chat(), person.account, "kicked")


async def unblock(person: Person) -> None:
    localgram.set_standing(person.world, person.chat(), person.account, "member")


async def forward(person: Person, message: Message, *, chat: Chat | int | None = None) -> Message:
    origin = {"type": "user", "sender_user": message.sender.json(), "date": message.date}
    draft = Message(
        sender=person.account,
        text=message.text,
        entities=message.entities,
        media=message.media,
        forward=message.forward or origin,
    )
    return person.post(person.chat(chat), draft)


async def react(person: Person, message: Message, emoji: str) -> None:
    """Set the reaction to a message; an empty one removes it."""
    chat = person.chat(message.chat)
    current = chat.messages[message.id]
    before = [own for user, own in current.reactions if user == person.id]
    person.world.react(chat, current, person.id, emoji)
    if not chat.private and chat.status != "administrator":
        return
    body = {
        "chat": chat.json(),
        "message_id": message.id,
        "user": person.account.json(),
        "date": person.world.now(),
        "old_reaction": [{"type": "emoji", "emoji": own} for own in before],
        "new_reaction": [{"type": "emoji", "emoji": emoji}] if emoji else [],
    }
    person.world.updates.put("message_reaction", body)
