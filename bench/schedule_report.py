"""What a campaign against the schedule injected and what came of it."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Report:
    """What was injected and what came of it; `wrong` must stay empty."""

    seconds: float = 0.0
    aimed: Counter[str] = field(default_factory=Counter)
    stood: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    doubts: int = 0
    shown_again: int = 0
    given_up: int = 0
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        kills = sum(self.stood.values())
        ends = ", ".join(f"{state} {count}" for state, count in sorted(self.ended.items()))
        lines = [
            f"{kills} kills in {self.seconds:.0f} s",
            "",
            "the job stood at".ljust(34) + "kills",
        ]
        lines += [f"{where:<34}{count:>5}" for where, count in self.stood.most_common()]
        lines += ["", f"occurrences {sum(self.ended.values())}: {ends}"]
        lines += [f"sends in doubt, told {self.doubts}; shown again {self.shown_again}"]
        lines += [f"cut off so often that it was given up, told {self.given_up}"]
        return "\n".join([*lines, f"lost, doubled or untold {len(self.wrong)}", *self.wrong])
