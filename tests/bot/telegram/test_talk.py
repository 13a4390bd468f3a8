"""A conversation as its person sees it."""

from tests.bot.telegram.house import House
from tests.fakes.model_scripted import says


async def test_a_message_is_seen_and_answered_once(house: House) -> None:
    house.script = lambda request: says("**Hello**, `Olga`.")
    async with house.open():
        asked = await house.owner.send("hi")
        answer = await house.owner.next_message()
        await house.owner.until(asked, lambda m: m.reactions)
    assert answer.text == "Hello, Olga."
    assert [(e["type"], e["offset"], e["length"]) for e in answer.entities] == [
        ("bold", 0, 5),
        ("code", 7, 4),
    ]
    assert not answer.silent and answer.reply_to is None
    assert [m.text for m in house.owner.messages()] == ["hi", "Hello, Olga."]
    asked = house.owner.messages()[0]
    assert [emoji for _, emoji in asked.reactions] == ["👀"]
