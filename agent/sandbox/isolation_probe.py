"""Checks from inside whether a sandbox isolates, for `doctor`."""

from dataclasses import dataclass
from typing import Literal

from agent.errors import ToolError
from agent.sandbox.sandbox import Sandbox, bash_script

EXPECTED = {
    "uid": ("1000", "the user inside is not 1000"),
    "interfaces": ("lo", "there are network interfaces besides lo"),
    "privileges": ("1", "privileges can be gained (NoNewPrivs is not set)"),
    "filter": ("2", "the system call filter is not in force"),
    "environment": ("0", "the environment of the program can be read"),
    "capabilities": ("", "capabilities are left"),
    "namespaces": ("closed", "user namespaces can be made inside"),
    "root": ("closed", "/ is writable"),
    "workspace": ("writable", "/workspace is not writable"),
}


@dataclass(frozen=True, slots=True)
class ProbeResult:
    status: Literal["pass", "fail"]
    detail: str
    remedy: str = ""


async def probe(sandbox: Sandbox) -> ProbeResult:
    """Run a script inside and compare what it sees with EXPECTED; an error is a "fail"."""
    try:
        ran = await sandbox.run(bash_script("sandbox/isolation_probe.sh"), seconds=10)
        await sandbox.files.names("")
    except ToolError as error:
        detail, _, advice = str(error).partition(" Remedy: ")
        return ProbeResult("fail", detail, advice)
    seen = dict(line.split("=", 1) for line in ran.output.splitlines() if "=" in line)
    wrong = [why for key, (value, why) in EXPECTED.items() if seen.get(key, "?") != value]
    if seen.get("visible"):
        wrong.append(f"{seen['visible'].strip()} can be seen")
    if wrong:
        return ProbeResult("fail", f"The sandbox has holes: {'; '.join(wrong)}.", "Report this.")
    return ProbeResult("pass", f"bubblewrap works; tools run as uid {sandbox.config.user.uid}.")
