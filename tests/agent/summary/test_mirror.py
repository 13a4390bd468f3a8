"""What an origin has is fetched in the sandbox, from a real server, and the owner's clone stays as it is."""

import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from agent.sandbox.hosts import HostRequest
from agent.sandbox.limits import HostRepo
from agent.sandbox.sandbox import Sandbox
from agent.summary.git_facts import Git, RepoLocation, collect, commit_range, fetch_mirror, subjects
from fakes.sandbox_box import opened
from fakes.web_server import Site, site
from fakes.words import saying
from tests.agent.summary.test_summary import Repository

MIRROR = RepoLocation("/workspace/.fetched/site.git")


class Bare(dict[str, Callable[[], web.StreamResponse]]):
    """The files of a bare repository as git's plain HTTP wants them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, path: str, default: object = None) -> Callable[[], web.StreamResponse]:
        file = self.path / path.removeprefix("/site.git/")
        return lambda: web.FileResponse(file) if file.is_file() else web.Response(status=404)


class Scene:
    def __init__(self, folder: Path, web: Site, object_format: str = "sha1") -> None:
        self.folder, self.web = folder, web
        self.origin = Repository(folder / "origin", object_format)
        self.origin.commit("One", a="1\n")
        self.clone = folder / "clone"
        subprocess.run(["git", "clone", "-q", self.origin.path, self.clone], check=True)
        self.point(f"http://{web.host}/site.git")
        web.pages = Bare(self.origin.path / ".git")

    def point(self, url: str) -> None:
        subprocess.run(["git", "-C", self.clone, "remote", "set-url", "origin", url], check=True)

    def publish(self) -> None:
        self.origin("update-server-info")

    async def fetch(self, sandbox: Sandbox) -> RepoLocation:
        return await fetch_mirror(reaching(sandbox), "/repos/site", "site")


def reaching(sandbox: Sandbox) -> Git:
    async def allowed(_request: HostRequest) -> None:
        pass

    async def run(argv: Sequence[str]) -> bytes:
        return (await sandbox.run(argv, seconds=60, permit=allowed)).output.encode()

    return run


@pytest.fixture(params=["sha1"])
async def scene(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with site() as web:
        yield Scene(tmp_path, web, request.param)


@pytest.mark.parametrize("scene", ["sha1", "sha256"], indirect=True)
async def test_new_commits_are_read_beside_the_clone(scene: Scene) -> None:
    newest = scene.origin.commit("Two", at=10, a="1\n2\n")
    scene.publish()
    subprocess.run(["git", "-C", scene.clone, "tag", "main"], check=True)  # as its branch
    before = sorted(p.relative_to(scene.clone) for p in scene.clone.rglob("*"))
    repos = [HostRepo("site", scene.clone)]
    async with opened(scene.folder, hosts=scene.web.hosts(), repos=repos) as sandboxes:
        sandbox = await sandboxes.of("cli")
        assert await scene.fetch(sandbox) == MIRROR
        head = await sandbox.run(["/usr/bin/git", "-C", MIRROR.path, "rev-parse", "HEAD"])
        assert head.output.strip() == newest
        assert await scene.fetch(sandbox) == MIRROR  # and once more, with nothing new
    assert sorted(p.relative_to(scene.clone) for p in scene.clone.rglob("*")) == before


async def test_what_cannot_be_fetched_is_read_from_the_clone_and_told(scene: Scene) -> None:
    scene.publish()
    clone = scene.clone
    repos = [HostRepo("site", clone)]
    async with opened(scene.folder, hosts=scene.web.hosts(), repos=repos) as sandboxes:
        sandbox = await sandboxes.of("cli")
        scene.point("http://example.org/site.git")
        refused = await scene.fetch(sandbox)
        scene.point("ext::sh -c touch% /workspace/trap")
        trap = await scene.fetch(sandbox)
        scene.point(f"http://{scene.web.host}/site.git")
        author = ["-c", "user.name=A", "-c", "user.email=a@b"]
        subprocess.run(
            ["git", "-C", clone, *author, "commit", "-q", "--allow-empty", "-m", "mine"], check=True
        )
        ahead = await scene.fetch(sandbox)
        listed = await sandbox.run(["/usr/bin/ls", "-A", "/workspace"])
    assert refused.path == "/repos/site" and "403" in refused.note
    assert trap == RepoLocation("/repos/site", saying("not fetched", "HTTPS"))
    assert ahead == RepoLocation("/repos/site", saying("not fetched", "commits", "origin lacks"))
    assert "trap" not in listed.output


async def test_without_network_it_says_so(scene: Scene) -> None:
    repos = [HostRepo("site", scene.clone)]
    async with opened(scene.folder, repos=repos) as sandboxes:
        place = await scene.fetch(await sandboxes.of("cli"))
    assert place.path == "/repos/site" and place.note.startswith("It was not fetched: ")


async def test_facts_are_collected_inside_of_the_sandbox(scene: Scene) -> None:
    repos = [HostRepo("site", scene.clone)]
    async with opened(scene.folder, repos=repos) as sandboxes:
        sandbox = await sandboxes.of("cli")

        async def run(argv: Sequence[str]) -> bytes:
            return await sandbox.read_internal(argv, seconds=60)

        span = await commit_range(run, "/repos/site", days=9000)
        facts = await collect(run, "/repos/site", span)
        assert (facts.commits, facts.by_author, facts.files, facts.added) == (
            1,
            {"Ada Lovelace": 1},
            1,
            1,
        )
        assert await subjects(run, "/repos/site", span) == [f"{facts.head} Ada Lovelace: One"]
