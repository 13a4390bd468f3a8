"""Downloads from the Hugging Face hub: resumed after an interruption, checked, and only then renamed."""

import io
import os
import re
import shutil
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backend.config import BackendConfig
from backend.files import sha256
from backend.models.gguf_header import Header, read_open
from backend.models.profile import Source, locate

SPARE = 1 << 30  # bytes left free on the disk
TRIES = 5  # an interrupted download is resumed
CHUNK_BYTES = 2 << 20  # read at once: the tokens of a vocabulary take some megabytes
CHUNK_SECONDS = 30.0
ERRNO = re.compile(r"^\[Errno -?\d+\] ")


class PullError(Exception):
    """A download failed. `str` is one sentence with what to do."""


def pull(sources: Sequence[Source], config: BackendConfig, say: Callable[[str], None]) -> Path:
    """Download each source that is not here; return the path of the first. Blocks."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the caller shows how far it is
    folder = config.models_folder
    config.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    real = (config.state_dir / "models").resolve()  # the demo's is a link to the user's
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.resolve().mkdir(parents=True, exist_ok=True)
    for source in sources:
        pull_one(source, folder, say)
    return locate(sources[0], folder)


def pull_one(source: Source, folder: Path, say: Callable[[str], None]) -> None:
    path = locate(source, folder)
    checksum = source.repo and source.sha256
    if path.is_file() and (not checksum or sha256(path) == checksum):
        say(f"{path.name} is here already.")
        return
    if source.repo is None or source.file is None:
        raise PullError(f"{path} is missing, and its profile names no repository to pull it from.")
    remote = remote_file(source)
    check_disk(folder, path.name, remote.size)
    size = f", {remote.size / 2**30:.1f} GiB" if remote.size else ""
    say(f"Pulling {source.repo}/{source.file}{size}")
    part = download(source, folder)
    expected = source.sha256 or remote.sha256
    if expected and sha256(part) != expected:
        part.unlink()
        raise PullError(f"{path.name} arrived damaged (checksum); it was removed. Pull it again.")
    if part != path:
        part.replace(path)


def check_disk(folder: Path, name: str, size: int | None) -> None:
    """Raise PullError if the disk cannot hold the file; partial downloads count as free space."""
    partial = sum(f.stat().st_size for f in folder.rglob("*.incomplete"))
    free = shutil.disk_usage(folder).free + partial
    if size and size + SPARE > free:
        raise PullError(
            f"{name} has {size / 2**30:.1f} GiB, and {folder} has {free / 2**30:.1f} GiB free;"
            " make room, or move the state (state.dir)."
        )


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at the hub: size in bytes, SHA-256, URL, and the headers to send with a request."""

    size: int | None
    sha256: str | None
    url: str
    headers: Mapping[str, str]


def remote_file(source: Source) -> RemoteFile:
    """Ask the hub for a file's metadata. PullError if it does not answer."""
    from huggingface_hub import get_hf_file_metadata, get_token, hf_hub_url

    asked = hf_hub_url(str(source.repo), str(source.file))
    found: Any = ask_hub(lambda: get_hf_file_metadata(asked), source)
    etag = str(found.etag or "")
    # The hub redirects to a store with signed URLs; the user's token is not sent there.
    same = urlsplit(found.location).netloc == urlsplit(asked).netloc
    token = get_token() if same else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return RemoteFile(found.size, etag if len(etag) == 64 else None, found.location, headers)


def download(source: Source, folder: Path) -> Path:
    from huggingface_hub import hf_hub_download

    def call() -> str:
        return hf_hub_download(str(source.repo), str(source.file), local_dir=folder)

    return Path(ask_hub(call, source, tries=TRIES))


def ask_hub(call: Callable[[], Any], source: Source, tries: int = 1) -> Any:
    """Return the call's result, or raise PullError. An interrupted connection is retried."""
    from huggingface_hub import errors

    for left in reversed(range(tries)):
        try:
            return call()
        except errors.GatedRepoError:
            raise PullError(
                f"{source.repo} is gated: accept its terms on its page at Hugging Face, then set HF_TOKEN"
                " to a token of your account."
            ) from None
        except errors.RepositoryNotFoundError:
            raise PullError(
                f"Hugging Face has no repository {source.repo}, or it is private: set HF_TOKEN to a token"
                " that may read it."
            ) from None
        except errors.EntryNotFoundError:
            raise PullError(f"{source.repo} has no file {source.file}.") from None
        except Exception as error:  # noqa: BLE001 - the hub's own HTTP library changes with it
            if not left or (isinstance(error, OSError) and error.errno):
                lines = str(error).splitlines() or [type(error).__name__]
                why = ERRNO.sub("", lines[0])[:120].rstrip(".")
                raise PullError(
                    f"Hugging Face could not be reached or broke off ({why});"
                    " try again: a download continues where it stopped."
                ) from None
    raise AssertionError


def read_remote_header(source: Source) -> Header:
    """The header of a model that is still at the hub, of which a few megabytes are read.

    Raises PullError if the hub cannot be read, NotAModel if the file is no GGUF. Blocks.
    """
    if source.repo is None or source.file is None:
        raise PullError("The profile names no repository to look at.")
    remote = remote_file(source)
    if remote.size is None:
        raise PullError(f"Hugging Face does not tell the size of {source.file}.")
    file = RangeFile(remote.url, remote.size, remote.headers)
    try:
        return read_open(io.BufferedReader(file, CHUNK_BYTES), remote.size, source.file)
    except (OSError, HTTPException) as error:
        raise PullError(f"Hugging Face broke off ({error}); try again.") from None


class RangeFile(io.RawIOBase):
    """A file at a URL, read by HTTP range requests."""

    def __init__(self, url: str, size: int, headers: Mapping[str, str]) -> None:
        self.url, self.size, self.headers = url, size, headers
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        self.position = start + offset
        return self.position

    def readinto(self, buffer: Any) -> int:
        last = min(self.position + len(buffer), self.size) - 1
        if last < self.position:
            return 0
        headers = {**self.headers, "Range": f"bytes={self.position}-{last}"}
        request = urllib.request.Request(self.url, headers=headers)
        with urllib.request.urlopen(request, timeout=CHUNK_SECONDS) as answer:
            if answer.status != 206:
                raise OSError("it sends no parts of files")
            chunk = answer.read(last - self.position + 1)
        buffer[: len(chunk)] = chunk
        self.position += len(chunk)
        return len(chunk)


# -- speech models ------------------------------------------------------------


WHISPER = "whisper-"
PIPER = "piper-"
WHISPER_REPO = "ggerganov/whisper.cpp"
PIPER_REPO = "rhasspy/piper-voices"
# Size in bytes and SHA-256, at the hub on 2026-11-22.
KNOWN = {
    "tiny": (77_691_713, "be07e048e1e599ad46341c8d2a135645097a538221678b7acdd1b1919c6e1b21"),
    "base": (147_951_465, "60ed5bc3dd14eea856493d334349b405782ddcaf0028d4b5df4088345fba2efe"),
    "small": (487_601_967, "1be3a9b2063867b937e64e2ec7483364a79917e157fa98c5d94b5c1fffea987b"),
    "large-v3-turbo": (
        1_624_555_275,
        "1fc70f774d38eb169993ac391eea357ef47c88757ef72ee5943879b7e8e2bc69",
    ),
}
VOICE = re.compile(r"(([a-z]{2,3})_[A-Z]{2})-([^-/]+)-(x_low|low|medium|high)")


def speech_sources(name: str) -> Sequence[Source]:
    """The files of a speech model; empty if `name` is not one."""
    if name.startswith(WHISPER):
        kind = name.removeprefix(WHISPER)
        size, digest = KNOWN.get(kind, (None, None))
        return [Source(repo=WHISPER_REPO, file=f"ggml-{kind}.bin", size=size, sha256=digest)]
    if name.startswith(PIPER) and (voice := VOICE.fullmatch(name.removeprefix(PIPER))):
        region, language, speaker, quality = voice.groups()
        path = f"{language}/{region}/{speaker}/{quality}/{voice[0]}.onnx"
        return [Source(repo=PIPER_REPO, file=path + end) for end in ("", ".json")]
    return []


def speech_folder(config: BackendConfig) -> BackendConfig:
    """The configuration with the folder of speech models as its models folder."""
    return replace(config, models_dir=config.models_folder / "voice")


def open_to_sandboxes(folder: Path) -> None:
    """Make the files readable for sandboxed programs of another user, whatever the umask was."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
