// The sections, each in a module of its own, and the address behind "#" that says which is shown.

import { Closed, enter, follow, keepToken, open, token } from "./api.js";
import { byId, empty, h } from "./dom.js";
import { showChats } from "./chats.js";
import { showDeliveries } from "./deliveries.js";
import { showJobs } from "./jobs.js";
import { showLogs } from "./logs.js";
import { showNow } from "./now.js";
import { showPeople } from "./people.js";
import { showSettings } from "./settings.js";
import { showTurns } from "./turns.js";

const SECTIONS = {
  now: ["Now", showNow],
  turns: ["Turns", showTurns],
  chats: ["Chats", showChats],
  jobs: ["Jobs", showJobs],
  deliveries: ["Deliveries", showDeliveries],
  people: ["People", showPeople],
  settings: ["Settings", showSettings],
  logs: ["Logs", showLogs],
};

const main = byId("main");
let latest = null;
let shown = null; // { name, update }
let visit = 0;

function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { name: name in SECTIONS ? name : "now", rest, query: new URLSearchParams(query) };
}

async function show({ focus = true } = {}) {
  const here = route();
  const mine = ++visit;
  for (const link of byId("nav").querySelectorAll("a")) {
    if (link.dataset.name === here.name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
  const [title, view] = SECTIONS[here.name];
  document.title = `${title} · Voltaire`;
  const into = h("div.view", { "data-view": location.hash });
  shown = null;
  try {
    const update = await view(into, here, () => latest);
    if (mine !== visit) return;
    shown = { name: here.name, update };
    main.replaceChildren(into);
    if (focus) main.focus({ preventScroll: true });
    scrollTo(0, 0);
    if (latest) update?.(latest);
  } catch (error) {
    if (mine === visit) main.replaceChildren(wrong(error));
  }
}

function wrong(error) {
  if (error instanceof Closed) {
    return h("div.closed", h("h1", "This page is closed"), h("p", error.message), h("p", "In a terminal of the machine: ", h("code", "voltaire page")));
  }
  return h("div.closed", h("h1", "That did not work"), empty(error instanceof TypeError ? "Nobody answers: is the page still served?" : error.message));
}

function link(well) {
  byId("link").textContent = well ? "live" : "not connected";
  byId("link").classList.toggle("off", !well);
}

function badges(now) {
  const counts = {
    now: now.running?.length,
    deliveries: now.uncertain,
    people: now.questions?.length,
  };
  let moved = false;
  for (const a of byId("nav").querySelectorAll("a")) {
    const count = counts[a.dataset.name] || 0;
    const badge = a.querySelector(".badge");
    const told = count ? String(count) : "";
    moved ||= badge.textContent !== told;
    badge.textContent = told;
    badge.hidden = !count;
    a.setAttribute("aria-label", SECTIONS[a.dataset.name][0] + (count ? `, ${count} to look at` : ""));
  }
  // A badge that came or went has moved the ones beside it.
  if (moved) byId("nav").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

byId("nav").append(h("ul", Object.entries(SECTIONS).map(([name, [title]]) =>
  h("li", h("a", { href: `#/${name}`, "data-name": name, "aria-label": title }, title, h("span.badge", { hidden: true, "aria-hidden": "true" }))))));
addEventListener("hashchange", () => show());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

const given = new URLSearchParams(location.hash.slice(1));
const signed = given.get("tgWebAppData");
if (given.has("change")) keepToken(given.get("change"));
if (signed || given.has("change")) history.replaceState(null, "", "/");

try {
  try {
    if (signed && !token()) await enter(signed);
    await open();
  } catch (error) {
    if (!signed || !(error instanceof Closed)) throw error;
    await enter(signed);
    await open();
  }
  await show({ focus: false });
  follow((now) => {
    latest = { ...latest, ...now };
    badges(latest);
    shown?.update?.(latest);
  }, link);
} catch (error) {
  main.replaceChildren(wrong(error));
}
