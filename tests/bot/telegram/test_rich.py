"""Tables and headings as rich messages, where the owner has switched them on."""

import re

import pytest

from bot.telegram.channel import rich_html
from fakes.bot_running import TelegramScenario
from fakes.localgram import METHODS
from fakes.model_scripted import in_order, says

TABLE = "# Birds\n\n| bird | count |\n|---|--:|\n| wren | 3 |\n\nSee [it](https://x.org)."
HTML = """<h1>Birds</h1>
<table bordered><tr>
<th>bird</th>
<th align="right">count</th>
</tr>
<tr>
<td>wren</td>
<td align="right">3</td>
"""


@pytest.mark.parametrize(
    "text",
    [
        "Only **words** and `code`.",
        "# Many\n\n" + "word\n\n" * 600,
        "# Long\n\n" + "word " * 8000,
        "|" + "a|" * 21 + "\n|" + "-|" * 21 + "\n|" + "b|" * 21,
        "# Deep\n\n" + "".join("  " * n + "- x\n" for n in range(12)),
    ],
)
def test_what_entities_show_as_well_or_telegram_would_refuse_is_none(text: str) -> None:
    assert rich_html(text) is None


def test_items_keep_their_numbers_where_an_app_numbers_them() -> None:
    html = rich_html("# Jobs\n\n2. tea\n3. rice\n6. bins\n   1. a\n   1. b\n7. cat") or ""
    starts = [
        (int(n or 1), list.count("<li>"))
        for n, list in re.findall(r'<ol(?: start="(\d+)")?>((?:(?!<ol).)*)', html, re.S)
    ]
    assert starts == [(2, 2), (6, 1), (1, 3)]
    assert html.count("<ol") == html.count("</ol>") == 3


def test_nothing_of_a_model_is_markup_and_no_picture_is_fetched() -> None:
    html = (
        rich_html("# <img src=x>\n\n![p](https://c.example/?q=s) <b>x</b>\n\na ||secret|| b") or ""
    )
    assert "<img" not in html and "<b>" not in html
    assert '<a href="https://c.example/?q=s">p</a>' in html and "<tg-spoiler>secret" in html


async def test_a_table_goes_out_as_one_and_words_as_ever(scenario: TelegramScenario) -> None:
    scenario.config = {"rich_messages": True}
    scenario.script = in_order([says(TABLE), says("Words.")])
    async with scenario.open():
        table = await scenario.owner.ask("count")
        words = await scenario.owner.ask("and?")
    assert table.rich.startswith(HTML) and "wren" in table.text
    assert (words.text, words.rich) == ("Words.", "")
    assert len(scenario.gram.called("sendRichMessage")) == 1


async def test_a_server_without_them_is_asked_once(
    scenario: TelegramScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(METHODS, "sendRichMessage")
    scenario.config = {"rich_messages": True}
    scenario.script = lambda request: says(TABLE)
    async with scenario.open():
        first, second = [await scenario.owner.ask(text) for text in ("one", "two")]
    assert "wren" in first.text and (second.text, second.rich) == (first.text, "")


async def test_one_that_is_refused_goes_out_with_entities(scenario: TelegramScenario) -> None:
    scenario.config = {"rich_messages": True}
    scenario.script = lambda request: says(TABLE)
    async with scenario.open():
        scenario.gram.fault("sendRichMessage", "voice_forbidden")
        answer = await scenario.owner.ask("one")
        assert (answer.rich, "wren" in answer.text) == ("", True)
        assert (await scenario.owner.ask("two")).rich
