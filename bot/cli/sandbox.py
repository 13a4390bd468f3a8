"""voltaire sandbox: a command where the agent's commands run."""

import click

from bot.cli import Misused
from bot.cli.options import chat_option, runs, settings_of

# A command that is not there is told in the shell's words and its code.
_RUN = (
    """type -P -- "$1" > /dev/null || { echo "$1: command not found"; exit 127; }; exec -- "$@" """
)
_TELLING = ("/bin/bash", "--noprofile", "--norc", "-c", _RUN, "sandbox")


@click.command(
    "sandbox",
    help="Run a command in a chat's sandbox, under the limits of bash; its exit code is passed on.",
    context_settings={"ignore_unknown_options": True},
)
@chat_option
@click.option("--where", is_flag=True, help="Print the workspace's path on this machine.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
@runs
async def command(ctx: click.Context, chat: str, where: bool, argv: tuple[str, ...]) -> int:
    from bot.cli.connect import chat_sandboxes

    if bool(argv) == where:
        raise Misused("Give a command after --, or --where alone.")
    async with chat_sandboxes(settings_of(ctx)) as sandboxes:
        sandbox = await sandboxes.of(chat)
        if where:
            click.echo(sandbox.workspace)
            return 0
        ran = await sandbox.run([*_TELLING, *argv], permit=_allowed)
    click.echo(ran.output, nl=bool(ran.output) and not ran.output.endswith("\n"))
    for line in filter(
        None, [ran.saved_path and f"The whole output is in {ran.saved_path}.", ran.reason]
    ):
        click.echo(line, err=True)
    return ran.exit_code


async def _allowed(host: str) -> None:
    """The owner runs it, so the list of hosts alone decides."""
    del host
