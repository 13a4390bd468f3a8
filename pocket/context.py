"""The context block before a person's words, as the product sends it."""

from random import Random

from pocket.dialogue import User
from pocket.sentences import fact, line
from pocket.words import person

ZONES = (
    "Europe/Paris",
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Europe/London",
    "Australia/Sydney",
)


class Tail:
    """The blocks of one conversation: the time moves on, the rest comes and goes."""

    def __init__(self, random: Random, share: float) -> None:
        self.random = random
        self.day, self.hour, self.minute = (
            random.randint(1, 28),
            random.randint(0, 23),
            random.randint(0, 59),
        )
        self.month, self.zone = random.randint(1, 12), random.choice(ZONES)
        self.given = random.random() < share
        self.sender = person(random) if random.random() < 0.25 else ""

    def before(self, words: str, user: User) -> str:
        if not self.given and not user.notes and not user.files:
            return words
        self.minute = min(59, self.minute + self.random.randint(0, 3))
        return "\n".join(("<context>", *self._lines(user), "</context>", words))

    def _lines(self, user: User) -> list[str]:
        random = self.random
        weekday = random.choice("Mon Tue Wed Thu Fri Sat Sun".split())
        lines = [
            f"now: {weekday} 2026-{self.month:02}-{self.day:02} {self.hour:02}:{self.minute:02} {self.zone}"
        ]
        if self.sender:
            lines.append(f"from: {self.sender}")
        notes = user.notes or [
            fact(random) for _ in range(random.randint(1, 4) if random.random() < 0.04 else 0)
        ]
        if notes:
            lines.append("notes:")
            lines += [
                f"- {note} (2026-{random.randint(1, 12):02}-{random.randint(1, 28):02})"
                for note in notes
            ]
        if random.random() < 0.03:
            lines.append(f"reply to: {line(random)}")
        lines += [f"file: {file}" for file in user.files]
        return lines
