"""What a model needs of memory: weights, KV cache, compute buffers, overhead; in bytes.

The figures are those that llama.cpp logs as buffer sizes; rules by architecture
follow its source (llama-hparams, llama-kv-cache, llama-kv-cache-iswa,
llama-memory-recurrent).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from backend.models.gguf_header import Header

MIB = 2**20
CACHE_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32}  # fmt: skip
CUDA_OVERHEAD = 600 * MIB  # context and kernels: 0.5-1 GB reported on V100s

# Which layers see a sliding window, where the file does not say: every n-th sees all.
SLIDING_WINDOW_PERIOD = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "exaone4": 4}  # fmt: skip
RECURRENT_PERIOD = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}
EXPERT = re.compile(r"blk\.(\d+)\.ffn_(up|down|gate|gate_up)_(ch)?exps\.")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What llama-server is started with, as far as it costs memory.

    `gpu` False: everything in host memory. `cpu_experts` counts the layers whose
    experts stay in host memory (`--n-cpu-moe`). ik_llama.cpp always keeps
    sliding-window layers in full (`swa_full`).
    """

    context: int
    ubatch: int = 512
    cache_k: str = "f16"
    cache_v: str = "f16"
    slots: int = 1
    unified: bool = False
    cpu_experts: int = 0
    gpu: bool = True
    swa_full: bool = False


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Bytes. `weights`, `kv`, `compute` and `overhead` lie on the GPU, or in host memory without one."""

    weights: int
    kv: int
    compute: int
    overhead: int
    host_weights: int
    on_gpu: bool

    @property
    def gpu(self) -> int:
        return self.weights + self.kv + self.compute + self.overhead if self.on_gpu else 0

    @property
    def host(self) -> int:
        return self.host_weights + (0 if self.on_gpu else self.kv + self.compute)


def memory_need(model: Header, options: RunOptions) -> MemoryNeed:
    kv, compute = kv_bytes(model, options), compute_bytes(model, options)
    if not options.gpu:
        return MemoryNeed(0, kv, compute, 0, model.weights, on_gpu=False)
    # llama.cpp keeps the input embedding in host memory, and the experts it is told to.
    embeddings = tensor_bytes(model, "token_embd", "per_layer_token_embd")
    host = embeddings + expert_bytes(model, options.cpu_experts)
    # A model without an output layer uses the input embedding, which is then on the GPU as well.
    tied = 0 if tensor_bytes(model, "output.weight") else tensor_bytes(model, "token_embd.weight")
    return MemoryNeed(model.weights - host + tied, kv, compute, CUDA_OVERHEAD, host, on_gpu=True)


def trained_context(model: Header) -> int:
    """Tokens."""
    return int(model.get("context_length", 0)) or 8192


# -- weights ------------------------------------------------------------------


def tensor_bytes(model: Header, *prefixes: str) -> int:
    return sum(tensor.size for tensor in model.tensors if tensor.name.startswith(prefixes))


def expert_bytes(model: Header, layers: int) -> int:
    """Bytes of the experts of the first `layers` layers."""
    found = ((EXPERT.match(tensor.name), tensor.size) for tensor in model.tensors)
    return sum(size for match, size in found if match and int(match[1]) < layers)


def expert_layers(model: Header) -> int:
    """Layers up to the last one with experts (0 for a dense model)."""
    found = [int(match[1]) for t in model.tensors if (match := EXPERT.match(t.name))]
    return max(found) + 1 if found else 0


# -- the KV cache -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CachedLayer:
    """What one layer keeps: key and value widths in elements per cell, or a recurrent state in bytes."""

    key: int = 0
    value: int = 0
    window: int = 0  # 0: the whole context
    state: int = 0


def kv_bytes(model: Header, options: RunOptions) -> int:
    """Bytes of the KV cache and of recurrent states."""
    k, v = CACHE_BYTES[options.cache_k], CACHE_BYTES[options.cache_v]
    return sum(
        round(cells(layer.window, options) * (layer.key * k + layer.value * v))
        + layer.state * options.slots
        for layer in cached_layers(model)
    )


def cells(window: int, options: RunOptions) -> int:
    """Cells of a layer's cache, in all slots."""
    streams = 1 if options.unified else options.slots
    whole = padded(options.context // streams)
    if not window or options.swa_full:
        return whole * streams
    seen = window * (options.slots if options.unified else 1) + options.ubatch
    return padded(min(whole, seen)) * streams


def padded(count: int) -> int:
    return -(-count // 256) * 256


def cached_layers(model: Header) -> Iterator[CachedLayer]:
    blocks = int(model.get("block_count", 0)) - int(model.get("nextn_predict_layers", 0))
    own = blocks - int(model.get("attention.shared_kv_layers", 0))
    if model.architecture == "gemma3n":
        own = min(own, 20)  # the layers behind share the caches before (llama.cpp: 20, fixed)
    for index in range(blocks):
        if is_recurrent(model, index):
            yield CachedLayer(state=recurrent_state(model))
        elif index < own:
            yield attention_layer(model, index)


def attention_layer(model: Header, index: int) -> CachedLayer:
    all_heads = model.get("attention.head_count", 0)
    heads = int(of_layer(model.get("attention.head_count_kv", all_heads), index))
    if model.get("attention.key_length_mla"):  # latent attention keeps one vector, no values
        return CachedLayer(key=int(model.get("attention.key_length", 0)) * heads)
    window = sliding_window(model, index)
    width = int(model.get("embedding_length", 0)) // max(1, int(of_layer(all_heads, index)))

    def length(of: str) -> int:
        own = model.get(f"attention.{of}_length_swa", 0) if window else 0
        return int(own or model.get(f"attention.{of}_length", width))

    return CachedLayer(length("key") * heads, length("value") * heads, window)


def sliding_window(model: Header, index: int) -> int:
    """Tokens that a layer sees; 0: all."""
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
    return isinstance(heads, Sequence) and int(heads[index]) == 0


def recurrent_state(model: Header) -> int:
    """Bytes (float32) of one recurrent layer's state for one sequence."""
    if taps := int(model.get("shortconv.l_cache", 0)):
        return 4 * int(model.get("embedding_length", 0)) * (taps - 1)
    inner, states = int(model.get("ssm.inner_size", 0)), int(model.get("ssm.state_size", 0))
    groups, taps = int(model.get("ssm.group_count", 0)), int(model.get("ssm.conv_kernel", 0))
    return 4 * (max(0, taps - 1) * (inner + 2 * groups * states) + states * inner)


def of_layer(value: object, index: int) -> float:
    """A value that may be given per layer."""
    return float(value[index] if isinstance(value, Sequence) else value)  # type: ignore[arg-type]


# -- compute buffers ----------------------------------------------------------


def compute_bytes(model: Header, options: RunOptions) -> int:
    """The graph's scratch memory: activations and the attention masks of one micro-batch.

    Fitted to what build 11549 logs on the CPU (flash attention on; within 4 % for
    a llama at four sizes); not checked on a GPU. Builds that keep logits for a
    whole micro-batch need more: 0.9 GB at -ub 1536 was reported for a 3B model.
    """
    batch, width = min(options.ubatch, options.context), int(model.get("embedding_length", 0))
    hidden = model.get("feed_forward_length", 4 * width)
    widest = max(hidden, default=4 * width) if isinstance(hidden, Sequence) else hidden
    activations = batch * (8 * width + 2 * int(widest)) * 4
    windows = {layer.window for layer in cached_layers(model) if layer.key}
    masks = sum(cells(window, replace(options, slots=1)) for window in windows)
    return activations + batch * masks * 2 + options.slots * model.vocabulary * 4
