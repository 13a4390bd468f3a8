"""The bot in chats that it is not in: what "@bot disk?" offers there, and to whom; guest mode is declined."""

import os
from pathlib import Path

from agent.language import languages, speaking
from agent.sandbox.host_report import HostReport, processor
from backend.protocol import Gpu, Phrase, ServerStatus, Speed, Status
from bot.localgram.world import Query
from bot.telegram.inline import facts
from bot.texts import Texts
from fakes.bot_running import TelegramScenario
from fakes.localgram import Person
from fakes.patience import soon
from fakes.words import saying

REPORT = [
    *(Phrase("name: vm"), Phrase("load: {load} on {count} cores", load=0.1, count=2)),
    *(Phrase("memory: 2 GiB total"), Phrase("disk /: 9 GiB free"), Phrase("charts: none")),
]
GPU = Gpu(index=0, name="Tesla V100", temperature_c=60, memory_temperature_c=66, power_w=140)


def full(folder: Path) -> list[Phrase]:
    gpu = GPU.model_copy(update={"power_limit_w": 250, "utilization": 30, "throttle": ["thermal"]})
    speed = Speed(decode_tok_s=50, prefill_tok_s=900)
    server = ServerStatus(state="ready", model="qwen3-4b")
    status = Status(version="1", uptime_s=1, backend=server, speed=speed, gpus=[gpu])
    return HostReport(folder, "UTC", status, _name="vm").lines()


def test_the_lines_are_those_that_the_words_name() -> None:
    assert facts(REPORT, "disk?") == ["disk /: 9 GiB free"]
    assert facts(REPORT, "how much RAM and cpu") == ["load: 0.1 on 2 cores", "memory: 2 GiB total"]
    assert facts(REPORT, "") == facts(REPORT, "weather") == REPORT[:4]


def test_the_lines_are_in_the_language_spoken_and_found_by_its_words() -> None:
    report = full(Path("/"))
    assert facts(report, "processor") == [f"processor: {processor()}, {os.cpu_count()} cores"]
    assert processor()
    told = {}
    for code in languages():
        with speaking(code):
            told[code] = facts(report, "")
            name = facts(report, "disk")[0].partition(" ")[0]
            assert facts(report, f"{name}?") == facts(report, "disk") == [told[code][6]]
    for number, english in enumerate(told["en"]):
        for code in languages()[1:]:
            assert told[code][number] != english or english.endswith(("vm", "qwen3-4b")), code
    assert told["de"][-3] == saying("GPU 0: Tesla V100, 60 °C", "140 W von 250 W", "gedrosselt: ")


def inquire(scenario: TelegramScenario, person: Person, words: str) -> Query:
    """Type "@bot words", an inline query, in some other chat."""
    query = scenario.gram.world.open(Query(user=person.id))
    body = {"id": query.id, "from": person.account.json(), "query": words, "offset": ""}
    scenario.gram.world.updates.put("inline_query", body)
    return query


def call_as_guest(scenario: TelegramScenario, person: Person, words: str) -> Query:
    """Send "@bot words", a guest query, in a chat without the bot."""
    world = scenario.gram.world
    query = world.open(Query(user=person.id))
    body = {
        "message_id": 1,
        "date": world.now(),
        "chat": {"id": -5_000_000, "type": "group", "title": "Elsewhere"},
        "from": person.account.json(),
        "text": words,
        "guest_query_id": query.id,
    }
    world.updates.put("guest_message", body)
    return query


async def test_an_owner_is_offered_facts_and_a_stranger_nothing(scenario: TelegramScenario) -> None:
    stranger = scenario.gram.user("Sam Stranger", started=True)
    async with scenario.open() as run:
        theirs = inquire(scenario, stranger, "disk?")
        mine = inquire(scenario, scenario.owner, "disk?")
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
        theirs = call_as_guest(scenario, stranger, "@bot what is this?")
        german = call_as_guest(scenario, guest, "@bot was ist das?")
        mine = call_as_guest(scenario, scenario.owner, "/status@bot")
        results = [*await soon(lambda: mine.results), *await soon(lambda: german.results)]
        said = [each["input_message_content"]["message_text"] for each in results]
        assert said[0] == Texts().no_guest
        assert said[1].startswith("Als Gast")
        assert theirs.results is None and run.model.requests == []
    assert not any(m.sender.is_bot for m in scenario.owner.messages())
