"""A command of one's own: copy it to agent/shell/programs/wake.py, and the agent's shell has `wake`."""

import socket
from typing import Annotated

from agent.errors import ToolError
from agent.shell.command import ShellCall, UsageError, command

MACHINES = {"nas": "52:54:00:12:34:56"}
PORT = 9


@command
async def wake(
    call: ShellCall,
    machine: str,
    *,
    address: Annotated[str, "of the network it is in"] = "255.255.255.255",
) -> None:
    """Switch a machine of the house on (Wake on LAN)."""
    if machine not in MACHINES:
        raise UsageError(f"there is no {machine}, but {', '.join(MACHINES)}")
    await call.approve(f"Switch on {machine}", scope=f"wake:{machine}")
    packet = b"\xff" * 6 + bytes.fromhex(MACHINES[machine].replace(":", "")) * 16
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sender.sendto(packet, (address, PORT))
    except OSError as error:
        raise ToolError(f"The packet cannot be sent: {error.strerror}.") from None
    await call.write(f"{machine} was sent its packet and should answer within a minute.\n")
