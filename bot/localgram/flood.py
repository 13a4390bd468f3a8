"""Flood control. Telegram does not publish its numbers: these are assumed.

What is documented: about one message a second in a chat with short bursts, 20 a minute in a
group, about 30 a second in all (core.telegram.org/bots/faq). Calls before the deadline of a
refusal are refused too, and an offence soon after another doubles the wait.
"""

from dataclasses import dataclass

from bot.localgram.clock import Clock

COUNTED = frozenset(
    {
        "sendmessage", "sendphoto", "senddocument", "sendvoice", "sendaudio", "sendvideo",
        "sendanimation", "sendvideonote", "sendsticker", "sendmediagroup", "sendmessagedraft",
        "editmessagetext", "editmessagecaption", "editmessagereplymarkup", "editmessagemedia",
        "copymessage", "forwardmessage",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    private_rate: float = 1.0  # calls a second
    private_burst: float = 5.0
    group_rate: float = 20 / 60
    group_burst: float = 20.0
    total_rate: float = 30.0
    total_burst: float = 30.0
    penalty: int = 3  # seconds of the first refusal
    memory: float = 60.0  # seconds in which a second refusal counts as a repeated offence


@dataclass(slots=True)
class _Bucket:
    level: float
    filled: float

    def take(self, rate: float, burst: float, now: float) -> bool:
        self.level = min(burst, self.level + (now - self.filled) * rate)
        self.filled = now
        if self.level < 1:
            return False
        self.level -= 1
        return True


@dataclass(slots=True)
class _Penalty:
    until: float = 0.0
    seconds: int = 0


class Flood:
    def __init__(self, clock: Clock, limits: Limits | None) -> None:
        self._clock = clock
        self._limits = limits
        self._buckets: dict[int, _Bucket] = {}
        self._penalties: dict[int, _Penalty] = {}

    def punish(self, chat: int, seconds: int) -> None:
        """Refuse every call to this chat for `seconds`."""
        self._penalties[chat] = _Penalty(self._clock() + seconds, seconds)

    def check(self, method: str, chat: int) -> int:
        """Seconds to wait before this call would be welcome; 0 lets it pass."""
        if chat == 0:
            return 0
        now = self._clock()
        if (left := self._left(chat, now)) > 0:
            return left
        limits = self._limits
        if limits is None or method.lower() not in COUNTED or self._passes(limits, chat, now):
            return 0
        return self._offence(limits, chat, now)

    def _left(self, chat: int, now: float) -> int:
        penalty = self._penalties.get(chat)
        return 0 if penalty is None or penalty.until <= now else max(1, round(penalty.until - now))

    def _passes(self, limits: Limits, chat: int, now: float) -> bool:
        rate, burst = limits.private_rate, limits.private_burst
        if chat < 0:
            rate, burst = limits.group_rate, limits.group_burst
        own = self._buckets.setdefault(chat, _Bucket(burst, now))
        total = self._buckets.setdefault(0, _Bucket(limits.total_burst, now))
        return own.take(rate, burst, now) and total.take(limits.total_rate, limits.total_burst, now)

    def _offence(self, limits: Limits, chat: int, now: float) -> int:
        before = self._penalties.get(chat, _Penalty())
        again = before.seconds and now < before.until + limits.memory
        seconds = before.seconds * 2 if again else limits.penalty
        self._penalties[chat] = _Penalty(now + seconds, seconds)
        return seconds
