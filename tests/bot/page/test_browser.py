"""The owner's page in Chromium: every section, by keyboard, with hostile words, looked at by axe."""

import os
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import Browser, Page, expect

from agent.store.terms import add_functions
from bot.page.server import ServedPage
from fakes.chromium import CHROMIUM, chromium
from fakes.page_state import backend_with_card, fill_state, seem_running
from fakes.patience import SECONDS
from fakes.words import saying

from .conftest import served
from .test_changes import two_turns

AXE = Path(__file__).parents[3] / ".cache" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
PHONE = {"width": 360, "height": 740}
SECTIONS = ("Now", "Turns", "Chats", "Jobs", "Deliveries", "People", "Settings", "Logs")
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
    await expect(
        page.get_by_role("img", name=re.compile("^Temperature, °C; core: "))
    ).to_be_visible()
    await expect(page.get_by_text("and what does the weather do on Sunday?")).to_be_visible()
    compared = await page.get_by_text("of this machine's best").all_inner_texts()
    assert compared and all(int(text.split(" %")[0]) <= 100 for text in compared), compared
    question = page.get_by_role("article", name="A question")
    await question.get_by_role("button", name="Deny").click()
    await expect(page.locator("#toast")).to_have_text("Denied.")
    await expect(question).to_have_count(0)  # by the stream: nothing waits any more


async def test_the_memory_of_one_process_is_counted_once(browser: Browser, folder: Path) -> None:
    seem_running(folder)
    async with backend_with_card(folder / "b.sock") as backend, served(folder) as serving:
        backend.pid = os.getpid()
        page = await opened(browser, serving, [])
        told = re.compile(r"^Memory([\d,]+) MiBbot and backend \1, model server 1,900$")
        await expect(page.locator(".figure").filter(has_text="Memory")).to_have_text(told)
        await page.close()


@pytest.mark.slow
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
    await expect(page.get_by_text(re.compile("^voltaire model try --turn t"))).to_be_visible()
    await page.get_by_role("button", name="As the server renders it").click()
    rendered = page.get_by_role("heading", name="As the server renders it")
    await expect(rendered).to_be_visible()


@pytest.mark.slow
async def test_older_turns_are_fetched(page: Page) -> None:
    await go(page, "Turns")
    await expect(page.locator(".turns > li")).to_have_count(50)
    await page.get_by_role("button", name="Older turns").click()
    await expect(page.locator(".turns > li")).to_have_count(71)
    await expect(page.get_by_role("button", name="Older turns")).to_be_hidden()


async def test_a_note_is_added_and_a_conversation_read(page: Page, folder: Path) -> None:
    two_turns(folder)
    await go(page, "Chats")
    await page.get_by_role("link", name=re.compile("Tim.*tg:111")).click()
    await page.get_by_role("button", name="Add a note").click()
    await page.get_by_label("Text").fill("Bins on Tuesday.")
    await page.get_by_role("button", name="Keep it").click()
    await expect(page.locator(".rows").get_by_text("Bins on Tuesday.")).to_be_visible()
    await expect(page.get_by_text("no longer in the prompt").first).to_be_attached()
    await page.get_by_text(re.compile("^2 · .* · 1 file$")).click()
    await expect(page.get_by_text("+<b>2</b>")).to_be_visible()
    assert "null" not in await page.locator("main").inner_text()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Export as JSON").click()
    assert "Bins on Tuesday." in Path(await (await download.value).path()).read_text("utf-8")


REACHABLE = """(within) => [...document.querySelectorAll(
    `${within} :is(a[href], button, input, select, textarea, summary, [tabindex="0"])`)]
  .filter((each) => !each.disabled && each.checkVisibility()).map((each) => NAME(each))"""
NAME = """(each => each.getAttribute("href") || each.getAttribute("aria-label")
  || `${each.tagName} ${each.textContent.slice(0, 40)}`)"""


SAID = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"


async def tab_to(page: Page, name: str) -> None:
    for _ in range(120):
        await page.keyboard.press("Tab")
        said = await page.evaluate(SAID)
        if re.fullmatch(f"{name}(, \\d+ to look at)?", said.strip()):
            return
    raise AssertionError(f"{name} is not reached")


@pytest.mark.slow
async def test_every_view_by_keyboard_alone(page: Page) -> None:
    """From the skip link through each section: whatever can be pressed is reached by Tab, and is seen to be."""

    async def reaches_all(within: str) -> None:
        wanted = set(await page.evaluate(REACHABLE.replace("NAME", NAME), within))
        assert wanted
        for _ in range(3 * len(wanted) + 30):
            await page.keyboard.press("Tab")
            name, outline = await page.evaluate(
                f"[{NAME}(document.activeElement), getComputedStyle(document.activeElement).outlineStyle]"
            )
            assert outline != "none" or name.startswith("BODY"), name
            wanted.discard(name)
            if not wanted:
                return
        raise AssertionError(f"not reached: {wanted}")

    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for section in SECTIONS:
        await page.evaluate("document.activeElement.blur()")
        await tab_to(page, section)
        await page.keyboard.press("Enter")
        await expect(
            page.get_by_role("heading", level=1, name=section, exact=True)
        ).to_be_attached()
        await expect(page.locator("#main")).to_be_focused()
        await reaches_all("main")
    for section, link in (("Turns", "#/turns/t00069"), ("Chats", "#/chats/tg%3A111")):
        await page.evaluate("document.activeElement.blur()")
        await tab_to(page, section)
        await page.keyboard.press("Enter")
        await expect(page.locator("#main")).to_be_focused()
        row = page.locator(f'main a[href="{link}"]')
        while not await row.evaluate("e => e === document.activeElement"):
            await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator(f'.view[data-view="{link}"]')).to_be_visible()
        await reaches_all("main")


async def test_changes_by_keyboard_alone(page: Page) -> None:
    await tab_to(page, "Jobs")
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await tab_to(page, "Pause")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Go on")).to_be_focused()
    await tab_to(page, "Edit")
    await page.keyboard.press("Enter")
    field = page.get_by_role("dialog").get_by_label("Text")
    await expect(field).to_be_focused()
    await field.press("Control+a")
    await page.keyboard.type("every day at 7:15")
    await page.keyboard.press("Enter")
    await expect(page.locator("#toast")).to_contain_text("7:15")
    await tab_to(page, "Delete")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    # That of the job's own row, which its new time has moved.
    await expect(page.locator("button:focus")).to_have_text("Delete")


@pytest.mark.slow
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


def lengthen(database: Path, letters: int) -> None:
    """A long line behind each text that others can write."""
    texts = (
        ("chats", "title", "key = 'tg:222'"),
        ("conversations", "title", "id = 2"),
        ("conversations", "summary", "1"),
        ("transcript", "text", "turn IN ('t00003', 'open')"),
        ("inbox", "words", "update_id IN ('t00003', 'open', 'next')"),
        ("outbox", "error", "error <> ''"),
        ("notes", "text", "1"),
        ("jobs", "task", "1"),
        ("occurrences", "detail", "detail <> ''"),
        ("people", "name", "1"),
    )
    with closing(sqlite3.connect(database)) as db, db:
        add_functions(db)
        for table, column, where in texts:
            long = f"{column} || ' ' || printf('%.*c', {letters}, 'x')"
            changed = db.execute(f"UPDATE {table} SET {column} = {long} WHERE {where}").rowcount
            assert changed, table


@pytest.mark.parametrize("letters", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
async def test_hostile_words_are_words(browser: Browser, tmp_path: Path, letters: int) -> None:
    await fill_state(tmp_path / "voltaire.db", turns=8, hostile=True)
    lengthen(tmp_path / "voltaire.db", letters)
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


EVIL = """<!doctype html><title>trying</title><script type="module">
const at = "ORIGIN", got = [];
const change = { method: "POST", credentials: "include", body: JSON.stringify({}) };
for (const [path, how] of [["/api/now", {}], ["/api/session", {}], ["/api/now", { mode: "no-cors" }],
    ["/api/do/freeze", change], ["/api/do/freeze", { ...change, mode: "no-cors" }],
    ["/api/do/freeze", { ...change, headers: { "Content-Type": "application/json", "X-Voltaire-Change": "x" } }]])
  try { got.push(await (await fetch(at + path, { credentials: "include", ...how })).text()); } catch { /* nothing */ }
await new Promise((done) => {
  const stream = new EventSource(`${at}/api/live`, { withCredentials: true });
  stream.onerror = done;
  stream.onopen = () => { got.push("live"); done(); };
});
await new Promise((done) => {
  const script = document.createElement("script");
  script.src = `${at}/static/format.js`;
  script.onerror = done;
  script.onload = () => { got.push("script"); done(); };
  document.head.append(script);
});
document.title = `got: ${got.join("").length}`;
</script><iframe name="framed" src="ORIGIN/"></iframe>
<form id="form" method="post" action="ORIGIN/api/do/freeze" target="framed" enctype="text/plain"><input name='{"on":true,"text":"' value='"}'></form>"""


async def test_other_sites_in_the_owners_browser_get_nothing(
    browser: Browser, serving: ServedPage
) -> None:
    """A server of another user of the machine: its pages are of the same site, so the cookie travels with what
    they ask; and the page's own address under a name that now leads here."""

    async def evil(request: web.Request) -> web.Response:
        return web.Response(text=EVIL.replace("ORIGIN", serving.origin), content_type="text/html")

    runner = web.AppRunner(web.Application())
    runner.app.router.add_get("/", evil)
    await runner.setup()
    context = await browser.new_context()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        page = await context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        await page.goto(serving.once)
        await expect(page.locator("#link")).to_have_text("live")
        other = await context.new_page()
        await other.goto(f"http://127.0.0.1:{runner.addresses[0][1]}/")
        await expect(other).to_have_title("got: 0")
        async with other.expect_response(re.compile("/api/do/freeze")) as posted:
            await other.evaluate("document.getElementById('form').submit()")
        assert (await posted.value).status == 403
        port = serving.origin.rpartition(":")[2]
        rebound = await other.goto(f"http://rebound.test:{port}/api/now")
        assert rebound and rebound.status == 403
        assert await rebound.text() == saying("not served under")
        seen = await page.evaluate("fetch('/api/now').then((answer) => answer.json())")
        assert seen["frozen"] is None
    finally:
        await context.close()
        await runner.cleanup()


async def press(page: Page, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).first.click()


async def open_the_turn(page: Page) -> None:
    await press(page, "Show what the model was sent")
    await press(page, "As the server renders it")
    await expect(page.get_by_role("heading", name="As the server renders it")).to_be_visible()
    await page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")


def dialog_of(name: str) -> Callable[[Page], Awaitable[None]]:
    async def act(page: Page) -> None:
        await press(page, name)
        await expect(page.get_by_role("dialog")).to_be_visible()

    return act


# Every view, and what is opened there.
Act = Callable[[Page], Awaitable[None]]
SIGHTS: tuple[tuple[str, Act | None], ...] = (
    *((f"#/{section.lower()}", None) for section in SECTIONS),
    ("#/turns?words=nothing+like+it", None),
    ("#/turns/t00003", open_the_turn),
    ("#/turns/open", None),
    ("#/chats/tg%3A111?words=invoice", None),
    ("#/chats/tg%3A111", dialog_of("Add a note")),
    ("#/chats/tg%3A111", dialog_of("Edit")),
    ("#/chats/tg%3A111", dialog_of("Delete")),
    ("#/jobs", dialog_of("Edit")),
    ("#/deliveries", dialog_of("Show again")),
    ("#/people", dialog_of("Let somebody in")),
    ("#/settings", dialog_of("Freeze")),
)
FOUND = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations
    .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" | ").slice(0, 600)}`);
}"""


async def test_no_tab_is_cut_on_a_phone(browser: Browser, serving: ServedPage) -> None:
    page = await browser.new_page(viewport={"width": 390, "height": 844})
    page.set_default_timeout(SECONDS * 1000)
    await page.goto(serving.once)
    tabs = page.get_by_role("navigation").get_by_role("link")
    await expect(tabs.last).to_be_visible()
    for n in range(await tabs.count()):
        await expect(tabs.nth(n)).to_be_in_viewport(ratio=1)


async def test_a_job_whose_time_passed_is_shown_as_overdue(
    browser: Browser, folder: Path, serving: ServedPage
) -> None:
    with closing(sqlite3.connect(folder / "voltaire.db")) as database, database:
        database.execute("UPDATE jobs SET next_at = next_at - 100000 WHERE id = 2")
    page = await opened(browser, serving, [])
    await go(page, "Jobs")
    late = page.get_by_text("overdue since")
    await expect(late).to_have_count(1)
    await expect(late).to_contain_text("every day at 18:30")
    await page.close()


async def test_no_day_of_the_jobs_is_cut_on_a_phone(browser: Browser, serving: ServedPage) -> None:
    page = await browser.new_page(viewport={"width": 390, "height": 1600})
    page.set_default_timeout(SECONDS * 1000)
    await page.goto(serving.once)
    await page.goto(f"{serving.origin}/#/jobs")
    days = page.locator(".days > li")
    await expect(days).to_have_count(7)
    for n in range(7):
        await expect(days.nth(n)).to_be_in_viewport(ratio=1)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed (make test does)")
@pytest.mark.parametrize(
    ("theme", "width", "height", "each"),
    [
        ("light", 390, 844, 10),
        pytest.param("light", 390, 844, 1, marks=pytest.mark.slow),
        pytest.param("dark", 1440, 900, 1, marks=pytest.mark.slow),
        pytest.param("dark", 390, 844, 1, marks=pytest.mark.slow),
        pytest.param("light", 1440, 900, 1, marks=pytest.mark.slow),
    ],
)
async def test_axe_finds_nothing(
    browser: Browser, serving: ServedPage, theme: str, width: int, height: int, each: int
) -> None:
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if theme == "dark" else "light",
        reduced_motion="reduce",
        bypass_csp=True,
    )
    page = await context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    await page.goto(serving.once)
    for view, act in SIGHTS[::each]:
        await page.goto("about:blank")
        await page.goto(f"{serving.origin}/{view}")
        await expect(page.locator(f'.view[data-view="{view}"]')).to_be_visible()
        await expect(page.locator("#link")).to_have_text("live")
        if act:
            await act(page)
        await page.add_script_tag(path=AXE)
        assert await page.evaluate(FOUND) == [], view
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, view
        await expect(page.get_by_role("navigation").locator("[aria-current]")).to_be_in_viewport(
            ratio=0.9
        )
    await context.close()
