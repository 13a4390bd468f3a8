"""Runs a command of another checkout and notes how each message passes through it.

    python probe.py ROOT OUT WORDS...       # as `voltaire WORDS` of the checkout ROOT

Each message appends a line of JSON to OUT once its reply is marked delivered:
`seen` are the places that it passed, in order, each with the stack at that place,
outermost frame first, and `modules` those of ROOT's files in which a function ran
meanwhile. A frame is [module, function, whether the file is ROOT's own].

A stack goes on beyond its task, in the frames of the task that made this one and
still stand where they stood then: those that wait for it.

The places are found by what the libraries are asked for, not by this project's
names, which change: a statement in aiosqlite, a request in aiohttp.
"""

import asyncio
import gc
import importlib
import inspect
import json
import re
import sys
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any
from weakref import WeakKeyDictionary

PACKAGES = ("bot", "agent", "backend")
REQUESTS = {"/chat/completions": "model request", "/sendMessage": "send"}
WRITES = re.compile(r"\bINSERT\s+(?:OR\s+\w+\s+)?INTO\s+(inbox|outbox)\b")
MARKS = re.compile(r"\bUPDATE\s+outbox\b")

SUSPENDABLE = (CoroutineType, AsyncGeneratorType, GeneratorType)

Named = tuple[str, str, bool]
Born = tuple["asyncio.Task[Any] | None", list[tuple[int, CodeType]]]


@dataclass
class Stacks:
    """Stacks across tasks. Only tasks that were made after `watch` can be followed."""

    root: Path
    _born: WeakKeyDictionary["asyncio.Task[Any]", Born] = field(default_factory=WeakKeyDictionary)

    def watch(self) -> Callable[[], None]:
        """Note from now on where each task is made; returns what ends that."""
        loop = asyncio.BaseEventLoop
        make = loop.create_task

        def create_task(this: Any, *words: Any, **named: Any) -> Any:
            task = make(this, *words, **named)
            frames = [(id(frame), frame.f_code) for frame in running(sys._getframe(1))]
            self._born[task] = _current(), frames
            return task

        setattr(loop, "create_task", create_task)  # noqa: B010 - mypy knows it as a method
        return lambda: setattr(loop, "create_task", make)

    def now(self) -> list[Named]:
        """The caller's stack, and that of who waits for it, outermost frame first."""
        frames, task = running(sys._getframe(1)), _current()
        while task is not None and task in self._born:
            parent, born = self._born[task]
            alike = zip(suspended(parent) if parent else (), born, strict=False)
            shared = [f for f, (number, code) in alike if (id(f), f.f_code) == (number, code)]
            frames, task = shared + frames, parent if shared else None
        return [self.named(frame) for frame in frames]

    def named(self, frame: FrameType) -> Named:
        name = frame.f_code.co_qualname.replace("<locals>.", "")
        own = self.module(frame.f_code.co_filename)
        return own or frame.f_globals.get("__name__", "?"), name, bool(own)

    def module(self, filename: str) -> str:
        """The module's name where the file is one of this project, else nothing."""
        path = Path(filename)
        if not path.is_relative_to(self.root):
            return ""
        path = path.relative_to(self.root).with_suffix("")
        if path.parts[0] not in PACKAGES:
            return ""
        return ".".join(path.parts).removesuffix(".__init__")


def _current() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def running(frame: FrameType | None) -> list[FrameType]:
    """What runs now, of one task: from its coroutine to this frame."""
    frames: list[FrameType] = []
    while frame is not None and frame.f_globals.get("__name__") != "asyncio.events":
        frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def suspended(task: "asyncio.Task[Any]") -> list[FrameType]:
    """Where a task waits: from its coroutine through all that this awaits."""
    frames: list[FrameType | None] = []
    step: Any = task.get_coro()
    while step is not None:
        if isinstance(step, CoroutineType):
            frames.append(step.cr_frame)
            step = step.cr_await
        elif isinstance(step, AsyncGeneratorType):
            frames.append(step.ag_frame)
            step = step.ag_await
        elif isinstance(step, GeneratorType):
            frames.append(step.gi_frame)
            step = step.gi_yieldfrom
        else:  # an __await__ or __anext__, which do not say what is behind them
            held = gc.get_referents(step)
            step = next((found for found in held if isinstance(found, SUSPENDABLE)), None)
    return [frame for frame in frames if frame is not None]


@dataclass
class Messages:
    """One message at a time: what it passes from its update to the mark of its delivery."""

    stacks: Stacks
    out: Path
    seen: dict[str, list[list[Named]]] | None = None  # None: no message is under way
    modules: set[str] = field(default_factory=set)
    _files: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        self.seen, self.modules = {}, set()

    def pass_by(self, place: str) -> None:
        if self.seen is not None:
            self.seen.setdefault(place, []).append(self.stacks.now())

    def delivered(self) -> None:
        if self.seen is None or "send" not in self.seen:
            return
        line = {"seen": self.seen, "modules": sorted(self.modules)}
        self.seen = None
        with self.out.open("a") as out:
            out.write(json.dumps(line) + "\n")

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """For sys.setprofile: note the module of each function of ours that is called."""
        code = frame.f_code
        if self.seen is None or event != "call" or code.co_name == "<module>":
            return
        if code.co_filename not in self._files:
            self._files[code.co_filename] = self.stacks.module(code.co_filename)
        if name := self._files[code.co_filename]:
            self.modules.add(name)


def attach(messages: Messages) -> None:
    """Put the probe into the libraries where a message passes."""
    import aiohttp
    import aiosqlite.core
    from telegram.ext import Application

    def updates(process: Any) -> Any:
        async def process_update(self: Any, update: Any) -> None:
            message = getattr(update, "message", None)
            if message and message.text:
                messages.begin()
            await process(self, update)

        return process_update

    def requests(request: Any) -> Any:
        async def _request(self: Any, method: str, url: Any, **named: Any) -> Any:
            for end, place in REQUESTS.items():
                if str(url).endswith(end):
                    messages.pass_by(place)
            return await request(self, method, url, **named)

        return _request

    def statements(execute: Any) -> Any:
        async def _execute(self: Any, *words: Any, **named: Any) -> Any:
            sql = list(strings(words))
            for text in sql:
                for table in WRITES.findall(text):
                    messages.pass_by(f"{table} row")
            rows = await execute(self, *words, **named)
            if any(MARKS.search(text) for text in sql):
                messages.delivered()
            return rows

        return _execute

    wrap(Application, "process_update", updates)
    wrap(aiohttp.ClientSession, "_request", requests)
    wrap(aiosqlite.core.Connection, "_execute", statements)
    sys.setprofile(messages.profile)
    threading.setprofile(messages.profile)


def wrap(owner: type, name: str, change: Callable[[Any], Any]) -> None:
    made = change(inspect.getattr_static(owner, name))
    setattr(owner, name, made)


def strings(values: Iterable[Any]) -> Iterator[str]:
    """The texts among the values, and in lists and tuples among them."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from strings(value)


def main() -> None:
    root, out, *words = sys.argv[1:]
    sys.path[0] = root  # was this file's folder
    sys.argv = ["voltaire", *words]
    stacks = Stacks(Path(root))
    stacks.watch()
    attach(Messages(stacks, Path(out)))
    project = tomllib.loads(Path(root, "pyproject.toml").read_text("utf-8"))["project"]
    module, _, function = project["scripts"]["voltaire"].partition(":")
    getattr(importlib.import_module(module), function)()


if __name__ == "__main__":
    main()
