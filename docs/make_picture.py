"""Makes the README's pictures and checks what they show: docs/chat.png, the demo's chat page in Chromium;
docs/ask.svg, one answer in the terminal, and docs/ask.cast, the same as it comes (asciinema's format); docs/page.png, the owner's page over a state and a card that are made up.

python docs/make_picture.py [--dark] [--to FOLDER]
"""

import asyncio
import codecs
import json
import os
import re
import subprocess
import sys
import tempfile
import termios
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from io import BytesIO, StringIO
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, expect
from rich.console import Console
from rich.text import Text

sys.path.insert(0, str(Path(__file__).parent.parent))

from fakes.chromium import chromium
from fakes.page_state import backend_with_card, fill_state, seem_running

VOLTAIRE = Path(sys.executable).with_name("voltaire")
SECONDS = 120
expect.set_options(timeout=SECONDS * 1000)
ASKED, FREE = "how much disk space is free?", r"\d+(\.\d+)?[GT] free \(\d+% full\)"
# What is said, minute by minute (the chart at the end has a point for each), and what the answer must show: a
# picture of anything else is not written. Where nothing is said, the bot writes first.
SAID = (
    ((ASKED, FREE),),
    (
        (
            "remind me in 2 minutes to stretch",
            r"Done: Planned .*Reminder “stretch”, once, on \w+ \d{4}-\d\d-\d\d \d\d:\d\d",
        ),
    ),
    (("write a file shopping.txt with milk, eggs and bread", r"Done: created shopping\.txt"),),
    (("", r"^⏰ stretch"), ("send me shopping.txt", r"Done: sent shopping\.txt")),
    (("/gpu", "^No GPU was found|°C"),),
)
PHONE = {"width": 430, "height": 960}
BETWEEN = 24  # pixels, from one phone to the next
TYPED = f'make demo ASK="{ASKED}"'
COLUMNS, LINES = 92, 24
KEY_SECONDS = 0.05  # for each letter that is typed
FONT_FACE = re.compile(r"@font-face \{.*?\}", re.DOTALL)


class WrongPicture(Exception):
    """The demo shows something else than the picture is to show."""


async def main() -> None:
    parser = ArgumentParser(description="Make the README's pictures of the demo.")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--to", type=Path, default=Path(__file__).parent)
    chosen = parser.parse_args()
    await owner_picture(chosen.to / "page.png", dark=chosen.dark)
    await terminal_picture(chosen.to / "ask.svg")
    await asyncio.to_thread(terminal_recording, chosen.to / "ask.cast")
    async with demo("--port", "0") as process:
        assert process.stdout
        line = (await process.stdout.readline()).decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?key=\S+", line)
        if not found:
            raise WrongPicture(f"The demo printed no address: {line!r}")
        await chat_picture(found[0], chosen.to / "chat.png", dark=chosen.dark)


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="voltaire-picture-") as home:
        folders = dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), home)
        yield {**os.environ, **folders, "TZ": "UTC"}


@asynccontextmanager
async def demo(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A demo with folders of its own: the pictures show nothing of this machine's user."""
    pipe = asyncio.subprocess.PIPE
    with environment() as env:
        process = await asyncio.create_subprocess_exec(
            VOLTAIRE, "demo", *words, env=env, stdout=pipe
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def owner_picture(target: Path, *, dark: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="voltaire-picture-") as home:
        folder = Path(home)
        await fill_state(folder / "voltaire.db", turns=300)
        seem_running(folder)
        state = {
            "VOLTAIRE_STATE__DIR": home,
            "VOLTAIRE_BACKEND__SOCKET": str(folder / "b.sock"),
            "XDG_CONFIG_HOME": home,
        }
        command = (VOLTAIRE, "page", "--no-open", "--listen", "127.0.0.1:0")
        async with backend_with_card(folder / "b.sock"), chromium() as browser:
            process = await asyncio.create_subprocess_exec(
                *command, env={**os.environ, **state, "TZ": "UTC"}, stdout=asyncio.subprocess.PIPE
            )
            try:
                assert process.stdout
                address = (await process.stdout.readline()).decode().strip()
                page = await browser.new_page(
                    viewport={"width": 1240, "height": 1000},
                    color_scheme="dark" if dark else "light",
                )
                await page.goto(address)
                await expect(
                    page.get_by_role("img", name=re.compile("^Power, W; "))
                ).to_be_attached()
                await expect(page.locator("#link")).to_have_text("live")
                await expect(page.get_by_text("@my_voltaire_bot listens")).to_be_visible()
                await page.screenshot(path=target)
            finally:
                process.terminate()
                await process.wait()


async def terminal_picture(target: Path) -> None:
    async with demo("--ask", ASKED) as process, asyncio.timeout(SECONDS):
        said, _ = await process.communicate()
    text = said.decode().strip()
    if process.returncode or not re.search(FREE, text) or "→ bash " not in text:
        raise WrongPicture(f"{ASKED}: {text}")
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "green"), (TYPED, "bold")))
    console.print(Text(text))
    drawn = console.export_svg(title="Voltaire", unique_id="ask")
    target.write_text(FONT_FACE.sub("", drawn))  # which would be fetched from elsewhere


def terminal_recording(target: Path) -> None:
    """What a terminal gets, with the seconds at which it comes; the command is typed before."""
    shown = [(0.0, "$ ")]
    shown += [(n * KEY_SECONDS, letter) for n, letter in enumerate(f"{TYPED}\r\n", 1)]
    before = shown[-1][0]
    shown += [(before + at, text) for at, text in from_terminal("--ask", ASKED)]
    said = "".join(text for _, text in shown)
    if "→ bash " not in said or not re.search(FREE, said):
        raise WrongPicture(f"{ASKED}: {said}")
    head = {"version": 2, "width": COLUMNS, "height": LINES, "title": "Voltaire"}
    lines = [head, *([round(at, 3), "o", text] for at, text in shown)]
    target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def from_terminal(*words: str) -> Iterator[tuple[float, str]]:
    """What the demo writes to a terminal of its own, and when."""
    ours, its = os.openpty()
    termios.tcsetwinsize(its, (LINES, COLUMNS))
    decoder, began = codecs.getincrementaldecoder("utf-8")(), time.monotonic()
    with environment() as env, os.fdopen(ours, "rb", 0) as screen:
        process = subprocess.Popen(
            [VOLTAIRE, "demo", *words], env=env, stdin=its, stdout=its, stderr=its
        )
        os.close(its)
        with process, suppress(OSError):  # EIO: nobody has the terminal open any more
            while piece := screen.read(4096):
                if text := decoder.decode(piece):
                    yield time.monotonic() - began, text
    if process.returncode:
        raise WrongPicture(f"The demo ended with {process.returncode}.")


async def chat_picture(url: str, target: Path, *, dark: bool) -> None:
    """The beginning of the conversation, and beside it its end."""
    async with chromium() as browser:
        page = await browser.new_page(
            viewport=PHONE,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
            locale="en-GB",
        )
        await page.goto(url)
        for minute in SAID:
            await page.wait_for_timeout(1000 * (61 - time.time() % 60))
            for text, answer in minute:
                await exchange(page, text, answer)
        if not await page.locator(".photo").count():
            raise WrongPicture("/gpu sent no chart.")
        shown = []
        for end in ("0", "log.scrollHeight"):
            await page.evaluate(f"log.scrollTop = {end}")
            await page.wait_for_timeout(600)  # bubbles fade in
            shown.append(await page.screenshot())
    side_by_side(shown, target)


def side_by_side(pictures: Sequence[bytes], target: Path) -> None:
    size = (PHONE["width"] + BETWEEN) * len(pictures) - BETWEEN, PHONE["height"]
    whole = Image.new("RGBA", size)
    for number, picture in enumerate(pictures):
        whole.paste(Image.open(BytesIO(picture)), (number * (PHONE["width"] + BETWEEN), 0))
    whole.save(target, optimize=True)


async def exchange(page: Page, text: str, answer: str) -> None:
    """Say it, and wait until the answer stands and nothing is being written any more."""
    articles = page.get_by_role("article")
    before = await articles.count()
    if text:
        await page.get_by_label("Message", exact=True).fill(text)
        await page.keyboard.press("Enter")
    try:
        pattern = re.compile(answer, re.DOTALL)
        await expect(articles.last).to_have_text(pattern, timeout=SECONDS * 1000)
        for sign in ("⏳", "…"):  # a tool that runs, an answer that is written
            await expect(page.get_by_text(sign)).to_have_count(0, timeout=SECONDS * 1000)
    except AssertionError:
        seen = [await articles.nth(n).inner_text() for n in range(before, await articles.count())]
        raise WrongPicture(f"{text}: {seen}") from None


def need_emoji() -> None:
    if not subprocess.run(["fc-list", ":charset=23f0"], capture_output=True, check=True).stdout:
        raise WrongPicture("No font here has emoji: apt-get install fonts-noto-color-emoji")


if __name__ == "__main__":
    try:
        need_emoji()
        asyncio.run(main())
    except WrongPicture as error:
        sys.exit(f"This is no picture of what it should show. {error}")
