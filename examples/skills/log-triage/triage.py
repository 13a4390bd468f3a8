"""Lines of a log that tell of trouble, in groups: triage.py FILE [--top N]."""

import argparse
import re
from pathlib import Path

TROUBLE = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panic|exception|traceback|denied|refused|timed? ?out|killed|"
    r"oom|segfault|critical|emerg)\b",
    re.IGNORECASE,
)
TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\w{3} [ \d]\d \d\d:\d\d:\d\d|\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d"
)
VARYING = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(?:[.:]\d+)*|\"[^\"]*\"|'[^']*'", re.IGNORECASE
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--top", type=int, default=10)
    asked = parser.parse_args()
    groups: dict[str, list[str]] = {}  # what lines have in common: how often, first, last, a line
    count = lines = 0
    with asked.file.open(encoding="utf-8", errors="replace") as log:
        for line in log:
            lines += 1
            if not TROUBLE.search(line):
                continue
            count += 1
            found = TIME.search(line)
            when = found.group() if found else f"line {lines}"
            key = " ".join(VARYING.sub("#", TIME.sub("", line)).split())[:200]
            many, first, _, shown = groups.get(key, ["0", when, when, line.strip()[:300]])
            groups[key] = [str(int(many) + 1), first, when, shown]
    print(f"{count} of {lines} lines tell of trouble, in {len(groups)} groups")
    for many, first, last, shown in sorted(groups.values(), key=lambda group: -int(group[0]))[
        : asked.top
    ]:
        print(f"{many}x  {first} to {last}\n    {shown}")


if __name__ == "__main__":
    main()
