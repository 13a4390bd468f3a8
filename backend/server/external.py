"""OpenAI-compatible servers that somebody else runs; the first of several that answers is used.

A server that does not answer is tried last for half a minute, so that a hanging one costs its
time-out once and not with each request. The same holds for a server whose completions fail
although it still lists its models.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urlsplit

from backend.aio import set_within
from backend.config import BackendConfig
from backend.control.alerts import AddAlert
from backend.models.profile import ProfileError
from backend.protocol import (
    CompletionReport,
    Endpoint,
    JsonObject,
    Phrase,
    Prefix,
    ProfileSummary,
    ServerStatus,
)
from backend.server.llama import Props, ServerAway, ServerRefused, llama_server
from backend.state import NotReady, StatusBoard

CONNECT_SECONDS = 5.0
CHECK_SECONDS = 30.0
FRESH_SECONDS = 5.0  # an endpoint is reused for this long: querying is a quarter of a turn's cost
DEFAULT_CONTEXT = 8192
LIST_SECONDS = 2.0  # a server that has no such route may leave it unanswered
LEAST_WINDOW = 256  # tokens; less, such as 0 or -1, stands for "not known"
LARGEST_WINDOW = 1 << 27
# Of llama.cpp, vLLM, OpenRouter, Groq, Mistral, Novita, TabbyAPI, LiteLLM, GitHub Models, Gemini, TGI, Copilot and
# others, as letters alone: each is also written in other ways.
WINDOW_KEY = re.compile(
    r"(loaded|max|num|n|total)?(context|ctx)(window(tokens|size)?|len|length|limit|size|slot|(per)?seq|tokens)?"
    r"|max(model|seq|sequence|input|prompt|total)(len|length|tokens)|(input)?tokenlimit|maxkvsize|sessionlen"
)
STARTED_BY = (
    "args",
    "cmd",
    "preset",
    "parameters",
    "modelfile",
    "env",
    "config",
)  # a command, or settings
SIZE_OPTIONS = "c|ctx|num_ctx|LLAMA_ARG_CTX_SIZE|(?:ctx|context|max[-_](?:model|seq|kv))[-_]?(?:size|len|length)|session-len"
DEEPEST = 3  # levels of a row that are looked at
GROWN = 100  # tokens by the client's estimate, 300 bytes: they add to any count
STALLS = 2
HELD_SECONDS = 3600.0
WRONG_KEY, NO_MODEL_LIST, SERVER_ERROR = (401, 403), (404, 405, 501), 500
FIRST_ERROR = 400
PICTURE_SECONDS = 20.0
NOT_ABOUT_PICTURES = (401, 403, 408, 429, 502, 503, 504)
# 64 x 64 pixels: some servers refuse a picture smaller than one token covers.
TINY_PICTURE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAS0lEQVR42u3PMQ0AAAwDoEqv9ErYvQQckD4XAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAYHLAB8+AWnmfUycAAAAAElFTkSuQmCC"

NO_ANSWERS = re.compile(
    r"(?i)embed|rerank|minilm|whisper|transcri|\b(bge|gte|e5|tts|stt|asr|kokoro|piper|moderation|dall-e|flux|image|speech)\b"
)


class ExternalServers:
    """Finds the server to use. `changes` queries the servers first, `endpoint` unless one was just found."""

    def __init__(self, config: BackendConfig, status: StatusBoard, alert: AddAlert) -> None:
        self.config, self.status, self.alert = config, status, alert
        self.urls = [url.rstrip("/").removesuffix("/v1") for url in config.urls]
        self._checking = asyncio.Lock()
        self._check_now = asyncio.Event()
        self._silent_since: dict[str, float] = {}  # by URL, monotonic clock
        self._endpoint: Endpoint | None = None
        self._found_at = 0.0
        self._failing = False  # the last completion failed
        self._wrong_key_at: str | None = None  # a server that rejected the API key
        self._testing_vision = asyncio.Lock()
        self._vision_tests: dict[tuple[str, str], bool] = {}  # by URL and model
        self._without_list: set[str] = set()  # servers that do not tell what they have loaded
        self._cuts: dict[tuple[str, str], WindowCut] = {}  # by URL and model

    async def run(self) -> None:
        """Query the servers every half minute, and when a restart is requested."""
        while True:
            await self.check()
            self._check_now.clear()
            await set_within(self._check_now, CHECK_SECONDS)

    async def endpoint(self) -> Endpoint:
        known = self._endpoint
        fresh = monotonic() - self._found_at <= FRESH_SECONDS
        if known and fresh and await accepts_connections(known.url):
            return known
        found = await self.check()
        if found is None:
            raise NotReady(self.status.current.reason or Phrase("No model server can be reached."))
        return found

    async def with_vision_tested(self, endpoint: Endpoint) -> Endpoint:
        """Test whether the model accepts pictures by sending a tiny one, once for each server and model.

        `vision` stays None after an error that is not about pictures (a wrong key, a rate limit, a time-out).
        """
        seconds = self.config.connect_seconds
        key = endpoint.url, endpoint.model
        async with (
            self._testing_vision,
            llama_server(endpoint.url, endpoint.api_key, seconds) as server,
        ):
            if key not in self._vision_tests:
                try:
                    await server.show_picture(endpoint.model, TINY_PICTURE, PICTURE_SECONDS)
                    self._vision_tests[key] = True
                except ServerRefused as error:
                    if error.status in NOT_ABOUT_PICTURES:
                        return endpoint
                    self._vision_tests[key] = error.status < FIRST_ERROR
                except (ServerAway, TimeoutError):
                    return endpoint
        self._found_at = 0.0  # the next request queries the server again and gets the result
        return endpoint.model_copy(update={"vision": self._vision_tests[key]})

    def restoring(self, chat: str) -> None:
        """Return at once: an external server saves no prompts to be restored."""

    async def save(self, chat: str) -> None:
        """Do nothing: what an external server caches is its own."""

    async def forget(self, chat: str) -> None:
        """Do nothing: what an external server caches is its own."""

    def completed(self, report: CompletionReport) -> None:
        self._failing = report.status == 0 or report.status >= SERVER_ERROR
        known = self._endpoint
        if known and not known.extras:
            cut = self._cuts.setdefault((known.url, known.model), WindowCut())
            if cut.seen_in(report):
                self._found_at = 0.0  # the next request gets the new window
                if cut.window:
                    self._tell_window(known.url, known.model, cut.window)

    async def changes(self) -> AsyncIterator[ServerStatus]:
        if self._failing and self._endpoint:
            # The client whose completion failed now waits for ready.
            self._silent_since[self._endpoint.url] = monotonic()
            self._failing = False
        await self.check()
        async for status in self.status.changes():
            yield status

    def restart(self) -> None:
        self._check_now.set()

    async def switch(self, name: str) -> None:
        form = "The model server is not ours; {name} cannot be started on it."
        raise ProfileError(Phrase(form, name=name))

    async def lend(self, seconds: float) -> Phrase:
        raise NotReady(Phrase("The model server is not ours; its card cannot be lent."))

    def warm(self, prefix: Prefix) -> None:
        """Do nothing: the cache of an external server is not managed."""

    def logs(self, lines: int) -> list[str]:
        return []

    def profiles(self) -> list[ProfileSummary]:
        return []

    async def check(self) -> Endpoint | None:
        """Query the servers for the first that answers within `connect_seconds`, and set the status."""
        async with self._checking:
            found = self._endpoint = await self.first_endpoint()
            self._found_at = monotonic()
            if found is None:
                self.status.set(state="failed", reason=self.failure())
                return None
            before = self.urls[: self.urls.index(found.url)]
            form = "{first} do not answer; {other} is used."
            if len(before) == 1:
                form = "{first} does not answer; {other} is used."
            reason = Phrase(form, first=" and ".join(before), other=found.url)
            self.status.set(
                state="ready",
                reason=reason if before else None,
                model=found.model,
                n_ctx=found.n_ctx,
            )
            return found

    def failure(self) -> Phrase:
        if url := self._wrong_key_at:
            form = "The model server at {where} refuses the key: check backend.api_key."
            return Phrase(form, where=url)
        urls = ", ".join(self.config.urls) or Phrase("any address (none is configured)")
        return Phrase("No model server can be reached at {where}.", where=urls)

    async def first_endpoint(self) -> Endpoint | None:
        """Query the servers as ordered in the configuration, those that recently failed last."""
        since = monotonic() - CHECK_SECONDS
        for url in sorted(
            self.urls, key=lambda url: max(since, self._silent_since.get(url, since))
        ):
            if found := await self.ask(url):
                self._silent_since.pop(url, None)
                return found
            self._silent_since[url] = monotonic()
        return None

    async def ask(self, url: str) -> Endpoint | None:
        config = self.config
        seconds = config.connect_seconds / len(self.urls)
        async with llama_server(url, config.api_key, seconds) as server:
            # Both at once: a proxy that has just started takes seconds for each. A server other
            # than llama-server may answer anything, so every exception counts as no answer.
            models, props = await asyncio.gather(
                server.models(seconds), server.props(seconds), return_exceptions=True
            )
        status = models.status if isinstance(models, ServerRefused) else 0
        self._wrong_key_at = url if status in WRONG_KEY else None
        if isinstance(models, BaseException):
            if not (config.model and status in NO_MODEL_LIST):  # a configured model needs no list
                return None
            models = []
        model = config.model or first_of(models)
        row = row_of(models, model)
        known = props if isinstance(props, Props) else None
        window = read_token_count(known.n_ctx) if known else 0
        n_ctx = window or window_of(row)
        if not n_ctx and isinstance(base := row.get("parent"), str):  # vLLM gives an adapter none
            n_ctx = window_of(row_of(models, base))
        n_ctx = n_ctx or await self._window_in_use(url, model, seconds)
        n_ctx = config.context or n_ctx or DEFAULT_CONTEXT
        if (cut := self._cuts.get((url, model))) and cut.window:
            n_ctx = min(n_ctx, cut.window)
        return Endpoint(
            url=url,
            api_key=config.api_key,
            model=model,
            n_ctx=n_ctx,
            kind="external",
            extras=window > 0,
            vision=self._vision(url, model, known),
            audio=known is not None and known.audio,
        )

    async def _window_in_use(self, url: str, model: str, seconds: float) -> int:
        """The window that the loaded model was given; 0 where the server does not tell."""
        if url in self._without_list:
            return 0
        async with llama_server(url, self.config.api_key, seconds) as server:
            rows = await server.loaded_models(min(seconds, LIST_SECONDS))
        if rows is None:
            self._without_list.add(url)
        names = {model, f"{model}:latest"}
        named = [row for row in rows or [] if names & {str(row.get("id")), str(row.get("name"))}]
        keys = ("loaded_context_length", "context_length")
        window = max((read_token_count(row.get(key)) for row in named for key in keys), default=0)
        cut = self._cuts.setdefault((url, model), WindowCut())
        if window and window != cut.window:
            cut.learn(window)
            if window < DEFAULT_CONTEXT:
                self._tell_window(url, model, window)
        return cut.window

    def _tell_window(self, url: str, model: str, window: int) -> None:
        form = (
            "The server at {where} reads {count} tokens of a prompt and cuts the rest without a word: that is its"
            " window for {model}. Ollama gives more with OLLAMA_CONTEXT_LENGTH, LM Studio when it loads the model."
        )
        self.alert("window", "warning", Phrase(form, where=url, count=window, model=model))

    def _vision(self, url: str, model: str, known: Props | None) -> bool | None:
        """Whether it accepts pictures: as configured, else as a llama-server says, else as tested."""
        if self.config.vision is not None:
            return self.config.vision
        return known.vision if known and known.n_ctx else self._vision_tests.get((url, model))


@dataclass(slots=True)
class WindowCut:
    """Notices that a server cuts prompts, which Ollama says only by the tokens of its `usage`: while a chat's prompt
    grows the count stays the same, or STALLS times does not grow.

    A window that was noticed holds until more is counted, and for HELD_SECONDS: it may have been raised since. `_chats` has
    for each the estimate and the count of its last prompt, the greatest count, and how often the count has not grown, since
    the estimate last fell.
    """

    clock: Callable[[], float] = monotonic
    _window: int = 0
    _until: float = 0.0
    _chats: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)

    @property
    def window(self) -> int:
        return self._window if self.clock() < self._until else 0

    def learn(self, window: int, seconds: float = math.inf) -> None:
        self._window, self._until = window, self.clock() + seconds

    def seen_in(self, report: CompletionReport) -> bool:
        """Whether this report shows another window than the one known."""
        sent, read, before = report.estimated_tokens, report.prompt_tokens, self.window
        if not sent or not read or report.cached_tokens:
            return False
        if before < read:
            self.learn(0, 0.0)
        last_sent, last_read, most, stalls = self._chats.get(report.chat, (sent, read, read, 0))
        if sent < last_sent:  # another conversation, or a summary of it
            last_sent, last_read, most, stalls = sent, read, read, 0
        added = sent - last_sent
        if read > most:
            stalls = 0
        # A server that leaves out what it had cached counts no more than what was added.
        elif added >= GROWN and max(added, most // 2, LEAST_WINDOW) < read <= last_read:
            stalls += STALLS if read == last_read else 1
        most = max(read, most)
        if stalls >= STALLS:
            stalls = 0
            if self._until < math.inf:
                self.learn(most, HELD_SECONDS)
        if added >= GROWN:
            last_sent, last_read = sent, read
        self._chats[report.chat] = last_sent, last_read, most, stalls
        return self.window != before


def window_of(row: JsonObject) -> int:
    """The window in a row of `/v1/models`; 0 where it has none.

    llama-server and llama-swap give `meta.n_ctx`, a router its arguments, vLLM and SGLang `max_model_len`,
    others a limit by a WINDOW_KEY; the least counts, since what is in use is less than what is possible. What the model
    was trained for (`n_ctx_train`) is no window.
    """
    parts, level = [row], [row]
    for _ in range(DEEPEST):
        values = [value for part in level for value in part.values()]
        values += [each for value in values if isinstance(value, list) for each in value]
        level = [each for each in values if isinstance(each, dict)]
        parts += level
    named = ((re.sub(r"[\W_]", "", key).lower(), part[key]) for part in parts for key in part)
    found = (read_token_count(value) for key, value in named if WINDOW_KEY.fullmatch(key))
    if window := min(filter(None, found), default=0):
        return window
    started = (part[key] for part in parts for key in STARTED_BY if key in part)
    text = "\n".join(" ".join(map(str, by)) if isinstance(by, list) else str(by) for by in started)
    size = read_token_count(option(text, SIZE_OPTIONS))
    size = size or read_token_count(option(text, "fitc|fit-ctx"))  # what is left
    slots = option(text, "np|(?:n[-_])?parallel|LLAMA_ARG_N_PARALLEL")
    if slots.isdecimal() and int(slots) > 1 and not re.search(r"(?<!\S)-*(kvu|kv-unified)\b", text):
        size //= int(slots)  # each slot has its share
    return size


def option(text: str, names: str) -> str:
    """What an option of one of these names was given last, in a command line, settings, an environment or a Modelfile;
    "" for nothing."""
    given = re.findall(
        rf"""(?<![^\s'"{{,])-*(?:{names})(?:['"]?[ \t]*[=:][ \t]*|[ \t]+)['"]?([^\s'",}}]+)""", text
    )
    return given[-1] if given else ""


def first_of(models: list[JsonObject]) -> str:
    """The first listed model that answers, else the first; servers list those for vectors, voices and pictures, too."""
    kinds = [" ".join(str(row.get(key)) for key in ("id", "type", "task")) for row in models]
    first = next((n for n, kind in enumerate(kinds) if not NO_ANSWERS.search(kind)), 0)
    return str(models[first].get("id")) if models else ""


def row_of(models: list[JsonObject], name: str) -> JsonObject:
    """The row of a model by its id or one of its aliases; empty where it is not listed."""
    for row in models:
        aliases = row.get("aliases")
        if row.get("id") == name or (isinstance(aliases, list) and name in aliases):
            return row
    return {}


def read_token_count(value: object) -> int:
    """A number of tokens, also as text ("131,072", "128k"); 0 for anything else."""
    if isinstance(value, str) and (
        digits := re.fullmatch(
            r"(\d{1,3}(?:[,._\s'’]?\d{3}){0,3}|\d{1,9}|\d{1,4}\.\d)\s*([km]i?)?( ?tokens)?",
            value.strip().lower(),
        )
    ):
        number = re.sub(r"\D(?!\d$)", "", digits[1])
        value = (
            float(number)
            * {None: 1, "k": 1000, "m": 10**6, "ki": 1 << 10, "mi": 1 << 20}[digits[2]]
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and LEAST_WINDOW <= value <= LARGEST_WINDOW else 0


async def accepts_connections(url: str) -> bool:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, ValueError):
        return False
    writer.close()
    return True
