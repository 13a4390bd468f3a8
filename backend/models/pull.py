"""Models from the Hugging Face hub: resumed where they were cut, checked, never in part under their name."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backend.config import BackendConfig
from backend.models.profile import Source, locate
from backend.server.launch import models_folder

SPARE = 1 << 30  # bytes left free on the disk
TRIES = 5  # a cut connection is taken up again where it broke


class PullError(Exception):
    """`str` is one sentence with what to do."""


def pull(sources: Sequence[Source], config: BackendConfig, say: Callable[[str], None]) -> Path:
    """Download each source that is not here; the first one's path. Blocks."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    folder = models_folder(config)
    config.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        _pull_one(source, folder, say)
    return locate(sources[0], folder)


def _pull_one(source: Source, folder: Path, say: Callable[[str], None]) -> None:
    path = locate(source, folder)
    if path.is_file() and (source.repo is None or _whole(path, source)):
        say(f"{path.name} is here already.")
        return
    if source.repo is None or source.file is None:
        raise PullError(f"{path} is missing, and its profile names no repository to pull it from.")
    known = metadata(source)
    _room(folder, path.name, known.size)
    size = f", {known.size / 2**30:.1f} GiB" if known.size else ""
    say(f"Pulling {source.repo}/{source.file}{size}")
    part = _downloaded(source, folder)
    wanted = source.sha256 or known.sha256
    if wanted and _sha256(part) != wanted:
        part.unlink()
        raise PullError(f"{path.name} arrived damaged (checksum); it was removed. Pull it again.")
    if part != path:
        part.replace(path)


def _whole(path: Path, source: Source) -> bool:
    return source.sha256 is None or _sha256(path) == source.sha256


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _room(folder: Path, name: str, size: int | None) -> None:
    partial = sum(f.stat().st_size for f in folder.rglob("*.incomplete"))
    free = shutil.disk_usage(folder).free + partial
    if size and size + SPARE > free:
        raise PullError(
            f"{name} has {size / 2**30:.1f} GiB, and {folder} has {free / 2**30:.1f} GiB free;"
            " make room, or move the state (state.dir)."
        )


@dataclass(frozen=True, slots=True)
class Metadata:
    """A file at the hub: size in bytes, SHA-256, and where it lies with the headers to send there."""

    size: int | None
    sha256: str | None
    url: str
    headers: Mapping[str, str]


def metadata(source: Source) -> Metadata:
    """What the hub tells of a file; PullError when it tells nothing."""
    from huggingface_hub import get_hf_file_metadata, get_token, hf_hub_url

    asked = hf_hub_url(str(source.repo), str(source.file))
    found: Any = _explained(lambda: get_hf_file_metadata(asked), source)
    etag = str(found.etag or "")
    # The store behind the hub has signed addresses; the person's token is not for it.
    same = urlsplit(found.location).netloc == urlsplit(asked).netloc
    token = get_token() if same else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Metadata(found.size, etag if len(etag) == 64 else None, found.location, headers)


def _downloaded(source: Source, folder: Path) -> Path:
    from huggingface_hub import hf_hub_download

    def download() -> str:
        return hf_hub_download(str(source.repo), str(source.file), local_dir=folder)

    return Path(_explained(download, source, tries=TRIES))


def _explained(call: Callable[[], Any], source: Source, tries: int = 1) -> Any:
    """The call's result; what went wrong as one sentence. A cut connection is tried again."""
    from huggingface_hub import errors

    for left in reversed(range(tries)):
        try:
            return call()
        except errors.GatedRepoError:
            raise PullError(
                f"{source.repo} is gated: accept its terms on its page at the hub, then set HF_TOKEN"
                " to a token of your account."
            ) from None
        except errors.RepositoryNotFoundError:
            raise PullError(
                f"The hub has no repository {source.repo}, or it is private: set HF_TOKEN to a token"
                " that may read it."
            ) from None
        except errors.EntryNotFoundError:
            raise PullError(f"{source.repo} has no file {source.file}.") from None
        except Exception as error:  # noqa: BLE001 - the hub's own HTTP library changes with it
            if not left or (isinstance(error, OSError) and error.errno):
                raise PullError(
                    f"The hub could not be reached or broke off ({_short(error)});"
                    " try again: a download goes on where it stopped."
                ) from None
    raise AssertionError


def _short(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120].rstrip(".")
