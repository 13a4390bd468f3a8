"""The embedded llama.cpp server: `python -m backend.embedded FLAGS`, with llama-server's flags.

It runs xllamacpp's server in this process. Like llama-server it logs to stderr,
reads its key from LLAMA_API_KEY (an argument would be visible to other users),
exits with 1 and the reason in its last lines, and ends at once on SIGTERM. Unlike
llama-server it dies with its parent.
"""

import argparse
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from backend.embedded.flags import FLAGS, Params, library, preserve_thoughts

PR_SET_PDEATHSIG = 1
kept: list[Any] = []  # holds the server object, because garbage collection would end the server


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        flags = message.removeprefix("unrecognized arguments: ")
        self.exit(1, f"error: invalid argument: {flags}\n")


def command_line() -> Parser:
    parser = Parser(prog="python -m backend.embedded", allow_abbrev=False, description=__doc__)
    parser.add_argument("--version", action="store_true", help="show version and exit")
    for flag in FLAGS:
        form: dict[str, Any] = {"action": "store_const", "const": ""}
        if flag.metavar is not None:
            form = {"metavar": flag.metavar, "type": flag.kind}
        parser.add_argument(*flag.names, default=None, help=flag.help, dest=flag.names[-1], **form)
    return parser


def params_of(chosen: argparse.Namespace) -> Params:
    """The library's parameters; exits with 1 on a value that the library rejects."""
    params = library().CommonParams()
    params.endpoint_slots = True
    params.ui = False
    preserve_thoughts("true")(params, "")
    for flag in FLAGS:
        name = flag.names[-1]
        value = getattr(chosen, name)
        if value is None:
            continue
        try:
            flag.apply(params, value)
        except (OSError, ValueError, TypeError, OverflowError, LookupError) as error:
            fail(f"invalid value for {name}: {value}: {error}")
    return params


def fail(reason: str) -> NoReturn:
    sys.stderr.write(f"error: {reason}\n")
    sys.exit(1)


def exit_now(*_: object) -> None:
    # The library's own shutdown would wait for open streams.
    os._exit(0)


def serve(params: Params) -> NoReturn:
    """Load the model and serve until a signal ends the process."""
    signal.signal(signal.SIGTERM, exit_now)
    signal.signal(signal.SIGINT, exit_now)
    if not Path(params.model.path).is_file():
        fail(f"failed to open GGUF file '{params.model.path}': no such file")
    # The library loads in its constructor; in a thread, so that signals still end the process.
    failed = threading.Event()
    threading.Thread(target=load, args=(params, failed), daemon=True).start()
    failed.wait()
    # Not os._exit: the library writes its log, with the reason in it, from its own thread.
    sys.exit(1)


def load(params: Params, failed: threading.Event) -> None:
    """Load the model and listen; set `failed` if the library raises an error."""
    try:
        server = library().Server(params)
    except RuntimeError as error:
        sys.stderr.write(f"error: the server could not start: {error}\n")
        sys.stderr.flush()
        failed.set()
        return
    sys.stderr.write(f"server is listening on {server.listening_address}\n")
    sys.stderr.flush()
    kept.append(server)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    chosen = command_line().parse_args(arguments)
    if chosen.version:
        sys.stdout.write(f"version: xllamacpp {library().__version__}\n")
        sys.exit(0)
    params = params_of(chosen)
    if not params.model.path:
        fail("no model is given (-m FNAME)")
    if not params.api_keys and (key := os.environ.get("LLAMA_API_KEY")):
        params.api_keys = [key]
    serve(params)


if __name__ == "__main__":
    main()
