"""The control API's types: what crosses the UNIX socket, and the `backend` part of `status --json`.

An unknown value is None, never zero.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Self, TypeAlias, Union

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

StateName = Literal[
    "stopped", "starting", "loading", "warming", "ready", "busy", "sleeping", "restarting", "failed"
]
JsonObject = Mapping[str, Any]
SERVING: frozenset[StateName] = frozenset({"ready", "busy", "sleeping"})

BackendKind = Literal["managed", "external"]
Priority = Literal[0, 1, 2]
PERSON: Final = 0
SCHEDULED: Final = 1
IDLE: Final = 2
PICTURE_PIXELS: Final = 1280 * 960  # the largest that Telegram sends; about 1,200 tokens in Qwen
MOST_LENT: Final = 86_400  # seconds
EVAL: Final = "eval"  # the chat name under which the task suite queues, at IDLE
PREFIX: Final = "prefix"  # the chat name under which the fixed prefix is read in, at SCHEDULED


Filling: TypeAlias = Union[str, int, float, "Phrase", Sequence["Phrase"]]
AS_DATA: Final = "as data"  # the context of a serialization that keeps codes and fields


class Phrase(str):
    """English for people, and what it takes to say the same in another language.

    `code` is the text with {fields}, which is its key in gettext's catalogues; `fields` hold numbers, names
    and further phrases. agent.language.translate_phrase says it in the reader's language; whoever does not
    translate uses it as the text that it is.
    """

    code: str
    fields: Mapping[str, Filling]

    def __new__(cls, code: str, /, **fields: Filling) -> Self:
        english = {name: in_english(value) for name, value in fields.items()}
        self = super().__new__(cls, code.format(**english) if fields else code)
        self.code, self.fields = code, fields
        return self

    @classmethod
    def of(cls, error: BaseException) -> "Phrase":
        """The phrase that an exception was raised with, else its text."""
        first = error.args[0] if error.args else ""
        return first if isinstance(first, Phrase) else cls(str(error))

    @classmethod
    def from_data(cls, value: Any) -> "Phrase":
        """Make a phrase from what `data` returned, or from a text. ValueError for anything else."""
        match value:
            case Phrase():
                return value
            case str():
                return cls(value)
            case {"code": str(code), "fields": dict(fields)}:
                try:
                    return cls(code, **{name: filling(each) for name, each in fields.items()})
                except (LookupError, AttributeError, TypeError) as error:
                    raise ValueError(str(error)) from None
        raise ValueError("neither a text nor a code with fields")

    @classmethod
    def from_body(cls, body: str) -> "Phrase":
        """Make a phrase from the body of an HTTP answer: JSON of `data`, or any text."""
        try:
            return cls.from_data(json.loads(body))
        except (ValueError, RecursionError):
            return cls(body)

    def data(self) -> dict[str, Any]:
        """The phrase as a JSON object, which `from_data` reads."""
        return {"code": self.code, "fields": {k: field_data(v) for k, v in self.fields.items()}}

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        def written(phrase: Phrase, info: core_schema.SerializationInfo) -> Any:
            if info.context == AS_DATA:
                return phrase.data()
            return phrase if info.mode == "python" else str(phrase)

        serialization = core_schema.plain_serializer_function_ser_schema(written, info_arg=True)
        return core_schema.no_info_plain_validator_function(
            cls.from_data, serialization=serialization
        )


def in_english(value: Filling) -> str:
    """Format a phrase's field in English: commas between thousands, one digit behind the point of floats."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
    return ", ".join(value)


def field_data(value: Filling) -> Any:
    if isinstance(value, Phrase):
        return value.data()
    return value if isinstance(value, str | int | float) else [each.data() for each in value]


def filling(value: Any) -> Filling:
    """Parse a phrase's field from its JSON form, made by `field_data`."""
    if isinstance(value, list):
        return [Phrase.from_data(each) for each in value]
    return Phrase.from_data(value) if isinstance(value, dict) else value


class Value(BaseModel):
    """Frozen. Unknown fields are ignored, so that bot and backend can be updated independently."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def to_data(self) -> str:
        """Convert to JSON for the bot, with the codes and fields of phrases; `model_dump_json` has their English."""
        return self.model_dump_json(context=AS_DATA)


class Restart(Value):
    at: datetime
    cause: Phrase


class WarmPrefix(Value):
    """The measured state of the fixed prefix: `cached_tokens` of `tokens` are in the server's cache."""

    tokens: int
    cached_tokens: int
    seconds: float
    source: Literal["prefill", "restore"]


class Restored(Value):
    """Chats whose prompts were restored from slot files, the tokens not read again for them, and the seconds saved."""

    chats: int
    tokens: int
    seconds: float

    def added_to(self, earlier: "Restored | None") -> "Restored":
        if earlier is None:
            return self
        return Restored(
            chats=self.chats + earlier.chats,
            tokens=self.tokens + earlier.tokens,
            seconds=self.seconds + earlier.seconds,
        )


class ServerState(Value):
    """The model server's state.

    `reason` is one sentence when it is not serving, or is degraded; `done` of `total`
    counts tokens during warm-up. `lent_until`: the card is lent, and no model is loaded.
    """

    state: StateName
    reason: Phrase | None = None
    done: int | None = None
    total: int | None = None
    lent_until: datetime | None = None

    @property
    def serving(self) -> bool:
        return self.state in SERVING and self.lent_until is None


class ServerStatus(ServerState):
    """The `backend` part of the status."""

    kind: BackendKind = "managed"
    profile: str | None = None
    model: str | None = None
    n_ctx: int | None = None
    pid: int | None = None
    restarts: int = 0
    last_restart: Restart | None = None
    warm: WarmPrefix | None = None
    restored: Restored | None = None  # since the backend was started
    held: Phrase | None = None  # why new requests wait (heat, a switch), as a sentence
    less_memory: list[Phrase] = Field(default_factory=list)  # reductions made when memory ran out


class Speed(Value):
    """Rolling means over the last requests: tokens/s, milliseconds, fractions of 1."""

    decode_tok_s: float | None = None
    prefill_tok_s: float | None = None
    ttft_ms: float | None = None
    cache_hit: float | None = None
    draft_acceptance: float | None = None
    median_decode_tok_s: float | None = None  # of this profile's last 500 completions


class Gpu(Value):
    """One sample of one GPU: °C, watts, per cent, MiB, MHz."""

    index: int
    name: str
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    utilization: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    unified: bool = False  # its memory is the machine's
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    throttle: list[str] = Field(default_factory=list)
    ecc_uncorrected: int | None = None
    pcie: str | None = None  # "gen3 x16"
    nvlinks_up: int | None = None
    tokens_per_joule: float | None = None


class MemoryUse(Value):
    """Resident MiB of the backend's process and of llama-server."""

    backend: float | None = None
    server: float | None = None


class IdleWork(Value):
    """GPU work between turns in the last 24 hours: seconds, and watt-hours if the GPU reports power."""

    seconds: float = 0
    wh: float | None = None


EmbeddingState = Literal["loading", "ready", "restarting", "failed"]


class EmbeddingStatus(Value):
    """The state of the second model server, which computes embeddings."""

    profile: str
    state: EmbeddingState
    reason: Phrase | None = None


class Status(Value):
    version: str
    uptime_s: float
    pid: int = 0  # the backend's process, which `voltaire run` shares with the bot
    backend: ServerStatus
    speed: Speed
    gpus: list[Gpu] = Field(default_factory=list)
    memory_mib: MemoryUse = MemoryUse()
    waiting: int = 0  # requests that wait for the GPU
    idle: IdleWork = IdleWork()
    embedding: EmbeddingStatus | None = None  # None if no embedding server is configured


class Endpoint(Value):
    """Where completions go. `extras`: the server has llama-server's own routes and fields.

    `keeps_prompts`: the prompt of a chat that loses its slot is kept in host memory. `saves_prompts`: it is
    saved to the disk on request. `rolls_back`: it is reused up to any token. `unloads`: the model is to be
    unloaded, after a moment in which prompts are saved.
    `vision`: whether it accepts pictures, None if not yet tested; it uses at most
    `picture_pixels` of each.
    `url` has no `/v1`. `sampling` and `template` (chat_template_kwargs) belong
    in every request's body; `useful_context` is in tokens, from the profile.
    """

    url: str
    api_key: str = ""
    model: str = ""
    n_ctx: int
    kind: BackendKind = "managed"
    extras: bool = True
    vision: bool | None = False
    picture_pixels: int = PICTURE_PIXELS
    audio: bool = False  # accepts sound
    keeps_prompts: bool = False
    saves_prompts: bool = False
    rolls_back: bool = False
    unloads: bool = False
    profile: str | None = None
    sampling: dict[str, Any] = Field(default_factory=dict)
    template: dict[str, Any] = Field(default_factory=dict)
    useful_context: int | None = None


class CompletionReport(Value):
    """One completion as its client saw it: tokens, milliseconds, tokens/s.

    `status` is the HTTP status; 0 when the connection broke. `estimated_tokens` is the client's estimate of
    the prompt that it sent, where the server counts none beforehand.
    """

    chat: str = ""
    status: int = 200
    estimated_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    ttft_ms: float | None = None
    prefill_tok_s: float | None = None
    decode_tok_s: float | None = None
    draft_tokens: int | None = None
    draft_accepted: int | None = None


class Prefix(Value):
    """What every request begins with: messages and tools as they are sent.

    `before` is put in front of the first user message, for templates without a system role.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = Field(default_factory=list)
    before: str = ""


class ForgottenChat(Value):
    chat: str


class LentTime(Value):
    """How many seconds the card is lent for; 0 takes it back."""

    seconds: float = Field(ge=0, le=MOST_LENT)


class ProfileChoice(Value):
    name: str


class ProfileSummary(Value):
    """A profile to choose from. `here`: its model is on this machine; `source`: who measured the speed."""

    name: str
    title: str
    good: str = ""
    bad: str = ""
    here: bool
    verified: bool = False
    decode_tok_s: float | None = None
    source: str = ""
    sees: bool = False  # accepts pictures


class Alert(Value):
    """An alert for the owner. `id` increases with time, also across restarts.

    `level` "over" ends an earlier alert of the same name.
    """

    id: int
    at: datetime
    name: str
    level: Literal["info", "warning", "critical", "over"]
    text: Phrase


def unended(alerts: Iterable[Alert]) -> list[Alert]:
    """Drop alerts that a later one of the same name, with the level "over", has ended."""
    kept: list[Alert] = []
    for alert in alerts:
        if alert.level == "over":
            kept = [each for each in kept if each.name != alert.name]
        kept.append(alert)
    return kept


class GpuMinute(Value):
    """Averages over one minute of one GPU; `gpu` is None for the server's speed."""

    at: datetime
    gpu: int | None = None
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    power_w: float | None = None
    utilization: float | None = None
    memory_used_mib: float | None = None
    sm_clock_mhz: float | None = None
    throttled: float | None = None  # share of the minute
    decode_tok_s: float | None = None


class QueueState(Value):
    """The state of a request or turn in the queue for the GPU.

    `waiting` behind `ahead` others, idle work not counted (`reason`: why the queue is closed), `held`, or
    `wanted`: held while something more urgent waits.
    """

    state: Literal["waiting", "held", "wanted"]
    ahead: int = 0
    reason: Phrase | None = None


class QueuePlace(Value):
    """A request to join the queue: for one model call or, with `turn`, to keep the profile as it is."""

    chat: str = ""
    priority: Priority = PERSON
    turn: bool = False


class QueueMessage(Value):
    """What a client of the queue sends about its place number `id`.

    `enter` requests the place, `left` gives it up. For a call that holds the GPU, `tokens` is a
    heartbeat with the number read and written so far, `report` says how a request ended, and `save` has the
    prompt that it has just read written to a file.
    """

    id: int
    enter: QueuePlace | None = None
    left: bool = False
    tokens: int | None = None
    report: CompletionReport | None = None
    save: bool = False


class QueueAnswer(Value):
    """What a client of the queue receives: the new `state` of its place number `id`."""

    id: int
    state: QueueState
