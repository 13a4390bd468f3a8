"""A stand-in for llama-server that misbehaves on demand: the same routes, no model.

    install(folder, plan) -> path of an executable

`plan` is one fault for each start of the program, the last one for all further
starts. Faults:

    ""              well-behaved: counts characters as tokens, answers "fine", keeps a cache
    stall           the first completion writes three tokens and no more; /health stays
                    200, /slots hangs, SIGTERM is ignored
    errors          every completion answers 500
    oom load        prints CUDA's words and aborts before it listens
    oom use         the same in the first completion
    load for ever   listens, answers 503, does nothing
    compiles        with the driver's compiler loaded, loads for two seconds and says so as it goes; prefill
                    takes SILENT seconds at full load, in which /health and /slots answer nothing
    cpu             says that no GPU was found, and works
    dies            is killed by SIGKILL in the middle of the first completion
    window N        works, and says that its window has N tokens
"""

import argparse
import json
import mmap
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OOM = "CUDA error: out of memory\n  current device: 0, in function alloc at ggml-cuda.cu:503\n  cudaMalloc((void **) &ptr, look_ahead_size)"
BUFFERS = """\
llama_kv_cache:      CUDA0 KV buffer size =  2400.00 MiB
llama_context:      CUDA0 compute buffer size =   600.00 MiB
load_tensors: offloaded 33/33 layers to GPU
"""
HELP = """\
usage: llama-server [options]

-h,    --help                           print usage and exit
-m,    --model FNAME                    model path to load
-c,    --ctx-size N                     size of the prompt context
-ub,   --ubatch-size N                  physical maximum batch size
-np,   --parallel N                     number of server slots
-a,    --alias STRING                   set alias for model name
-sps,  --slot-prompt-similarity N       how much of a prompt must match
-cram, --cache-ram N                    maximum cache size in MiB
-ctk,  --cache-type-k TYPE              KV cache data type for K
-ctv,  --cache-type-v TYPE              KV cache data type for V
--host HOST                             ip address to listen
--port PORT                             port to listen
--api-key KEY                           (env: LLAMA_API_KEY)
--slot-save-path PATH                   path to save slot kv cache
--metrics                               enable prometheus compatible metrics endpoint
--jinja                                 use jinja template for chat
"""


PROFILE = """
title = "A stand-in"
gpu = {gpu}
engine = "{engine}"
context = 8192
[model]
path = "/nonexistent"
[flags.required]
"--parallel" = "1"
[flags.optional]
"--ubatch-size" = "1024"
"--unheard-of" = "7"
[reference]
prefill_tok_s = {prefill}
"""


def profile(folder: Path, *, gpu: bool, engine: str, prefill: float) -> None:
    """A profile "fake" in `folder`, with a flag that no server knows."""
    text = PROFILE.format(gpu=str(gpu).lower(), engine=engine, prefill=prefill)
    (folder / "fake.toml").write_text(text)


def install(folder: Path, plan: Sequence[str], silent: float = 3.0) -> Path:
    """Write an executable that is this program with this plan, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps({"plan": list(plan), "silent": silent}))
    program = folder / "llama-server"
    (folder / "help").write_text(HELP)
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--help*) exec cat "{folder}/help" ;; esac\n'
        f'exec env PYTHONPATH="{ROOT}" "{sys.executable}" -m fakes.llama_server --plan "{folder}/plan.json" "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def starts(folder: Path) -> int:
    """How often it was started (not counting `--help`)."""
    try:
        return len((folder / "plan.json.starts").read_text().splitlines())
    except FileNotFoundError:
        return 0


class FakeServer:
    """What the routes share: the one slot, its cache, and the fault of this start."""

    def __init__(
        self, fault: str, silent: float, context: int, key: str, slots: Path | None
    ) -> None:
        self.fault, self.silent, self.context, self.key, self.folder = (
            fault,
            silent,
            context,
            key,
            slots,
        )
        self.ready = threading.Event()
        self.lock = threading.Lock()
        self.mute = threading.Event()  # health and slots answer nothing
        self.wedged = threading.Event()  # slots answers nothing
        self.cache: list[Any] = []
        self.task = self.read = self.decoded = 0
        self.processing = False
        self.used = False

    def prefill(self, prompt: Sequence[Any]) -> int:
        """Read a prompt; tokens that were cached."""
        same = 0
        for old, new in zip(self.cache, prompt, strict=False):
            if old != new:
                break
            same += 1
        self.task += 1
        self.read = self.decoded = 0
        if self.fault == "compiles" and len(prompt) - same > 20:
            self.work_in_silence()
        self.cache = list(prompt)
        self.read = len(prompt) - same
        return same

    def work_in_silence(self) -> None:
        self.mute.set()
        until = time.monotonic() + self.silent
        while time.monotonic() < until:
            sum(range(10_000))
        self.mute.clear()


def fail_now(fake: FakeServer, person: bool) -> None:
    """What breaks in the middle of a completion (the backend's own warm-up is spared)."""
    if not person or fake.used:
        return
    fake.used = True
    if fake.fault == "oom use":
        abort()
    if fake.fault == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if fake.fault == "stall":
        fake.wedged.set()
        threading.Event().wait()


def abort() -> None:
    print(OOM, file=sys.stderr, flush=True)
    os.abort()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        fake = self.fake
        if fake.mute.is_set():
            threading.Event().wait()
        if not fake.ready.is_set():
            return self.answer(503, {"error": {"message": "Loading model", "code": 503}})
        if self.path == "/health":
            return self.answer(200, {"status": "ok"})
        if self.path == "/props":
            says = fake.fault.removeprefix("window ") if "window" in fake.fault else fake.context
            settings = {"n_ctx": int(says)}
            return self.answer(
                200, {"default_generation_settings": settings, "model_path": "stand-in"}
            )
        if self.path == "/slots":
            return self.slots()
        return self.answer(404, {"error": {"message": "not found"}})

    def slots(self) -> None:
        fake = self.fake
        if fake.wedged.is_set():
            threading.Event().wait()
        slot = {
            "id": 0,
            "id_task": fake.task,
            "is_processing": fake.processing,
            "n_prompt_tokens_processed": fake.read,
            "next_token": [{"n_decoded": fake.decoded}],
        }
        self.answer(200, [slot])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        fake = self.fake
        if fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
            return self.answer(401, {"error": {"message": "Invalid API Key"}})
        if self.path == "/apply-template":
            return self.answer(200, {"prompt": render(body)})
        if self.path == "/tokenize":
            return self.answer(200, {"tokens": [ord(c) for c in body["content"]]})
        if self.path.startswith("/slots/0"):
            return self.slot_file(body["filename"])
        if self.path == "/completion":
            return self.complete(body["prompt"], 0, person=False)
        if self.path == "/v1/chat/completions":
            return self.complete([ord(c) for c in render(body)], 20, person=True)
        return self.answer(404, {"error": {"message": "not found"}})

    def slot_file(self, name: str) -> None:
        fake = self.fake
        assert fake.folder
        file = fake.folder / name
        if "save" in self.path:
            written = file.write_text(json.dumps(fake.cache))
            return self.answer(200, {"n_saved": len(fake.cache), "n_written": written})
        fake.cache = json.loads(file.read_text())
        return self.answer(200, {"n_restored": len(fake.cache)})

    def complete(self, prompt: list[int], words: int, person: bool) -> None:
        fake = self.fake
        if fake.fault == "errors" and person:
            return self.answer(500, {"error": {"message": "no", "code": 500}})
        with fake.lock:
            fake.processing = True
            try:
                self.stream(prompt, words, person)
            finally:
                fake.processing = False

    def stream(self, prompt: list[int], words: int, person: bool) -> None:
        cached = self.fake.prefill(prompt)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in self.events(prompt, cached, words, person):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if person:
            self.wfile.write(b"data: [DONE]\n\n")

    def events(
        self, prompt: list[int], cached: int, words: int, person: bool
    ) -> Iterator[dict[str, Any]]:
        total = len(prompt)
        yield {
            "prompt_progress": {"total": total, "cache": cached, "processed": total, "time_ms": 1},
            "choices": [],
        }
        for number in range(words):
            if number == 3:
                fail_now(self.fake, person)
            self.fake.decoded += 1
            yield {"choices": [{"index": 0, "delta": {"content": "fine "}, "finish_reason": None}]}
        timings = {
            "cache_n": cached,
            "prompt_n": total - cached,
            "prompt_ms": 1.0,
            "prompt_per_second": 1000.0,
        }
        timings |= {"predicted_n": words, "predicted_ms": 1.0, "predicted_per_second": 50.0}
        usage = {
            "prompt_tokens": total,
            "completion_tokens": words,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        yield {
            "choices": [end],
            "usage": usage,
            "timings": timings,
            "stop": True,
            "tokens_evaluated": total,
        }

    def answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def render(body: dict[str, Any]) -> str:
    head = json.dumps(body.get("tools") or [], sort_keys=True)
    return head + "".join(f"<{m['role']}>{m.get('content') or ''}" for m in body["messages"])


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no news."""


def load(fake: FakeServer) -> None:
    if fake.fault == "load for ever":
        return
    if fake.fault == "compiles":
        for part in range(20):
            print(f"load_tensors: part {part}", file=sys.stderr, flush=True)
            time.sleep(0.1)
    print(BUFFERS, file=sys.stderr, flush=True)
    if fake.fault == "cpu":
        print(
            "warning: no usable GPU found, --gpu-layers option will be ignored",
            file=sys.stderr,
            flush=True,
        )
    fake.ready.set()


loaded: list[mmap.mmap] = []


def planned_fault(plan: Path) -> tuple[str, float]:
    """The fault of this start, which is noted beside the plan."""
    planned = json.loads(plan.read_text())
    with plan.with_name("plan.json.starts").open("a") as file:
        file.write(f"{os.getpid()}\n")
    count = len(plan.with_name("plan.json.starts").read_text().splitlines())
    faults = planned["plan"]
    return faults[min(count, len(faults)) - 1], planned["silent"]


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--plan", type=Path)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("-c", type=int, default=4096)
    parser.add_argument("--slot-save-path", type=Path)
    chosen, _ = parser.parse_known_args()
    fault, silent = planned_fault(chosen.plan)
    if fault == "oom load":
        print(BUFFERS, file=sys.stderr)
        abort()
    if fault == "compiles":
        compiler = chosen.plan.with_name("libnvidia-ptxjitcompiler.so.1")
        compiler.write_bytes(b"x")
        with compiler.open("rb") as file:
            loaded.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
        (Path(os.environ["CUDA_CACHE_PATH"]) / "compiled").touch()
    if fault == "stall":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Handler.fake = FakeServer(
        fault, silent, chosen.c, os.environ.get("LLAMA_API_KEY", ""), chosen.slot_save_path
    )
    server = Server(("127.0.0.1", chosen.port), Handler)
    threading.Thread(target=load, args=(Handler.fake,), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
