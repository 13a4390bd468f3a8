"""What a server's error means for us: wait, shorten the prompt, or tell a person."""

import json
from typing import Any

from agent.errors import AgentError, BackendAway, ContextFull
from agent.llm.openai.values import mapping, text, whole
from agent.model import ModelRefused

_AWAY = {429, 502, 503, 504}
# What proxies say in a 500, or in the middle of a stream, when the server behind them is gone:
# LiteLLM (measured with 1.106), aiohttp, httpx, Envoy, Go's net/http.
_AWAY_WORDS = (
    "apiconnectionerror",
    "connection error",
    "connection refused",
    "connection reset",
    "cannot connect to host",
    "server disconnected",
    "payload is not completed",
    "peer closed connection",
    "no healthy upstream",
    "no deployments available",
    "bad gateway",
)
_TOO_LONG_TYPES = {"exceed_context_size_error", "context_length_exceeded"}
_TOO_LONG_WORDS = ("maximum context length", "exceeds the available context", "context size")
_LONGEST_MESSAGE = 300


def refusal(status: int, body: bytes) -> AgentError | ModelRefused:
    """The error for an HTTP answer that is not 200."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = body.decode("utf-8", "replace")
    return error_of(status, value)


def error_of(status: int, value: Any) -> AgentError | ModelRefused:
    """The error for a JSON error value, in the forms of llama-server, OpenAI and vLLM."""
    error = mapping(value).get("error", value)
    fields = mapping(error)
    message = _message(error)
    status = whole(fields.get("code")) or status
    if _too_long(fields, message):
        return ContextFull(_sizes(fields) or message)
    if status in _AWAY or (status >= 500 and _names_away(message)):
        return BackendAway(message or "The model server is busy.")
    return ModelRefused(status, message or f"HTTP {status}")


def _message(error: Any) -> str:
    fields = mapping(error)
    found = text(fields.get("message")) or text(fields.get("detail")) or text(error)
    return " ".join(found.split())[:_LONGEST_MESSAGE]


def _too_long(fields: Any, message: str) -> bool:
    named = {text(fields.get("type")), text(fields.get("code"))} & _TOO_LONG_TYPES
    return bool(named) or any(words in message.lower() for words in _TOO_LONG_WORDS)


def _names_away(message: str) -> bool:
    return any(words in message.lower() for words in _AWAY_WORDS)


def _sizes(fields: Any) -> str:
    asked, window = whole(fields.get("n_prompt_tokens")), whole(fields.get("n_ctx"))
    if asked is None or window is None:
        return ""
    return f"The conversation needs {asked} tokens and the window holds {window}."
