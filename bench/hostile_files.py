"""What hostile files cost: seconds, and the most memory that one of the programs that read them had.

    python -m bench.hostile_files [NAME...]

Each file of fakes/hostile_files.py is read as the bot reads it (pictures by their own process, documents and
recordings in a sandbox), in a process of its own. Printed: what is told, seconds, the largest process that
read it in MiB beside its bound, and the most that the program itself had beside what it begins with.
"""

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

from agent import pictures
from agent.documents.reading import MEMORY_MIB, DocumentReader, UnreadableDocument
from agent.errors import ToolError
from agent.sandbox.limits import SandboxLimits
from agent.voice.sound import NoSound, pieces
from bot.attachments import text_facts
from fakes import sandbox_box
from fakes.hostile_files import FILES, HostileFile

MIB = 1024  # kilobytes of ru_maxrss


async def read(file: HostileFile, content: bytes, folder: Path) -> tuple[str, int]:
    """What is told of it, and the bound of the program that read it, in MiB."""
    async with sandbox_box.opened(folder) as sandboxes:
        path = f"received/{file.name}"
        box = await sandboxes.of("cli")
        await box.files.write(path, content)
        try:
            if file.kind == "voice":
                async for _ in pieces(box, path, 30.0):
                    pass
                return "", SandboxLimits().memory_mib
            if file.name.endswith((".pdf", ".docx")):
                passages, facts = await DocumentReader(sandboxes, {}).read("cli", "", path)
                return f"{len(passages)} passages. {' '.join(facts.notes)}", MEMORY_MIB
            if file.name.endswith((".txt", ".bin")):
                return text_facts(content)[:60], 0
            await pictures.shown(content, pictures.VisionLimits(1_228_800, 10))
        except NoSound as error:
            return str(error), SandboxLimits().memory_mib
        except UnreadableDocument as error:
            return str(error), MEMORY_MIB
        except ToolError as error:
            return str(error), pictures.MEMORY >> 20
    return "shown", pictures.MEMORY >> 20


def measure(name: str) -> None:
    """In a process of its own: print the file's line."""
    [file] = [file for file in FILES if file.name == name]
    content = file.content()
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        told, bound = asyncio.run(read(file, content, Path(folder)))
    seconds = time.perf_counter() - began
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB - own
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / MIB
    print(
        f"{file.name:<12}{len(content) / 1e6:>6.1f} MB {seconds:>6.1f} s"
        f" {child:>6.0f} of {bound:>5} MiB, program +{more:.0f} MiB: {told}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="these files alone")
    names = parser.parse_args().names
    spawning = multiprocessing.get_context("spawn")  # what one had is not counted for the next
    for file in FILES:
        if not names or file.name in names:
            process = spawning.Process(target=measure, args=(file.name,))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
