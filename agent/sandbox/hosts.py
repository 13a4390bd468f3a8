"""Which hosts may be reached, and at which addresses: never one that is not public."""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

PORTS = (80, 443)
_RESOLVE_SECONDS = 10


class HostRefused(Exception):
    """`str(error)` is one sentence."""


def public(address: str) -> bool:
    """Whether an address is out in the Internet, also behind the forms that wrap an IPv4 one."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or _translated(ip)
        if inner is not None:
            return public(str(inner))
    return ip.is_global and not ip.is_multicast


@dataclass(frozen=True, slots=True)
class Hosts:
    """`allowed` are names, `*.example.org`, or either with `:port`; without one, 80 and 443.

    `reachable` tells for each address whether it may be connected to.
    """

    allowed: Sequence[str]
    reachable: Callable[[str], bool] = public

    def allow(self, host: str, port: int) -> bool:
        name = host.rstrip(".").lower()
        return any(_matches(entry.lower(), name, port) for entry in self.allowed)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Public addresses of an allowed host, looked up once; HostRefused says why there are none."""
        if not self.allow(host, port):
            raise HostRefused(f"{host}:{port} is not among the hosts that the owner allows.")
        found = await _resolved(host, port)
        if not found:
            raise HostRefused(f"{host} has no address.")
        # One private address among public ones is a trick, not a mistake to work around.
        if not all(self.reachable(address) for address in found):
            raise HostRefused(f"{host} has an address that is not public, so it is not reached.")
        return found


def _matches(entry: str, name: str, port: int) -> bool:
    pattern, _, wanted = entry.partition(":")
    right_port = port == int(wanted) if wanted.isdigit() else port in PORTS
    return right_port and fnmatchcase(name, pattern)


async def _resolved(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_RESOLVE_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        raise HostRefused(f"The name {host} cannot be resolved.") from None
    return list(dict.fromkeys(str(address[4][0]) for address in found))


def _translated(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address in 64:ff9b::/96 (NAT64)."""
    if ip in ipaddress.ip_network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None
