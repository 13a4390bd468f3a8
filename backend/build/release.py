"""A llama-server that the llama.cpp project built and released: `voltaire server get`.

    got = await get_suitable_release(installed_gpus(), glibc_version(), state_dir, print)

Installs the newest release that supports this machine. The archives are checked against
the digests that the release publishes, and the server is test-run before it is installed
beside the compiled ones and used. The archives are those of llama.cpp's release workflow
(.github/workflows/release.yml): a folder with the programs, their libraries and one
library for each backend, for Ubuntu 22.04 or newer, with CUDA for 24.04 or newer. CUDA's
own libraries (cudart, cublas) are an archive of their own.
"""

import asyncio
import os
import platform
import re
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Literal
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel, TypeAdapter, ValidationError

from backend.build.build import BuiltServer, Say, use_server
from backend.files import exclusive_lock, sha256
from backend.gpu.nvml import InstalledGpus
from backend.models.placement import parse_devices
from backend.proc import output_of

RELEASES = "https://api.github.com/repos/ggml-org/llama.cpp/releases"
RELEASES_VARIABLE = "LLAMA_CPP_RELEASES"  # environment variable for a mirror of the same API
LOOKED_AT = 10  # releases: sometimes the build of one platform has failed
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
# CUDA 13 no longer supports Volta. 12.8 holds PTX for compute capability 7.0, which the driver compiles.
ENDINGS = {"cuda": "-cuda-12.8-{}.tar.gz", "vulkan": "-vulkan-{}.tar.gz", "cpu": "-{}.tar.gz"}
CUDA_DRIVER = 570  # the oldest for CUDA 12.8
CUDA_GLIBC = 2, 39  # the oldest for the archive built with it
CONNECT_SECONDS, SILENT_SECONDS, ANSWER_SECONDS = 15.0, 30.0, 60.0
TRIES = 5  # a cut download goes on
CHUNK_BYTES = 1 << 18
LONGEST_LIST, LARGEST = 32 << 20, 4 << 30  # bytes: of the list of releases, of the unpacked archive
SPARE = 1 << 30  # bytes left free on the disk
# Libraries that a fresh system may lack, and their packages (libgomp: llama.cpp issue 22503).
PACKAGES = {"libgomp.so.1": "libgomp1", "libvulkan.so.1": "libvulkan1", "libssl.so.3": "libssl3"}
MISSING = re.compile(r"(lib[\w.+-]+): cannot open shared object file")
TOO_OLD = re.compile(r"version `(GLIBC\w*_[\d.]+)' not found")

ReleaseKind = Literal["cuda", "vulkan", "cpu"]


class CannotGet(Exception):
    """No released server was installed; `str` is one sentence that says what to do."""


class Unsuitable(CannotGet):
    """No server of this kind is released for this machine, or it does not run here."""


class Asset(BaseModel):
    """A file of a release. `digest` is "sha256:..."; `size` in bytes."""

    name: str
    size: int
    browser_download_url: str
    digest: str | None = None


class Release(BaseModel):
    tag_name: str
    draft: bool = False
    assets: list[Asset] = []


async def get_suitable_release(
    found: InstalledGpus, glibc: tuple[int, ...], state_dir: Path, say: Say
) -> BuiltServer:
    """Install the server that suits the cards, the driver and the C library; say why it is not CUDA's."""
    kind, why = choose_kind(found, glibc)
    if why:
        say(f"{why} Vulkan is taken instead.")
    if kind == "cuda":
        try:
            return await get_release(kind, state_dir, say)
        except Unsuitable as error:
            say(f"{error} Vulkan is taken instead.")
            kind = "vulkan"
    return await get_release(kind, state_dir, say)


def choose_kind(found: InstalledGpus, glibc: tuple[int, ...]) -> tuple[ReleaseKind, str]:
    """The kind for this machine; with NVIDIA cards also the reason why not CUDA, empty if it is CUDA."""
    if not found.gpus:
        return "cpu", ""
    driver, why = found.driver or "unknown", ""
    major = driver.split(".")[0]
    if not major.isdigit() or int(major) < CUDA_DRIVER:
        why = f"The CUDA server needs driver {CUDA_DRIVER} or newer; this one is {driver}."
    elif glibc < CUDA_GLIBC:
        needed, here = (".".join(map(str, version)) for version in (CUDA_GLIBC, glibc))
        why = (
            f"The CUDA server needs glibc {needed} or newer; this system's is {here or 'another'}."
        )
    return ("vulkan" if why else "cuda"), why


def glibc_version() -> tuple[int, ...]:
    """The version of glibc, such as (2, 36); empty with another C library."""
    try:
        _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
        return tuple(map(int, version.split(".")))
    except ValueError:  # musl does not know the name
        return ()


async def get_release(kind: ReleaseKind, state_dir: Path, say: Say) -> BuiltServer:
    """Download, check, test and use the newest released server; a failure (CannotGet) changes nothing."""
    began = monotonic()
    servers = state_dir / "servers"
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    servers.mkdir(exist_ok=True)
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS
    )
    try:
        with exclusive_lock(servers / "get.lock"):
            async with aiohttp.ClientSession(timeout=timeout) as session:
                release, assets = await newest(session, kind)
                archives = []
                for asset in assets:
                    say(f"{asset.name}, {asset.size / 1e6:.0f} MB")
                    archives.append(await download(session, asset, servers / "downloads", say))
            target = servers / f"released-{release.tag_name}-{kind}"
            server, version, devices = await install(archives, target, kind)
            use_server(servers, server)
            for archive in archives:
                archive.unlink()
            for old in servers.glob(f"released-*-{kind}"):
                if old != target:
                    shutil.rmtree(old, ignore_errors=True)
    except BlockingIOError:
        raise CannotGet(f"Another download of a server is going on in {servers}.") from None
    except OSError as error:
        raise CannotGet(f"{servers} cannot be written: {error.strerror or error}.") from None
    seconds = monotonic() - began
    size = sum(asset.size for asset in assets)
    return BuiltServer(server, seconds, size, version, devices, release.tag_name)


# -- which one --------------------------------------------------------------------


async def newest(
    session: aiohttp.ClientSession, kind: ReleaseKind
) -> tuple[Release, tuple[Asset, ...]]:
    """The newest release with a server for this machine, and its archives."""
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise CannotGet(f"Nothing is released for {platform.machine()}: voltaire server build")
    ending = ENDINGS[kind].format(machine)
    for release in await releases(session):
        archives = {asset.name: asset for asset in release.assets if asset.name.endswith(ending)}
        server = archives.get(f"llama-{release.tag_name}-bin-ubuntu{ending}")
        # Some releases name the system and the tag in it, and some hold it without a server.
        runtime = next((a for name, a in archives.items() if name.startswith("cudart-")), None)
        if release.draft or server is None or (kind == "cuda" and runtime is None):
            continue
        assets = (server, runtime) if kind == "cuda" and runtime else (server,)
        for asset in assets:
            check_names(release, asset)
        return release, assets
    raise Unsuitable(
        f"None of the last {LOOKED_AT} releases has a server that ends in -bin-ubuntu{ending}; try"
        " again later, or compile one: voltaire server build."
    )


async def releases(session: aiohttp.ClientSession) -> list[Release]:
    address = os.environ.get(RELEASES_VARIABLE) or RELEASES
    host = urlsplit(address).hostname
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    try:
        async with session.get(
            address, params={"per_page": str(LOOKED_AT)}, headers=headers
        ) as found:
            if found.status in (403, 429):
                why = f"{host} takes no more questions from this address now: try again in an hour."
                raise CannotGet(why)
            if found.status != 200:
                raise CannotGet(f"{host} answers HTTP {found.status} to the list of releases.")
            text = await found.content.read(LONGEST_LIST)
            while len(text) < LONGEST_LIST and (more := await found.content.read(CHUNK_BYTES)):
                text += more
        return TypeAdapter(list[Release]).validate_json(text)
    except ValidationError:
        raise CannotGet(f"{host} answers something that is no list of releases.") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise CannotGet(f"{host} cannot be reached ({reason(error)}).") from None


def check_names(release: Release, asset: Asset) -> None:
    """Raise CannotGet unless the release has a digest and its names are plain file names."""
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", release.tag_name):
        raise CannotGet(f"The release is called {release.tag_name!r}, which is no plain name.")
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", asset.digest or ""):
        raise CannotGet(f"The release publishes no SHA-256 digest of {asset.name}.")
    if not 0 < asset.size < LARGEST:
        raise CannotGet(f"{asset.name} is said to have {asset.size:,} bytes.")


# -- download -----------------------------------------------------------------------


async def download(session: aiohttp.ClientSession, asset: Asset, folder: Path, say: Say) -> Path:
    """Download the archive, going on where it was cut, and check its digest."""
    folder.mkdir(exist_ok=True)
    part = folder / f"{asset.name}.part"
    free = shutil.disk_usage(folder).free
    if free < 5 * asset.size + SPARE:  # unpacked, it is about three times as large
        raise CannotGet(f"{folder} has {free / 2**30:.1f} GiB free, which is too little.")
    for left in reversed(range(TRIES)):
        try:
            await fetch(session, asset, part)
            break
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            if not left:
                raise CannotGet(
                    f"The download of {asset.name} broke off ({reason(error)}); called again, it"
                    " goes on where it stopped."
                ) from None
            say(f"It broke off ({reason(error)}) and goes on.")
    if f"sha256:{await asyncio.to_thread(sha256, part)}" != asset.digest:
        part.unlink()
        raise CannotGet(
            f"{asset.name} is not what the release published (its digest differs); it was removed."
            " Get it again."
        )
    return part


async def fetch(session: aiohttp.ClientSession, asset: Asset, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have == asset.size:
        return
    # More is of another release, whose file had the same name.
    headers = {"Range": f"bytes={have}-"} if 0 < have < asset.size else {}
    async with session.get(asset.browser_download_url, headers=headers) as found:
        if found.status not in (200, 206):
            raise CannotGet(f"{found.url.host} answers HTTP {found.status} to {asset.name}.")
        with part.open("ab" if found.status == 206 else "wb") as file:
            async for chunk in found.content.iter_chunked(CHUNK_BYTES):
                file.write(chunk)
                if file.tell() > asset.size:
                    part.unlink()
                    raise CannotGet(f"{asset.name} is longer than the release says.")
    if part.stat().st_size < asset.size:
        raise aiohttp.ClientPayloadError(f"{part.stat().st_size:,} of {asset.size:,} bytes came")


def reason(error: Exception) -> str:
    text = (getattr(error, "strerror", None) or str(error)).splitlines()
    return text[0][:120].rstrip(".") if text and text[0] else type(error).__name__


# -- installing -----------------------------------------------------------------------


async def install(
    archives: Sequence[Path], target: Path, kind: ReleaseKind
) -> tuple[Path, str, str]:
    """Unpack and test the server, and only then give its folder its final name: path, version, devices."""
    fresh = target.with_name(f"{target.name}.new")
    try:
        inside = await asyncio.to_thread(unpack, archives, fresh)
        version = await answer(fresh / inside, "--version")
        devices = await answer(fresh / inside, "--list-devices")
        if kind == "cuda" and not parse_devices(devices):
            raise Unsuitable("The released server runs but finds no card through CUDA.")
        if kind == "vulkan" and not parse_devices(devices):
            raise CannotGet(
                "The released server runs but finds no card through Vulkan: apt install libvulkan1, and"
                " with an NVIDIA card the part of its driver that has Vulkan (nvidia-vulkan-icd on"
                " Debian, libnvidia-gl on Ubuntu)."
            )
        if target.exists():  # the same release was installed before
            shutil.rmtree(target)
        fresh.replace(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target / inside, version, devices


def unpack(archives: Sequence[Path], fresh: Path) -> Path:
    """Unpack into `fresh`, with all libraries beside llama-server; return its relative path.

    Raises CannotGet for an archive that would write elsewhere.
    """
    shutil.rmtree(fresh, ignore_errors=True)
    for archive in archives:
        extract(archive, fresh)
    found = [path for path in fresh.rglob("llama-server") if path.is_file()]
    if len(found) != 1:
        raise CannotGet("The archive holds no llama-server.")
    server = found[0]
    server.chmod(0o755)
    for library in list(fresh.rglob("lib*.so*")):
        if library.parent != server.parent:
            library.replace(server.with_name(library.name))
    return server.relative_to(fresh)


def extract(archive: Path, fresh: Path) -> None:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            if sum(member.size for member in tar) > LARGEST:
                raise CannotGet(f"{archive.stem} is too large unpacked.")
            if hasattr(tarfile, "data_filter"):
                tar.extraction_filter = tarfile.data_filter
            else:  # Debian 12's Python 3.11.2 has none
                for member in tar:
                    refuse_outside(member)
            tar.extractall(fresh)  # noqa: S202 - filtered, or checked by refuse_outside
    except CannotGet:
        raise
    except Exception as error:  # noqa: BLE001 - a malformed archive makes tarfile raise anything
        why = reason(error)
        raise CannotGet(f"The archive cannot be unpacked ({why}).") from None


def refuse_outside(member: tarfile.TarInfo) -> None:
    """Raise TarError for a device, or for a path or link target outside of the destination."""
    names = [member.name, member.linkname] if member.islnk() or member.issym() else [member.name]
    inside = all(not name.startswith("/") and ".." not in Path(name).parts for name in names)
    if not inside or member.isdev():
        raise tarfile.TarError(f"{member.name!r} would be written outside the destination")


async def answer(server: Path, flag: str) -> str:
    """The server's output for a flag; Unsuitable names the library or package that this machine lacks."""
    try:
        output = await output_of((str(server), flag), seconds=ANSWER_SECONDS)
    except TimeoutError:
        raise Unsuitable(f"The released server does not answer {flag}.") from None
    except OSError as error:
        raise Unsuitable(f"The released server cannot be run: {error.strerror}.") from None
    if not output.code:
        return output.text.strip()
    if missing := MISSING.search(output.text):
        package = PACKAGES.get(missing[1], missing[1])
        raise Unsuitable(f"The released server needs {missing[1]}: apt install {package}.")
    if old := TOO_OLD.search(output.text):
        raise Unsuitable(
            f"The released server is made for a newer system ({old[1]}): voltaire server build."
        )
    raise Unsuitable(f"The released server ended with code {output.code} on {flag}.")
