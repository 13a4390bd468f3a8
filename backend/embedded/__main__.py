"""The embedded llama.cpp server: `python -m backend.embedded FLAGS`, with llama-server's flags.

It is xllamacpp's server in this process. Like llama-server it logs to stderr,
takes its key from LLAMA_API_KEY (an argument would be visible to others),
exits 1 with the reason in its last lines, and ends at once on SIGTERM. Unlike
it, it dies with its parent.
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

from backend.embedded.flags import FLAGS, Flag, Params, library

PR_SET_PDEATHSIG = 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(
            1, f"error: invalid argument: {message.removeprefix('unrecognized arguments: ')}\n"
        )


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m backend.embedded", allow_abbrev=False, description=__doc__)
    parser.add_argument("--version", action="store_true", help="show version and exit")
    for flag in FLAGS:
        if flag.metavar is None:
            parser.add_argument(
                *flag.names,
                action="store_const",
                const="",
                default=None,
                help=flag.help,
                dest=flag.names[-1],
            )
        else:
            parser.add_argument(
                *flag.names,
                metavar=flag.metavar,
                type=flag.kind,
                default=None,
                help=flag.help,
                dest=flag.names[-1],
            )
    return parser


def _params(chosen: argparse.Namespace) -> Params:
    """The library's parameters with what was chosen; exits 1 on a value it refuses."""
    params = library().CommonParams()
    params.endpoint_slots = True
    params.ui = False
    for flag in FLAGS:
        value = getattr(chosen, flag.names[-1])
        if value is not None:
            _apply(flag, params, value)
    return params


def _apply(flag: Flag, params: Params, value: Any) -> None:
    try:
        flag.apply(params, value)
    except (OSError, ValueError, TypeError, OverflowError) as error:
        _fail(f"invalid value for {flag.names[-1]}: {value}: {error}")


def _fail(reason: str) -> NoReturn:
    sys.stderr.write(f"error: {reason}\n")
    sys.exit(1)


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_at_once(*_: object) -> None:
    # The library's own shutdown waits for open streams; nothing here needs it.
    os._exit(0)


def serve(params: Params) -> NoReturn:
    """Load the model and serve until a signal ends the process."""
    signal.signal(signal.SIGTERM, _end_at_once)
    signal.signal(signal.SIGINT, _end_at_once)
    if not Path(params.model.path).is_file():
        _fail(f"failed to open GGUF file '{params.model.path}': no such file")
    # The library loads in its constructor; in a thread, signals still end the process.
    ended = threading.Event()
    threading.Thread(target=_load, args=(params, ended), daemon=True).start()
    ended.wait()
    # An orderly exit: the library writes its log, the reason in it, in a thread of its own.
    sys.exit(1)


def _load(params: Params, ended: threading.Event) -> None:
    try:
        server = library().Server(params)
    except RuntimeError as error:
        sys.stderr.write(f"error: the server could not start: {error}\n")
        sys.stderr.flush()
        ended.set()
        return
    sys.stderr.write(f"server is listening on {server.listening_address}\n")
    sys.stderr.flush()
    _KEPT.append(server)


_KEPT: list[Any] = []  # the server ends when its object does


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    _die_with_parent()
    chosen = _parser().parse_args(arguments)
    if chosen.version:
        sys.stdout.write(f"version: xllamacpp {library().__version__}\n")
        sys.exit(0)
    params = _params(chosen)
    if not params.model.path:
        _fail("no model is given (-m FNAME)")
    if not params.api_keys and (key := os.environ.get("LLAMA_API_KEY")):
        params.api_keys = [key]
    serve(params)


if __name__ == "__main__":
    main()
