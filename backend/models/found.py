"""GGUF models of other programs on this machine, in the folders where those programs store them.

https://huggingface.co/docs/huggingface_hub/guides/manage-cache, https://lmstudio.ai/docs,
https://github.com/ollama/ollama/blob/main/docs/faq.md, and llama.cpp's LLAMA_CACHE.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

OLLAMA_MODEL = "application/vnd.ollama.image.model"
MOST = 5000  # files and folders scanned in one place
LEAST_BYTES = 1 << 20
PART = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")  # a model in several files is loaded by its first
NOT_READABLE = (PermissionError, FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model file of another program. `place` is the program whose folder it is in; `size` in bytes, of all its files."""

    name: str
    path: Path
    size: int
    place: str


def found_models(home: Path | None = None, env: Mapping[str, str] = os.environ) -> list[FoundModel]:
    """The largest first, each file once. What cannot be read is skipped. Blocks."""
    try:
        home = home or Path.home()
    except RuntimeError:  # a user without a home folder
        return []
    hugging_face = Path(env.get("HF_HOME") or home / ".cache" / "huggingface")
    files = [
        ("Hugging Face", Path(env.get("HF_HUB_CACHE") or hugging_face / "hub")),
        ("LM Studio", home / ".lmstudio" / "models"),
        ("LM Studio", home / ".cache" / "lm-studio" / "models"),
        ("llama.cpp", Path(env.get("LLAMA_CACHE") or home / ".cache" / "llama.cpp")),
    ]
    ollama = [
        Path(env.get("OLLAMA_MODELS") or home / ".ollama" / "models"),
        Path("/usr/share/ollama/.ollama/models"),
    ]
    found = chain(
        *(models_in_folder(place, folder) for place, folder in files),
        *(models_of_ollama(folder) for folder in ollama),
    )
    models: dict[Path, FoundModel] = {}
    for model in found:
        if model.size >= LEAST_BYTES and os.access(model.path, os.R_OK):
            models.setdefault(model.path.resolve(), model)
    return sorted(models.values(), key=lambda model: -model.size)


def models_in_folder(place: str, folder: Path) -> Iterator[FoundModel]:
    """The GGUF files below a folder, except picture projectors."""
    seen = 0
    for where, folders, names in os.walk(folder, onerror=lambda error: None):
        folders.sort()
        seen += 1 + len(names)
        if seen > MOST:
            return
        for name in sorted(names):
            part = PART.search(name)
            if not name.endswith(".gguf") or "mmproj" in name.lower():
                continue
            if part and int(part[1]) != 1:
                continue
            path = Path(where) / name
            pattern = f"{name[: part.start()]}-*-of-*.gguf" if part else name
            try:
                size = sum(each.stat().st_size for each in path.parent.glob(pattern))
            except NOT_READABLE:
                continue
            yield FoundModel(path.stem, path, size, place)


def models_of_ollama(folder: Path) -> Iterator[FoundModel]:
    """Ollama's models: blobs named by their digest, which the manifests refer to."""
    for where, folders, names in os.walk(folder / "manifests", onerror=lambda error: None):
        folders.sort()
        for name in sorted(names)[:MOST]:
            manifest = Path(where) / name
            try:
                layers = json.loads(manifest.read_text("utf-8"))["layers"]
                digest = next(
                    each["digest"] for each in layers if each["mediaType"] == OLLAMA_MODEL
                )
                path = folder / "blobs" / str(digest).replace(":", "-")
                size = path.stat().st_size
            except (*NOT_READABLE, ValueError, KeyError, TypeError, StopIteration):
                continue
            if path.parent.name == "blobs":
                yield FoundModel(f"{manifest.parent.name}:{name}", path, size, "Ollama")
