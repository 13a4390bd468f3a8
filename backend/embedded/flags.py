"""The flags of llama-server that the embedded server takes, and where each one goes in the library."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Params = Any  # xllamacpp.CommonParams, whose members are made at run time


def library() -> Any:
    """xllamacpp, imported when it is needed: `--help` answers without it."""
    import xllamacpp

    return xllamacpp


@dataclass(frozen=True, slots=True)
class Flag:
    """`apply` puts the parsed value where the library keeps it; None for switches without a value."""

    names: tuple[str, ...]
    metavar: str | None
    kind: Callable[[str], Any]
    apply: Callable[[Params, Any], None]
    help: str


def _to(
    attribute: str, convert: Callable[[Any], Any] = lambda value: value
) -> Callable[[Params, Any], None]:
    """A setter of `attribute`, which may be dotted ("sampling.temp")."""
    *path, last = attribute.split(".")

    def apply(params: Params, value: Any) -> None:
        target = params
        for name in path:
            target = getattr(target, name)
        setattr(target, last, convert(value))

    return apply


def _constant(attribute: str, constant: Any) -> Callable[[Params, Any], None]:
    return _to(attribute, lambda _: constant)


def _member(attribute: str, enum: str, prefix: str) -> Callable[[Params, Any], None]:
    """A setter of a member of one of the library's enums, by its name in llama-server."""

    def convert(name: str) -> Any:
        members = getattr(library(), enum)
        wanted = (prefix + name.replace("-", "_")).upper()
        found = [member for member in members if member.name.upper() == wanted]
        if not found:
            raise ValueError(f"{name} is not one of its values")
        return found[0]

    return _to(attribute, convert)


def _flash(params: Params, value: str) -> None:
    names = {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO", "1": "ENABLED", "0": "DISABLED"}
    if value not in names:
        raise ValueError("it must be on, off or auto")
    _member("flash_attn_type", "llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_")(
        params, names[value]
    )


def _host(params: Params, value: str) -> None:
    params.hostnames = [value]


def _keys(params: Params, value: str) -> None:
    params.api_keys = [key for key in value.split(",") if key]


def _key_file(params: Params, value: str) -> None:
    params.api_keys = Path(value).read_text("utf-8").split()


def _template_file(params: Params, value: str) -> None:
    params.chat_template = Path(value).read_text("utf-8")


def _template_values(params: Params, value: str) -> None:
    params.default_template_kwargs = {k: json.dumps(v) for k, v in json.loads(value).items()}


def _spec_types(params: Params, value: str) -> None:
    members = {m.name: m for m in library().common_speculative_type}
    names = [
        "COMMON_SPECULATIVE_TYPE_" + name.replace("-", "_").upper() for name in value.split(",")
    ]
    if unknown := [name for name in names if name not in members]:
        raise ValueError(f"{unknown[0]} is not one of its values")
    params.speculative.types = [members[name] for name in names]


def _nothing(params: Params, value: Any) -> None:
    """A flag that llama-server has and that changes nothing here."""


FLAGS: tuple[Flag, ...] = (
    Flag(("-m", "--model"), "FNAME", str, _to("model.path"), "model path (GGUF)"),
    Flag(
        ("-a", "--alias"),
        "STRING",
        str,
        _to("model_alias", lambda v: {v}),
        "name of the model in the API",
    ),
    Flag(
        ("--host",),
        "HOST",
        str,
        _host,
        "address to listen on, or the path of a UNIX socket (*.sock)",
    ),
    Flag(("--port",), "PORT", int, _to("port"), "port to listen on"),
    Flag(("--api-key",), "KEY", str, _keys, "API keys, separated by commas (env: LLAMA_API_KEY)"),
    Flag(("--api-key-file",), "FNAME", str, _key_file, "file with one API key a line"),
    Flag(
        ("-c", "--ctx-size"), "N", int, _to("n_ctx"), "size of the prompt context (0: the model's)"
    ),
    Flag(("-b", "--batch-size"), "N", int, _to("n_batch"), "logical batch size"),
    Flag(("-ub", "--ubatch-size"), "N", int, _to("n_ubatch"), "physical batch size"),
    Flag(("-np", "--parallel"), "N", int, _to("n_parallel"), "number of slots"),
    Flag(("-t", "--threads"), "N", int, _to("cpuparams.n_threads"), "threads while generating"),
    Flag(
        ("-tb", "--threads-batch"),
        "N",
        int,
        _to("cpuparams_batch.n_threads"),
        "threads while prefilling",
    ),
    Flag(("--threads-http",), "N", int, _to("n_threads_http"), "threads that serve HTTP"),
    Flag(("-fa", "--flash-attn"), "on|off|auto", str, _flash, "Flash Attention"),
    Flag(
        ("-ctk", "--cache-type-k"),
        "TYPE",
        str,
        _member("cache_type_k", "ggml_type", "GGML_TYPE_"),
        "KV cache type for K",
    ),
    Flag(
        ("-ctv", "--cache-type-v"),
        "TYPE",
        str,
        _member("cache_type_v", "ggml_type", "GGML_TYPE_"),
        "KV cache type for V",
    ),
    Flag(
        ("-ngl", "--gpu-layers", "--n-gpu-layers"),
        "N",
        int,
        _to("n_gpu_layers"),
        "layers to keep in VRAM",
    ),
    Flag(
        ("-sps", "--slot-prompt-similarity"),
        "SIMILARITY",
        float,
        _to("slot_prompt_similarity"),
        "how much of a prompt must match to use a slot",
    ),
    Flag(("-cram", "--cache-ram"), "N", int, _to("cache_ram_mib"), "prompt cache in RAM, MiB"),
    Flag(("--cache-reuse",), "N", int, _to("n_cache_reuse"), "least chunk to reuse by KV shifting"),
    Flag(
        ("--ctx-checkpoints", "--swa-checkpoints"),
        "N",
        int,
        _to("n_ctx_checkpoints"),
        "context checkpoints per slot",
    ),
    Flag(
        ("-kvu", "--kv-unified"),
        None,
        str,
        _constant("kv_unified", True),
        "one KV buffer for all slots",
    ),
    Flag(
        ("--no-kv-unified",), None, str, _constant("kv_unified", False), "a KV buffer for each slot"
    ),
    Flag(
        ("--cache-idle-slots",),
        None,
        str,
        _constant("cache_idle_slots", True),
        "save idle slots to the RAM cache",
    ),
    Flag(
        ("--no-cache-idle-slots",),
        None,
        str,
        _constant("cache_idle_slots", False),
        "leave idle slots as they are",
    ),
    Flag(
        ("--swa-full",),
        None,
        str,
        _constant("swa_full", True),
        "full-size cache for sliding-window layers",
    ),
    Flag(
        ("--mlock",),
        None,
        str,
        _member("load_mode", "llama_load_mode", "LLAMA_LOAD_MODE_MMAP_MLOCK"),
        "keep the model in RAM",
    ),
    Flag(
        ("--no-mmap",),
        None,
        str,
        _member("load_mode", "llama_load_mode", "LLAMA_LOAD_MODE_NONE"),
        "read the model instead of mapping it",
    ),
    Flag(
        ("--slot-save-path",),
        "PATH",
        str,
        _to("slot_save_path", lambda v: v.rstrip("/") + "/"),
        "folder of slot files",
    ),
    Flag(("--metrics",), None, str, _constant("endpoint_metrics", True), "GET /metrics"),
    Flag(("--slots",), None, str, _constant("endpoint_slots", True), "GET /slots"),
    Flag(("--no-slots",), None, str, _constant("endpoint_slots", False), "no GET /slots"),
    Flag(("--jinja",), None, str, _constant("use_jinja", True), "use the model's chat template"),
    Flag(
        ("--chat-template-file",),
        "FNAME",
        str,
        _template_file,
        "chat template in place of the model's",
    ),
    Flag(("--chat-template-kwargs",), "JSON", str, _template_values, "values for the template"),
    Flag(
        ("--reasoning-format",),
        "FORMAT",
        str,
        _member("reasoning_format", "common_reasoning_format", "COMMON_REASONING_FORMAT_"),
        "none, auto, deepseek or deepseek-legacy",
    ),
    Flag(
        ("--reasoning-budget",),
        "N",
        int,
        _to("enable_reasoning", lambda v: 0 if v == 0 else -1),
        "0 turns thinking off",
    ),
    Flag(
        ("--sleep-idle-seconds",),
        "N",
        int,
        _to("sleep_idle_seconds"),
        "unload the model after so long without work",
    ),
    Flag(("-to", "--timeout"), "N", int, _to("timeout_read"), "seconds a connection may be silent"),
    Flag(("-n", "--predict", "--n-predict"), "N", int, _to("n_predict"), "most tokens to generate"),
    Flag(("-s", "--seed"), "SEED", int, _to("sampling.seed"), "seed of sampling"),
    Flag(("--temp", "--temperature"), "N", float, _to("sampling.temp"), "temperature"),
    Flag(("--top-k",), "N", int, _to("sampling.top_k"), "top-k sampling"),
    Flag(("--top-p",), "N", float, _to("sampling.top_p"), "top-p sampling"),
    Flag(("--min-p",), "N", float, _to("sampling.min_p"), "min-p sampling"),
    Flag(
        ("-md", "--spec-draft-model", "--model-draft"),
        "FNAME",
        str,
        _to("speculative.draft.mparams.path"),
        "draft model (GGUF)",
    ),
    Flag(
        ("--spec-type",),
        "TYPE",
        str,
        _spec_types,
        "kinds of drafting, separated by commas: draft-simple, draft-mtp, ngram-mod",
    ),
    Flag(("--spec-draft-n-max",), "N", int, _to("speculative.draft.n_max"), "most tokens to draft"),
    Flag(
        ("--spec-draft-n-min",), "N", int, _to("speculative.draft.n_min"), "fewest tokens to draft"
    ),
    Flag(("--warmup",), None, str, _constant("warmup", True), "an empty run after loading"),
    Flag(("--no-warmup",), None, str, _constant("warmup", False), "no empty run after loading"),
    Flag(
        ("-lv", "--verbosity", "--log-verbosity"),
        "N",
        int,
        _to("verbosity"),
        "how much is logged (3: info, 4: trace, 5: debug)",
    ),
    Flag(("--no-webui", "--no-ui"), None, str, _nothing, "no page is served in any case"),
)
