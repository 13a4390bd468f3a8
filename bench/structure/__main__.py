"""The figures as a table: `make structure`.

python -m bench.structure [--root DIR] [--static] [--json]

--root measures another checkout, also an old one; --static leaves out what needs
a running bot. The checkout's own .venv is used where it has one.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from bench.structure.frames import Unseen, frame_figures
from bench.structure.source import CORE, source_figures

OURS = Path(__file__).parents[2]
FULLEST = 6  # folders that are listed


def table(figures: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the table."""
    yield f"{'':28}{'modules':>9}{'lines':>9}"
    for name, size in figures["lines"].items():
        yield f"{name:28}{size['modules']:9,}{size['lines']:9,}"
    yield "\nmodules directly in a folder"
    for folder, count in islice(figures["folders"].items(), FULLEST):
        yield f"{folder:28}{count:9,}"
    core, product = figures["core"], figures["core and localgram"]
    yield f"\n{'':40}{'core':>12}{'+ localgram':>14}"
    for (what, one), (_, other) in zip(_reading(core), _reading(product), strict=True):
        yield f"{what:40}{one:>12}{other:>14}"
    yield "\ntypes defined more than once (core)"
    for name, places in core["types_defined_again"].items():
        yield f"  {len(places)} {name}: {', '.join(places)}"
    yield "\nimport cycles between files (core; * also while they are imported)"
    for cycle in core["cycles"]:
        mark = "*" if any(set(c) <= set(cycle) for c in core["cycles_at_import"]) else " "
        yield f" {mark} {len(cycle)}: {', '.join(cycle)}"
    if frames := figures.get("frames"):
        yield from _frames(frames)


def _reading(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    again = figures["types_defined_again"].values()
    yield "modules", f"{figures['modules']:,}"
    yield "lines of a module, mean", f"{figures['mean_module_lines']}"
    yield "modules with exactly one importer", f"{len(figures['one_importer'])}"
    yield "functions", f"{figures['functions']:,}"
    yield "private functions", f"{figures['private_percent']} %"
    for key, what in (("function_lines", "body"), ("function_lines_whole", "whole")):
        lines = figures[key]
        yield f"lines of a function's {what}, median / p90", f"{lines['median']:g} / {lines['p90']}"
    yield "type names defined more than once", f"{len(again)}"
    yield "types that bear them", f"{sum(map(len, again))}"
    yield "import cycles", f"{len(figures['cycles'])}"
    yield "modules in them", f"{sum(map(len, figures['cycles']))}"
    yield "import cycles while being imported", f"{len(figures['cycles_at_import'])}"


def _frames(figures: Mapping[str, Any]) -> Iterator[str]:
    routes, passed = figures["routes"], figures["modules_of_one_message"]
    yield f"\n{'frames of our own':40}{'frames':>12}{'modules':>14}"
    for name, frames in {**routes, "sum": list(chain(*routes.values()))}.items():
        yield f"{name:40}{len(frames):12}{len({f.partition(':')[0] for f in frames}):14}"
    yield f"{'in which one message runs a function':40}{'':12}{len(passed):14}"
    for name, frames in routes.items():
        yield f"\n{name}"
        yield from (f"  {number:2} {frame}" for number, frame in enumerate(frames, 1))
    yield "\nmodules in which one message runs a function"
    for package in CORE:
        own = [name for name in passed if name.partition(".")[0] == package]
        yield f"  {len(own)} of {package}: {', '.join(own)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=OURS)
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    if missing := [name for name in CORE if not (chosen.root / name).is_dir()]:
        parser.error(f"{chosen.root} is no checkout of this project: it has no {missing[0]}/")
    figures = source_figures(chosen.root)
    if not chosen.static:
        try:
            figures["frames"] = asyncio.run(frame_figures(chosen.root))
        except Unseen as error:
            sys.exit(str(error))
    print(json.dumps(figures) if chosen.json else "\n".join(table(figures)))


if __name__ == "__main__":
    main()
