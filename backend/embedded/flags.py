"""The flags of llama-server that the embedded server accepts, and where the library stores each."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Params = Any  # xllamacpp.CommonParams, whose attributes are created at run time
Apply = Callable[[Params, Any], None]


def library() -> Any:
    """xllamacpp, imported only when needed, so that `--help` works without it."""
    import xllamacpp

    return xllamacpp


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag that the embedded server accepts.

    `apply` stores the parsed value in the parameters; `metavar` is None for a switch.
    """

    names: tuple[str, ...]
    metavar: str | None
    kind: Callable[[str], Any]
    apply: Apply
    help: str


def option(usage: str, kind: Callable[[str], Any], where: str | Apply, help_text: str) -> Flag:
    """A flag with a value, from its usage in `--help`; `where` is an attribute or a function."""
    *names, last = usage.split(", ")
    name, metavar = last.split()
    apply = to(where) if isinstance(where, str) else where
    return Flag((*names, name), metavar, kind, apply, help_text)


def switch(usage: str, apply: Apply, help_text: str) -> Flag:
    return Flag(tuple(usage.split(", ")), None, str, apply, help_text)


def to(attribute: str, convert: Callable[[Any], Any] = lambda value: value) -> Apply:
    """A setter of `attribute`, which may be dotted ("sampling.temp")."""
    *path, last = attribute.split(".")

    def apply(params: Params, value: Any) -> None:
        target = params
        for name in path:
            target = getattr(target, name)
        setattr(target, last, convert(value))

    return apply


def constant(attribute: str, value: Any) -> Apply:
    return to(attribute, lambda _: value)


def named(enum: str, prefix: str) -> Callable[[str], Any]:
    """A converter from the value's name in llama-server to the member of the library's enum."""

    def convert(name: str) -> Any:
        members = {member.name.upper(): member for member in getattr(library(), enum)}
        wanted = (prefix + name.replace("-", "_")).upper()
        if wanted not in members:
            raise ValueError(f"{name} is not one of its values")
        return members[wanted]

    return convert


CACHE_TYPE = named("ggml_type", "GGML_TYPE_")
LOAD_MODE = named("llama_load_mode", "LLAMA_LOAD_MODE_")
SPLIT_MODE = named("llama_split_mode", "LLAMA_SPLIT_MODE_")
REASONING_FORMAT = named("common_reasoning_format", "COMMON_REASONING_FORMAT_")
POOLING = named("llama_pooling_type", "LLAMA_POOLING_TYPE_")
DRAFTING = named("common_speculative_type", "COMMON_SPECULATIVE_TYPE_")


def flash_attention(value: str) -> Any:
    names = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO", "1": "ENABLED", "0": "DISABLED"}
    if value not in names:
        raise ValueError("it must be on, off or auto")
    return named("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_")(names[value])


def load_mode(value: str) -> Any:
    names = {"mmap+mlock": "mmap_mlock", "dio": "direct_io"}
    return LOAD_MODE(names.get(value, value))


def experts_on_host(params: Params, layers: int) -> None:
    """Convert llama-server's `--n-cpu-moe` into a pattern of tensor names for each layer."""
    if layers < 0:
        raise ValueError("it cannot be negative")
    patterns = (rf"blk\.{n}\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU" for n in range(layers))
    tensors_elsewhere(params, ",".join(patterns))


def tensors_elsewhere(params: Params, overrides: str) -> None:
    """Add PATTERN=BUFFER pairs, separated by commas, to those given before."""
    given = (params.tensor_buft_overrides, overrides)
    params.tensor_buft_overrides = ",".join(filter(None, given))


def tensor_split(params: Params, value: str) -> None:
    """The GPUs' shares of the model, such as "3,1"; GPUs without a number get none."""
    shares, devices = [float(share) for share in value.split(",")], len(params.tensor_split)
    if len(shares) > devices:
        raise ValueError(f"there can be {devices} devices")
    params.tensor_split = [*shares, *[0.0] * (devices - len(shares))]


def existing_file(path: str) -> str:
    if not Path(path).is_file():
        raise ValueError("no such file")
    return path


def add_template_values(params: Params, text: str) -> None:
    values = {name: json.dumps(value) for name, value in json.loads(text).items()}
    params.default_template_kwargs = {**params.default_template_kwargs, **values}


def preserve_thoughts(value: str) -> Apply:
    """Set the template value that llama-server's flag parser sets to true, and the library does not."""

    def apply(params: Params, _: Any) -> None:
        values = {**params.default_template_kwargs, "preserve_reasoning": value}
        params.default_template_kwargs = values
        params.preserve_reasoning_specified = True

    return apply


def reasoning_budget(params: Params, tokens: int) -> None:
    params.enable_reasoning = 0 if tokens == 0 else -1
    params.sampling.reasoning_budget_tokens = tokens


# fmt: off
FLAGS: tuple[Flag, ...] = (
    option("-m, --model FNAME", str, "model.path", "model path (GGUF)"),
    option("-a, --alias STRING", str, to("model_alias", lambda v: {v}), "name of the model in the API"),
    option("--host HOST", str, to("hostnames", lambda v: [v]), "address to listen on, or the path of a UNIX socket (*.sock)"),
    option("--port PORT", int, "port", "port to listen on"),
    option("--api-key KEY", str, to("api_keys", lambda v: [key for key in v.split(",") if key]), "API keys, separated by commas (env: LLAMA_API_KEY)"),
    option("--api-key-file FNAME", str, to("api_keys", lambda v: Path(v).read_text("utf-8").split()), "file with one API key a line"),
    option("-c, --ctx-size N", int, "n_ctx", "size of the prompt context (0: the model's)"),
    option("-b, --batch-size N", int, "n_batch", "logical batch size"),
    option("-ub, --ubatch-size N", int, "n_ubatch", "physical batch size"),
    option("-np, --parallel N", int, "n_parallel", "number of slots"),
    option("-t, --threads N", int, "cpuparams.n_threads", "threads while generating"),
    option("-tb, --threads-batch N", int, "cpuparams_batch.n_threads", "threads while prefilling"),
    option("--threads-http N", int, "n_threads_http", "threads that serve HTTP"),
    option("-fa, --flash-attn on|off|auto", str, to("flash_attn_type", flash_attention), "Flash Attention"),
    option("-ctk, --cache-type-k TYPE", str, to("cache_type_k", CACHE_TYPE), "KV cache type for K"),
    option("-ctv, --cache-type-v TYPE", str, to("cache_type_v", CACHE_TYPE), "KV cache type for V"),
    option("-ngl, --gpu-layers, --n-gpu-layers N", int, "n_gpu_layers", "layers to keep in VRAM"),
    option("-ncmoe, --n-cpu-moe N", int, experts_on_host, "keep the experts of the first N layers in host memory"),
    option("-ot, --override-tensor PATTERN=BUFFER,...", str, tensors_elsewhere, "the buffer of tensors whose names a pattern is found in; CPU: host memory"),
    option("-sm, --split-mode none|layer|row|tensor", str, to("split_mode", SPLIT_MODE), "how a model is split over several GPUs"),
    option("-ts, --tensor-split N0,N1,N2,...", str, tensor_split, "share of the model on each GPU"),
    option("-mm, --mmproj FILE", str, to("mmproj.path", existing_file), "projector of images and sound (GGUF)"),
    switch("--no-mmproj-offload", constant("mmproj_use_gpu", False), "the projector runs on the processor"),
    switch("--embedding, --embeddings", constant("embedding", True), "give vectors in place of words"),
    option("--pooling none|mean|cls|last|rank", str, to("pooling_type", POOLING), "how a text's vector is made of its tokens' (default: the model's)"),
    option("-sps, --slot-prompt-similarity SIMILARITY", float, "slot_prompt_similarity", "how much of a prompt must match to use a slot"),
    option("-cram, --cache-ram N", int, "cache_ram_mib", "prompt cache in RAM, MiB"),
    option("--cache-reuse N", int, "n_cache_reuse", "least chunk to reuse by KV shifting"),
    option("-ctxcp, --ctx-checkpoints, --swa-checkpoints N", int, "n_ctx_checkpoints", "context checkpoints per slot"),
    option("-cms, --checkpoint-min-step N", int, "checkpoint_min_step", "fewest tokens between two context checkpoints"),
    switch("-kvu, --kv-unified", constant("kv_unified", True), "one KV buffer for all slots"),
    switch("--no-kv-unified", constant("kv_unified", False), "a KV buffer for each slot"),
    switch("--cache-idle-slots", constant("cache_idle_slots", True), "save idle slots to the RAM cache"),
    switch("--no-cache-idle-slots", constant("cache_idle_slots", False), "leave idle slots as they are"),
    switch("--swa-full", constant("swa_full", True), "full-size cache for sliding-window layers"),
    option("-lm, --load-mode MODE", str, to("load_mode", load_mode), "auto, none, mmap, mlock, mmap+mlock or dio"),
    switch("--mlock", to("load_mode", lambda _: LOAD_MODE("MMAP_MLOCK")), "keep the model in RAM"),
    switch("--no-mmap", to("load_mode", lambda _: LOAD_MODE("NONE")), "read the model instead of mapping it"),
    option("--slot-save-path PATH", str, to("slot_save_path", lambda v: v.rstrip("/") + "/"), "folder of slot files"),
    switch("--metrics", constant("endpoint_metrics", True), "GET /metrics"),
    switch("--slots", constant("endpoint_slots", True), "GET /slots"),
    switch("--no-slots", constant("endpoint_slots", False), "no GET /slots"),
    switch("--jinja", constant("use_jinja", True), "use the model's chat template"),
    option("--chat-template-file FNAME", str, to("chat_template", lambda v: Path(v).read_text("utf-8")), "chat template in place of the model's"),
    option("--chat-template-kwargs JSON", str, add_template_values, "values for the template"),
    switch("--reasoning-preserve", preserve_thoughts("true"), "keep the thoughts of earlier turns where the template can (the default)"),
    switch("--no-reasoning-preserve", preserve_thoughts("false"), "leave that to the template"),
    option("--reasoning-format FORMAT", str, to("reasoning_format", REASONING_FORMAT), "none, auto, deepseek or deepseek-legacy"),
    option("--reasoning-budget N", int, reasoning_budget, "most tokens of thought (0: none, -1: as many as it likes)"),
    option("--sleep-idle-seconds N", int, "sleep_idle_seconds", "unload the model after so long without work"),
    option("-to, --timeout N", int, "timeout_read", "seconds a connection may be silent"),
    option("-n, --predict, --n-predict N", int, "n_predict", "most tokens to generate"),
    option("-s, --seed SEED", int, "sampling.seed", "seed of sampling"),
    option("--temp, --temperature N", float, "sampling.temp", "temperature"),
    option("--top-k N", int, "sampling.top_k", "top-k sampling"),
    option("--top-p N", float, "sampling.top_p", "top-p sampling"),
    option("--min-p N", float, "sampling.min_p", "min-p sampling"),
    option("-md, --spec-draft-model, --model-draft FNAME", str, "speculative.draft.mparams.path", "draft model (GGUF)"),
    option("--spec-type TYPE", str, to("speculative.types", lambda v: [DRAFTING(name) for name in v.split(",")]), "kinds of drafting, separated by commas: draft-simple, draft-mtp, ngram-mod"),
    option("--spec-draft-n-max N", int, "speculative.draft.n_max", "most tokens to draft"),
    option("--spec-draft-n-min N", int, "speculative.draft.n_min", "fewest tokens to draft"),
    option("--spec-draft-p-min, --draft-p-min P", float, "speculative.draft.p_min", "least probability of a drafted token"),
    option("--spec-draft-sampling greedy|probabilistic", str, to("speculative.draft.probabilistic", {"greedy": False, "probabilistic": True}.__getitem__), "how drafted tokens are chosen"),
    option("-ctkd, --spec-draft-type-k, --cache-type-k-draft TYPE", str, to("speculative.draft.cache_type_k", CACHE_TYPE), "KV cache type for K of what drafts"),
    option("-ctvd, --spec-draft-type-v, --cache-type-v-draft TYPE", str, to("speculative.draft.cache_type_v", CACHE_TYPE), "KV cache type for V of what drafts"),
    option("-ngld, --spec-draft-ngl, --gpu-layers-draft N", int, "speculative.draft.n_gpu_layers", "layers of the draft model to keep in VRAM"),
    switch("--warmup", constant("warmup", True), "an empty run after loading"),
    switch("--no-warmup", constant("warmup", False), "no empty run after loading"),
    option("-lv, --verbosity, --log-verbosity N", int, "verbosity", "how much is logged (3: info, 4: trace, 5: debug)"),
    switch("--no-webui, --no-ui", lambda params, value: None, "no page is served in any case"),
)
# fmt: on
