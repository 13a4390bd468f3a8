"""The command line: one module per command, named after it (exceptions in MODULES), imported when called.

What every command needs is in command.py: options, event loop, exit codes, logging. How a command
gets its backend is in connect.py, how it reaches the process that holds the state in holder_client.py (what
that serves in holder_api.py), the configuration of a backend in backend_config.py, the choice of messaging
apps in bot.py, the checks of `doctor` in doctor_machine.py and doctor_server.py.

Exit codes: 0 done; 1 it failed; 2 wrong usage or configuration; 3 the model
backend is not available; 130 interrupted.
"""

import gc
import importlib
import logging
import os
import sys
from pathlib import Path

import click

from bot.cli.command import Options, start_logging
from bot.cli.progress import reading_program

COMMANDS = {
    "run": "run backend and bot together in the foreground",
    "backend": "run the supervisor of llama-server, with its control API",
    "bot": "run messaging apps, agent and scheduler",
    "demo": "try it on this machine: no token, no GPU, no download",
    "chat": "talk in the terminal",
    "ask": "ask one question; the answer is printed as it comes",
    "tool": "run one tool as the agent would",
    "sandbox": "run a command in a chat's sandbox",
    "context": "count a chat's tokens by part",
    "status": "show what runs, and how well",
    "page": "open the owner's page: what runs, turns, chats, jobs",
    "logs": "show what the services or the model server wrote",
    "config": "show the configuration: its path, what is set, the defaults",
    "audit": "show what was asked, allowed, reached and changed; verify the record",
    "freeze": "stop all turns; no tool runs and no job starts",
    "thaw": "resume after `freeze`; --new-code sets up codes for /thaw",
    "doctor": "check everything, with remedies",
    "setup": "set up messaging apps, owner, model, server, services (a wizard)",
    "model": "list, fit, download, switch and rehearse models",
    "server": "download or build a llama-server for this machine",
    "gpu": "lend the card to other programs for a time",
    "bench": "measure the model's speed on this machine",
    "eval": "run the task suite on the current model",
    "jobs": "list, add and change a chat's scheduled jobs",
    "send": "send a text or file into a chat",
    "trigger": "run a job now, with data from outside",
    "mcp": "add and test MCP servers; serve Voltaire as one",
    "skills": "add and remove skills (folders with a SKILL.md)",
    "matrix": "verify the Matrix device by emoji, export its keys",
    "upgrade": "install the next version after a trial; --rollback returns",
    "backup": "write the whole state into one file, while running",
    "restore": "replace the state by a backup",
    "import": "move in from OpenClaw, Hermes agent or nanobot",
}
# Module and attribute of commands that have no module of their own.
MODULES = {
    "run": ("bot", "run"),
    "sandbox": ("tool", "sandbox"),
    "context": ("status", "context"),
    "restore": ("backup", "restore_command"),
    "import": ("moving", "command"),
    "freeze": ("audit", "freeze"),
    "thaw": ("audit", "thaw"),
    "config": ("status", "config"),
    "send": ("jobs", "send"),
    "trigger": ("jobs", "trigger"),
}

# With Python's own 700 the garbage collector takes a tenth of a command's CPU time: it goes through what is
# imported, all of which lives on, more than two hundred times. command.py enables it once a command runs.
GC_THRESHOLD = 50_000


class LazyGroup(click.Group):
    """Imports a command's module when it is called; listing the commands imports none."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = MODULES.get(name, (name, "command"))
        with reading_program():
            command = getattr(importlib.import_module(f"bot.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    commands=dict.fromkeys(COMMANDS, click.Command(None)),  # the names alone
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--config",
    # Whether this user may read it is checked where it is read, with a sentence that names the remedy.
    type=click.Path(dir_okay=False, readable=False, path_type=Path),
    help="Configuration file.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log to stderr what happens.")
@click.version_option(package_name="voltaire-agent", message="%(version)s")
@click.pass_context
def cli(ctx: click.Context, config: Path | None, verbose: bool) -> None:
    """Voltaire: a personal agent on your own GPU, in your own messaging app."""
    ctx.obj = Options(config, verbose)
    start_logging(verbose)


def main() -> None:
    """The console script: any failure is one sentence for a person and an exit code for scripts."""
    gc.disable()
    gc.set_threshold(GC_THRESHOLD)
    code = exit_code(sys.argv[1:])
    gc.freeze()  # the collection at interpreter exit takes another tenth of a command's CPU time
    sys.exit(code)


def exit_code(arguments: list[str]) -> int:
    try:
        result = cli.main(arguments, prog_name="voltaire", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # The reader is gone; Python would complain again while it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        file = f": {error.filename}" if error.filename else ""
        return unexpected(f"{error.strerror or error}{file}", error)
    except Exception as error:  # noqa: BLE001 - the last line before a person
        return unexpected(f"An unexpected error: {type(error).__name__}: {error}", error)
    return result if isinstance(result, int) else 0


def unexpected(sentence: str, error: Exception) -> int:
    logging.getLogger("voltaire").debug("unexpected error", exc_info=error)
    click.echo(sentence.rstrip(".") + ".", err=True)
    return 1
