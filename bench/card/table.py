"""The table of `make card`, in Markdown: printed as it grows, and written to a file after each row."""

from dataclasses import dataclass, field
from pathlib import Path

HEAD = "| | | |\n|---|---|---|"


@dataclass
class Table:
    """`out` is a file that always holds what is known so far."""

    out: Path
    title: str = ""
    rows: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def row(self, step: str, figure: str, value: str) -> None:
        if not self.rows:
            print(HEAD)
        self.rows.append((step, figure, " ".join(value.split())))
        print(self._line(len(self.rows) - 1), flush=True)
        self.write()

    def failed(self, step: str, sentence: str) -> None:
        self.failures.append(step)
        self.row(step, "failed", sentence)

    def write(self) -> None:
        lines = [self._line(number) for number in range(len(self.rows))]
        self.out.write_text("\n".join([self.title, "", HEAD, *lines, ""]), "utf-8")

    def _line(self, number: int) -> str:
        step, figure, value = self.rows[number]
        named = "" if number and self.rows[number - 1][0] == step else step
        return f"| {named} | {figure} | {value.replace('|', '/')} |"
