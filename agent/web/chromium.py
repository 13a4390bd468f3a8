"""Renders pages that scripts make, with this machine's Chromium.

It runs in a sandbox of its own, without the chat's files and a lasting profile, and reaches the web through the proxy
alone, which checks each request, of scripts, frames and redirects too. Its own sandbox cannot work there.
"""

import os
from dataclasses import replace
from pathlib import Path

from agent.errors import ToolError
from agent.sandbox.bubblewrap import WORKSPACE
from agent.sandbox.hosts import Permit, WholeWeb
from agent.sandbox.limits import SandboxLimits
from agent.sandbox.proxy import EgressProxy
from agent.sandbox.sandbox import BASH, Sandbox
from agent.sandbox.unprivileged_server import PROXY_PORT
from agent.web.fetch import HEADERS, MOST_BYTES, Downloaded

SECONDS = 20
LEAST = 132  # the version from which --headless takes the extension
LIMITS = SandboxLimits(memory_mib=1024, pids=512, disk_mib=64)  # each of its threads counts
PROGRAM = Path("/usr/lib/chromium/chromium")  # what is on PATH is a script that reads /etc
# What it would ask for itself: these go past the proxy, into a network without a way out.
OWN_HOSTS = ("accounts.google.com", "clients2.google.com", "update.googleapis.com", "*.gvt1.com")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--in-process-gpu", "--mute-audio"),
    *("--user-data-dir=/tmp/profile", "--disable-dev-shm-usage", "--disable-breakpad"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--blink-settings=imagesEnabled=false", f"--user-agent={HEADERS['User-Agent']}"),
    f"--proxy-server=http://127.0.0.1:{PROXY_PORT}",
    f"--proxy-bypass-list={';'.join(('<-loopback>', *OWN_HOSTS))}",  # loopback too goes to the proxy
    *("--load-extension=/tmp", "--disable-features=DisableLoadExtensionCommandLineSwitch"),
    "--dump-dom",
)
# 10 s of the page's own clock pass in a moment. It stands still for ever where a page begins a navigation that
# becomes none, such as a download: such a page is read as it is after 4 s at most.
SCRIPT = """timeout -s KILL 10 "$@" --virtual-time-budget=10000 2> /dev/null || exec "$@" --timeout=4000 2> /dev/null"""
# An extension, since a dialog would hold the page up, and what stands in shadow roots would not be printed; and a
# preference: no downloads.
INPUTS = {
    "profile/Default/Preferences": b'{"download_restrictions": 3}',
    "quiet.js": b"""window.alert = window.confirm = window.prompt = window.print = () => {};
        { const roots = [], attach = Element.prototype.attachShadow;
        Element.prototype.attachShadow = function (how) { roots.push(attach.call(this, how)); return roots.at(-1) };
        Object.defineProperty(HTMLHtmlElement.prototype, "outerHTML", { get() { return "<html>"
            + this.getHTML({ shadowRoots: roots }).replaceAll(/<template shadowrootmode[^>]*>/g, "<p>")
            .replaceAll("</template>", "</template><p>") } }) }""",
    "manifest.json": b"""{"manifest_version": 3, "name": "quiet", "version": "1", "content_scripts": [{"js": ["quiet.js"],
        "matches": ["<all_urls>"], "run_at": "document_start", "world": "MAIN", "all_frames": true}]}""",
}


async def render(page: Downloaded, hosts: WholeWeb, permit: Permit, box: Sandbox) -> Downloaded:
    """The page as its scripts have made it; ToolError says why that fails. `permit` is awaited before its requests."""
    if not PROGRAM.exists():
        raise ToolError("There is no Chromium here; the owner can: apt install chromium.")
    if page.cut:
        raise ToolError(f"{page.url} has more than {MOST_BYTES >> 20} MiB, which is not rendered.")
    proxy = EgressProxy(hosts, permit, observer=box.observer)
    config = replace(box.config, limits=LIMITS, repos={}, guards={})
    box = Sandbox(config, box.chat, config.rootfs.root / WORKSPACE[1:])  # an empty folder
    command = [*BASH, SCRIPT, "render", os.fspath(PROGRAM), *FLAGS, page.url]
    try:
        raw = await box.read_internal(
            command, seconds=SECONDS, inputs=INPUTS, inner=True, proxy=proxy
        )
    except ToolError as error:
        raise ToolError(f"{page.url} could not be rendered. {error}") from None
    return replace(page, charset="utf-8", raw=raw[:MOST_BYTES], cut=len(raw) > MOST_BYTES)
