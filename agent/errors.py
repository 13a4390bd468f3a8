"""Errors by who must act.

    AgentError
    ├── ToolError       a tool failed: the model reads the advice and goes on
    ├── TurnError       a turn failed: a person reads the one sentence
    │   └── ContextFull the window cannot hold what must be sent
    └── BackendAway     the model is not there: wait, say so, go on

Anything else is a bug and is seen.
"""


class AgentError(Exception):
    """`str(error)` is one plain sentence for whoever must act."""


class ToolError(AgentError):
    pass


class TurnError(AgentError):
    reason = "error"  # the `reason` of TurnFinished


class ContextFull(TurnError):
    reason = "context"


class BackendAway(AgentError):
    pass
