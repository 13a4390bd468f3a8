"""The transcript's messages: what is stored, and what a model is sent, byte for byte."""

from dataclasses import dataclass

PICTURE_TOKENS = 1_200  # of the largest that a model is shown (backend.protocol.PICTURE_PIXELS)


@dataclass(frozen=True, slots=True)
class System:
    text: str


@dataclass(frozen=True, slots=True)
class User:
    """A person's words behind their context block (`prompt.context_block`).

    `images` are data URLs of pictures, or of sound (WAV), sent only to models that take them.
    """

    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`arguments` is the JSON text exactly as the model generated it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """What the model generated, replayed unchanged for ever after.

    `text` is what a person may see. Where the calls came as text, `raw` is the
    generated text with them in it: it is replayed instead of `text` and `calls`,
    so that the rendered prompt keeps its bytes. `thought` is the reasoning before
    it, which goes back to models whose template repeats it. `words` is `text` with
    the white space around it that the model wrote before structured calls; "" where there is none.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    raw: str = ""
    thought: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call: str  # the id of the ToolCall
    name: str
    text: str


Message = System | User | Assistant | ToolResult
