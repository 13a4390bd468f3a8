"""Where every process of a tool runs: one bubblewrap per call, with the kernel's walls."""

from agent.sandbox.limits import Repo, SandboxLimits
from agent.sandbox.sandbox import Ran, Sandbox

__all__ = ["Ran", "Repo", "Sandbox", "SandboxLimits"]
