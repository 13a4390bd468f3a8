"""A released server: fetched, checked, tried, and used; or one sentence, and nothing is changed."""

import fcntl
import gzip
import io
import platform
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backend.build.build import use_server, used_server
from backend.build.release import (
    RELEASES_VARIABLE,
    TRIES,
    CannotGet,
    choose_kind,
    get_release,
    get_suitable_release,
)
from backend.config import BackendConfig
from backend.gpu.nvml import InstalledGpu, InstalledGpus
from backend.server.launch import find_binary
from fakes.release_server import NAME, SERVER, TAG, ReleaseServer, archive
from fakes.toolkits import program


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.fixture
async def releases(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ReleaseServer]:
    async with ReleaseServer().running() as server:
        monkeypatch.setenv(RELEASES_VARIABLE, server.url)
        yield server


def left(state: Path) -> list[str]:
    """What there is of servers, without locks."""
    servers = state / "servers"
    return sorted(
        p.name for p in servers.iterdir() if p.suffix != ".lock" and p.name != "downloads"
    )


async def refused(state: Path) -> str:
    """The one sentence; a server that was in use before is in use after."""
    servers = state / "servers"
    old = program(servers / "compiled" / "llama-server", "exit 0")
    use_server(servers, old)
    with pytest.raises(CannotGet) as failed:
        await get_release("vulkan", state, lambda line: None)
    assert left(state) == ["compiled", "llama-server"]
    assert used_server(servers) == old
    sentence = str(failed.value)
    assert "\n" not in sentence and "Traceback" not in sentence
    return sentence


async def test_a_released_server_is_fetched_and_used(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    said: list[str] = []
    got = await get_release("vulkan", tmp_path, said.append)
    folder = tmp_path / "servers" / f"released-{TAG}-vulkan" / f"llama-{TAG}"
    assert got.server == folder / "llama-server"
    assert (got.release, got.size, got.version) == (
        TAG,
        len(releases.content),
        "version: 11560 (abc)",
    )
    assert "Vulkan0" in got.devices and said == [f"{NAME}, 0 MB"]
    assert (folder / "libggml.so.0").resolve() == folder / "libggml.so.0.9"
    used = await find_binary(BackendConfig(state_dir=tmp_path))
    assert Path(used.command[0]).resolve() == got.server
    assert list((tmp_path / "servers" / "downloads").iterdir()) == []


async def test_the_release_before_is_taken_and_an_older_one_removed(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    releases.older = True
    gone = program(tmp_path / "servers" / "released-b1-vulkan" / "llama-server", "exit 0")
    kept = program(tmp_path / "servers" / "llama.cpp-11434-cuda" / "bin" / "llama-server", "exit 0")
    for _ in range(2):  # the second time over the first
        got = await get_release("vulkan", tmp_path, lambda line: None)
    assert (got.server.exists(), gone.exists(), kept.exists()) == (True, False, True)


async def test_a_cut_download_goes_on(tmp_path: Path, releases: ReleaseServer) -> None:
    releases.cuts = 2
    got = await get_release("vulkan", tmp_path, lambda line: None)
    assert got.server.is_file() and releases.downloads == 3


async def test_a_download_that_is_cut_for_ever_is_told(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    releases.cuts = TRIES
    assert "goes on where it stopped" in await refused(tmp_path)
    assert releases.downloads == TRIES
    part = next((tmp_path / "servers" / "downloads").iterdir())
    assert 0 < part.stat().st_size < len(releases.content)
    await get_release("vulkan", tmp_path, lambda line: None)
    assert releases.downloads == TRIES + 1


async def test_a_longer_part_of_another_release_is_begun_anew(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    part = tmp_path / "servers" / "downloads" / f"{NAME}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * (len(releases.content) + 1))
    got = await get_release("vulkan", tmp_path, lambda line: None)
    assert got.server.is_file()


async def test_another_digest_installs_nothing_and_keeps_nothing(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    releases.asset = {"digest": "sha256:" + "0" * 64}
    assert "its digest differs" in await refused(tmp_path)
    assert list((tmp_path / "servers" / "downloads").iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"digest": None}, "no SHA-256 digest"),
        ({"digest": "md5:abc"}, "no SHA-256 digest"),
        ({"size": 1 << 40}, "is said to have"),
        ({"size": 1000}, "longer than the release says"),
        (None, "None of the last"),
    ],
    ids=["no digest", "another digest", "huge", "longer", "missing"],
)
async def test_a_release_that_cannot_be_checked_is_refused(
    tmp_path: Path, releases: ReleaseServer, fields: dict[str, object] | None, words: str
) -> None:
    releases.asset = fields
    assert words in await refused(tmp_path)


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        (500, "", "HTTP 500"),
        (403, "{}", "try again in an hour"),
        (429, "", "try again in an hour"),
        (404, "{}", "HTTP 404"),
        (200, "<html>", "no list of releases"),
        (200, '[{"assets": []}]', "no list of releases"),
        (200, "[]", "None of the last"),
    ],
    ids=["broken", "limited", "too often", "moved", "no json", "another form", "empty"],
)
async def test_a_list_that_cannot_be_read_is_told(
    tmp_path: Path, releases: ReleaseServer, status: int, text: str, words: str
) -> None:
    releases.status, releases.list_text = status, text
    assert words in await refused(tmp_path)


async def test_a_name_that_leads_elsewhere_is_refused(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    url = releases.url.replace("/releases", "/store/x")
    tag = "../../b1"
    asset = f'{{"name": "llama-{tag}-bin-ubuntu-vulkan-x64.tar.gz", "size": 9, "browser_download_url": "{url}"}}'
    releases.list_text = f'[{{"tag_name": "{tag}", "assets": [{asset}]}}]'
    assert "no plain name" in await refused(tmp_path)


def odd(**fields: object) -> bytes:
    """An archive of one file with such fields."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo(f"llama-{TAG}/llama-server")
        for name, value in fields.items():
            setattr(member, name, value)
        tar.addfile(member)
    return gzip.compress(packed.getvalue(), 1)


@pytest.mark.parametrize("filters", [True, False], ids=["filters", "Python 3.11.2"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (archive(more={"../outside": b"x"}), "cannot be unpacked"),
        (
            archive(more={"/etc/outside": b"x", f"llama-{TAG}/x/../../../outside": b"x"}),
            "cannot be unpacked",
        ),
        (archive(links={f"llama-{TAG}/link": "../../../etc"}), "cannot be unpacked"),
        (archive(links={f"llama-{TAG}/link": "/etc/passwd"}), "cannot be unpacked"),
        (archive(more={"other/llama-server": b"x"}), "no llama-server"),
        (b"no archive at all", "cannot be unpacked"),
        (archive()[:-99_000], "cannot be unpacked"),
        (odd(name="."), "cannot be unpacked (Is a directory)"),
        (odd(mtime=1 << 70), "cannot be unpacked"),
        (odd(pax_headers={"mtime": "nan"}), "cannot be unpacked"),
        (odd(type=tarfile.LNKTYPE, linkname="nothing"), "cannot be unpacked"),
    ],
    ids=["above", "absolute", "link above", "absolute link", "two", "nonsense", "half", "no name", "late", "never", "link to nothing"],
)  # fmt: skip
async def test_an_archive_that_would_write_elsewhere_or_is_none_is_refused(
    tmp_path: Path,
    releases: ReleaseServer,
    content: bytes,
    words: str,
    filters: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not filters:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    releases.content = content
    state = tmp_path / "a" / "state"
    assert words in await refused(state)
    assert not list(tmp_path.rglob("outside")) and not Path("/etc/outside").exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'x: libgomp.so.1: cannot open shared object file: No such file' >&2; exit 127", "apt install libgomp1"),
        ("echo \"x: version \\`GLIBC_2.38' not found\" >&2; exit 1", "GLIBC_2.38"),
        ("exit 3", "code 3 on --version"),
        ("echo version", "no card through Vulkan"),
    ],
    ids=["library", "newer system", "code", "no card"],
)  # fmt: skip
async def test_a_server_that_cannot_run_here_is_told_with_the_remedy(
    tmp_path: Path, releases: ReleaseServer, script: str, words: str
) -> None:
    releases.content = archive(f"#!/bin/sh\n{script}\n")
    assert words in await refused(tmp_path)


async def test_another_machine_is_told(
    tmp_path: Path, releases: ReleaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "Nothing is released for riscv64" in await refused(tmp_path)


async def test_a_second_download_is_refused(tmp_path: Path, releases: ReleaseServer) -> None:
    servers = tmp_path / "servers"
    servers.mkdir()
    with (servers / "get.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "Another download" in await refused(tmp_path)


# -- CUDA: a server and CUDA's libraries, each in an archive of its own ------------------

CUDA_SERVER = f"llama-{TAG}-bin-ubuntu-cuda-12.8-x64.tar.gz"
# As llama.cpp's releases name it, and as one without system and tag might.
RUNTIMES = (f"cudart-llama-{TAG}-bin-ubuntu-cuda-12.8-x64.tar.gz", "cudart-llama-bin-linux-cuda-12.8-x64.tar.gz")  # fmt: skip
CUDART = {"libcudart.so.12.8.90": b"cudart", "sub/libcublas.so.12": b"cublas"}
V100 = InstalledGpus("570.86.15", (InstalledGpu("Tesla V100", (7, 0), 16 << 30),))
NEW_GLIBC = (2, 39)


def packed(files: dict[str, bytes], link: str = "") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
        if link:
            member = tarfile.TarInfo("libcudart.so.12")
            member.type, member.linkname = tarfile.SYMTYPE, link
            tar.addfile(member)
    return content.getvalue()


def cuda_files(server: str = SERVER.replace("Vulkan0", "CUDA0"), runtime: str = RUNTIMES[0]) -> dict[str, bytes]:  # fmt: skip
    return {CUDA_SERVER: archive(server), runtime: packed(CUDART, "libcudart.so.12.8.90")}


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_cudas_server_comes_with_its_libraries_beside_it(
    tmp_path: Path, releases: ReleaseServer, runtime: str
) -> None:
    releases.more = cuda_files(runtime=runtime)
    # CUDA 13 has no code for Volta, and Windows needs another archive.
    wrong = CUDA_SERVER.replace("12.8", "13.3"), "cudart-llama-bin-win-cuda-12.4-x64.zip"
    releases.more |= dict.fromkeys(wrong, b"wrong")
    said: list[str] = []
    got = await get_suitable_release(V100, NEW_GLIBC, tmp_path, said.append)
    folder = tmp_path / "servers" / f"released-{TAG}-cuda" / f"llama-{TAG}"
    assert got.server == folder / "llama-server" and "CUDA0" in got.devices
    assert (folder / "libcudart.so.12").read_bytes() == b"cudart"
    assert (folder / "libcublas.so.12").read_bytes() == b"cublas"
    assert said == [f"{CUDA_SERVER}, 0 MB", f"{runtime}, 0 MB"]
    assert got.size == len(releases.more[CUDA_SERVER]) + len(releases.more[runtime])
    assert list((tmp_path / "servers" / "downloads").iterdir()) == []


async def test_both_archives_are_checked_and_what_is_here_is_not_fetched_again(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    releases.more, releases.cuts = cuda_files(), 1
    releases.damaged = RUNTIMES[0]
    with pytest.raises(CannotGet, match="its digest differs"):
        await get_suitable_release(V100, NEW_GLIBC, tmp_path, lambda line: None)
    assert left(tmp_path) == []
    # What was right is not downloaded again.
    releases.damaged, releases.cuts, releases.downloads = "", 1, 0
    await get_suitable_release(V100, NEW_GLIBC, tmp_path, lambda line: None)
    assert releases.downloads == 2  # of the runtime, cut once


@pytest.mark.parametrize(
    "files",
    [
        {},
        {CUDA_SERVER: archive()},
        {RUNTIMES[0]: packed(CUDART)},
        {name.replace("12.8", "12.9"): content for name, content in cuda_files().items()},
        {name.replace("ubuntu", "debian"): content for name, content in cuda_files().items()},
        cuda_files(SERVER.replace("Vulkan0", "nothing")),
        cuda_files("#!/bin/sh\nexit 127\n"),
    ],
    ids=["none", "no runtime", "no server", "newer", "renamed", "no card", "does not run"],
)
async def test_vulkan_is_taken_where_cuda_cannot_be_had(
    tmp_path: Path, releases: ReleaseServer, files: dict[str, bytes]
) -> None:
    releases.more, said = files, list[str]()
    got = await get_suitable_release(V100, NEW_GLIBC, tmp_path, said.append)
    assert got.server.parents[1].name == f"released-{TAG}-vulkan"
    assert [line for line in said if line.endswith("Vulkan is taken instead.")] == said[-2:-1]
    assert left(tmp_path) == ["llama-server", f"released-{TAG}-vulkan"]


async def test_where_the_network_fails_no_second_kind_is_tried(
    tmp_path: Path, releases: ReleaseServer
) -> None:
    releases.more, releases.cuts = cuda_files(), TRIES
    with pytest.raises(CannotGet, match="goes on where it stopped"):
        await get_suitable_release(V100, NEW_GLIBC, tmp_path, lambda line: None)


@pytest.mark.parametrize(
    ("found", "glibc", "kind", "words"),
    [
        (V100, (2, 41), "cuda", ""),
        (V100, (2, 36), "vulkan", "glibc 2.39 or newer; this system's is 2.36"),
        (V100, (), "vulkan", "glibc"),
        (InstalledGpus("560.35.03", V100.gpus), (2, 41), "vulkan", "driver 570 or newer; this one is 560"),
        (InstalledGpus(None, V100.gpus), (2, 41), "vulkan", "driver"),
        (InstalledGpus(), (2, 36), "cpu", ""),
    ],
    ids=["cuda", "Debian 12", "musl", "driver", "no driver", "no card"],
)  # fmt: skip
def test_the_kind_by_card_driver_and_c_library(
    found: InstalledGpus, glibc: tuple[int, ...], kind: str, words: str
) -> None:
    chosen, why = choose_kind(found, glibc)
    assert chosen == kind and words in why and bool(words) == bool(why)
