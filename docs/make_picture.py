"""Makes docs/chat.png: the demo's chat page with a real conversation, in Chromium.

python docs/make_picture.py [--dark]
"""

import asyncio
import re
import sys
from pathlib import Path

from playwright.async_api import Page, async_playwright, expect

VOLTAIRE = Path(sys.executable).with_name("voltaire")
TARGET = Path(__file__).with_name("chat.png")
SAID = ("how much disk space is free?", "what time is it?")
SECONDS = 120


async def main() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(VOLTAIRE, "demo", "--port", "0", stdout=pipe)
    assert process.stdout
    try:
        line = (await process.stdout.readline()).decode()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line
        await _picture(found[0])
    finally:
        process.terminate()
        await process.wait()


async def _picture(url: str) -> None:
    scheme = "dark" if "--dark" in sys.argv else "light"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        page = await browser.new_page(
            viewport={"width": 430, "height": 760},
            color_scheme=scheme,  # type: ignore[arg-type]
            device_scale_factor=2,
        )
        await page.goto(url)
        for text in SAID:
            await _exchange(page, text)
        await page.screenshot(path=TARGET)
        await browser.close()


async def _exchange(page: Page, text: str) -> None:
    """Say it and wait until the answer stands and nothing is being written."""
    articles = page.get_by_role("article")
    before = await articles.count()
    await page.get_by_label("Message", exact=True).fill(text)
    await page.keyboard.press("Enter")
    await expect(articles.nth(before + 1)).to_be_visible(timeout=SECONDS * 1000)
    await page.wait_for_timeout(4000)


if __name__ == "__main__":
    asyncio.run(main())
