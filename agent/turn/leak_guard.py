"""Keeps secrets (agent.leaks) out of what a turn shows and answers; agent.tools.tool.Call.leaves does so
for what its calls send."""

import json
from dataclasses import replace

from agent.aio import complete
from agent.approvals import GuardedCall
from agent.errors import ToolError
from agent.events import (
    Emit,
    Event,
    ModelFinished,
    Notice,
    TextDelta,
    ThoughtDelta,
    ToolCalled,
    ToolFinished,
    ToolProgress,
)
from agent.language import translate_phrase, translated
from agent.leaks import Leak
from agent.tools.tool import KEY
from agent.turn import texts
from agent.turn.turn import Ending, Turn
from backend.protocol import Phrase

REPLY = "reply"  # in place of a call's id, where an owner is asked about the answer itself


class LeakGuard:
    """Filters a turn's events and its answer.

    `emit` passes events on without secrets, text as soon as no secret can begin in it. `advice` and
    `ending` check the answer. `withhold` records what was withheld: the ending tells the person, after
    a restart, too.
    """

    def __init__(self, turn: Turn, emit: Emit) -> None:
        self._turn = turn
        self._detector = turn.context.leaks
        self._emit = emit
        self._text, self._thought, self._output = (self._detector.stream() for _ in range(3))
        self.withheld: list[str] = []
        self._advised = False
        self._allowed: set[str] = set()  # answers

    def emit(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                self._show(TextDelta(self._text.feed(text)))
                return
            case ThoughtDelta(text):
                self._show(ThoughtDelta(self._thought.feed(text)))
                return
            case ModelFinished():
                self._show(ThoughtDelta(self._thought.close()))
                self._show(TextDelta(self._text.close()))
            case ToolCalled(arguments=arguments):
                self._output.close()
                if leak := self._detector.find(json.dumps(arguments, ensure_ascii=False)):
                    event = replace(event, arguments=dict.fromkeys(arguments, hidden(leak)))
            case ToolProgress(text=text):
                shown = self._output.feed(text)
                leak = self._output.leak
                event = replace(event, text=hidden(leak) if leak else shown)
            case ToolFinished(output=output, shown=shown):
                if leak := self._detector.find(f"{output}\n{shown}"):
                    event = replace(event, output=hidden(leak), shown="")
        self._emit(event)

    def _show(self, event: TextDelta | ThoughtDelta) -> None:
        if event.text:
            self._emit(event)

    async def advice(self, text: str) -> str | None:
        """What to tell the model, once, about an answer that must not be sent; else None.

        An owner is asked about what looks like a key. `ending` withholds an answer with which the model insists.
        """
        leak = self._detector.find(text)
        if leak is None:
            return None
        if not leak.secret and await self._allows(leak, text):
            self._allowed.add(text)
            return None
        if self._advised:
            return None
        self._advised = True
        form = "{where}, which contained {what}"
        await self.withhold(Phrase(form, where=Phrase("an answer"), what=leak.what))
        self._emit(Notice(translated(texts.ANSWER_WITHHELD).format(what=shown(leak))))
        return texts.LEAKING_ANSWER.format(what=leak.what)

    async def withhold(self, what: str) -> None:
        self.withheld.append(what)
        await complete(self._turn.journal.withhold(what))

    async def _allows(self, leak: Leak, text: str) -> bool:
        journal = self._turn.journal
        answer = GuardedCall(journal.turn, REPLY, journal.chat, journal.taints)
        try:
            where = translated("The answer")
            what = translated(KEY).format(where=where, what=shown(leak), text=text)
            await self._turn.approvals.approver(answer, self._emit)(what, scope="key")
        except ToolError:
            return False
        return True

    def ending(self, ending: Ending) -> Ending:
        """The ending as it may be sent, with a line for each thing that was withheld."""
        leak, text = self._detector.find(ending.text), ending.text
        if leak and text not in self._allowed:
            text = translated(texts.ANSWER_WITHHELD).format(what=shown(leak))
        lines = [
            translated(texts.WITHHELD).format(where=translate_phrase(where))
            for where in dict.fromkeys(self.withheld)
        ]
        return replace(ending, text="\n\n".join([text, *lines]))


def hidden(leak: Leak) -> str:
    return translated(texts.HIDDEN).format(what=shown(leak))


def shown(leak: Leak) -> str:
    """What a person is told of it."""
    return translate_phrase(leak.what)
