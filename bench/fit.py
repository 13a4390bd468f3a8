"""What backend.models.memory computes for real models, beside what llama.cpp's own log says.

python -m bench.fit [--ubatch 512]
python -m bench.fit --profiles      GiB of each profile's sum, on the cards that it is for

Models are sparse files with the shapes of real ones (fakes.gguf_shapes); the
server sizes its buffers and loads nothing, so that no GPU and little memory
is needed. Figures in MiB; the error is that of the sum, weights left out.
Then what stays in host memory of the models with experts, and a context
checkpoint of those that make any, from a server that computes: its model has all
layers, caches and states of the real one, and little between them.
"""

import argparse
import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

from backend.models.fit import GIB, HEADROOM, MIB, FreeMemory, fit_profile, sum_text
from backend.models.gguf_header import read_header
from backend.models.memory import (
    RunOptions,
    checkpoint_bytes,
    compute_bytes,
    kv_bytes,
    overridden_bytes,
)
from bench.card.weights import make_random, narrowed
from fakes.gguf_shapes import SHAPES, make
from fakes.llama_checkpoint import checkpoint
from fakes.llama_dry_run import Buffers, dry_run
from fakes.profile_shapes import KNOWN, model_of

CONTEXTS = (8192, 32_768, 131_072)
DRAFTED = 3
BEHIND_WINDOW = (
    700  # tokens: a checkpoint is made somewhat more than a micro-batch before a prompt's end
)


def estimate(path: Path, options: RunOptions) -> tuple[float, float]:
    """MiB of caches and of compute buffers."""
    model = read_header(path)
    return kv_bytes(model, options) / MIB, compute_bytes(model, options) / MIB


async def logged(path: Path, options: RunOptions) -> Buffers:
    """What the server says to the same options."""
    sizes = ("-c", str(options.context), "-ub", str(options.ubatch), "-np", str(options.slots))
    cache = ("-ctk", options.cache_k, "-ctv", options.cache_v, "-fa", "on")
    switches = ("-kvu",) * options.unified + ("--swa-full",) * options.swa_full
    mtp = ("--spec-type", "draft-mtp", "--spec-draft-n-max", str(options.mtp_tokens))
    return await dry_run(path, *sizes, *cache, *switches, *(mtp if options.mtp_tokens else ()))


async def row(path: Path, options: RunOptions) -> str:
    kv, compute = estimate(path, options)
    found = await logged(path, options)
    truth = found.compute + found.mtp_compute
    error = (kv + compute) / (found.kv + truth) - 1
    name = path.stem + (", drafting" if options.mtp_tokens else "")
    return (
        f"| {name} | {options.context // 1024}k | {found.kv:,.0f} | {kv:,.0f} |"
        f" {truth:,.0f} | {compute:,.0f} | {compute / truth - 1:+.1%} | {error:+.1%} |"
    )


async def table(ubatch: int) -> None:
    print(
        "| model | window | KV, logged | computed | compute, logged | computed | error | of the sum |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in SHAPES:
            path = make(Path(folder), name)
            drafts = bool(SHAPES[name].values.get("nextn_predict_layers"))
            for tokens in (0, DRAFTED) if drafts else (0,):
                for context in CONTEXTS:
                    print(await row(path, RunOptions(context, ubatch, mtp_tokens=tokens)))


async def host_table() -> None:
    print("\n| model | in host memory by | weights there, logged | computed | error |")
    print("|---|---|---|---|---|")
    down = r"blk\.[0-9]\.ffn_down_exps"
    ways = (
        (("--n-cpu-moe", "10"), RunOptions(8192, cpu_experts=10)),
        (("--override-tensor", f"{down}=CPU"), RunOptions(8192, on_host=(down,))),
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name in SHAPES if "expert_count" in SHAPES[name].values):
            path = make(Path(folder), name)
            for flags, options in ways:
                found = await dry_run(path, "-c", "8192", "-np", "1", "-fa", "on", *flags)
                ours = overridden_bytes(read_header(path), options) / MIB
                error = f"{ours / found.on_host - 1:+.1%}"
                print(f"| {name} | `{flags[0]}` | {found.on_host:,.0f} | {ours:,.0f} | {error} |")


async def checkpoint_table() -> None:
    print("\n| model | a checkpoint behind | logged | computed | error |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in SHAPES.items():
            if not checkpoint_bytes(read_header(make(Path(folder), name)), RunOptions(8192)):
                continue
            path = make_random(Path(folder) / "narrowed.gguf", narrowed(shape))
            drafts = bool(shape.values.get("nextn_predict_layers"))
            for drafted in (0, DRAFTED) if drafts else (0,):
                print(await checkpoint_row(name, path, RunOptions(8192, mtp_tokens=drafted)))


async def checkpoint_row(name: str, path: Path, options: RunOptions) -> str:
    count = str(options.mtp_tokens)
    drafting = (
        ("--spec-type", "draft-mtp", "--spec-draft-n-max", count) if options.mtp_tokens else ()
    )
    sizes = ("-c", str(options.context), "-ub", str(options.ubatch))
    model = read_header(path)
    window = int(model.get("attention.sliding_window", 0))
    found = await checkpoint(path, window + BEHIND_WINDOW, *sizes, *drafting)
    ours = checkpoint_bytes(model, options, found.tokens) / MIB
    title = name + (", drafting" if options.mtp_tokens else "")
    error = f"{ours / found.mib - 1:+.1%}"
    return f"| {title} | {found.tokens:,} tokens | {found.mib:,.1f} | {ours:,.1f} | {error} |"


def profiles() -> None:
    print("| profile | cards | at 8k | 32k | 131k | its own window | of which |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, known in KNOWN.items():
            profile, model, draft = model_of(name, Path(folder))
            free = FreeMemory(known.cards * known.card, 64 * GIB, known.cards)
            cells = []
            for context in (*CONTEXTS, profile.context):
                fit = fit_profile(replace(profile, context=context), model, draft, free)
                cells.append(f"{(fit.need.gpu + HEADROOM) / GIB:.1f}{'' if fit.fits else ' (no)'}")
            cards = f"{known.cards} x {known.card / GIB:.1f}"
            print(f"| `{name}` | {cards} | {' | '.join(cells)} | {sum_text(fit)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ubatch", type=int, default=512)
    parser.add_argument("--profiles", action="store_true")
    chosen = parser.parse_args()
    if chosen.profiles:
        profiles()
    else:
        asyncio.run(table(chosen.ubatch))
        asyncio.run(host_table())
        asyncio.run(checkpoint_table())
