"""What a command that is answered outside of the sandbox costs over a plain program: python -m bench.shell

Prints the milliseconds of a call in one shell, the median of ROUNDS rounds by turns: of /bin/true, of `web` (which
answers with its usage, so that nothing but the way there and back is measured), and of interpreters that
such a client could have been written for. Exit code 1 when a command costs more than 12 ms over /bin/true.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from agent.shell.broker import Broker
from agent.tools.context import ToolContext
from agent.tools.tool import Call
from fakes.sandbox_box import opened

ROUNDS, CALLS = 9, 50
MOST_MS = 12.0
PROGRAMS = {
    "/bin/true": "/bin/true",
    "a command": "web",
    "perl, for comparison": "perl -e 1",
    "python, for comparison": "python3 -I -S -c 'import _socket'",
}
TIMED = """
TIMEFORMAT=%R
time for i in $(seq {calls}); do {program} > /dev/null 2>&1; done
"""


async def allowed(what: str, *, scope: str, touched: object = ()) -> None:
    """Nothing asks here."""


async def main() -> int:
    parser = argparse.ArgumentParser(description="What a command answered outside costs.")
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vb") as folder:
        Path(folder).chmod(0o755)
        async with opened(Path(folder)) as sandboxes:
            sandbox = await sandboxes.of("bench")
            took: dict[str, list[float]] = {name: [] for name in PROGRAMS}
            for _ in range(ROUNDS):
                for name, program in PROGRAMS.items():
                    call = Call("1", "turn", "bench", ToolContext(sandbox), allowed)
                    script = TIMED.format(calls=CALLS, program=program)
                    ran = await sandbox.run(script, commands=Broker(call))
                    took[name].append(float(ran.output.split()[-1]) * 1000 / CALLS)
    medians = {name: statistics.median(times) for name, times in took.items()}
    for name, milliseconds in medians.items():
        print(f"{name}: {milliseconds:.1f} ms")
    over = medians["a command"] - medians["/bin/true"]
    print(f"a command over a plain program: {over:.1f} ms (at most {MOST_MS:g} ms)")
    return int(over > MOST_MS)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
