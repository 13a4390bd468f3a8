"""Which hosts may be reached, and at which addresses: never one that is not public."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

DEFAULT_PORTS = (80, 443)
RESOLVE_SECONDS = 10
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # the way to IPv4 in networks that have IPv6 alone
# Beyond what Python 3.11 calls not global. Tunnels that wrap an IPv4 address are refused whole.
SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",  # Azure's host: metadata, DNS
        "192.0.0.0/24",  # IETF protocol assignments; Oracle's metadata
        "192.88.99.0/24",  # 6to4 relays
        "::/96",  # IPv4-compatible
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b:1::/48",  # NAT64 of a network of one's own
        "2001::/23",  # IETF protocol assignments; Teredo
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site-local
    )
]

Permit = Callable[[str], Awaitable[None]]
"""Awaited with "host:port" before the first connection to it; ToolError when it is not allowed."""


class HostRefused(Exception):
    """`str(error)` is one sentence."""


def is_public(address: str) -> bool:
    """Whether an address is in the Internet, also in the forms that wrap an IPv4 address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and (ip.ipv4_mapped or ip in NAT64):
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    return ip.is_global and not ip.is_multicast and not any(ip in each for each in SPECIAL)


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
