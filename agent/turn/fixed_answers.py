"""Answers that the program gives in a model's place: to pictures without words, where the model sees none."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from agent.language import translated
from agent.messages import User
from agent.model import Completion, Piece, Request, TextPiece, WrappedModel
from agent.prompt import attached_files, context_and_words
from agent.turn import texts


def blind_answer(message: str, told: str) -> str:
    """`told`, and where the pictures are kept, for a message of pictures that the model cannot see; else ""."""
    head, words = context_and_words(message)
    files = attached_files(head)
    if words or not files or not all("cannot see pictures" in what for _, what in files):
        return ""
    return f"{told} {translated(texts.KEPT).format(paths=', '.join(path for path, _ in files))}"


@dataclass(frozen=True)
class FixedAnswers(WrappedModel):
    """A model that is asked only where `answer` returns "" for the person's message."""

    answer: Callable[[str], str]

    def completion(self, request: Request) -> Completion | None:
        """The program's own answer, if it has one."""
        last = request.messages[-1]
        text = self.answer(last.text) if isinstance(last, User) and request.tools else ""
        return Completion(text, (), "", "stop") if text else None

    async def stream(self, request: Request) -> AsyncGenerator[Piece]:
        if completion := self.completion(request):
            if completion.text:
                yield TextPiece(completion.text)
            yield completion
            return
        async with aclosing(self.model.stream(request)) as pieces:
            async for piece in pieces:
                yield piece
