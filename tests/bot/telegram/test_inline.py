"""Inline mode: what "@bot disk?" offers in another chat, and to whom."""

from bot.telegram.inline import facts
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
