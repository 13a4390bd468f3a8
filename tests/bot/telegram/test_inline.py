"""The bot in chats that it is not in: what "@bot disk?" offers there, and to whom; guest mode is declined."""

import re

from agent.language import languages, speaking
from bot.telegram.inline import facts
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.patience import soon
from fakes.words import saying

REPORT = "name: vm\nload: 0.10 on 2 cores\nmemory: 2 GiB total\ndisk /: 9 GiB free\ncharts: none\n"
FULL = """\
name: vm
time: Mon 2026-11-23 18:04 UTC
uptime: 3 days, 1 hour, 12 minutes
load: 0.10 on 2 cores
memory: 31.3 GiB total, 2.0 GiB used, 29.3 GiB available
disk /: 200.0 GiB total, 20.0 GiB used, 180.0 GiB free (10%)
gpu 0: Tesla V100, 60 °C, 66 °C memory, 140 W of 250 W, 30 % busy, 5000 of 16384 MiB used
model: qwen3-4b
speed: 50 tokens/s, reading 900 tokens/s
charts: none
"""


def test_the_lines_are_those_that_the_words_name() -> None:
    assert facts(REPORT, "disk?") == ["disk /: 9 GiB free"]
    assert facts(REPORT, "how much RAM and cpu") == ["load: 0.10 on 2 cores", "memory: 2 GiB total"]
    assert facts(REPORT, "") == facts(REPORT, "weather") == REPORT.splitlines()[:4]


def test_the_lines_are_in_the_language_spoken_and_found_by_its_words() -> None:
    told = {}
    for code in languages():
        with speaking(code):
            told[code] = facts(FULL, "")
            name = facts(FULL, "disk")[0].partition(" ")[0]
            assert facts(FULL, f"{name}?") == facts(FULL, "disk") == [told[code][5]]
    names = FULL.splitlines()[0].partition(": ")[2], "qwen3-4b"
    for number, english in enumerate(told["en"]):
        for code in languages()[1:]:
            assert told[code][number] != english or english.endswith(names), (code, english)
    assert [re.findall(r"\d+(?:,\d+)?", line) for line in told["de"][2:6]] == [
        ["3", "1", "12"],
        ["0,10", "2"],
        ["31,3", "2,0", "29,3"],
        ["200,0", "20,0", "180,0", "10"],
    ]
    assert told["de"][2] == saying("Laufzeit", "3 Tage", "1 Stunde", "12 Minuten")


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
