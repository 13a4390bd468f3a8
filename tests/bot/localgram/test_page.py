"""The chat page in Chromium: a conversation by keyboard and by hand."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from fakes.chromium import CHROMIUM, chromium
from fakes.localgram import Localgram, Person
from fakes.patience import SECONDS

from .conftest import TOKEN, Raw, png

PHONE = {"width": 390, "height": 844}
KEYS = {"inline_keyboard": [[{"text": "Allow once", "callback_data": "a"}]]}
# Which lines of a text its box shows whole, and which its lower edge cuts.
LINES = """box => {
  const range = document.createRange(), text = document.createTreeWalker(box, 4).nextNode();
  const edge = box.getBoundingClientRect().bottom, whole = [], cut = [];
  for (const line of text.data.matchAll(/.+/g)) {
    range.setStart(text, line.index); range.setEnd(text, line.index + line[0].length);
    const place = range.getBoundingClientRect();
    if (place.top < edge) (place.bottom > edge ? cut : whole).push(line[0]);
  }
  return [whole, cut];
}"""
expect.set_options(timeout=SECONDS * 1000)
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def gram() -> AsyncIterator[Localgram]:
    async with Localgram(TOKEN) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def raw(gram: Localgram) -> AsyncIterator[Raw]:
    async with aiohttp.ClientSession() as http:
        yield Raw(http, gram.url)


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, gram: Localgram, alice: Person) -> AsyncIterator[Page]:
    wrong: list[str] = []
    page = await phone(browser)
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(gram.url)
    await expect(page.get_by_role("heading", name="Voltaire")).to_be_visible()
    yield page
    assert wrong == []
    await page.close()


async def phone(browser: Browser) -> Page:
    page = await browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    page.set_default_timeout(SECONDS * 1000)
    return page


def bubble(page: Page, text: str) -> Any:
    return page.get_by_role("article").filter(has_text=text)


async def test_a_conversation(page: Page, raw: Raw, alice: Person) -> None:
    await page.get_by_label("Message", exact=True).fill("how much <b>space</b>?")
    await page.keyboard.press("Enter")
    await expect(bubble(page, "how much <b>space</b>?")).to_be_visible()
    (said,) = alice.messages()
    assert said.text == "how much <b>space</b>?"
    stamp = bubble(page, "how much").locator("time")
    await expect(stamp).to_have_text(re.compile(r"^\d\d:\d\d$"))  # not "08:05 PM"
    await raw.ok(
        "setMessageReaction",
        chat_id=5,
        message_id=said.id,
        reaction=[{"type": "emoji", "emoji": "👀"}],
    )
    await expect(page.get_by_role("img", name="Reaction 👀")).to_be_visible()
    # The text says itself what goes on, a question to an owner perhaps: nobody types then.
    await raw.ok("sendMessageDraft", chat_id=5, draft_id=1, text="waiting for a yes")
    await expect(page.locator(".draft .text")).to_have_text("waiting for a yes")
    await expect(page.locator("#subtitle")).to_have_text("bot")
    await raw.ok("sendChatAction", chat_id=5, action="typing")
    await expect(page.get_by_role("status").filter(has_text="typing…")).to_be_visible()
    for grown in ("There", "There are 33"):
        await raw.ok("sendMessageDraft", chat_id=5, draft_id=1, text=grown)
        await expect(page.locator(".draft .text")).to_have_text(grown)
    entities = [{"type": "bold", "offset": 10, "length": 2}]
    sent: Any = await raw.ok("sendMessage", chat_id=5, text="There are 33 GB", entities=entities)
    await expect(page.locator(".draft")).to_have_count(0)
    await expect(bubble(page, "There are 33 GB").locator("strong")).to_have_text("33")
    place = {"chat_id": 5, "message_id": sent["message_id"]}
    await raw.ok("editMessageText", **place, text="There are 34 GB")
    await expect(bubble(page, "There are 34 GB")).to_contain_text("edited")
    await raw.ok("deleteMessage", **place)
    await expect(bubble(page, "There are")).to_have_count(0)


def only(updates: Any) -> Any:
    """The one update among them."""
    assert len(updates) == 1
    return updates[0]


async def test_an_approval(page: Page, raw: Raw, alice: Person) -> None:
    await raw.ok("sendMessage", chat_id=5, text="May I?", reply_markup=KEYS)
    button = page.get_by_role("button", name="Allow once")
    await button.click()
    await expect(button).to_have_attribute("aria-busy", "true")
    update = only(await raw.ok("getUpdates", timeout=50))
    query = update["callback_query"]
    assert (query["data"], query["from"]["id"]) == ("a", 5)
    await raw.ok("answerCallbackQuery", callback_query_id=query["id"], text="Allowed")
    await expect(page.locator("#toast")).to_have_text("Allowed")
    place = {"chat_id": 5, "message_id": query["message"]["message_id"]}
    await raw.ok("editMessageText", **place, text="Allowed once by Alice")
    await expect(button).to_have_count(0)


async def test_formatting_is_elements_and_text_is_text(page: Page, raw: Raw, alice: Person) -> None:
    text = "Vec<u8> 😀 quote\ncode"
    entities = [
        {"type": "code", "offset": 0, "length": 7},
        {"type": "expandable_blockquote", "offset": 11, "length": 5},
        {"type": "pre", "offset": 17, "length": 4, "language": "rust"},
    ]
    await raw.ok("sendMessage", chat_id=5, text=text, entities=entities)
    await expect(page.locator(".text > code")).to_have_text("Vec<u8>")
    await expect(page.locator("blockquote")).to_have_text("quote")
    await expect(page.get_by_role("region", name="Code, rust")).to_have_text("code")
    long = "\n".join(f"line {number}" for number in range(30))
    quote = [{"type": "expandable_blockquote", "offset": 0, "length": len(long)}]
    for inside in ([], [{"type": "code", "offset": 0, "length": len(long)}]):
        await raw.ok("sendMessage", chat_id=5, text=long, entities=[*quote, *inside])
        last = bubble(page, "line 29").last.locator("blockquote")
        await expect(last.locator("code")).to_have_count(len(inside))
        assert await last.evaluate("each => each.scrollHeight > 2 * each.clientHeight")
        assert await last.evaluate(LINES) == [["line 0", "line 1", "line 2", "line 3"], []]


@pytest.mark.slow
async def test_files_up_and_down(page: Page, raw: Raw, alice: Person) -> None:
    files = [{"name": f"{at}.png", "mimeType": "image/png", "buffer": png(40, 30)} for at in (1, 2)]
    await page.get_by_label("Message", exact=True).fill("two pictures")
    await page.set_input_files("#files", files)  # type: ignore[arg-type]
    await expect(page.get_by_role("article").locator("img")).to_have_count(2)
    sent = alice.messages()
    assert [(m.media.kind, m.text) for m in sent if m.media] == [
        ("photo", "two pictures"),
        ("photo", ""),
    ]
    await page.set_input_files(
        "#files", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"text"}
    )
    await expect(page.get_by_role("link", name=re.compile(r"a\.txt"))).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name=re.compile(r"a\.txt")).click()
    assert Path(await (await download.value).path()).read_bytes() == b"text"
    async with page.expect_popup() as opened:
        await page.get_by_role("link", name="Open picture").first.click()
    await (await opened.value).close()


@pytest.mark.parametrize(
    ("locale", "field", "code"),
    [
        ("de-AT", "Nachricht", "de"),
        pytest.param("it-IT", "Message", "en", marks=pytest.mark.slow),
        pytest.param("en-US", "Message", "en", marks=pytest.mark.slow),
    ],
)
async def test_page_and_person_speak_the_browsers_language(
    browser: Browser, gram: Localgram, raw: Raw, alice: Person, locale: str, field: str, code: str
) -> None:
    page = await browser.new_page(locale=locale)
    await page.goto(gram.url)
    await page.get_by_label(field, exact=True).fill("hello")
    await page.keyboard.press("Enter")
    update = only(await raw.ok("getUpdates", timeout=50))
    assert update["message"]["from"]["language_code"] == code
    await expect(page.locator("html")).to_have_attribute("lang", code)
    stamp = bubble(page, "hello").locator("time")
    await expect(stamp).to_have_text(re.compile(r"^\d\d:\d\d$"))  # as the bot writes times
    await page.close()


async def test_an_empty_chat_begins_with_start(page: Page, alice: Person) -> None:
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(bubble(page, "/start")).to_be_visible()
    await expect(page.get_by_role("button", name="Start", exact=True)).to_have_count(0)
    assert [message.text for message in alice.messages()] == ["/start"]


@pytest.mark.slow
async def test_the_page_finds_a_new_server_in_the_old_ones_place(browser: Browser) -> None:
    page = await phone(browser)
    async with Localgram(TOKEN) as old:
        bob = old.user("Bob", id=6, started=True)
        await page.goto(old.url)
        await bob.send("before")
        await expect(bubble(page, "before")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("Is make demo still running")
    await expect(page.get_by_text("nothing leaves this machine").last).to_be_visible()
    await page.get_by_label("Message", exact=True).fill("anybody?")
    await page.keyboard.press("Enter")
    await expect(page.locator("#toast")).to_contain_text("nothing was sent")
    async with Localgram(TOKEN, port=old.port) as new:
        await new.user("Bob", id=6, started=True).send("after")
        await expect(bubble(page, "after")).to_be_visible()
        await expect(bubble(page, "before")).to_have_count(0)
    await page.close()
