"""Token counts and speeds of a completion, from whichever fields the server gives."""

from collections.abc import Mapping
from typing import Any, TypedDict

from agent.llm.openai.values import mapping, number, whole


class Figures(TypedDict):
    """Part of a Completion. None is what the server did not say; speeds are tokens per second."""

    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    prefill_tok_s: float | None
    decode_tok_s: float | None
    draft_tokens: int | None
    draft_accepted: int | None


def figures(usage: Mapping[str, Any], timings: Mapping[str, Any]) -> Figures:
    """From OpenAI's `usage` and llama-server's `timings`; either may be empty."""
    fresh, cached = whole(timings.get("prompt_n")), whole(timings.get("cache_n"))
    details = mapping(usage.get("prompt_tokens_details"))
    prompt = whole(usage.get("prompt_tokens"))
    if prompt is None and fresh is not None:
        prompt = fresh + (cached or 0)
    completion = whole(usage.get("completion_tokens"))
    return Figures(
        prompt_tokens=prompt,
        cached_tokens=cached if cached is not None else whole(details.get("cached_tokens")),
        completion_tokens=completion
        if completion is not None
        else whole(timings.get("predicted_n")),
        prefill_tok_s=number(timings.get("prompt_per_second")),
        decode_tok_s=number(timings.get("predicted_per_second")),
        draft_tokens=whole(timings.get("draft_n")),
        draft_accepted=whole(timings.get("draft_n_accepted")),
    )
