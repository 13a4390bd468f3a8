"""Commands in the sandbox's shell that are answered outside of it.

A program in /commands, on the PATH of every bash call, is a small client (client.pl). It connects to the
socket of its call (agent.sandbox.bwrap_process), sends its arguments and, when asked, its standard input, and
prints what comes back. Here a command is a typed async function:

    agent/shell/programs/greet.py

    @command
    async def greet(call: ShellCall, *names: str, loud: Annotated[bool, "in capitals"] = False) -> None:
        "Greet people."
        for name in names:
            await call.write(f"Hello {name}\\n")

The file is the program. A function with the file's name is the program itself, any other is a subcommand
(`search` in web.py is `web search`). Positional parameters are arguments, `*names` takes any number,
keyword-only parameters are options (`from_` is --from): str, int, bool (a flag), Literal, list of str (may
be repeated). `Annotated[..., "..."]` describes an option in --help; the docstring's first line is the
command's line in /commands.txt.

What the function works with:
    call.write, call.warn         standard output and error; they wait while nobody reads
    call.read                     the next piece of standard input, b"" at its end; nothing is read unasked
    call.folder, call.path(PATH)  the directory of the call; a path for agent.sandbox.files
    call.context                  agent.tools.context.ToolContext: what the chat's tools work with
    call.chat, call.turn          whose call it is
    call.approve(what, scope=...) an owner may be asked; the time limit stands still meanwhile
    call.stranger(SOURCE)         to be awaited before a stranger's text is written: the chat, and files
                                  that the shell makes of it, count as touched
    call.leaves(where, text)      before text that is not in its arguments leaves the machine
    call.reserve({"bytes": N})    counts against the chat's daily budgets
    call.within                   the bash call: taints, sandbox, output_limit
Returning is exit code 0. A ToolError is printed on standard error, exit code 1; a UsageError with the usage
line, exit code 2. The function is cancelled when its client or its bash call ends. To run a program in the
sandbox itself (a PDF reader), a command uses `sandbox.read_internal(..., inputs={name: bytes}, inner=True)`.

`@command(lines=...)` gives the lines for /commands.txt from the chat's ToolContext; no line means that the
command does not exist in that chat. `raw=True` gives the function its words as they were typed.

command.py   the decorator `command`; ShellCall; arguments from a signature
registry.py  the programs, their commands, the text of /commands.txt
broker.py    answers the commands of one bash call
programs/    one file for each program
"""
