"""How much of each prompt came from the server's cache, compared with how much should have."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields

from agent.messages import Message
from agent.model import Completion
from agent.store.usage import CacheReuse

log = logging.getLogger(__name__)

SLACK = 16  # tokens that templates and batch boundaries may cost per call
KEPT = 32  # conversations whose last request is remembered


class CacheAudit:
    """Remembers the messages of each conversation's last call, and the tokens in the cache after it."""

    def __init__(self) -> None:
        self._last: OrderedDict[int, tuple[tuple[Message, ...], int]] = OrderedDict()

    def compare(
        self, conversation: int, sent: Sequence[Message], completion: Completion
    ) -> CacheReuse:
        """Return the tokens that this call prefilled again although they were in the cache; log more than SLACK."""
        prompt, cached = completion.prompt_tokens, completion.cached_tokens
        last = self._last.get(conversation)
        self.remember(conversation, sent, completion)
        if last is None or prompt is None or cached is None:
            return CacheReuse()
        before, known = last
        reread = max(0, min(known, prompt) - cached)
        place = difference(before, sent) if reread > SLACK else ""
        if place:
            log.info(  # not a warning, which a terminal would show amid the answer
                "conversation %d: %d of %d prompt tokens were read again; %s",
                *(conversation, reread, prompt, place),
            )
        return CacheReuse(max(0, prompt - known), reread, place)

    def remember(self, conversation: int, sent: Sequence[Message], completion: Completion) -> None:
        """Record that the server's cache holds this call."""
        if completion.prompt_tokens is not None:
            self._last[conversation] = tuple(sent), completion.prompt_tokens + kept(completion)
            self._last.move_to_end(conversation)
            if len(self._last) > KEPT:
                self._last.popitem(last=False)

    def forget(self, conversation: int) -> None:
        """Do not compare the next call with the last one, as the prompt was shortened on purpose."""
        self._last.pop(conversation, None)


def kept(completion: Completion) -> int:
    """Tokens of an answer that the next prompt repeats: 0 for one with thoughts or a call that was cut short."""
    cut_call = completion.finish_reason == "length" and completion.calls
    return 0 if completion.reasoning or cut_call else completion.completion_tokens or 0


def difference(before: Sequence[Message], now: Sequence[Message]) -> str:
    """The first place where a request differs from the one before it, in words."""
    for at, old in enumerate(before):
        if at >= len(now):
            return f"it ends before message {at} of the last request"
        if old != now[at]:
            return f"first difference in message {at}: {_place(old, now[at])}"
    return "what was sent goes on from the last request, so the server had dropped it"


def _place(old: Message, new: Message) -> str:
    kind = type(old).__name__
    if type(old) is not type(new):
        return f"{kind} became {type(new).__name__}"
    for field in fields(old):
        a, b = str(getattr(old, field.name)), str(getattr(new, field.name))
        if a != b:
            differing = (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
            at = next(differing, min(len(a), len(b)))
            return f"{kind}, {field.name}, character {at}: {a[at : at + 40]!r} became {b[at : at + 40]!r}"
    return "nothing"
