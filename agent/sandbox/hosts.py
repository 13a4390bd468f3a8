"""Which hosts may be reached, with which requests and at which addresses: only ever public ones."""

import asyncio
import hashlib
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache

DEFAULT_PORTS = (80, 443)
FIRST_FREE_PORT = 1024  # below are mail, shells and the like
RESOLVE_SECONDS = 10
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # reaches IPv4 from networks with IPv6 only
# All that IANA assigns as public; the rest is in use for meshes and private networks.
GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
# Not public, though Python 3.11 calls it global. Tunnels that wrap an IPv4 address are refused entirely.
SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        "168.63.129.16/32",  # Azure's host: metadata, DNS
        "192.0.0.0/24",  # IETF protocol assignments; Oracle's metadata
        "192.88.99.0/24",  # 6to4 relays
        "2001::/23",  # IETF protocol assignments; Teredo
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
]

READING = ("GET", "HEAD")
LONGEST_PATH = 300  # characters that a permission shows
TUNNEL = "CONNECT"
ENTRY = re.compile(r"(?:(\*|[A-Z]+) +)?([^\s:/@]+)(?::(\d{1,5}))?(/\S*)?")
# Paths that servers read differently: dot segments, also encoded.
AMBIGUOUS = re.compile(r"%(?:2e|2f|5c|25)|\\|/\.{1,2}(?:[/;]|$)", re.IGNORECASE)


class HostRefused(Exception):
    """A host may not be reached; `str(error)` is one sentence."""


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request to a host, as far as it can be seen.

    The `method` of a tunnel is CONNECT: its content is encrypted or not HTTP, and it has no
    `target` (path and query). `program` is the executable that asks, "" where that is not known.
    `listed`: the owner's list covers it.
    """

    method: str
    host: str
    port: int
    target: str = ""
    scheme: str = "http"
    program: str = ""
    listed: bool = False

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def scope(self) -> str:
        """What a permission for it covers (agent.trust): a path with any query, or the host where no more
        can be seen. A request that is not listed is permitted for its program only. A digest stands for a
        long path."""
        digest = f"/sha256:{hashlib.sha256(self.path.encode()).hexdigest()}"
        path = self.path if len(self.path) <= LONGEST_PATH else digest
        url = f"{self.scheme}://{self.place}{path}"
        wish = self.place if self.method == TUNNEL else f"{self.method} {url}"
        return f"network:{wish}" if self.listed else f"request:{wish} by {self.program or '?'}"

    def __str__(self) -> str:
        if self.method == TUNNEL:
            return f"Connect to {self.place}. The traffic is encrypted or not HTTP, so it cannot be inspected."
        return f"{self.method} {self.scheme}://{self.place}{self.target}"


Permit = Callable[[HostRequest], Awaitable[None]]
"""Awaited before a request that has not been permitted yet; raises ToolError when it is not allowed."""


@dataclass(frozen=True, slots=True)
class ListedHost:
    """An entry of the owner's list. An empty `method` admits reading, and a tunnel where there is no `path` either."""

    method: str
    pattern: str
    ports: tuple[int, ...]
    path: str

    @classmethod
    def parse(cls, entry: str) -> "ListedHost":
        """Parse "[METHOD ]HOST[:PORT][/PATH]"; ValueError with a sentence for anything else."""
        found = ENTRY.fullmatch(entry.strip())
        if found is None:
            raise ValueError(
                f"{entry!r} is no host such as docs.python.org, git.example.org:8443 or "
                "POST api.example.org/v1/, without http://"
            )
        method, pattern, port, path = found.groups("")
        return cls(method, pattern.lower(), (int(port),) if port else DEFAULT_PORTS, path)

    def names(self, host: str, port: int) -> bool:
        return port in self.ports and fnmatchcase(host.rstrip(".").lower(), self.pattern)

    def covers(self, request: HostRequest) -> bool:
        if not self.names(request.host, request.port):
            return False
        if request.method == TUNNEL:
            return not self.path and self.method in ("", "*", TUNNEL)
        methods = READING if self.method in ("", "GET") else (self.method,)
        folder = self.path if self.path.endswith("/") else f"{self.path}/"
        within = request.path == self.path or request.path.startswith(folder)
        right_path = not self.path or (within and not AMBIGUOUS.search(request.path))
        return right_path and (self.method == "*" or request.method in methods)


listed_host = lru_cache(ListedHost.parse)


def is_public(address: str) -> bool:
    """Whether an address is on the public Internet, also one that wraps an IPv4 address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and (ip.ipv4_mapped or ip in NAT64):
        return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
    assigned = ip.version == 4 or ip in GLOBAL_UNICAST
    return assigned and ip.is_global and not ip.is_multicast and not any(ip in s for s in SPECIAL)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of the owner's list. `allowed` are entries for ListedHost: names or `*.example.org`, with a
    `:port` or for 80 and 443. `reachable` tells of an address whether it may be connected to."""

    allowed: Sequence[str]
    reachable: Callable[[str], bool] = is_public

    def allow(self, host: str, port: int) -> bool:
        return any(listed_host(entry).names(host, port) for entry in self.allowed)

    def marked(self, request: HostRequest) -> HostRequest:
        """Mark the request as `listed` if an entry covers it."""
        listed = any(listed_host(entry).covers(request) for entry in self.allowed)
        return replace(request, listed=listed)

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of an allowed host, resolved once; HostRefused says why there are none."""
        if not self.allow(host, port):
            raise HostRefused(f"{host}:{port} is not among the hosts that the owner allows.")
        return await resolved(host, port, self.reachable)


@dataclass(frozen=True, slots=True)
class WholeWeb:
    """Every host, at ports of the web, with the interface of Hosts; which pages may be read is decided elsewhere."""

    reachable: Callable[[str], bool] = is_public

    def marked(self, request: HostRequest) -> HostRequest:
        """Return the request unchanged, as there is no list."""
        return request

    async def addresses(self, host: str, port: int) -> list[str]:
        if port not in DEFAULT_PORTS and port < FIRST_FREE_PORT:
            raise HostRefused(f"Port {port} is not a port of the web.")
        return await resolved(host, port, self.reachable)


async def resolved(host: str, port: int, reachable: Callable[[str], bool]) -> list[str]:
    """The addresses of a host, resolved once; HostRefused where there is none, or one is not `reachable`."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        raise HostRefused(f"The name {host} cannot be resolved.") from None
    addresses = list(dict.fromkeys(str(address[4][0]) for address in found))
    if not addresses:
        raise HostRefused(f"{host} has no address.")
    # A private address among public ones is an attack, not a mistake to work around.
    if not all(reachable(address) for address in addresses):
        raise HostRefused(f"{host} has an address that is not public, so it is not reached.")
    return addresses
