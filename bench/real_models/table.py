"""The figures over trials, as Markdown. A figure that nothing gives is empty."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean, median

from bench.real_models.trial import WISHES, Trial, half, tasks

COLUMNS = (
    ("easy", lambda trial: tasks()[trial.task].easy),
    ("suite", lambda trial: tasks()[trial.task].kind != WISHES),
    ("suite, half A", lambda trial: tasks()[trial.task].kind != WISHES and half(trial.task) == "A"),
    ("suite, half B", lambda trial: tasks()[trial.task].kind != WISHES and half(trial.task) == "B"),
    ("wishes", lambda trial: tasks()[trial.task].kind == WISHES),
)
ANSWER_FAULTS = ("call text", "template mark", "repeated sentence")


def tables(trials: Sequence[Trial], cold: Mapping[str, float]) -> str:
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.model, trial.agent), []).append(trial)
    passed = markdown(
        ["model", "agent", "seeds", *(name for name, _ in COLUMNS), "s a task"],
        [
            [model, agent, str(len({t.seed for t in group}))]
            + [passes(group, belongs) for _, belongs in COLUMNS]
            + [f"{mean(t.seconds for t in group):.1f}"]
            for (model, agent), group in groups.items()
        ],
    )
    waited = markdown(
        [
            *("model", "agent", "first word cold, s", "warm, s", "after a tool call, s"),
            *("read for a first word", "read again in a turn", *ANSWER_FAULTS, "ended otherwise"),
        ],
        [
            [
                model,
                agent,
                f"{cold[model]:.1f}" if agent == "ours" and model in cold else "",
                *waits(group),
                *(count(group, fault) for fault in ANSWER_FAULTS),
                endings(group),
            ]
            for (model, agent), group in groups.items()
        ],
    )
    return f"{passed}\n\n{waited}"


def passes(trials: Sequence[Trial], belongs: Callable[[Trial], bool]) -> str:
    """The mean over seeds of the tasks done, of those that were run."""
    counted = [trial for trial in trials if belongs(trial)]
    if not counted:
        return ""
    names = {trial.task for trial in counted}
    rate = mean(mean(not t.fault for t in counted if t.task == name) for name in names)
    return f"{rate * len(names):.1f} of {len(names)}".replace(".0 ", " ")


def waits(trials: Sequence[Trial]) -> Iterator[str]:
    """Medians of seconds to the first word, and of tokens that were read for it; means of those read again."""
    called = [trial.model_calls for trial in trials if trial.model_calls]
    first = [calls[0] for calls in called]
    later = [call for calls in called for call in calls[1:]]
    for calls in (first, later):
        seconds = [call.seconds for call in calls if call.seconds is not None]
        yield f"{median(seconds):.1f}" if seconds else ""
    read = [c.prompt - c.cached for c in first if c.prompt is not None and c.cached is not None]
    yield f"{median(read):.0f}" if read else ""
    again = [
        max(0, min(before.prompt + before.written, call.prompt) - call.cached)
        for calls in called
        for before, call in itertools.pairwise(calls)
        if before.prompt is not None and before.written is not None
        if call.prompt is not None and call.cached is not None
    ]
    yield f"{mean(again):.0f}" if again else ""


def count(trials: Sequence[Trial], fault: str) -> str:
    return str(sum(fault in trial.answer_faults for trial in trials))


def endings(trials: Sequence[Trial]) -> str:
    reasons = Counter(trial.reason for trial in trials if trial.reason != "done")
    return ", ".join(f"{reason} {number}" for reason, number in reasons.most_common())


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def failures(trials: Sequence[Trial]) -> str:
    """What failed and where its transcript lies, a line each."""
    return "\n".join(
        f"{t.model} {t.agent} {t.seed} {t.task}: {', '.join(filter(None, (t.fault, *t.answer_faults)))}"
        f"\n    {t.transcript}"
        for t in trials
        if t.transcript
    )
