"""Scores in a file, one JSON object a line, so that a run can be resumed, and rates over them."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Score:
    """The outcome of one run of a task. `fault` is empty when it was done; `joules` is None where nothing measures them.

    `calls` counts valid tool calls, `refused` invalid ones, `asked` model calls; tokens are summed
    over these.
    """

    task: str
    kind: str
    prompt: str
    fault: str
    reason: str
    calls: int
    refused: int
    asked: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    joules: float | None

    @property
    def key(self) -> tuple[str, str]:
        return self.task, self.prompt


@dataclass(frozen=True, slots=True)
class Rates:
    """Means per task. Rates are shares of 1; None where nothing is known."""

    tasks: int
    completed: float
    valid_calls: float | None
    calls: float
    tokens: float
    seconds: float
    joules: float | None


def rates(scores: Sequence[Score]) -> Rates:
    """Compute the means of scores, of which there is at least one."""
    valid, refused = sum(s.calls for s in scores), sum(s.refused for s in scores)
    joules = [s.joules for s in scores if s.joules is not None]
    return Rates(
        tasks=len(scores),
        completed=mean([not s.fault for s in scores]),
        valid_calls=valid / (valid + refused) if valid + refused else None,
        calls=mean([s.calls for s in scores]),
        tokens=mean([s.prompt_tokens + s.completion_tokens for s in scores]),
        seconds=mean([s.seconds for s in scores]),
        joules=mean(joules) if joules else None,
    )


def rates_by(scores: Iterable[Score], name: Callable[[Score], str]) -> dict[str, Rates]:
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(name(score), []).append(score)
    return {group: rates(members) for group, members in groups.items()}


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def load_scores(path: Path) -> list[Score]:
    """The scores in the file, without a line that was cut off when the program was killed."""
    scores: list[Score] = []
    for line in path.read_text("utf-8").split("\n") if path.exists() else []:
        try:
            scores.append(Score(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return scores


def append_score(path: Path, score: Score) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(score), ensure_ascii=False) + "\n")
