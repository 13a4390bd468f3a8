"""Commands in the sandbox's shell that are answered outside of it.

A program of /commands, on the PATH of every bash call, is a small client (client.pl). It connects to its
call's own socket (agent.sandbox.command_socket) and hands over its arguments, its standard input when that is
asked for, and what comes back. Here a command is a typed async function:

    agent/shell/programs/greet.py

    @command
    async def greet(call: ShellCall, *names: str, loud: Annotated[bool, "in capitals"] = False) -> None:
        "Greet people."
        for name in names:
            await call.write(f"Hello {name}\\n")

The file is the program; a function of the file's name is the program itself, any other a subcommand of it
(`search` in web.py is `web search`). Positional parameters are arguments, `*names` takes any number,
keyword-only parameters are options (`from_` is --from): str, int, bool (a flag), Literal, list of str (may
be repeated). `Annotated[..., "..."]` says what an option is in --help; the docstring's first line is the
command's line in /commands.txt.

What the function does:
    call.write, call.warn         standard output and error; they wait while nobody reads
    call.read                     the next piece of standard input, b"" at its end; nothing is read unasked
    call.folder, call.path(PATH)  where it was called; a path as agent.sandbox.files knows it
    call.context                  agent.tools.context.ToolContext: what the chat's tools work with
    call.chat, call.turn          whose call it is
    call.approve(what, scope=...) an owner may be asked; the time limit stands still meanwhile
    call.stranger(SOURCE)         to be awaited before a stranger's text is written: the chat, and files
                                  that the shell makes of it, count as touched
    call.leaves(where, text)      before something leaves the machine that is not in its arguments
    call.reserve({"bytes": N})    counts with the chat's daily budgets
    call.within                   the bash call: taints, sandbox, output_limit
Return: exit code 0. ToolError: its sentence on standard error, exit code 1. UsageError: the usage line, 2.
It is cancelled when its client or its bash call ends. A program of the sandbox that a command has to run
itself (a PDF reader) takes `sandbox.read_internal(..., inputs={name: bytes}, inner=True)`.

`@command(lines=...)` takes what /commands.txt says instead, from the chat's ToolContext; no line means that the
command is not there in that chat. `raw=True` besides gives the function its words as they were typed.

command.py   the decorator `command`; ShellCall; arguments from a signature
registry.py  the programs, their commands, the text of /commands.txt
broker.py    answers the commands of one bash call
programs/    one file for each program
"""
