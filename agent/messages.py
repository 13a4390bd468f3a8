"""The messages of a transcript, as they are stored and sent to a model, byte for byte."""

from dataclasses import dataclass

PICTURE_TOKENS = 1_200  # of the largest picture that a model gets (backend.protocol.PICTURE_PIXELS)


@dataclass(frozen=True, slots=True)
class System:
    text: str


@dataclass(frozen=True, slots=True)
class User:
    """A person's words behind their context block (`prompt.context_block`).

    `images` are data URLs of pictures or sound (WAV); only models that take them get them.
    """

    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made; `arguments` is the JSON text exactly as the model generated it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Assistant:
    """What the model generated; later requests repeat it unchanged.

    `text` is what a person may see. Where calls came as text, `raw` is the generated
    text with them in it: it is repeated instead of `text` and `calls`, so that the
    rendered prompt keeps its bytes. `thought` is the reasoning before it, which goes
    back to models whose template repeats it. `words` is `text` with the white space
    that the model wrote around it before structured calls; "" where there was none.
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
