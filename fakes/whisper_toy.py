"""A whisper.cpp model of random weights and the right shapes, in ggml's own form, whose every token is one word: what
it hears is nonsense, and says so."""

import random
import struct
from pathlib import Path

VOCABULARY = 51_865  # of the multilingual models; the tokens' meanings depend on it
TEXT_TOKENS = 50_257
STATE, HEADS, LAYERS, MELS = 128, 2, 1, 80
AUDIO_CONTEXT, TEXT_CONTEXT = 1500, 32
FREQUENCIES = 201
ASKED_FOR = (" ", " -", " '")  # tokens that whisper.cpp looks up
HALF = 1  # floats of 16 bits


def write(path: Path, word: str = "toy", seed: int = 7) -> None:
    rng = random.Random(seed)
    audio, text = (AUDIO_CONTEXT, STATE, HEADS, LAYERS), (TEXT_CONTEXT, STATE, HEADS, LAYERS)
    with path.open("wb") as file:
        file.write(struct.pack("<I", 0x67676D6C))
        file.write(struct.pack("<11i", VOCABULARY, *audio, *text, MELS, HALF))
        file.write(struct.pack("<2i", MELS, FREQUENCIES))
        file.write(numbers(rng, MELS * FREQUENCIES, "f", 0.01))
        file.write(struct.pack("<i", TEXT_TOKENS))
        for token in (*ASKED_FOR, *[f" {word}"] * (TEXT_TOKENS - len(ASKED_FOR))):
            file.write(struct.pack("<I", len(token)) + token.encode())
        for name, shape in tensors():
            count = 1
            for length in shape:
                count *= length
            half = name.endswith(".weight") and len(shape) > 1
            file.write(struct.pack("<3i", len(shape), len(name), HALF if half else 0))
            file.write(struct.pack(f"<{len(shape)}i", *shape))
            file.write(name.encode())
            # Sure of each token, so that none is decoded again at higher temperatures.
            scale = 20 if name == "decoder.ln.weight" else 0.2
            file.write(numbers(rng, count, "e" if half else "f", scale))


def numbers(rng: random.Random, count: int, form: str, scale: float) -> bytes:
    """Floats in a form of struct's; a block of them repeats, as a million random ones take a second."""
    size = min(count, 4093)
    block = struct.pack(f"<{size}{form}", *(rng.gauss(0, scale) for _ in range(size)))
    return (block * (count // size + 1))[: count * struct.calcsize(form)]


def tensors() -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes, the fastest dimension first."""
    s = STATE
    found: list[tuple[str, tuple[int, ...]]] = [
        ("encoder.positional_embedding", (s, AUDIO_CONTEXT)),
        ("encoder.conv1.weight", (3, MELS, s)),
        ("encoder.conv1.bias", (1, s)),
        ("encoder.conv2.weight", (3, s, s)),
        ("encoder.conv2.bias", (1, s)),
        *norm("encoder.ln_post"),
        ("decoder.positional_embedding", (s, TEXT_CONTEXT)),
        ("decoder.token_embedding.weight", (s, VOCABULARY)),
        *norm("decoder.ln"),
    ]
    for side in ("encoder", "decoder"):
        for layer in range(LAYERS):
            block = f"{side}.blocks.{layer}"
            found += [
                *norm(f"{block}.mlp_ln"),
                (f"{block}.mlp.0.weight", (s, 4 * s)),
                (f"{block}.mlp.0.bias", (4 * s,)),
                (f"{block}.mlp.2.weight", (4 * s, s)),
                (f"{block}.mlp.2.bias", (s,)),
            ]
            for attention in ("attn", "cross_attn")[: 1 + (side == "decoder")]:
                found += norm(f"{block}.{attention}_ln")
                for part in ("query", "key", "value", "out"):
                    found.append((f"{block}.{attention}.{part}.weight", (s, s)))
                    if part != "key":
                        found.append((f"{block}.{attention}.{part}.bias", (s,)))
    return found


def norm(name: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(f"{name}.weight", (STATE,)), (f"{name}.bias", (STATE,))]
