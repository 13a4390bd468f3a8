"""TLS terminated in the proxy of one server's sandbox: a secret replaces its placeholder in one header of requests to
one host, and requests are held to the methods and paths that `network` names.

The sandbox trusts a certificate authority that is made for it, is kept in memory and signs for nobody else. Its program
knows only the placeholder: the value stands in what goes to the host that it is bound to, and is replaced by the
placeholder in the answer. Redirects are followed, if at all, by the client in the sandbox with a request of its own, which
gets the value only for the same host. This is the only file that knows `cryptography`.
"""

import asyncio
import ipaddress
import json
import logging
import os
import re
import secrets
import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from urllib.parse import quote

import aiohttp
import certifi
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from multidict import CIMultiDict
from yarl import URL

from agent.aio import BackgroundTasks
from agent.errors import ToolError
from agent.leaks import forms
from agent.sandbox.hosts import TUNNEL, HostRequest, Hosts
from agent.sandbox.proxy import CONNECT_SECONDS, IDLE_SECONDS, EgressProxy, is_address
from agent.web.fetch import CheckedAddresses

log = logging.getLogger(__name__)

VALID = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)  # whatever the clock
MOST_HOSTS = 100  # whose certificates are kept
SHORTEST_FORM = 6  # characters of an echo that is looked for
PIECE = 1 << 16
NOT_PASSED_ON = {
    *("host", "connection", "keep-alive", "proxy-connection", "proxy-authorization"),
    *("te", "trailer", "transfer-encoding", "upgrade", "expect", "accept-encoding"),
}
NOT_PASSED_BACK = {"connection", "keep-alive", "transfer-encoding", "content-length", "trailer"}
TARGET = re.compile(r"/[!\"$-~]*")  # a path with its query; no fragment, which would be cut off
AUTHORITY_FILE, BUNDLE_FILE = "voltaire-ca.pem", "voltaire-ca-bundle.pem"  # in /tmp of the sandbox
# Where OpenSSL and Go, requests, curl and git read their authorities from; Node adds its file to its own ones.
TRUST = {
    **dict.fromkeys(
        ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"),
        f"/tmp/{BUNDLE_FILE}",  # noqa: S108 - in the sandbox
    ),
    "NODE_EXTRA_CA_CERTS": f"/tmp/{AUTHORITY_FILE}",  # noqa: S108 - in the sandbox
}


@dataclass(frozen=True, slots=True)
class BoundSecret:
    """`value` replaces `placeholder` in the header of requests to `place` ("host:port"), and nowhere else."""

    name: str
    value: str = field(repr=False)
    place: str
    header: str
    placeholder: str = field(default_factory=lambda: f"placeholder-{secrets.token_hex(16)}")

    def within(self, header: str) -> bool:
        return self.placeholder in header or self.placeholder in basic(header)

    def put_into(self, header: str) -> str:
        """The header's value with the secret in it, also within a Basic authorization."""
        if inner := basic(header):
            plain = inner.replace(self.placeholder, self.value)
            return f"{header[:5]} {b64encode(plain.encode()).decode()}"
        return header.replace(self.placeholder, self.value)


def basic(header: str) -> str:
    """User and password of a Basic authorization; empty for another header."""
    scheme, _, coded = header.partition(" ")
    try:
        return b64decode(coded, validate=True).decode() if scheme.lower() == "basic" else ""
    except ValueError:
        return ""


class CertificateAuthority:
    """A certificate authority of one sandbox, kept in memory alone."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Voltaire, one sandbox")])
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False,
            encipher_only=False, decipher_only=False,
        )  # fmt: skip
        built = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        self.certificate = built.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
        self._contexts: dict[str, ssl.SSLContext] = {}

    def context(self, host: str) -> ssl.SSLContext:
        """A server's context with a certificate for that host."""
        if host not in self._contexts:
            if len(self._contexts) >= MOST_HOSTS:
                self._contexts.clear()
            key = ec.generate_private_key(ec.SECP256R1())
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
            own = (
                x509.IPAddress(ipaddress.ip_address(host))
                if is_address(host)
                else x509.DNSName(host)
            )
            usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            built = (
                self._builder(name, key.public_key())
                .add_extension(x509.SubjectAlternativeName([own]), critical=False)
                .add_extension(usage, critical=False)
            )
            certificate = built.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
            private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            self._contexts[host] = server_context(certificate + private)
        return self._contexts[host]

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(VALID[0])
            .not_valid_after(VALID[1])
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(issuer, critical=False)
        )


def server_context(chain: bytes) -> ssl.SSLContext:
    """A context with a certificate and its key, which Python reads only from a file: here one in memory."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    fd = os.memfd_create("chain")
    try:
        os.write(fd, chain)
        context.load_cert_chain(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    return context


class EchoScrubber:
    """Replaces secrets in what comes in pieces. The end of a piece is held back while it may begin one."""

    def __init__(self, forms: Mapping[bytes, bytes]) -> None:
        self._forms = forms
        self._longest = max(map(len, forms), default=0)
        self._any = re.compile(
            b"|".join(map(re.escape, sorted(forms, key=len, reverse=True))) or b"(?!)"
        )
        self._held = b""

    def feed(self, piece: bytes, *, last: bool = False) -> bytes:
        raw = self._any.sub(lambda found: self._forms[found[0]], self._held + piece)
        lengths = range(0 if last else min(len(raw), self._longest - 1), 0, -1)
        held = next((n for n in lengths if any(f.startswith(raw[-n:]) for f in self._forms)), 0)
        self._held = raw[len(raw) - held :]
        return raw[: len(raw) - held]


@dataclass(frozen=True)
class TlsTermination:
    """Made by `tls_termination`. `upstream` verifies the hosts."""

    hosts: Hosts
    secrets: Sequence[BoundSecret]
    authority: CertificateAuthority
    upstream: ssl.SSLContext
    tasks: BackgroundTasks

    @property
    def files(self) -> dict[str, bytes]:
        """The files that the sandbox finds in its /tmp."""
        known = ssl.get_default_verify_paths().cafile or certifi.where()
        own = self.authority.certificate
        return {AUTHORITY_FILE: own, BUNDLE_FILE: Path(known).read_bytes() + b"\n" + own}

    @property
    def variables(self) -> dict[str, str]:
        return TRUST | {secret.name: secret.placeholder for secret in self.secrets}

    def ends(self, host: str, port: int) -> bool:
        """Whether TLS to that host ends here: a secret is bound to it, or `network` allows only some requests."""
        bound = any(secret.place == place_of(host, port) for secret in self.secrets)
        return bound or not self.hosts.marked(HostRequest(TUNNEL, host, port)).listed

    async def connect(
        self, proxy: EgressProxy, host: str, port: int, addresses: Sequence[str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to an HTTPS server in place of that host, which passes requests on to it."""
        ours, theirs = socket.socketpair()
        self.tasks.start(
            self._serve(proxy, host, port, addresses, theirs), f"TLS of a sandbox to {host}"
        )
        return await asyncio.open_connection(sock=ours)

    async def _serve(
        self,
        proxy: EgressProxy,
        host: str,
        port: int,
        addresses: Sequence[str],
        sock: socket.socket,
    ) -> None:
        """Serve one connection, until the client in the sandbox closes it."""
        connector = aiohttp.TCPConnector(
            resolver=CheckedAddresses(addresses), use_dns_cache=False, ssl=self.upstream
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECT_SECONDS, sock_read=IDLE_SECONDS
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            auto_decompress=False,
        ) as session:
            server = OneConnection(partial(self.answer, proxy, host, port, session))
            transport: asyncio.Transport | None = None
            try:
                context = self.authority.context(host.rstrip(".").lower())
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    server, sock, ssl=context, ssl_handshake_timeout=CONNECT_SECONDS
                )
                await server.closed.wait()
            except OSError as error:  # the client does not trust the authority, or went away
                log.info("no TLS with a client of a sandbox: %s", error)
            finally:
                if transport:  # it owns the socket
                    transport.abort()
                else:
                    sock.close()
                await server.shutdown(0)

    async def answer(
        self,
        proxy: EgressProxy,
        host: str,
        port: int,
        session: aiohttp.ClientSession,
        request: web.BaseRequest,
    ) -> web.StreamResponse:
        """Answer one request: checked by method and path, sent with the secret, answered without it."""
        place, target = place_of(host, port), request.raw_path
        authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if not TARGET.fullmatch(target):
                raise ToolError("A request in a tunnel must name a path, not an address.")
            wanted = HostRequest(request.method, host, port, target, "https")
            await proxy.permit(self.hosts.marked(wanted))
            headers = self.sent(place, request.headers.items())
            if place not in proxy.reached:
                await proxy.observer.connection(place)
                proxy.reached.add(place)
        except ToolError as error:
            await proxy.refuse(place, str(error))
            return web.Response(status=403, text=f"{error}\n")
        response: web.StreamResponse | None = None
        try:
            async with session.request(
                request.method,
                URL(f"https://{authority}{target}", encoded=True),
                headers=headers,
                data=request.content if request.body_exists else None,
                allow_redirects=False,
            ) as found:
                if found.headers.get("Content-Encoding", "identity") != "identity":
                    return web.Response(
                        status=502,
                        text=f"{host} answered in a form that cannot be looked through.\n",
                    )
                response = self.passed_back(found)
                await response.prepare(request)
                scrubber = EchoScrubber(self.forms)
                async for piece in found.content.iter_chunked(PIECE):
                    if cleaned := scrubber.feed(piece):
                        await response.write(cleaned)
                await response.write_eof(scrubber.feed(b"", last=True))
                return response
        except (aiohttp.ClientError, OSError, ValueError) as error:
            log.info("%s did not answer a server's request: %s", place, type(error).__name__)
            if response is None or not response.prepared:
                return web.Response(
                    status=502, text=f"{host} did not answer: {type(error).__name__}.\n"
                )
            if request.transport:  # half of an answer is none
                request.transport.abort()
            return response

    def sent(self, place: str, headers: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
        """The headers of a request as the host gets them. Raises ToolError for a placeholder where it may not stand."""
        given = list(headers)
        named = ",".join(value for name, value in given if name.lower() == "connection")
        dropped = NOT_PASSED_ON | {each.strip().lower() for each in named.split(",")}
        kept = CIMultiDict({"Accept-Encoding": "identity"})
        for name, value in given:
            text = value
            for secret in self.secrets:
                if not secret.within(text):
                    continue
                if (secret.header, secret.place) != (name.lower(), place):
                    raise ToolError(
                        f"The placeholder of {secret.name} may stand in the header {secret.header} of requests to "
                        f"{secret.place} alone."
                    )
                text = secret.put_into(text)
            if name.lower() not in dropped:
                kept.add(name, text)
        return kept

    def passed_back(self, found: aiohttp.ClientResponse) -> web.StreamResponse:
        """Return status and headers of the host's answer, without secrets and those of the connection alone."""
        response = web.StreamResponse(status=found.status, reason=self.scrubbed(found.reason or ""))
        for name, value in found.headers.items():
            if name.lower() not in NOT_PASSED_BACK:
                response.headers.add(name, self.scrubbed(value))
        return response

    def scrubbed(self, text: str) -> str:
        raw = text.encode("utf-8", "surrogateescape")
        scrubber = EchoScrubber(self.forms)
        return scrubber.feed(raw, last=True).decode("utf-8", "surrogateescape")

    @cached_property
    def forms(self) -> dict[bytes, bytes]:
        """The forms in which a host may repeat a secret, each with its replacement."""
        found: dict[bytes, bytes] = {}
        for secret in self.secrets:
            raw, in_json = secret.value.encode(), json.dumps(secret.value)[1:-1].encode()
            spelled = (raw, quote(secret.value, safe="").encode(), in_json)
            for form in (*forms(raw), *spelled):
                if len(form) >= SHORTEST_FORM:
                    found[form] = secret.placeholder.encode()
        return found


class OneConnection(web.Server):
    """aiohttp's server for a given connection. `closed` is set when that ends."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(
            handler,
            handler_cancellation=True,
            access_log=None,
            tcp_keepalive=False,
            auto_decompress=False,
        )
        self.closed = asyncio.Event()

    def connection_lost(
        self, handler: web.RequestHandler, exc: BaseException | None = None
    ) -> None:
        super().connection_lost(handler, exc)
        self.closed.set()


def place_of(host: str, port: int) -> str:
    return f"{host.rstrip('.').lower()}:{port}"


@asynccontextmanager
async def tls_termination(
    hosts: Hosts, secrets: Sequence[BoundSecret]
) -> AsyncIterator[TlsTermination]:
    """TLS termination for one sandbox. On leaving, its connections are closed."""
    upstream = await asyncio.to_thread(ssl.create_default_context)
    with suppress(OSError, ssl.SSLError):
        await asyncio.to_thread(upstream.load_verify_locations, certifi.where())
    async with BackgroundTasks() as tasks:
        yield TlsTermination(hosts, secrets, CertificateAuthority(), upstream, tasks)
