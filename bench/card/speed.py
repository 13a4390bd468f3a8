"""The prompt cache, reading again between turns, and drafting, in milliseconds and tokens a second."""

from backend.measure.bench import Bench, bench_server
from backend.measure.probe import CannotMeasure
from bench.card.memory import DRAFTS
from bench.card.stage import Stage

AGAIN = (256, 1024)  # tokens at the end of a prompt that changed
NGRAMS = {"--spec-type": "ngram-mod"}
KINDS = ("dense", "sliding", "hybrid")


async def prompt_cache(stage: Stage) -> None:
    prompt = stage.scale.prompt
    for kind in KINDS:
        try:
            profile = stage.profile(kind, 4 * prompt)
            async with bench_server(stage.config(), profile, stage.sampler) as bench:
                await cache_rows(stage, kind, bench, prompt)
        except CannotMeasure as error:
            stage.table.failed("prompt cache", f"{kind}: {error}")


async def cache_rows(stage: Stage, kind: str, bench: Bench, prompt: int) -> None:
    cold, warm = await bench.probe.cold_and_warm(prompt)
    stage.table.row(
        "prompt cache",
        f"{kind}, {prompt:,} tokens",
        f"cold {cold.ttft_ms:,.0f} ms, warm {warm.ttft_ms:,.0f} ms ({warm.cached:,} of {warm.prompt:,} cached)",
    )
    share = await bench.probe.cache_reuse(min(1024, prompt))
    stage.table.row("prompt cache", f"{kind}, chats in turn", f"{share:.1%} of what is old")
    for count in (count for count in AGAIN if count < prompt):
        kept = await bench.probe.tokens(prompt)
        await bench.probe.complete(kept, write=1)
        changed = [*kept[:-count], *await bench.probe.tokens(count)]
        read = await bench.probe.complete(changed, write=1)
        then = await bench.probe.complete([*changed, *await bench.probe.tokens(32)], write=1)
        stage.table.row(
            "read while idle",
            f"{kind}, the last {count:,} of {prompt:,} changed",
            f"{read.ttft_ms:,.0f} ms, {read.prompt - read.cached:,} tokens; the message behind it waits {then.ttft_ms:,.0f} ms",
        )


async def drafting(stage: Stage) -> None:
    """With random weights no draft of a head is accepted but by chance: what drafting costs at worst.

    The n-grams of such a model's own text do not repeat either.
    """
    for kind, flags in (("hybrid", None), ("hybrid", DRAFTS), ("dense", None), ("dense", NGRAMS)):
        name = f"{kind}, {(flags or {}).get('--spec-type', 'none')}"
        try:
            profile = stage.profile(kind, 4 * stage.scale.prompt, flags)
            async with bench_server(stage.config(), profile, stage.sampler) as bench:
                text = await bench.probe.tokens(min(512, stage.scale.prompt))
                timed = await bench.probe.complete(text, write=stage.scale.reply)
            kept = (
                ""
                if timed.acceptance is None
                else f", {timed.acceptance:.0%} of {timed.drafted} accepted"
            )
            stage.table.row("drafting", name, f"{timed.decode_tok_s or 0:,.1f} tokens/s{kept}")
        except CannotMeasure as error:
            stage.table.failed("drafting", f"{name}: {error}")
