"""The clock of the processes under test, which may jump; the machine's own stays as it is."""

import asyncio
import mmap
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")


class Clock:
    """`still` is held by whoever needs it not to jump. `missing` says why it cannot."""

    def __init__(self, folder: Path) -> None:
        self.still = asyncio.Lock()
        self._file, self._library = folder / "clock", folder / "clock.so"
        self._file.write_bytes(bytes(8))
        self.missing = "" if _compiled(self._library) else "needs a C compiler"

    @property
    def environment(self) -> dict[str, str]:
        if self.missing:
            return {}
        return {"CLOCK_OFFSET": str(self._file), "LD_PRELOAD": str(self._library)}

    def set(self, seconds: float) -> None:
        """From now on that far ahead of the machine's clock (behind, when negative)."""
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            shared[:] = struct.pack("=q", int(seconds * 1e9))


def _compiled(library: Path) -> bool:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return False
    command = (compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl")
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
