"""Indexes of PyPI's and npm's forms on loopback, with releases of one package `tea-server`, whose program prints its
version."""

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from aiohttp import web
from aiohttp.test_utils import TestServer

PACKAGE = "tea-server"


def wheel(version: str) -> bytes:
    info = f"tea_server-{version}.dist-info"
    files = {
        "tea_server.py": f"def main():\n    print('{version}')\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{PACKAGE} = tea_server:main\n",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", record)
    return packed.getvalue()


def tarball(version: str) -> bytes:
    about = f'{{"name":"{PACKAGE}","version":"{version}","bin":"run.js"}}'
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in (("package.json", about), ("run.js", f"console.log('{version}')")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@asynccontextmanager
async def package_index(ages: Mapping[str, int]) -> AsyncIterator[str]:
    """Its address; `ages` of releases in days. The form of PyPI is below /simple/."""
    now = datetime.now(UTC)
    times = {
        version: f"{now - timedelta(days=days):%Y-%m-%dT%H:%M:%S.000Z}"
        for version, days in ages.items()
    }
    wheels = {version: wheel(version) for version in ages}
    tarballs = {version: tarball(version) for version in ages}

    def address(request: web.Request, name: str) -> str:
        return f"http://{request.host}/files/{name}"

    async def pypi(request: web.Request) -> web.Response:
        files = [
            {
                "filename": f"tea_server-{version}-py3-none-any.whl",
                "url": address(request, f"tea_server-{version}-py3-none-any.whl"),
                "hashes": {"sha256": hashlib.sha256(packed).hexdigest()},
                "upload-time": times[version],
            }
            for version, packed in wheels.items()
        ]
        page = {"meta": {"api-version": "1.1"}, "name": PACKAGE, "files": files}
        return web.json_response(page, content_type="application/vnd.pypi.simple.v1+json")

    async def npm(request: web.Request) -> web.Response:
        versions = {
            version: {
                "name": PACKAGE,
                "version": version,
                "bin": {PACKAGE: "run.js"},
                "dist": {
                    "tarball": address(request, f"{version}.tgz"),
                    "integrity": f"sha512-{base64.b64encode(hashlib.sha512(packed).digest()).decode()}",
                },
            }
            for version, packed in tarballs.items()
        }
        latest = {"latest": max(versions)}
        return web.json_response(
            {"name": PACKAGE, "dist-tags": latest, "versions": versions, "time": times}
        )

    async def file(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        packed = {f"{version}.tgz": body for version, body in tarballs.items()} | {
            f"tea_server-{version}-py3-none-any.whl": body for version, body in wheels.items()
        }
        return web.Response(body=packed[name])

    app = web.Application()
    app.router.add_get(f"/simple/{PACKAGE}/", pypi)
    app.router.add_get(f"/{PACKAGE}", npm)
    app.router.add_get("/files/{name}", file)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"
