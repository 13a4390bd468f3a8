"""What of a model fits where: weights, KV cache, compute buffers, overhead; in bytes.

`need` computes what one way of running takes; `choose` looks for the best way
that fits a card and the host's memory. The figures are those that llama.cpp
logs as buffer sizes; rules by architecture follow its source (llama-hparams,
llama-kv-cache, llama-kv-cache-iswa, llama-memory-recurrent).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from backend.models.gguf_header import Header

MIB = 2**20
GIB = 2**30
CACHE_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32}  # fmt: skip
CUDA_OVERHEAD = 600 * MIB  # context and kernels: 0.5-1 GB reported on V100s
HEADROOM = 300 * MIB  # left free: allocations are not exact, a desktop may draw

# Which layers see a sliding window, where the file does not say: every n-th sees all.
_SWA_PERIOD = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "exaone4": 4}
_RECURRENT_PERIOD = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}
_EXPERT = re.compile(r"blk\.(\d+)\.ffn_(up|down|gate|gate_up)_(ch)?exps\.")


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running a model, in llama-server's terms.

    `gpu` False: everything in host memory. `cpu_experts` counts the layers whose
    experts stay in host memory (`--n-cpu-moe`). ik_llama.cpp keeps sliding-window
    layers in full.
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
class Need:
    """Bytes that a way of running takes; `card` is what the GPU must hold."""

    weights: int
    kv: int
    compute: int
    overhead: int
    host_weights: int

    @property
    def card(self) -> int:
        return self.weights + self.kv + self.compute + self.overhead


def need(model: Header, way: Way) -> Need:
    """What `way` takes. On a machine without a GPU all of it is host memory."""
    host = _host_weights(model, way)
    total = model.weights
    if not way.gpu:
        return Need(0, kv_bytes(model, way), compute_bytes(model, way), 0, total)
    doubled = 0 if _has_output(model) else _embedding(model)
    weights = total - host + doubled
    return Need(weights, kv_bytes(model, way), compute_bytes(model, way), CUDA_OVERHEAD, host)


# -- weights ------------------------------------------------------------------


def _host_weights(model: Header, way: Way) -> int:
    """llama.cpp keeps the input embedding in host memory, and the experts it is told to."""
    embeddings = sum(
        t.size for t in model.tensors if t.name.startswith(("token_embd", "per_layer_token_embd"))
    )
    return embeddings + expert_bytes(model, way.cpu_experts)


def expert_bytes(model: Header, layers: int) -> int:
    """Bytes of the experts of the first `layers` layers."""
    found = ((_EXPERT.match(t.name), t.size) for t in model.tensors)
    return sum(size for match, size in found if match and int(match[1]) < layers)


def expert_layers(model: Header) -> int:
    """How many layers, from the first, hold all experts (0 for a dense model)."""
    found = [int(m[1]) for t in model.tensors if (m := _EXPERT.match(t.name))]
    return max(found) + 1 if found else 0


def _has_output(model: Header) -> bool:
    return any(t.name == "output.weight" for t in model.tensors)


def _embedding(model: Header) -> int:
    return next((t.size for t in model.tensors if t.name == "token_embd.weight"), 0)


# -- the KV cache -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer keeps: key and value widths in elements per cell, or a fixed state in bytes."""

    key: int = 0
    value: int = 0
    window: int = 0  # 0: the whole context
    state: int = 0


def kv_bytes(model: Header, way: Way) -> int:
    """Bytes of the KV cache and of recurrent states."""
    return sum(_layer_bytes(layer, way) for layer in layers(model))


def _layer_bytes(layer: Layer, way: Way) -> int:
    cells = _cells(layer, way)
    row = layer.key * CACHE_BYTES[way.cache_k] + layer.value * CACHE_BYTES[way.cache_v]
    return round(cells * row) + layer.state * way.slots


def _cells(layer: Layer, way: Way) -> int:
    streams = 1 if way.unified else way.slots
    whole = _padded(way.context // streams)
    if not layer.window or way.swa_full:
        return whole * streams
    seen = layer.window * (way.slots if way.unified else 1) + way.ubatch
    return _padded(min(whole, seen)) * streams


def _padded(cells: int) -> int:
    return -(-cells // 256) * 256


def layers(model: Header) -> Iterator[Layer]:
    """Each layer of the model as the cache sees it."""
    blocks = int(model.get("block_count", 0)) - int(model.get("nextn_predict_layers", 0))
    own = blocks - int(model.get("attention.shared_kv_layers", 0))
    if model.architecture == "gemma3n":
        own = min(own, 20)  # the layers behind share the caches before (llama.cpp: 20, fixed)
    for index in range(blocks):
        if _recurrent(model, index):
            yield Layer(state=_state(model))
        elif index < own:
            yield _attention(model, index)


def _attention(model: Header, index: int) -> Layer:
    heads = int(
        _of(model.get("attention.head_count_kv", model.get("attention.head_count", 0)), index)
    )
    if "attention.key_length_mla" in _own(model):  # latent attention keeps one vector, no values
        return Layer(key=int(model.get("attention.key_length", 0)) * heads)
    window = _window(model, index)
    kind = "_swa" if window else ""
    width = int(model.get("embedding_length", 0)) // max(
        1, int(_of(model.get("attention.head_count", 1), index))
    )
    key = int(
        model.get(f"attention.key_length{kind}", 0) or model.get("attention.key_length", width)
    )
    value = int(
        model.get(f"attention.value_length{kind}", 0) or model.get("attention.value_length", width)
    )
    return Layer(key * heads, value * heads, window)


def _own(model: Header) -> set[str]:
    start = model.architecture + "."
    return {key.removeprefix(start) for key in model.values if key.startswith(start)}


def _window(model: Header, index: int) -> int:
    window = int(model.get("attention.sliding_window", 0) or 0)
    pattern = model.get("attention.sliding_window_pattern", _SWA_PERIOD.get(model.architecture))
    if not window or pattern is None:
        return 0
    if isinstance(pattern, Sequence):
        return window if pattern[index] else 0
    return window if index % pattern < pattern - 1 else 0


def _recurrent(model: Header, index: int) -> bool:
    period = model.get("full_attention_interval", _RECURRENT_PERIOD.get(model.architecture))
    if period:
        return (index + 1) % int(period) != 0
    heads = model.get("attention.head_count_kv")
    return isinstance(heads, Sequence) and int(heads[index]) == 0


def _state(model: Header) -> int:
    """Bytes (float32) of one recurrent layer's state for one sequence."""
    if taps := int(model.get("shortconv.l_cache", 0)):
        return 4 * int(model.get("embedding_length", 0)) * (taps - 1)
    inner, states = int(model.get("ssm.inner_size", 0)), int(model.get("ssm.state_size", 0))
    groups, taps = int(model.get("ssm.group_count", 0)), int(model.get("ssm.conv_kernel", 0))
    return 4 * (max(0, taps - 1) * (inner + 2 * groups * states) + states * inner)


def _of(value: object, index: int) -> float:
    """A value that may be given per layer."""
    if isinstance(value, Sequence):
        return float(value[index])
    return float(value)  # type: ignore[arg-type]


# -- compute buffers ----------------------------------------------------------


def compute_bytes(model: Header, way: Way) -> int:
    """The graph's scratch memory: activations and the attention masks of one micro-batch.

    Fitted to what build 11549 logs on the CPU (flash attention on; within 4 % for
    a llama at four sizes); not checked on a GPU. Builds that keep logits for a
    whole micro-batch need more: 0.9 GB at -ub 1536 was reported for a 3B model.
    """
    batch, width = min(way.ubatch, way.context), int(model.get("embedding_length", 0))
    hidden = int(max(_all(model.get("feed_forward_length", 4 * width)) or [4 * width]))
    activations = batch * (8 * width + 2 * hidden) * 4
    windows = {layer.window for layer in layers(model) if layer.key}
    cells = sum(_cells(Layer(window=window), replace(way, slots=1)) for window in windows)
    return activations + batch * cells * 2 + way.slots * model.vocabulary * 4


def _all(value: object) -> list[float]:
    return [float(v) for v in value] if isinstance(value, Sequence) else [float(value)]  # type: ignore[arg-type]


# -- choosing -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes free on the card (0: there is none) and in host memory."""

    card: int
    host: int


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a way, what it needs, and whether the budget holds it."""

    way: Way
    need: Need
    fits: bool
    free: int  # bytes left on the card (negative: missing)


def row(model: Header, way: Way, budget: Budget) -> Row:
    """Whether `way` fits."""
    wants = need(model, way)
    on_card = wants.card if way.gpu else 0
    in_host = wants.host_weights + (0 if way.gpu else wants.card)
    free = budget.card - on_card - HEADROOM if way.gpu else budget.host - in_host
    return Row(way, wants, free >= 0 and in_host <= budget.host, free)


def with_experts(model: Header, way: Way, budget: Budget) -> Row:
    """The row with the fewest layers' experts in host memory that lets the card hold the rest."""
    best = row(model, way, budget)
    for count in range(1, expert_layers(model) + 1):
        if best.fits:
            break
        best = row(model, replace(way, cpu_experts=count), budget)
    return best


def table(
    model: Header, way: Way, budget: Budget, contexts: Sequence[int], caches: Sequence[str]
) -> list[Row]:
    """Every context with every cache type, experts moved as needed."""
    ways = [replace(way, context=c, cache_k=k, cache_v=k) for c in contexts for k in caches]
    return [with_experts(model, each, budget) for each in ways]
