"""The bot in chats that it is not in: what "@bot disk?" offers there, and to whom; guest mode is declined."""

from bot.telegram.inline import facts
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.patience import soon

REPORT = "name: vm\nload: 0.10 on 2 cores\nmemory: 2 GiB total\ndisk /: 9 GiB free\ncharts: none\n"


def test_the_lines_are_those_that_the_words_name() -> None:
    assert facts(REPORT, "disk?") == ["disk /: 9 GiB free"]
    assert facts(REPORT, "how much RAM and cpu") == ["load: 0.10 on 2 cores", "memory: 2 GiB total"]
    assert facts(REPORT, "") == facts(REPORT, "weather") == REPORT.splitlines()[:4]


async def test_an_owner_is_offered_facts_and_a_stranger_nothing(scenario: TelegramScenario) -> None:
    stranger = scenario.gram.user("Sam Stranger", started=True)
    scenario.services = lambda run: {"state": scenario.folder}
    async with scenario.open() as run:
        theirs = await stranger.inquire("disk?")
        mine = await scenario.owner.inquire("disk?")
        results = await soon(lambda: mine.results)
        assert all(each["title"].startswith("disk") for each in results)
        assert "GiB free" in results[0]["input_message_content"]["message_text"]
        assert theirs.results is None and run.model.requests == []
    made = [each for each in scenario.gram.calls if each.method == "answerInlineQuery"]
    assert len(made) == 1


async def test_a_call_as_a_guest_is_declined_in_one_line(scenario: TelegramScenario) -> None:
    stranger = scenario.gram.user("Sam Stranger", started=True)
    guest = scenario.gram.user("Gerd Gast", language="de", started=True)
    scenario.config = {"allow": [guest.id]}
    async with scenario.open() as run:
        theirs = await stranger.call_as_guest("@bot what is this?")
        german = await guest.call_as_guest("@bot was ist das?")
        mine = await scenario.owner.call_as_guest("/status@bot")
        results = [*await soon(lambda: mine.results), *await soon(lambda: german.results)]
        said = [each["input_message_content"]["message_text"] for each in results]
        assert said[0] == Texts().no_guest
        assert said[1].startswith("Als Gast")
        assert theirs.results is None and run.model.requests == []
    assert not any(m.sender.is_bot for m in scenario.owner.messages())
