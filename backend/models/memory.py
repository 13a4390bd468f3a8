"""How much memory a model needs: weights, KV cache, compute buffers, overhead; in bytes.

The results match the buffer sizes that llama.cpp logs to about 1 % for ten models of
all kinds (tests/backend/models/test_fit.py); rules by architecture follow its source
(llama-hparams, llama-kv-cache-iswa, llama-memory-recurrent). Flash attention is assumed
to be on: without it the attention scores alone take hundreds of MiB.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from backend.models.gguf_header import Header

MIB = 2**20
CACHE_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32}  # fmt: skip
CUDA_OVERHEAD = 600 * MIB  # context and kernels: 0.5-1 GB reported on V100s

# Defaults where the file has no sliding-window pattern: every n-th layer sees the whole context.
SLIDING_WINDOW_PERIOD = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "exaone4": 4}  # fmt: skip
RECURRENT_PERIOD = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}
SHARES_CACHE = "gemma4-assistant"
EXPERT = re.compile(r"blk\.(\d+)\.ffn_(up|down|gate|gate_up)_(ch)?exps\.")
BLOCK = re.compile(r"blk\.(\d+)\.")
FEED_FORWARD = re.compile(r"blk\.\d+\.ffn_(up|gate_up)(_exps)?\.weight")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What llama-server is started with, as far as it affects memory.

    `gpu` False: everything is in host memory. `cpu_experts` counts the layers whose
    experts stay in host memory (`--n-cpu-moe`); `on_host` are patterns for the names of
    other tensors that do (`--override-tensor`). `devices` GPUs share the model.
    `mtp_tokens` are drafted at once by the model's own head; 0: it does not draft.
    `draft_k` and `draft_v` are the cache types for drafting. `expert_cache` bytes on the
    GPU cache experts that stay in host memory (`--moe-cache-mib`). `projector` is the size
    of a picture projector, in host memory with `projector_on_host`.
    ik_llama.cpp always keeps sliding-window layers in full (`swa_full`), and the
    logits of a whole micro-batch (`all_logits`), as llama.cpp once did.
    """

    context: int
    ubatch: int = 512
    cache_k: str = "f16"
    cache_v: str = "f16"
    slots: int = 1
    unified: bool = False
    cpu_experts: int = 0
    on_host: tuple[str, ...] = ()
    gpu: bool = True
    devices: int = 1
    mtp_tokens: int = 0
    draft_k: str = "f16"
    draft_v: str = "f16"
    expert_cache: int = 0
    checkpoints: int = 32
    swa_full: bool = False
    all_logits: bool = False
    projector: int = 0
    projector_on_host: bool = False


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What a model takes, in bytes: `weights`, `kv`, `compute`, `draft`, `overhead` on the GPU if there is one.

    `draft` is everything that a draft model takes, `projector` that of a picture projector.
    `checkpoints` are copies of recurrent states and sliding windows, with which a long chat fills
    host memory in addition to the prompt cache.
    """

    weights: int
    kv: int
    compute: int
    overhead: int
    host_weights: int
    checkpoints: int
    on_gpu: bool
    draft: int = 0
    projector: int = 0

    @property
    def together(self) -> int:
        """Everything that is on the GPU or, without one, in host memory in addition to the weights."""
        parts = self.weights + self.kv + self.compute + self.draft + self.projector
        return parts + self.overhead

    @property
    def gpu(self) -> int:
        return self.together if self.on_gpu else 0

    @property
    def host(self) -> int:
        return self.host_weights + self.checkpoints + (0 if self.on_gpu else self.together)


def memory_need(model: Header, options: RunOptions, draft: Header | None = None) -> MemoryNeed:
    # Checkpoints are taken throughout a chat: on average in the middle of one that fills its window.
    checkpoint = checkpoint_bytes(model, options, options.context // options.slots // 2)
    on_gpu, overhead, host, projector = 0, 0, loaded_weights(model, options), options.projector
    if options.gpu:
        weights = host
        # llama.cpp keeps the input embedding in host memory, and the experts that are configured so.
        host = tensor_bytes(model, "token_embd", "per_layer_token_embd")
        host += overridden_bytes(model, options)
        # A model without an output layer uses the input embedding, which is then on the GPU as well.
        tied = (
            0 if tensor_bytes(model, "output.weight") else tensor_bytes(model, "token_embd.weight")
        )
        on_gpu = weights - host + tied
        overhead = CUDA_OVERHEAD * options.devices + options.expert_cache
        if options.projector_on_host:
            host, projector = host + projector, 0
    return MemoryNeed(
        weights=on_gpu,
        kv=kv_bytes(model, options),
        compute=compute_bytes(model, options),
        overhead=overhead,
        host_weights=host,
        checkpoints=options.checkpoints * options.slots * checkpoint,
        on_gpu=options.gpu,
        draft=draft_bytes(draft, options) if draft else 0,
        projector=projector,
    )


def draft_bytes(draft: Header, options: RunOptions) -> int:
    """The memory of a draft model: weights, cache, compute buffer.

    Gemma 4's draft model has no cache but reads that of the main model. Its compute buffer
    was 3 MiB smaller than computed here (build 11549, at 8k and 131k).
    """
    alone = replace(options, cpu_experts=0, on_host=(), cache_k=options.draft_k, cache_v=options.draft_v, mtp_tokens=0, expert_cache=0, projector=0)  # fmt: skip
    if draft.architecture == SHARES_CACHE:
        layers = range(int(draft.get("block_count", 0)))
        windows = {attention_layer(draft, index).window for index in layers}
        return draft.weights + compute_bytes(draft, alone) + mask_bytes(windows, alone)
    need = memory_need(draft, alone)
    return need.weights + need.kv + need.compute + (0 if options.gpu else need.host_weights)


def trained_context(model: Header) -> int:
    """The longest context in tokens that the model was trained for."""
    return int(model.get("context_length", 0)) or 8192


# -- weights ------------------------------------------------------------------


def blocks(model: Header) -> int:
    """The number of layers, without those of the drafting (MTP) head, which come last."""
    return int(model.get("block_count", 0)) - int(model.get("nextn_predict_layers", 0))


def loaded_weights(model: Header, options: RunOptions) -> int:
    """Bytes of all tensors, without those of a drafting head that is not used."""
    if options.mtp_tokens:
        return model.weights
    own = blocks(model)
    named = ((BLOCK.match(tensor.name), tensor.size) for tensor in model.tensors)
    return model.weights - sum(size for match, size in named if match and int(match[1]) >= own)


def tensor_bytes(model: Header, *prefixes: str) -> int:
    return sum(tensor.size for tensor in model.tensors if tensor.name.startswith(prefixes))


def overridden_bytes(model: Header, options: RunOptions) -> int:
    """Bytes of the tensors configured to stay in host memory: experts of the first layers, and by name."""
    patterns = [re.compile(pattern) for pattern in options.on_host]
    found = 0
    for tensor in model.tensors:
        match = EXPERT.match(tensor.name)
        expert = match is not None and int(match[1]) < options.cpu_experts
        if expert or any(pattern.search(tensor.name) for pattern in patterns):
            found += tensor.size
    return found


def expert_layers(model: Header) -> int:
    """The number of layers up to the last one with experts (0 for a dense model)."""
    found = [int(match[1]) for t in model.tensors if (match := EXPERT.match(t.name))]
    return max(found) + 1 if found else 0


# -- the KV cache -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CachedLayer:
    """What one layer caches: key and value widths in elements per cell, or a recurrent state in bytes."""

    key: int = 0
    value: int = 0
    window: int = 0  # 0: the whole context
    state: int = 0

    def cell(self, options: RunOptions) -> float:
        """Bytes of the key and the value of one token."""
        return self.key * CACHE_BYTES[options.cache_k] + self.value * CACHE_BYTES[options.cache_v]

    def cache(self, options: RunOptions) -> int:
        """Bytes of keys and values in all slots."""
        return round(cells(self.window, options) * self.cell(options))


def kv_bytes(model: Header, options: RunOptions) -> int:
    """Bytes of the KV cache, of recurrent states, and of the drafting head's cache."""
    # A recurrent state cannot be rolled back: one more is kept for each drafted token.
    states = options.slots * (1 + options.mtp_tokens)
    kept = sum(layer.cache(options) + layer.state * states for layer in cached_layers(model))
    # The head's cache has its own type (--spec-draft-type-k).
    drafting = replace(options, cache_k=options.draft_k, cache_v=options.draft_v)
    return kept + sum(layer.cache(drafting) for layer in drafting_layers(model, options))


def drafting_layers(model: Header, options: RunOptions) -> list[CachedLayer]:
    """The layers of the model's own drafting head, if it is used."""
    last = range(blocks(model), int(model.get("block_count", 0))) if options.mtp_tokens else ()
    return [attention_layer(model, index) for index in last]


def checkpoint_bytes(model: Header, options: RunOptions, tokens: int = 0) -> int:
    """Bytes of one context checkpoint after `tokens`: recurrent states, the cells of sliding windows,
    and the drafting head's cache of the whole chat."""
    layers = list(cached_layers(model))
    windows = () if options.swa_full else layers
    kept = sum(min(layer.window, options.context) * layer.cell(options) for layer in windows)
    states = sum(layer.state for layer in layers)
    if not kept and not states:
        return 0
    drafting = replace(options, cache_k=options.draft_k, cache_v=options.draft_v)
    return states + round(
        kept + tokens * sum(layer.cell(drafting) for layer in drafting_layers(model, options))
    )


def cells(window: int, options: RunOptions) -> int:
    """The number of cells in a layer's cache, in all slots."""
    streams = 1 if options.unified else options.slots
    whole = padded(options.context // streams)
    if not window or options.swa_full:
        return whole * streams
    seen = window * (options.slots if options.unified else 1) + options.ubatch
    return padded(min(whole, seen)) * streams


def padded(count: int) -> int:
    return -(-count // 256) * 256


def cached_layers(model: Header) -> Iterator[CachedLayer]:
    own = blocks(model) - int(model.get("attention.shared_kv_layers", 0))
    if model.architecture == "gemma3n":
        own = min(own, 20)  # later layers share the caches of earlier ones (fixed in llama.cpp)
    for index in range(blocks(model)):
        if is_recurrent(model, index):
            yield CachedLayer(state=recurrent_state(model))
        elif index < own:
            yield attention_layer(model, index)


def attention_layer(model: Header, index: int) -> CachedLayer:
    all_heads = model.get("attention.head_count", 0)
    heads = int(layer_value(model.get("attention.head_count_kv", all_heads), index))
    if model.get("attention.key_length_mla"):  # latent attention caches one vector and no values
        return CachedLayer(key=int(model.get("attention.key_length", 0)) * heads)
    window = sliding_window(model, index)
    width = int(model.get("embedding_length", 0)) // max(1, int(layer_value(all_heads, index)))

    def length(of: str) -> int:
        own = model.get(f"attention.{of}_length_swa", 0) if window else 0
        return int(own or model.get(f"attention.{of}_length", width))

    return CachedLayer(length("key") * heads, length("value") * heads, window)


def sliding_window(model: Header, index: int) -> int:
    """The number of tokens that a layer attends to; 0: all."""
    window = int(model.get("attention.sliding_window", 0) or 0)
    usual = SLIDING_WINDOW_PERIOD.get(model.architecture)
    pattern = model.get("attention.sliding_window_pattern", usual)
    if not window or pattern is None:
        return 0
    sliding = pattern[index] if isinstance(pattern, Sequence) else index % pattern < pattern - 1
    return window if sliding else 0


def is_recurrent(model: Header, index: int) -> bool:
    period = model.get("full_attention_interval", RECURRENT_PERIOD.get(model.architecture))
    if period:
        return (index + 1) % int(period) != 0
    heads = model.get("attention.head_count_kv")
    if not isinstance(heads, Sequence) or int(heads[index]):
        return False
    # Nemotron-H: a layer without attention is either recurrent or only a feed-forward network.
    nemotron = model.architecture.startswith("nemotron_h")
    return not (nemotron and layer_value(model.get("feed_forward_length", 0), index))


def recurrent_state(model: Header) -> int:
    """Bytes (float32) of one recurrent layer's state for one sequence."""
    if taps := int(model.get("shortconv.l_cache", 0)):
        return 4 * int(model.get("embedding_length", 0)) * (taps - 1)
    inner, states = int(model.get("ssm.inner_size", 0)), int(model.get("ssm.state_size", 0))
    groups, taps = int(model.get("ssm.group_count", 0)), int(model.get("ssm.conv_kernel", 0))
    return 4 * (max(0, taps - 1) * (inner + 2 * groups * states) + states * inner)


def layer_value(value: object, index: int) -> float:
    """The value for one layer, from metadata that is a single number or a list with one per layer."""
    return float(value[index] if isinstance(value, Sequence) else value)  # type: ignore[arg-type]


# -- compute buffers ----------------------------------------------------------


def compute_bytes(model: Header, options: RunOptions) -> int:
    """The scratch memory for the graph of one micro-batch, on all devices.

    The peak is the feed-forward network together with the attention masks.
    A drafting head has a graph of its own with one layer, whose peak is its feed-forward network, or its
    attention and mask, plus three times the model's width. For both Qwen3.6 models, at 8k to 131k and
    `-ub` 256 to 2048, the two graphs together took this much or up to 2.1 % less.
    """
    batch, width = min(options.ubatch, options.context), int(model.get("embedding_length", 0))
    masks = mask_bytes({layer.window for layer in cached_layers(model) if layer.key}, options)
    activations = 4 * batch * feed_forward_elements(model)
    needed = activations + masks
    if options.all_logits:
        needed = max(needed, 4 * batch * (model.vocabulary + 2 * width) + masks)
    if options.mtp_tokens:
        queries = int(layer_value(model.get("attention.head_count", 0), 0))
        attention = 4 * queries * int(model.get("attention.key_length", 0)) + 3 * width
        feed_forward = feed_forward_elements(model) - 2 * width  # which counts five times the width
        masked = 4 * batch * attention + mask_bytes({0}, options)
        needed += max(4 * batch * feed_forward, masked)
    return needed * options.devices


def mask_bytes(windows: Collection[int], options: RunOptions) -> int:
    """Attention masks (f16) of one micro-batch, one for each window size (0: the whole context)."""
    streams = 1 if options.unified else options.slots
    batch = min(options.ubatch, options.context)
    return sum(cells(window, options) // streams for window in windows) * batch * 2


def feed_forward_elements(model: Header) -> int:
    """Elements per token that are live at once in the feed-forward network of the widest layer.

    Gate and up projections, their product, and five times the model's width for residuals and
    fragmentation. The down projection reuses the memory of gate and up unless it is larger;
    in a layer with experts each of these exists once for every expert that is used.
    """
    width, used = int(model.get("embedding_length", 0)), int(model.get("expert_used_count", 0))
    gated = any("ffn_gate" in t.name and "ffn_gate_inp" not in t.name for t in model.tensors)
    widest = 0
    for tensor in model.tensors:
        if not (match := FEED_FORWARD.match(tensor.name)):
            continue
        times = used if match[2] else 1
        hidden = tensor.shape[1] // 2 if match[1] == "gate_up" else tensor.shape[1]
        side = 2 * hidden if gated else 0
        down = 0 if width <= side else width
        widest = max(widest, times * (hidden + side + down))
    return widest + 5 * width
