"""Headers of the models of built-in profiles whose shapes are known, for the cards that each is meant for."""

from dataclasses import dataclass, replace
from pathlib import Path

from backend.models.gguf_header import Header, read_header
from backend.models.profile import Profile, load
from fakes.gguf_shapes import make

V100 = 16_144 << 20  # bytes that the driver gives of a card of 16 GB


@dataclass(frozen=True)
class KnownProfile:
    """`gigabytes` is the file's size, `card` the bytes of each of `cards`."""

    gigabytes: float
    shape: str
    cards: int = 1
    card: int = V100
    draft: str = ""


KNOWN = {
    "gemma4-26b-a4b": KnownProfile(14.4, "gemma4-26b-a4b"),
    "gemma4-26b-a4b-mtp": KnownProfile(14.4, "gemma4-26b-a4b", draft="gemma4-26b-a4b-mtp"),
    "gpt-oss-20b": KnownProfile(12.11, "gpt-oss-20b"),
    "devstral-small-2": KnownProfile(12.78, "devstral-small-2-24b"),
    "deepseek-coder-v2-lite": KnownProfile(10.4, "deepseek-coder-v2-lite"),
    "qwen3.6-35b-a3b-16gb": KnownProfile(13.4, "qwen3.6-35b-a3b"),
    "qwen3.6-35b-a3b-32gb": KnownProfile(22.66, "qwen3.6-35b-a3b", card=2 * V100),
    "qwen3.8-27b": KnownProfile(17.56, "qwen3.6-27b", card=2 * V100),
    "many-chats": KnownProfile(14.4, "gemma4-26b-a4b"),
    "many-chats-2x": KnownProfile(18.6, "qwen3.6-35b-a3b", cards=2),
    "llama3.3-70b-2x": KnownProfile(27.5, "llama3.3-70b", cards=2),
}


def sized(header: Header, gigabytes: float) -> Header:
    """The shape with the weights of a file of this size."""
    factor = gigabytes * 1e9 / header.weights
    tensors = (replace(tensor, size=round(tensor.size * factor)) for tensor in header.tensors)
    return Header(header.values, tuple(tensors))


def model_of(name: str, folder: Path) -> tuple[Profile, Header, Header | None]:
    """A profile with the headers of its model and draft; their files are made in `folder`."""
    known = KNOWN[name]
    draft = read_header(make(folder, known.draft)) if known.draft else None
    return load(name), sized(read_header(make(folder, known.shape)), known.gigabytes), draft
