"""Errors of servers of tools."""

from agent.errors import ToolError


class BrokenServer(ToolError):
    """The session cannot be used any more: it is closed, and a new one begins at the next use."""


class SignInNeeded(BrokenServer):
    """The server's owner has to sign in (agent.mcp.oauth). `forbidden`: the token does not allow enough. `why` is said
    behind "to sign in"."""

    def __init__(self, name: str, *, forbidden: bool = False, why: str = "") -> None:
        super().__init__(f"{name} wants its owner to sign in.")
        self.forbidden, self.why = forbidden, why


class SignInFirst(ToolError):
    """The owner was told to sign in, or nobody can be told; nothing was done."""
