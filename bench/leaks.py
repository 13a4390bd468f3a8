"""What the check of everything that leaves costs: microseconds of CPU per 4,000 characters.

    python -m bench.leaks [--json]

An answer as a whole, as it streams in pieces of four characters, and hostile texts; with five
secrets and with fifty.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.leaks import LeakDetector

CHARACTERS = 4_000
PIECE = 4  # characters, about a token
PROSE = (Path(__file__).parent.parent / "docs/security.md").read_text("utf-8")[:CHARACTERS]
TEXTS = {
    "prose": PROSE,
    "hexadecimal": random.Random(1).randbytes(CHARACTERS // 2).hex(),
    "escapes": "%25" * (CHARACTERS // 3),
    "beginnings of keys": "sk-" * (CHARACTERS // 3),
    "beginnings of a secret": "73118044:A" * (CHARACTERS // 10),
    "a secret with gaps": "73118044".join(["\u200b" * (CHARACTERS // 2)] * 2),
}


def microseconds(work: Callable[[], object]) -> int:
    """The best of some rounds: of a busy machine the others say little."""
    times = []
    for _ in range(15):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return round(1e6 * min(times))


def detector(count: int) -> LeakDetector:
    chance = random.Random(count)
    secrets = [f"{73118044 + n}:AA{chance.randbytes(20).hex()}" for n in range(count)]
    return LeakDetector({str(number): secret for number, secret in enumerate(secrets)})


def streamed(leaks: LeakDetector, text: str) -> None:
    stream = leaks.stream()
    for at in range(0, len(text), PIECE):
        stream.feed(text[at : at + PIECE])
    stream.close()


def measured() -> list[dict[str, str | int]]:
    few, many = detector(5), detector(50)
    return [
        {
            "text": name,
            "whole": microseconds(partial(few.find, text)),
            "whole, 50 secrets": microseconds(partial(many.find, text)),
            "streamed": microseconds(partial(streamed, few, text)),
        }
        for name, text in TEXTS.items()
    ]


def main(*, as_json: bool) -> None:
    rows = measured()
    if as_json:
        print(json.dumps(rows))
        return
    print(f"Microseconds per {CHARACTERS:,} characters, streamed in pieces of {PIECE}:\n")
    print(f"| {' | '.join(rows[0])} |\n|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row.values()))} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    main(as_json=parser.parse_args().json)
