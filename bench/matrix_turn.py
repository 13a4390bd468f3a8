"""What a message in a Matrix room costs beside the homeserver and the model: from a sync's arrival to the
model's request, one message after the other in one room.

    make matrix .cache/synapse/.stamp && python -m bench.matrix_turn [--json] [--turns N]

The bot runs as a process of its own before a real Synapse; a proxy between them notes when a sync's
answer leaves for the bot. Proxy, person and model share a process, and all share the machine: the best
is nearest to what is the bot's own.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.service import VOLTAIRE, environment
from fakes.model_scripted import ModelServer, says
from fakes.synapse import PASSWORD, PYTHON, running_synapse

KINDS = {"plain": False, "encrypted": True}


def installed() -> bool:
    """Whether there are a homeserver and the library to measure with."""
    from importlib.util import find_spec

    return PYTHON.exists() and find_spec("nio") is not None


async def matrix_turns(count: int) -> dict[str, float]:
    """Milliseconds from the sync to the request, the median and the best of `count` messages each in a
    plain and in an encrypted room; {} where Matrix is not installed."""
    if not installed():
        return {}
    from fakes.homeserver_proxy import homeserver_proxy
    from fakes.matrix_person import matrix_person

    left: dict[str, float] = {}  # when an event left for the bot, by its id
    asked: list[float] = []

    def synced(answer: Any) -> Any:
        for room in answer.get("rooms", {}).get("join", {}).values():
            for event in room["timeline"]["events"]:
                left[event["event_id"]] = time.perf_counter()
        return answer

    def script(_: Any) -> Any:
        asked.append(time.perf_counter())
        return says("Four.")

    figures: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(prefix="vb-", ignore_cleanup_errors=True) as name,
        running_synapse(Path(name) / "homeserver") as server,
    ):
        await server.answers()
        folder = Path(name)
        account, owner = await server.account("voltaire"), await server.account("ada")
        (folder / "password").write_text(PASSWORD)
        async with (
            ModelServer(script=script) as model,
            homeserver_proxy(server.url) as proxy,
            matrix_person(server.url, owner, folder / "ada") as ada,
        ):
            settings = environment(
                folder / "home",
                MATRIX__HOMESERVER=proxy.url,
                MATRIX__USER=account,
                MATRIX__PASSWORD_FILE=folder / "password",
                MATRIX__OWNERS=owner,
                BACKEND__KIND="external",
                BACKEND__URL=model.url,
            )
            proxy.rule(r"GET .*/sync", "change", times=10**9, change=synced)
            bot = await asyncio.create_subprocess_exec(
                VOLTAIRE, "run", env=settings, start_new_session=True,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                for kind, encrypted in KINDS.items():
                    room = await ada.room_with(account, encrypted=encrypted)
                    await ada.say(room, "warm up")
                    await ada.next(lambda e: e.final and e.body == "Four.")
                    took: list[float] = []
                    for number in range(count):
                        asked.clear()
                        id = await ada.say(room, f"question {number}")
                        await ada.next(lambda e: e.final and e.body == "Four.")
                        took.append(1000 * (asked[0] - left[id]))
                    figures[f"matrix_{kind}_sync_to_request_ms"] = round(statistics.median(took), 1)
                    figures[f"matrix_{kind}_sync_to_request_best_ms"] = round(min(took), 1)
            finally:
                bot.terminate()
                await bot.wait()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turns", type=int, default=40)
    chosen = parser.parse_args()
    figures = asyncio.run(matrix_turns(chosen.turns))
    if chosen.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:40} {value}")


if __name__ == "__main__":
    main()
