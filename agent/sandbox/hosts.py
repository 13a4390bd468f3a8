"""Which hosts may be reached, and at which addresses: never one that is not public."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

DEFAULT_PORTS = (80, 443)
RESOLVE_SECONDS = 10
NAT64 = ipaddress.ip_network("64:ff9b::/96")

Permit = Callable[[str], Awaitable[None]]
"""Awaited with "host:port" before the first connection to it; ToolError when it is not allowed."""


class HostRefused(Exception):
    """`str(error)` is one sentence."""


def is_public(address: str) -> bool:
    """Whether an address is in the Internet, also in the forms that wrap an IPv4 address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        nat64 = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in NAT64 else None
        inner = ip.ipv4_mapped or ip.sixtofour or nat64
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


@dataclass(frozen=True, slots=True)
class Hosts:
    """`allowed` are names, `*.example.org`, or either with `:port`; without one, 80 and 443.

    `reachable` tells for each address whether it may be connected to.
    """

    allowed: Sequence[str]
    reachable: Callable[[str], bool] = is_public

    def allow(self, host: str, port: int) -> bool:
        name = host.rstrip(".").lower()
        for entry in self.allowed:
            pattern, _, wanted = entry.lower().partition(":")
            right_port = port == int(wanted) if wanted.isdigit() else port in DEFAULT_PORTS
            if right_port and fnmatchcase(name, pattern):
                return True
        return False

    async def addresses(self, host: str, port: int) -> list[str]:
        """Public addresses of an allowed host, looked up once; HostRefused says why there are none."""
        if not self.allow(host, port):
            raise HostRefused(f"{host}:{port} is not among the hosts that the owner allows.")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, TimeoutError, UnicodeError):
            raise HostRefused(f"The name {host} cannot be resolved.") from None
        addresses = list(dict.fromkeys(str(address[4][0]) for address in found))
        if not addresses:
            raise HostRefused(f"{host} has no address.")
        # One private address among public ones is an attack and not a mistake to work around.
        if not all(self.reachable(address) for address in addresses):
            raise HostRefused(f"{host} has an address that is not public, so it is not reached.")
        return addresses
