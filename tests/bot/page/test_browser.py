"""The owner's page in Chromium: every section, by keyboard, with hostile words, looked at by axe."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from bot.page.server import ServedPage
from fakes.page_state import backend_with_card, fill_state
from fakes.patience import SECONDS

from .conftest import served

CHROMIUM = Path("/usr/bin/chromium")
AXE = Path(__file__).parents[3] / ".cache" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
PHONE = {"width": 360, "height": 740}
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
]
SECTIONS = ("Now", "Turns", "Chats", "Jobs", "Deliveries", "People", "Settings", "Logs")
expect.set_options(timeout=SECONDS * 1000)
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=ARGS, timeout=SECONDS * 1000
        )
        yield running
        await running.close()


@pytest_asyncio.fixture(loop_scope="module")
async def folder(tmp_path: Path) -> Path:
    await fill_state(tmp_path / "voltaire.db", turns=70)
    return tmp_path


@pytest_asyncio.fixture(loop_scope="module")
async def serving(folder: Path) -> AsyncIterator[ServedPage]:
    async with backend_with_card(folder / "b.sock"), served(folder) as page:
        yield page


async def opened(browser: Browser, serving: ServedPage, wrong: list[str]) -> Page:
    """A browser window with the page; `wrong` gets what the console complains of."""
    page = await browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    page.set_default_timeout(SECONDS * 1000)
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(serving.once)
    await expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    assert "key=" not in page.url
    return page


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser, serving: ServedPage) -> AsyncIterator[Page]:
    wrong: list[str] = []
    page = await opened(browser, serving, wrong)
    yield page
    assert wrong == []
    await page.close()


async def go(page: Page, section: str) -> None:
    await page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{section}")).click()
    await expect(page).to_have_title(f"{section} · Voltaire")
    heading = page.get_by_role("heading", level=1, name=section, exact=True)
    await expect(heading).to_be_attached()


async def test_every_section_fits_a_phone(page: Page) -> None:
    for section in SECTIONS:
        await go(page, section)
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= PHONE["width"], section
        text = await page.locator("main").inner_text()
        assert not re.search(r"\b(null|undefined|NaN|\[object)\b", text), section


async def test_now_shows_what_runs_and_a_question_is_answered(page: Page, folder: Path) -> None:
    await expect(page.get_by_text("Qwen3.6 35B-A3B, Q4_K_M")).to_be_visible()
    await expect(page.locator("#link")).to_have_text("live")
    await expect(page.get_by_role("img", name=re.compile("^Temperature now"))).to_be_visible()
    await expect(page.get_by_text("and what does the weather do on Sunday?")).to_be_visible()
    question = page.get_by_role("article", name="A question")
    await question.get_by_role("button", name="Deny").click()
    await expect(page.locator("#toast")).to_have_text("Denied.")
    await expect(question).to_have_count(0)  # by the stream: nothing waits any more


async def test_a_turn_is_found_and_opened(page: Page) -> None:
    await go(page, "Turns")
    await page.get_by_label("Find").fill("invoice plumber")
    await page.keyboard.press("Enter")
    turns = page.locator(".turns > li")
    await expect(turns.first).to_contain_text("invoice of the plumber")
    await expect(page.get_by_text("how much disk space")).to_have_count(0)
    await turns.first.get_by_role("link").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(
        "find the invoice of the plumber"
    )
    await expect(
        page.get_by_role("img", name=re.compile("waiting .*reading .*writing"))
    ).to_be_visible()
    await page.get_by_role("button", name="Show what the model was sent").click()
    await expect(page.get_by_text("Tokens by part, shared out by characters:")).to_be_visible()
    await expect(page.get_by_text(re.compile("^voltaire replay t"))).to_be_visible()
    await page.get_by_role("button", name="As the server renders it").click()
    rendered = page.get_by_role("heading", name="As the server renders it")
    await expect(rendered).to_be_visible()


async def test_older_turns_are_fetched(page: Page) -> None:
    await go(page, "Turns")
    await expect(page.locator(".turns > li")).to_have_count(50)
    await page.get_by_role("button", name="Older turns").click()
    await expect(page.locator(".turns > li")).to_have_count(71)
    await expect(page.get_by_role("button", name="Older turns")).to_be_hidden()


async def test_a_note_is_added_and_a_conversation_read(page: Page) -> None:
    await go(page, "Chats")
    await page.get_by_role("link", name=re.compile("Tim.*tg:111")).click()
    await page.get_by_role("button", name="Add a note").click()
    await page.get_by_label("Text").fill("Bins on Tuesday.")
    await page.get_by_role("button", name="Keep it").click()
    await expect(page.locator(".rows").get_by_text("Bins on Tuesday.")).to_be_visible()
    await expect(page.get_by_text("no longer in the prompt").first).to_be_attached()
    assert "null" not in await page.locator("main").inner_text()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Export as JSON").click()
    assert "Bins on Tuesday." in Path(await (await download.value).path()).read_text("utf-8")


async def test_by_keyboard_alone(page: Page) -> None:
    """From the top of the page to a job that is paused, without a pointer."""

    async def tab_to(name: str) -> None:
        for _ in range(60):
            await page.keyboard.press("Tab")
            focused = page.locator(":focus")
            said = await focused.get_attribute("aria-label") or await focused.inner_text()
            if said.strip() == name:
                shown = await focused.evaluate("e => getComputedStyle(e).outlineStyle")
                assert shown != "none"
                return
        raise AssertionError(f"{name} is not reached")

    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await tab_to("Jobs")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1, name="Jobs")).to_be_visible()
    await expect(page.locator("#main")).to_be_focused()
    await tab_to("Pause")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Go on")).to_be_visible()
    await tab_to("Delete")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()


async def test_a_page_that_ended_says_so_and_changes_nothing(
    browser: Browser, folder: Path
) -> None:
    wrong: list[str] = []
    async with served(folder) as serving:
        page = await opened(browser, serving, wrong)
        await go(page, "Settings")
        await expect(page.locator("#link")).to_have_text("live")
    await expect(page.locator("#link")).to_have_text("not connected")
    await page.get_by_role("button", name="Freeze").click()
    await page.get_by_role("dialog").get_by_role("button", name="Freeze").click()
    await expect(page.locator("#toast")).to_contain_text("Nobody answers")
    await page.close()


async def test_hostile_words_are_words(browser: Browser, tmp_path: Path) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=8, hostile=True)
    wrong: list[str] = []
    asked: list[str] = []
    async with backend_with_card(tmp_path / "b.sock", hostile=True), served(tmp_path) as serving:
        page = await opened(browser, serving, wrong)
        page.on("request", lambda request: asked.append(request.url))
        await expect(page.get_by_role("article", name="A question")).to_be_visible()
        views = [f"#/{section.lower()}" for section in SECTIONS]
        views += [
            "#/turns/t00003",
            "#/turns/open",
            "#/chats/tg%3A111",
            "#/chats/tg%3A111?words=evil",
        ]
        for view in views:
            await page.goto(f"{serving.origin}/{view}")
            await expect(page.locator(f'.view[data-view="{view}"]')).to_be_visible()
            await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            if view == "#/turns/t00003":
                await page.get_by_role("button", name="Show what the model was sent").click()
                await expect(page.get_by_text(re.compile("^Tokens by part"))).to_be_visible()
            text = await page.locator("main").inner_text()
            assert "<script>document.title='owned'</script>" in text, view
            assert not re.search("[\u202a-\u202e\x00\x1b]", text), view
            assert "⟨202e⟩evil⟨202c⟩" in text and "⟨001b⟩[31mred" in text, view
            assert (
                await page.locator("main script, main img, main [onerror], main [onload]").count()
                == 0
            )
            assert "owned" not in await page.title()
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= PHONE["width"], view
        await page.close()
    assert wrong == [] and all(url.startswith(serving.origin) for url in asked)


SERIOUS = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" | ").slice(0, 600)}`);
}"""


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make test does)")
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_nothing_serious(browser: Browser, serving: ServedPage, theme: str) -> None:
    context = await browser.new_context(
        viewport={"width": 1280, "height": 900},
        color_scheme="dark" if theme == "dark" else "light",
        bypass_csp=True,
    )
    page = await context.new_page()
    await page.goto(serving.once)
    await page.add_script_tag(path=AXE)
    views = [f"#/{section.lower()}" for section in SECTIONS] + [
        "#/turns/t00003",
        "#/chats/tg%3A111",
    ]
    for view in views:
        await page.evaluate("view => { location.hash = view; }", view)
        await expect(page.locator(f'.view[data-view="{view}"]')).to_be_visible()
        assert await page.evaluate(SERIOUS) == [], view
    await context.close()
