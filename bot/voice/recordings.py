"""Transcribes recordings that came with messages, and shows their senders the words, so that errors are noticed."""

from dataclasses import dataclass

from agent.sandbox.sandbox import Sandbox
from agent.voice.speech_to_text import NoRecognizer, Recognized, SpeechToText
from bot.channel import Channel, LiveView, OutgoingMessage, TurnView
from bot.texts import TEXTS

SHOWN_CHARACTERS = 1000
LONG_SECONDS = 90.0  # of a recording from which on progress is shown


@dataclass(frozen=True, slots=True)
class HeardMessage:
    """The result of a transcription.

    `note` is added to the model's line about the file; `told` is the reply to the person.
    """

    words: str
    note: str
    told: OutgoingMessage


@dataclass
class Listening:
    """The progress of one recording of `seconds`, in a live view that leaves nothing."""

    channel: Channel
    chat: str
    seconds: int
    view: LiveView | None = None

    async def show(self, heard: float) -> None:
        """Show how much was heard, unless nearly all of it was; a recording may be longer than its message says."""
        if max(self.seconds, heard) < LONG_SECONDS or abs(self.seconds - heard) <= 1:
            return
        self.view = self.view or self.channel.live_view(self.chat)
        total = clock(self.seconds) if heard < self.seconds else "?"
        status = TEXTS.listening.format(done=clock(heard), total=total)
        await self.view.show(TurnView(status=status))

    async def end(self) -> None:
        if self.view:
            self.view.close(TurnView())
            await self.view.finish(TurnView())


async def hear(
    speech_to_text: SpeechToText, box: Sandbox, path: str, listening: Listening, ref: str
) -> HeardMessage:
    """Transcribe the recording at `path` in the workspace, which came with the message `ref`."""
    try:
        await listening.show(0)
        heard = await speech_to_text.hear(box, path, listening.show)
    except NoRecognizer as error:
        heard = Recognized("", problem=str(error))
    finally:
        await listening.end()
    why, at = heard.problem, clock(heard.seconds)
    if heard.words and why:
        note = f"; transcribed up to {at}. {why}"
        problem = TEXTS.heard_partly.format(at=at, why=why)
    elif why:
        note, problem = f"; not transcribed: {why}", TEXTS.not_heard.format(why=why)
    elif heard.words:
        note, problem = "; transcribed", ""
    else:
        note, problem = "; nobody speaks in it", TEXTS.nothing_heard
    shown = heard.words
    if len(shown) > SHOWN_CHARACTERS:
        shown = f"{shown[:SHOWN_CHARACTERS]}…"
    quote = "\n".join(f"> {line}" for line in shown.split("\n")) if shown else ""
    told = "\n\n".join(filter(None, [quote, problem]))
    return HeardMessage(heard.words, note, OutgoingMessage(told, silent=True, reply_to=ref))


def clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"
