"""What readers make of saved pages: passages that are wanted, what stands beside them, links, time.

python -m bench.pages [--with MODULE]

Reads tests/agent/web/pages with the reader of `web read`, and with trafilatura where it is asked for and
installed. A page's JSON names the passages and links that a person would want, and what stands beside them.
"""

import argparse
import importlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.web.html_text import html_text, markdown

PAGES = Path(__file__).parents[1] / "tests" / "agent" / "web" / "pages"
Read = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class Judgement:
    lost: list[str]
    shown: list[str]  # though it is beside the text
    unlinked: list[str]


def judged(text: str, expected: dict[str, Any]) -> Judgement:
    plain = flat(text)
    return Judgement(
        [each for each in expected["wanted"] if flat(each.strip("#` ")) not in plain],
        [each for each in expected["unwanted"] if flat(each) in plain],
        [each for each in expected["links"] if each not in text],
    )


def flat(text: str) -> str:
    """Words alone: readers mark emphasis and cells in ways of their own."""
    return " ".join(re.sub(r"\]\[\d+\]|[*|\\`\[]", "", text).split())


def readers(other: str) -> dict[str, Read]:
    found: dict[str, Read] = {"web read": markdown, "whole text": lambda html, url: html_text(html)}
    if other == "trafilatura":
        extract = importlib.import_module("trafilatura").extract
        options = {"output_format": "markdown", "include_links": True, "include_tables": True,
                   "include_formatting": True}  # fmt: skip
        found[other] = lambda html, url: extract(html, url=url, **options) or ""
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="What readers make of saved pages.")
    parser.add_argument(
        "--with", dest="other", choices=["trafilatura"], default="", help="beside ours"
    )
    for name, read in readers(parser.parse_args().other).items():
        lost = shown = unlinked = wanted = beside = links = 0
        began = time.perf_counter()
        for page in sorted(PAGES.glob("*.html")):
            expected = json.loads(page.with_suffix(".json").read_text())
            found = judged(read(page.read_text(), expected["url"]), expected)
            lost, shown = lost + len(found.lost), shown + len(found.shown)
            unlinked += len(found.unlinked)
            wanted, beside = wanted + len(expected["wanted"]), beside + len(expected["unwanted"])
            links += len(expected["links"])
        seconds = time.perf_counter() - began
        print(
            f"{name:12} lost {lost} of {wanted} passages, {unlinked} of {links} links;"
            f" showed {shown} of {beside} beside the text; {seconds * 1000:.0f} ms"
        )


if __name__ == "__main__":
    main()
