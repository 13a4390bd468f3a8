"""How a server is configured: the section `agent.mcp.NAME`, and the secrets it names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ToolError
from agent.language import translated
from agent.mcp.tools import LEAST_SECRET
from agent.sandbox.hosts import listed_host
from agent.sandbox.limits import HostRepo

ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w-]*)\s*=\s*(['\"]?)(.*?)\2\s*")


def read_secret_file(path: str, what: str) -> str:
    """Read a file that holds a secret. Raises ToolError."""
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ToolError(f"{what} cannot be read; the owner can mend that.") from None


@dataclass(frozen=True, slots=True)
class SecretBinding:
    """A secret that never enters the sandbox: the variable `name` holds a placeholder there, for which the proxy puts
    what stands in `file` into one header of requests to `host` ("name" or "name:port")."""

    name: str
    file: str
    host: str
    header: str

    @property
    def place(self) -> str:
        return self.host if ":" in self.host else f"{self.host}:443"

    def value(self, server: str) -> str:
        """The secret; ToolError where the file holds none that a header can hold."""
        what = f"The file of the secret {self.name} of {server}"
        text = read_secret_file(self.file, what).strip()
        if len(text) < LEAST_SECRET or not re.fullmatch(r"[!-~]+", text):
            raise ToolError(
                f"{what} does not hold one word of at least {LEAST_SECRET} characters; the owner can mend that."
            )
        return text


@dataclass(frozen=True)
class ServerConfig:
    """A section `agent.mcp.NAME`: `command`, or `url`. `allow` names tools that never ask, `tools` those that
    prompts list (agent.mcp.listed)."""

    name: str
    command: Sequence[str] = ()
    url: str = ""
    env_file: str = ""
    network: Sequence[str] = ()
    folders: Sequence[str] = ()
    allow: Sequence[str] = ()
    tools: Sequence[str] = ()
    secrets: Sequence[SecretBinding] = ()
    client_id: str = ""  # of this program, where an owner has registered it (agent.mcp.oauth)
    client_secret_file: str = ""
    callback_port: int = 0

    @property
    def source(self) -> str:
        """What is started or connected to, as the owner reads it."""
        return self.url or " ".join(self.command)

    @property
    def kept_secrets(self) -> str:
        """How its secrets are kept, for the owner; empty where it has none."""
        told = []
        if self.env_file:
            told.append(translated("gets the values of its env_file as they are"))
        form = translated("never sees {name}, which goes only to {host}")
        told += [form.format(name=each.name, host=each.host) for each in self.secrets]
        return ", ".join(told)

    @property
    def ends_tls(self) -> bool:
        """Whether some of its requests to hosts must be decrypted, to be checked or given a secret."""
        entries = [listed_host(entry) for entry in self.network]
        return bool(self.secrets) or any(each.method or each.path for each in entries)

    @property
    def mounts(self) -> dict[str, HostRepo]:
        """The folders that the server may see, at /repos/NAME."""
        found: dict[str, HostRepo] = {}
        for entry in self.folders:
            path, write = entry.removesuffix(":rw"), entry.endswith(":rw")
            name = re.sub(r"[^A-Za-z0-9._-]", "-", Path(path).name).lstrip(".-") or "folder"
            name = name if name not in found else f"{name}-{len(found) + 1}"
            found[name] = HostRepo(name, Path(path).expanduser(), write)
        return found

    def has_authorization(self) -> bool:
        """Whether the server's env_file has an Authorization header, so that no owner has to sign in."""
        return any(name.lower() == "authorization" for name in self.variables())

    def client_secret(self) -> str:
        """Read the client secret from its file; "" without one. ToolError if it cannot be read."""
        if not self.client_secret_file:
            return ""
        what = f"The client_secret_file of {self.name}"
        return read_secret_file(self.client_secret_file, what).strip()

    def variables(self) -> dict[str, str]:
        """Read the environment variables of the server's env_file. Raises ToolError if it cannot be read."""
        if not self.env_file:
            return {}
        text = read_secret_file(self.env_file, f"The env_file of {self.name}")
        lines = (ASSIGNMENT.fullmatch(line) for line in text.split("\n"))
        return {line[1]: line[3] for line in lines if line}


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
