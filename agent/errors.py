"""Errors by who must act.

    AgentError
    ├── ToolError       a tool failed: the model reads the advice and goes on
    │   ├── NoSandbox   no command can be isolated here: the turn ends, a person reads why
    │   └── StrangersWords  its sentence repeats strangers' text
    ├── TurnError       a turn failed: a person reads the one sentence
    │   ├── ContextFull the window cannot hold what must be sent
    │   ├── ToolLimit   calls, seconds or tokens of the turn are used up
    │   ├── Looping     the same calls over and over
    │   └── BackendLost the backend stayed away for too long
    └── BackendAway     the model is not there: wait, say so, go on
    NothingToDo         a job has nothing to do: nobody acts
    UsageError          a command of the shell was given wrong arguments: its usage line follows

Anything else is a bug, and is not hidden.
"""

from agent.events import Reason


class AgentError(Exception):
    """`str(error)` is one plain sentence for whoever must act."""

    reason: Reason = "error"  # of TurnFinished, where the error ends a turn


class ToolError(AgentError):
    pass


class NoSandbox(ToolError):
    pass


class StrangersWords(ToolError):
    """Its sentence repeats strangers' text, from `source`."""

    def __init__(self, text: str, source: str) -> None:
        super().__init__(text)
        self.source = source


class TurnError(AgentError):
    pass


class ContextFull(TurnError):
    reason: Reason = "context"


class ToolLimit(TurnError):
    reason: Reason = "tool_limit"


class Looping(TurnError):
    reason: Reason = "loop"


class BackendLost(TurnError):
    reason: Reason = "backend"


class BackendAway(AgentError):
    reason: Reason = "backend"


class NothingToDo(Exception):
    """A scheduled job's cheap check found nothing to do; `str(error)` says why. The person is told where the job's
    option `tell_nothing` says so."""


class UsageError(Exception):
    """`str(error)` says what is wrong with the arguments; the usage line follows it, exit code 2."""
