"""What the server's cache gave of each prompt, held against what it could have given."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from agent.messages import Message
from agent.model import Completion
from agent.store.message_codec import columns
from agent.store.usage import CacheReuse

log = logging.getLogger(__name__)

SLACK = 16  # tokens that templates and batch boundaries may cost per call
KEPT = 32  # conversations whose last request is remembered


@dataclass(frozen=True, slots=True)
class LastCall:
    """The last model call of a conversation: what was sent, and the tokens known after it."""

    sent: tuple[Message, ...]
    tokens: int


class CacheAudit:
    """Remembers each conversation's last call."""

    def __init__(self) -> None:
        self._last: OrderedDict[int, LastCall] = OrderedDict()

    def compare(
        self, conversation: int, sent: Sequence[Message], completion: Completion
    ) -> CacheReuse:
        """What this call read again although it was known; logged when it is more than SLACK."""
        last = self._last.get(conversation)
        self._remember(conversation, sent, completion)
        prompt, cached = completion.prompt_tokens, completion.cached_tokens
        if last is None or prompt is None or cached is None:
            return CacheReuse()
        reread = max(0, min(last.tokens, prompt) - cached)
        place = difference(last.sent, sent) if reread > SLACK else ""
        if reread > SLACK:
            log.info(  # a service keeps it; in a terminal it would stand in the answer
                "conversation %d: %d of %d prompt tokens were read again; %s",
                conversation,
                reread,
                prompt,
                place,
            )
        return CacheReuse(max(0, prompt - last.tokens), reread, place)

    def forget(self, conversation: int) -> None:
        """The prompt was cut on purpose: the next call has nothing to be held against."""
        self._last.pop(conversation, None)

    def _remember(self, conversation: int, sent: Sequence[Message], completion: Completion) -> None:
        if completion.prompt_tokens is None:
            return
        self._last[conversation] = LastCall(
            tuple(sent), completion.prompt_tokens + kept(completion)
        )
        self._last.move_to_end(conversation)
        if len(self._last) > KEPT:
            self._last.popitem(last=False)


def kept(completion: Completion) -> int:
    """Tokens of an answer that the next prompt repeats: not thoughts, and no call that was cut short."""
    cut_call = completion.finish_reason == "length" and completion.calls
    return 0 if completion.reasoning or cut_call else completion.completion_tokens or 0


def difference(before: Sequence[Message], now: Sequence[Message]) -> str:
    """The first place where a request does not go on from the one before it, in words."""
    for at, old in enumerate(before):
        if at >= len(now):
            return f"it ends before message {at} of the last request"
        if old != now[at]:
            return f"first difference in message {at}: {_place(old, now[at])}"
    return "what was sent goes on from the last request, so the server had dropped it"


def _place(old: Message, new: Message) -> str:
    if type(old) is not type(new):
        return f"{type(old).__name__} became {type(new).__name__}"
    for name, a, b in zip(("role", "text", "rest"), _form(old), _form(new), strict=True):
        if a != b:
            at = next(
                (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
                min(len(a), len(b)),
            )
            return f"{type(old).__name__}, {name}, character {at}: {a[at : at + 40]!r} became {b[at : at + 40]!r}"
    return "nothing"


def _form(message: Message) -> tuple[str, str, str]:
    if type(message).__name__ == "System":
        return "system", getattr(message, "text", ""), ""
    role, text, rest = columns(message)
    return role, text, rest or ""
