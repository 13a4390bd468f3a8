"""The people of the tests: what they see, wait for and may not do."""

import asyncio

import pytest

from bot.localgram import Localgram, Person, is_final
from fakes.patience import SECONDS

from .conftest import Raw

KEYS = {
    "inline_keyboard": [
        [{"text": "Yes", "callback_data": "y"}, {"text": "No", "callback_data": "n"}]
    ]
}


async def test_messages_are_read_once_and_in_order(
    raw: Raw, gram: Localgram, alice: Person
) -> None:
    bob = gram.user("Bob", id=6, started=True)
    await raw.ok("sendMessage", chat_id=5, text="one")
    await raw.ok("sendMessage", chat_id=6, text="for Bob")
    await raw.ok("sendMessage", chat_id=5, text="two")
    assert [(await alice.next_message()).text for _ in range(2)] == ["one", "two"]
    assert (await bob.next_message()).text == "for Bob"
    with pytest.raises(TimeoutError):
        await alice.next_message(seconds=0.05)


async def test_a_question_waits_for_the_answer_with_sound(raw: Raw, alice: Person) -> None:
    await raw.ok("sendMessage", chat_id=5, text="an old answer")
    asking = asyncio.create_task(alice.ask("how much?"))
    await raw.ok("sendMessage", chat_id=5, text="working", disable_notification=True)
    await raw.ok("sendMessage", chat_id=5, text="may I?", reply_markup=KEYS)
    assert not asking.done()
    await raw.ok("sendMessage", chat_id=5, text="33 GB")
    answer = await asyncio.wait_for(asking, SECONDS)
    assert (answer.text, is_final(answer)) == ("33 GB", True)


async def test_only_buttons_that_are_there_can_be_pressed(raw: Raw, alice: Person) -> None:
    await raw.ok("sendMessage", chat_id=5, text="may I?", reply_markup=KEYS)
    message = await alice.next_message()
    with pytest.raises(LookupError, match="no button 'Maybe' .* there are: 'Yes', 'No'"):
        await alice.press(message, "Maybe")
    await raw.ok("editMessageText", chat_id=5, message_id=message.id, text="done")
    with pytest.raises(LookupError, match="there are: none"):
        await alice.press(message, "Yes")


async def test_the_bots_own_id_is_taken(gram: Localgram) -> None:
    with pytest.raises(ValueError, match="777 is the bot's own id"):
        gram.user("Double", id=777)


async def test_calls_are_noted(raw: Raw, gram: Localgram, alice: Person) -> None:
    await raw.ok("sendMessage", chat_id=5, text="x")
    await raw.refusal("sendMessage", chat_id=5, text="")
    assert [(made.method, made.chat, made.error) for made in gram.called("sendmessage")] == [
        ("sendMessage", 5, ""),
        ("sendMessage", 5, "Bad Request: message text is empty"),
    ]
