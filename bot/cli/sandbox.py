"""voltaire sandbox: a command where the agent's commands run."""

import click

from bot.cli.command import Misused, Options, chat_option, pass_options, runs
from bot.cli.connect import chat_sandboxes

# A command that does not exist fails with the shell's own message and exit code.
_RUN = (
    """type -P -- "$1" > /dev/null || { echo "$1: command not found"; exit 127; }; exec -- "$@" """
)
_SHELL = ("/bin/bash", "--noprofile", "--norc", "-c", _RUN, "sandbox")


@click.command(
    "sandbox",
    help="Run a command in a chat's sandbox, under the limits of bash; its exit code is passed on.",
    context_settings={"ignore_unknown_options": True},
)
@chat_option
@click.option("--where", is_flag=True, help="Print the workspace's path on this machine.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@pass_options
@runs
async def command(options: Options, chat: str, where: bool, argv: tuple[str, ...]) -> int:
    if bool(argv) == where:
        raise Misused("Give a command after --, or --where alone.")
    async with chat_sandboxes(options.settings) as sandboxes:
        sandbox = await sandboxes.of(chat)
        if where:
            click.echo(sandbox.workspace)
            return 0
        ran = await sandbox.run([*_SHELL, *argv], permit=allowed)
    click.echo(ran.output, nl=bool(ran.output) and not ran.output.endswith("\n"))
    if ran.saved_path:
        click.echo(f"The whole output is in {ran.saved_path}.", err=True)
    if ran.reason:
        click.echo(ran.reason, err=True)
    return ran.exit_code


async def allowed(host: str) -> None:
    """The owner runs it, so the list of hosts alone decides."""
    del host
