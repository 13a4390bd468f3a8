"""The control API's types: what crosses the UNIX socket, and the `backend` part of `status --json`.

An unknown value is None, never zero.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

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
EVAL: Final = "eval"  # the chat name under which the task suite queues, at IDLE


class Value(BaseModel):
    """Frozen. Unknown fields are ignored, so that bot and backend can be updated independently."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Restart(Value):
    at: datetime
    cause: str


class WarmPrefix(Value):
    """The measured state of the fixed prefix: `cached_tokens` of `tokens` are in the server's cache."""

    tokens: int
    cached_tokens: int
    seconds: float
    source: Literal["prefill", "restore"]


class ServerState(Value):
    """The model server's state.

    `reason` is one plain sentence when it is not serving, or is degraded; `done` of `total`
    counts tokens during warm-up.
    """

    state: StateName
    reason: str | None = None
    done: int | None = None
    total: int | None = None

    @property
    def serving(self) -> bool:
        return self.state in SERVING


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
    held: str | None = None  # why new requests wait (heat, a switch), as a sentence
    less_memory: list[str] = Field(default_factory=list)  # reductions made when memory ran out


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
    """The second server, for embeddings."""

    profile: str
    state: EmbeddingState
    reason: str | None = None


class Status(Value):
    version: str
    uptime_s: float
    backend: ServerStatus
    speed: Speed
    gpus: list[Gpu] = Field(default_factory=list)
    memory_mib: MemoryUse = MemoryUse()
    waiting: int = 0  # requests that wait for the GPU
    idle: IdleWork = IdleWork()
    embedding: EmbeddingStatus | None = None  # None if no embedding server is configured


class Endpoint(Value):
    """Where completions go. `extras`: the server has llama-server's own routes and fields.

    `keeps_prompts`: the prompt of a chat that loses its slot is kept in host memory.
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
    profile: str | None = None
    sampling: dict[str, Any] = Field(default_factory=dict)
    template: dict[str, Any] = Field(default_factory=dict)
    useful_context: int | None = None


class CompletionReport(Value):
    """One completion as its client saw it: tokens, milliseconds, tokens/s.

    `status` is the HTTP status; 0 when the connection broke.
    """

    chat: str = ""
    status: int = 200
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
    text: str


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

    `waiting` behind `ahead` others (`reason`: why the queue is closed), `held`, or
    `wanted`: held while something more urgent waits.
    """

    state: Literal["waiting", "held", "wanted"]
    ahead: int = 0
    reason: str | None = None


class QueuePlace(Value):
    """A request to join the queue: for one model call or, with `turn`, to keep the profile as it is."""

    chat: str = ""
    priority: Priority = PERSON
    turn: bool = False


class QueueMessage(Value):
    """What a client of the queue sends about its place number `id`.

    `enter` requests the place, `left` gives it up. For a call that holds the GPU, `tokens` is a
    heartbeat with the number read and written so far, and `report` says how a request ended.
    """

    id: int
    enter: QueuePlace | None = None
    left: bool = False
    tokens: int | None = None
    report: CompletionReport | None = None


class QueueAnswer(Value):
    """What a client of the queue receives: the new `state` of its place number `id`."""

    id: int
    state: QueueState
