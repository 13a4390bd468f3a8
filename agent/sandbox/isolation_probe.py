"""Whether a sandbox isolates, seen from inside of it, for `doctor`."""

from dataclasses import dataclass
from typing import Literal

from agent.errors import ToolError
from agent.sandbox.sandbox import Sandbox

SCRIPT = r"""
echo uid=$(id -u)
echo interfaces=$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | tr '\n' ' ')
echo privileges=$(grep -E '^NoNewPrivs' /proc/self/status | cut -f2)
echo filter=$(grep -E '^Seccomp:' /proc/self/status | cut -f2)
echo environment=$(wc -c < /proc/1/environ)
echo capabilities=$(grep -E '^CapBnd' /proc/self/status | cut -f2 | tr -d 0)
(unshare -Ur true) 2>/dev/null && echo namespaces=open || echo namespaces=closed
(: > /voltaire-probe) 2>/dev/null && echo root=writable || echo root=closed
(: > /workspace/.voltaire-probe) 2>/dev/null && echo workspace=writable || echo workspace=closed
rm -f /workspace/.voltaire-probe
ls -d /home /root /var /sys /opt /srv /boot /mnt /media 2>/dev/null | tr '\n' ' ' | sed 's/^/visible=/'
"""

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
    """Run a script inside and compare what it sees; never raises."""
    try:
        ran = await sandbox.run(SCRIPT, seconds=10)
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
