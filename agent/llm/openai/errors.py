"""Maps a server's error to one of the agent's: wait, shorten the prompt, or tell a person."""

import json
from typing import Any

from agent.errors import AgentError, BackendAway, ContextFull
from agent.language import translated
from agent.llm.openai.values import mapping, text, whole
from agent.model import ModelRefused
from backend.protocol import Phrase

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
# llama-server's parser of answers, and the grammar that follows a call as it is generated.
_UNPARSED_WORDS = ("does not match the expected", "failed to parse", "empty grammar stack")
_LONGEST_MESSAGE = 300


def error_of_answer(status: int, body: bytes) -> AgentError | ModelRefused:
    """The error for an HTTP answer with another status than 200."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = body.decode("utf-8", "replace")
    return error_of(status, value)


def error_of(status: int, value: Any) -> AgentError | ModelRefused:
    """The error for a JSON error value, in the forms of llama-server, OpenAI and vLLM."""
    error = mapping(value).get("error", value)
    fields = mapping(error)
    found = text(fields.get("message")) or text(fields.get("detail")) or text(error)
    message = " ".join(found.split())[:_LONGEST_MESSAGE]
    status = whole(fields.get("code")) or status
    names = {text(fields.get("type")), text(fields.get("code"))}
    if names & _TOO_LONG_TYPES or contains_any(message, _TOO_LONG_WORDS):
        tokens, window = whole(fields.get("n_prompt_tokens")), whole(fields.get("n_ctx"))
        if tokens is None or window is None:
            return ContextFull(message)
        form = translated(
            "The conversation needs {tokens:,} tokens and the window holds {window:,}."
        )
        return ContextFull(form.format(tokens=tokens, window=window))
    if status in _AWAY or (status >= 500 and contains_any(message, _AWAY_WORDS)):
        return BackendAway(Phrase(message) if message else Phrase("The model server is busy."))
    unparsed = contains_any(message, _UNPARSED_WORDS)
    return ModelRefused(status, message or f"HTTP {status}", unparsed=unparsed)


def contains_any(message: str, words: tuple[str, ...]) -> bool:
    return any(word in message.lower() for word in words)
