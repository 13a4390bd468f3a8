"""A copy of the working tree, and programs that run in it.

They see no home of a person and live in a process namespace of their own: whatever a
mutant makes of a signal or a path stays inside, and no process of theirs outlives them.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

MEMORY = 8 << 30  # bytes that one process may take, as a loop that never ends would take all
NAMESPACE = ["unshare", "--pid", "--kill-child", "--mount-proc", "--"]
FIRST_PROCESS = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({MEMORY}, {MEMORY}))
child = os.posix_spawn(sys.executable, [sys.executable, *sys.argv[1:]], os.environ)
while (ended := os.wait())[0] != child:
    pass
sys.exit(os.waitstatus_to_exitcode(ended[1]) & 127)
"""


@dataclass(frozen=True)
class Copy:
    """`kept` is a folder of the tree itself for what the next run is quicker with."""

    folder: Path
    kept: Path
    _writes: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @contextmanager
    def changed(self, file: str, code: str) -> Iterator[None]:
        """The file reads `code` inside the block."""
        path = self.tree / file
        was = path.read_text("utf-8")
        try:
            self._write(path, code)
            yield
        finally:
            self._write(path, was)

    def _write(self, path: Path, code: str) -> None:
        """With a time of its own: Python knows what it has compiled by size and second."""
        path.write_text(code, "utf-8")
        os.utime(path, (next(self._writes),) * 2)

    async def python(self, *words: str, seconds: float) -> tuple[int | None, str]:
        """Exit status and output of Python with these arguments; None after `seconds`."""
        own = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("VOLTAIRE_", "XDG_"))}
        places = {"PYTHONPATH": self.tree, "HOME": self.folder, "TMPDIR": self.folder / "t"}
        process = await asyncio.create_subprocess_exec(
            NAMESPACE[0], *own, *NAMESPACE[1:], sys.executable, "-c", FIRST_PROCESS, *words,
            cwd=self.tree, env={**kept, **{k: str(v) for k, v in places.items()}},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,  # kill(0) reaches the group, whatever the namespace
        )  # fmt: skip
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate()
        except TimeoutError:
            return None, ""
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            shutil.rmtree(self.folder / "t", ignore_errors=True)
            (self.folder / "t").mkdir()
        return process.returncode, output.decode(errors="replace")


@contextmanager
def copied(root: Path) -> Iterator[Copy]:
    """What git knows or does not ignore of the tree at `root`, in a folder that goes away."""
    folder = Path(tempfile.mkdtemp(prefix="vm"))
    folder.chmod(0o755)  # some tests start programs as another user
    try:
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, check=True, capture_output=True).stdout.split(
            b"\0"
        )
        for name in sorted(filter(None, map(os.fsdecode, names))):
            if (root / name).is_file():
                (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / "tree" / name)
        (folder / "t").mkdir()
        yield Copy(folder, root / ".cache/mutants")
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
