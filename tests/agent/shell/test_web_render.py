"""`web read --render`: pages that scripts make, by the real Chromium, and what such pages may not."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from agent.sandbox.hosts import HostRequest
from agent.sandbox.observer import Observer
from agent.store import Incoming, Store
from agent.tools.bash import bash
from agent.web import chromium
from agent.web.browser import Browser
from fakes.patience import SECONDS
from fakes.sandbox_box import Box, opened, processes_with
from fakes.web_server import Site, site
from fakes.words import saying

LIMIT = chromium.SECONDS
PROFILE = (
    f"profile-{os.getpid()}"  # of this process alone: the attacks of another render pages, too
)
needs_chromium = pytest.mark.skipif(
    not chromium.PROGRAM.exists(), reason="Chromium is not installed"
)

SHOP = """<title>Tea</title><main id=m><p>Loading</p></main><script>
fetch('/prices.json').then(r => r.json()).then(all => setTimeout(() => {
  document.getElementById('m').innerHTML = '<h1>Prices</h1>' + all.map(
    each => `<p>${each.name} costs <a href="/tea/${each.name}">${each.price}</a>.</p>`).join('');
}, 3000));</script>"""
PRICES = '[{"name": "Green", "price": "4.20"}, {"name": "Black", "price": "3.10"}]'
MADE = "Tea\n\n# Prices\n\nGreen costs [4.20][1].\n\nBlack costs [3.10][2]."


@pytest.fixture
async def served() -> AsyncIterator[Site]:
    async with site() as one:
        one.pages["/prices.json"] = lambda: web.Response(
            text=PRICES, content_type="application/json"
        )
        yield one


class Near:
    """Hosts of which localhost alone may be reached, as if its address were public."""

    def __init__(self, port: int) -> None:
        self.port = port

    def marked(self, request: HostRequest) -> HostRequest:
        return request

    async def addresses(self, host: str, port: int) -> list[str]:
        from agent.sandbox.hosts import WholeWeb

        if (host, port) == ("localhost", self.port):
            return await WholeWeb(lambda address: True).addresses(host, port)
        return await WholeWeb().addresses(host, port)


@pytest.fixture
async def box(
    tmp_path: Path, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Box]:
    monkeypatch.setattr(chromium, "SECONDS", SECONDS)  # for a busy machine
    own = [flag.replace("/profile", f"/{PROFILE}") for flag in chromium.FLAGS]
    monkeypatch.setattr(chromium, "FLAGS", own)
    inputs = {name.replace("profile", PROFILE): raw for name, raw in chromium.INPUTS.items()}
    monkeypatch.setattr(chromium, "INPUTS", inputs)
    async with opened(tmp_path / "state") as sandboxes:
        hosts = Near(served.port)
        browser = Browser("cli", store.addresses, hosts=hosts, rendering=True)  # type: ignore[arg-type]
        yield Box(await sandboxes.of("cli"), allows=False, browser=browser)
    assert processes_with(PROFILE) == []


async def reading(box: Box, store: Store, served: Site, page: str, more: str = "") -> str:
    """What `web read --render` gives of a page, whose address a person wrote."""
    url = f"http://{served.host}/page"
    served.pages["/page"] = lambda: web.Response(text=page, content_type="text/html")
    number = str(len(await store.inbox.waiting("cli")))
    await store.inbox.add(Incoming("cli", "test", number, url))
    return await box.text(bash, command=f"web read {url} --render {more}")


@needs_chromium
async def test_what_scripts_make_is_read_and_picked_as_of_any_page(
    box: Box, store: Store, served: Site
) -> None:
    url = f"http://{served.host}/page"
    links = f"\n\n[1]: http://{served.host}/tea/Green\n[2]: http://{served.host}/tea/Black"
    assert await reading(box, store, served, SHOP) == f"{url}\n\n{MADE}{links}"
    assert box.asked == [] and box.strangers == [f"page {url}"]
    before = len(served.seen)
    found = await reading(box, store, served, SHOP, "--grep black.costs")
    assert found == "7: Black costs [3.10][2]."
    assert (await reading(box, store, served, SHOP, "--from 5")).startswith("Green costs")
    assert '"lines": 10' in await reading(box, store, served, SHOP, "--json")
    assert len(served.seen) == before  # it is kept, and apart from the page as it is sent
    assert "Loading" in await box.text(bash, command=f"web read {url}")
    assert "4.20" in await reading(box, store, served, SHOP)


SHADOWS = """<x-shop><i>today</i></x-shop><script>
for (const [name, mode, inner] of [['x-shop', 'closed', '<p>Green costs <slot></slot></p><x-price></x-price>'], ['x-price', 'open', '4.20']])
  customElements.define(name, class extends HTMLElement { constructor() { super(); this.attachShadow({mode}).innerHTML = inner } });
const roots = 1;</script><template>Hidden</template><p>End</p>"""


@needs_chromium
async def test_what_elements_keep_to_themselves_is_read(
    box: Box, store: Store, served: Site
) -> None:
    told = await reading(box, store, served, SHADOWS)
    assert [*told.split()[1:]] == ["Green", "costs", "4.20", "today", "End"]


async def test_off_unless_the_owner_allows_it(box: Box, store: Store, served: Site) -> None:
    assert box.browser
    box.browser = replace(box.browser, rendering=False)
    assert await reading(box, store, served, SHOP) == saying("agent.web.render", "without --render")
    assert served.seen == []
    served.pages["/empty"] = lambda: web.Response(
        text="<script>x</script>", content_type="text/html"
    )
    await store.inbox.add(Incoming("cli", "test", "e", f"http://{served.host}/empty"))
    text = await box.text(bash, command=f"web read http://{served.host}/empty")
    assert text == saying("no text", "--render, where the owner allows that")


async def test_without_chromium_it_says_what_is_missing(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "PROGRAM", Path("/usr/lib/none"))
    assert await reading(box, store, served, SHOP) == saying("apt install chromium")


@needs_chromium
async def test_an_address_that_nobody_wrote_asks_once_and_says_that_scripts_run(
    box: Box, served: Site
) -> None:
    url = f"http://{served.host}/page"
    served.pages["/page"] = lambda: web.Response(text=SHOP, content_type="text/html")
    assert await box.text(bash, command=f"web read {url} --render") == saying("said no")
    assert served.seen == [] and "Its scripts run" in box.asked[0][0]
    box.allows = True
    assert "4.20" in await box.text(bash, command=f"web read {url} --render")
    assert len(box.asked) == 2


PRIVATE = """<main id=m><p>begin</p></main><script>
const add = text => document.getElementById('m').insertAdjacentHTML('beforeend', `<p>${text}</p>`);
for (const url of [URLS]) fetch(url).then(r => r.text()).then(t => add('got ' + t), () => add('refused'));
</script>FRAMES"""


@needs_chromium
async def test_private_addresses_and_files_stay_out_of_reach_of_scripts_frames_and_redirects(
    box: Box, store: Store, served: Site
) -> None:
    async with site() as inner:
        inner.pages["/"] = lambda: web.Response(
            text="SECRET", headers={"Access-Control-Allow-Origin": "*"}
        )
        here = f"127.0.0.1:{inner.port}"
        served.pages["/away"] = lambda: web.Response(
            status=302, headers={"Location": f"http://{here}/"}
        )
        addresses = [f"http://{here}/", f"http://[::1]:{inner.port}/", "http://169.254.169.254/",
                     "file:///etc/passwd", "/away", "http://127.0.0.1:3128/", f"http://{inner.host}/"]  # fmt: skip
        urls = ", ".join(f"'{each}'" for each in addresses)
        frames = "".join(f"<iframe src='{each}'></iframe><img src='{each}'>" for each in addresses)
        page = PRIVATE.replace("URLS", urls).replace("FRAMES", frames)
        text = await reading(box, store, served, page)
        assert inner.seen == [] and "SECRET" not in text and "root:" not in text
        assert text.count("refused") >= 5 and "got" not in text.replace("got said", "")
        # By a script's redirect of the whole page, too.
        for leads in (f"http://{here}/", "file:///etc/passwd", "/away"):
            moving = f"<main><p>begin</p></main><script>location = '{leads}'</script>"
            text = await reading(box, store, served, moving, "--fresh")
            assert inner.seen == [] and "SECRET" not in text and "root:" not in text, leads


@needs_chromium
async def test_pages_that_never_end_are_ended(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LIMIT == 20
    endless = "<main><p>begin</p></main><script>while (true) {}</script>"
    monkeypatch.setattr(chromium, "SECONDS", 3)
    text = await reading(box, store, served, endless)
    assert text == saying("could not be rendered", "time limit of 3 s")
    assert processes_with(PROFILE) == []
    # Timers and requests without end hold up nothing.
    busy = """<main id=m><p>begin</p></main><script>let n = 0;
    setInterval(() => { document.getElementById('m').textContent = `ticked ${++n > 3}` }, 100)</script>"""
    monkeypatch.setattr(chromium, "SECONDS", SECONDS)
    assert "ticked true" in await reading(box, store, served, busy, "--fresh")


@needs_chromium
async def test_memory_is_bounded(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "SECONDS", 8)
    hungry = """<main id=m><p>begin</p></main><script>const all = [];
    for (let n = 0; n < 64; n++) all.push(new Uint8Array(64 << 20).fill(n + 1));
    document.getElementById('m').textContent = 'ate ' + all.length</script>"""
    text = await reading(box, store, served, hungry)
    assert "ate 64" not in text
    long = "<main id=m></main><script>document.getElementById('m').textContent = 'x'.repeat(200 << 20)</script>"
    text = await reading(box, store, served, long, "--fresh")
    assert text == saying("could not be rendered")


@needs_chromium
async def test_a_page_of_200_mb_is_not_rendered(box: Box, store: Store, served: Site) -> None:
    sent = []

    class Endless(web.StreamResponse):
        async def prepare(self, request: web.BaseRequest) -> object:  # type: ignore[override]
            self.content_type = "text/html"
            writer = await super().prepare(request)
            for _ in range(200):
                sent.append(1)
                await self.write(b"<p>tea</p>".ljust(1 << 20))
            return writer

    url = f"http://{served.host}/long"
    served.pages["/long"] = Endless
    await store.inbox.add(Incoming("cli", "test", "l", url))
    text = await box.text(bash, command=f"web read {url} --render")
    assert text == saying("more than 4 MiB", "not rendered") and len(sent) < 100


SCRIPTS = {
    "dialogs": "alert('stop'); confirm('stop'); prompt('stop');",
    "leaving": "window.onbeforeunload = () => 'stay'; print();",
    "download": "const a = document.createElement('a'); a.href = '/file'; a.download = 'x'; document.body.append(a); a.click();",
    "popup": "window.open('/popup');",
    "websocket": "new WebSocket('ws://' + location.host + '/socket').onopen = () => document.body.append('opened');",
    "service-worker": "navigator.serviceWorker && navigator.serviceWorker.register('/worker.js');",
    "error": "throw new Error('no');",
}


@needs_chromium
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("</script><script>".join(SCRIPTS.values()), id="all"),
        *(pytest.param(text, id=name, marks=pytest.mark.slow) for name, text in SCRIPTS.items()),
    ],
)
async def test_what_else_a_page_does_holds_up_nothing(
    box: Box, store: Store, served: Site, script: str
) -> None:
    served.pages["/file"] = lambda: web.Response(
        body=b"x" * 1000, headers={"Content-Disposition": "attachment"}
    )
    served.pages["/worker.js"] = lambda: web.Response(
        text="self.onfetch = () => {}", content_type="text/javascript"
    )
    page = f"<body><main id=m><p>begin</p></main><script>{script}</script><script>document.getElementById('m').insertAdjacentHTML('beforeend', '<p>made</p>')</script>"
    text = await reading(box, store, served, page)
    assert "begin\n\nmade" in text
    assert await box.text(bash, command="ls -A /workspace") == "(done, no output)"


@needs_chromium
async def test_each_request_is_permitted_counted_and_recorded(
    box: Box, store: Store, served: Site
) -> None:
    reached: list[tuple[str, str]] = []

    class Watching(Observer):
        async def connection(self, host: str, refused: str = "") -> None:
            reached.append((host, refused))

    box.sandbox.observer = Watching()
    page = (
        SHOP
        + "<script src='http://169.254.169.254/a.js'></script><script>fetch('http://10.0.0.1/x')</script>"
    )
    assert "4.20" in await reading(box, store, served, page)
    assert {host for host, why in reached if not why} == {served.host}
    assert {host for host, why in reached if why} == {"169.254.169.254:80", "10.0.0.1:80"}


async def test_nothing_of_the_chat_is_there(
    box: Box, store: Store, served: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.sandbox.files.write("diary.txt", b"a")
    monkeypatch.setattr(chromium, "PROGRAM", Path("/usr/bin/find"))
    monkeypatch.setattr(chromium, "FLAGS", ("/workspace", "/repos", "/tmp"))
    monkeypatch.setattr(chromium, "SCRIPT", 'exec "$@"')
    shown = await reading(box, store, served, SHOP)
    assert shown.split()[1:4] == ["/workspace", "/repos", "/tmp"] and "diary" not in shown
