"""Chromium, for tests and pictures of the pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from fakes.patience import SECONDS

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    # Fewer processes: a fifth less of processor time for a test.
    "--in-process-gpu",
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
    # A page's own address under another name, for what a site of another origin is refused.
    "--host-resolver-rules=MAP rebound.test 127.0.0.1",
)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, timeout=SECONDS * 1000
        )
        try:
            yield browser
        finally:
            await browser.close()
