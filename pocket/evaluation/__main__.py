"""`python -m pocket.evaluation`: measure Pocket, print one table, exit 1 below a target."""

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from pocket.evaluation.asked import beyond, within
from pocket.evaluation.case import Case
from pocket.evaluation.measure import Measured, decode_speeds, measure
from pocket.evaluation.server import ServerFailed, serving
from pocket.evaluation.table import as_json, failures, table
from pocket.evaluation.targets import Model, Target, describe, judge
from pocket.evaluation.wire import Address, Wire, WireError

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "backend/embedded/pocket.gguf"
PREFIX = ROOT / "agent/prefix"


@click.command()
@click.option(
    "--model", type=click.Path(path_type=Path), default=MODEL, help="The GGUF to measure."
)
@click.option(
    "--url", default="", help="A running llama-server instead, such as http://127.0.0.1:8080."
)
@click.option(
    "--system",
    type=click.Path(path_type=Path),
    default=PREFIX / "system.txt",
    help="The system text.",
)
@click.option(
    "--tools",
    type=click.Path(path_type=Path),
    default=PREFIX / "tools.json",
    help="The tool schemas.",
)
@click.option(
    "--threads",
    default=2,
    show_default=True,
    help="CPU threads while the decode speed is measured.",
)
@click.option("--quick", type=int, default=0, metavar="N", help="Only N cases, evenly chosen.")
@click.option("--family", default="", help="Only the cases of one family.")
@click.option("--failures", "misses", is_flag=True, help="Print each miss with what came.")
@click.option("--json", "json_", is_flag=True, help="Print JSON instead of the table.")
def main(
    model: Path,
    url: str,
    system: Path,
    tools: Path,
    threads: int,
    quick: int,
    family: str,
    misses: bool,
    json_: bool,
) -> None:
    """Measure a small tool-calling model through llama.cpp's server, at temperature 0."""
    cases = choose([*within(), *beyond()], quick, family)
    try:
        prefix = system.read_text("utf-8").strip(), json.loads(tools.read_text("utf-8"))
        with _served(model, url, 1) as address:  # two threads wait for each other on a busy machine
            measured = measure(Wire(address, *prefix), cases, _progress)
        with _served(model, url, threads) as address:
            wire = Wire(address, *prefix)
            decode, facts = decode_speeds(wire), describe(wire.meta(), None if url else model)
    except (ServerFailed, WireError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    targets = judge(measured, decode, facts)
    _show(measured, facts, targets, misses, json_)
    sys.exit(0 if all(target.met for target in targets) else 1)


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def choose(cases: Sequence[Case], quick: int, family: str) -> list[Case]:
    """Those of `family` (all, if empty), and of these `quick` at even distances (all, if 0)."""
    chosen = [case for case in cases if family in ("", case.family)]
    if not chosen:
        names = ", ".join(dict.fromkeys(case.family for case in cases))
        raise click.UsageError(f"there is no family {family}; there are: {names}")
    count = min(quick or len(chosen), len(chosen))
    return [chosen[number * len(chosen) // count] for number in range(count)]


@contextmanager
def _served(model: Path, url: str, threads: int) -> Iterator[Address]:
    if url:
        yield Address(url=url)
        return
    if not model.is_file():
        raise ServerFailed(f"there is no model {model}")
    with serving(model, threads) as address:
        yield address


def _show(
    measured: Measured, model: Model, targets: Sequence[Target], misses: bool, json_: bool
) -> None:
    if misses:
        print(failures(measured), end="\n\n", file=sys.stderr if json_ else sys.stdout)
    print(
        json.dumps(as_json(measured, model, targets), indent=1)
        if json_
        else table(measured, model, targets)
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server's folder goes too
    main()
