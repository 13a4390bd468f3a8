"""What of a prompt was read again although the server knew it, figure by figure."""

import logging
from typing import Any

import pytest

from agent.context.cache_audit import KEPT, CacheAudit, difference
from agent.messages import Assistant, Message, ToolCall, ToolResult, User
from agent.model import Completion
from agent.store.usage import CacheReuse

DROPPED = difference((), ())
SENT = (User("hello"),)


def completion(prompt: int | None, cached: int | None, answer: int | None = 0, **fields: Any) -> Completion:  # fmt: skip
    return Completion("", fields.get("calls", ()), fields.get("reasoning", ""), fields.get("reason", "stop"), prompt, cached, answer)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "prompt", "cached", "reuse"),
    [
        (10, 150, 110, CacheReuse(40, 0, "")),
        (10, 150, 120, CacheReuse(40, 0, "")),
        (10, 150, 94, CacheReuse(40, 16, "")),
        (10, 150, 93, CacheReuse(40, 17, DROPPED)),
        (10, 150, 0, CacheReuse(40, 110, DROPPED)),
        (10, 80, 80, CacheReuse(0, 0, "")),
        (10, 80, 20, CacheReuse(0, 60, DROPPED)),
        (None, 150, 100, CacheReuse(50, 0, "")),
        (10, None, 100, CacheReuse()),
        (10, 150, None, CacheReuse()),
    ],
)
def test_what_a_call_read_anew_and_again(
    answer: int | None, prompt: int | None, cached: int | None, reuse: CacheReuse,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """After a call of 100 tokens and its answer."""
    caplog.set_level(logging.INFO, "agent.context.cache_audit")
    audit = CacheAudit()
    assert audit.compare(1, SENT, completion(100, 0, answer)) == CacheReuse()
    assert audit.compare(2, SENT, completion(100, 0)) == CacheReuse()
    assert audit.compare(1, SENT, completion(prompt, cached)) == reuse
    told = f"conversation 1: {reuse.reread} of {prompt} prompt tokens were read again; {DROPPED}"
    assert caplog.messages == ([told] if reuse.difference else [])


def test_the_conversations_of_the_last_calls_are_remembered() -> None:
    audit = CacheAudit()
    for conversation in range(KEPT):
        audit.remember(conversation, SENT, completion(100, 0))
    audit.remember(0, SENT, completion(100, 0))
    audit.remember(KEPT, SENT, completion(100, 0))  # 1 was called longest ago
    rereads = [audit.compare(n, SENT, completion(100, 0)).reread for n in (0, 2, KEPT, 1)]
    assert rereads == [100, 100, 100, 0]


HI = Assistant("hi", (ToolCall("a", "bash", "{}"),), thought="hm")


@pytest.mark.parametrize(
    ("now", "place"),
    [
        ((User("hello"), HI), DROPPED),
        ((User("hello"), HI, User("more")), DROPPED),
        ((User("hello"),), "it ends before message 1 of the last request"),
        ((User("help"), HI), "first difference in message 0: User, text, character 3: 'lo' became 'p'"),
        ((User("hell"), HI), "first difference in message 0: User, text, character 4: 'o' became ''"),
        ((User("hello", ("i",)), HI), "first difference in message 0: User, images, character 1: ')' became \"'i',)\""),
        ((User("hello"), Assistant("hi", HI.calls)), "first difference in message 1: Assistant, thought, character 0: 'hm' became ''"),
        ((User("hello"), ToolResult("a", "bash", "x")), "first difference in message 1: Assistant became ToolResult"),
    ],
    ids=["same", "grown", "shorter", "changed", "cut", "image", "thought", "kind"],
)  # fmt: skip
def test_the_first_difference_is_named_in_words(now: tuple[Message, ...], place: str) -> None:
    assert difference((User("hello"), HI), now) == place
