// The page: the server tells the whole chat whenever something happens in it; what changed is drawn anew.

import { bubble, el, format } from "./message.js";
import { LANGUAGE, say, translatePage } from "./words.js";

translatePage();

const NEAR = 80; // pixels from the end that still count as reading the newest
const PICTURES = ["image/png", "image/jpeg"];
const PICTURE_BYTES = 10 * 2 ** 20;
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const byId = (id) => document.getElementById(id);
const [log, field] = [byId("log"), byId("text")];
const drawn = new Map(); // by key: what is drawn, and its node
let chat = { commands: [], messages: [] };
let following = true;
let toastTimer = 0;

// -- the server ------------------------------------------------------------------

async function ask(path, body) {
  const json = body instanceof FormData ? {} : { headers: { "Content-Type": "application/json" } };
  const sent = body instanceof FormData ? body : JSON.stringify(body);
  try {
    const response = await fetch(`/api/${path}`, { method: "POST", body: sent, ...json }).catch(() => {
      throw new Error(say("The demo does not answer: nothing was sent. Is make demo still running in its terminal?"));
    });
    if (!response.ok) throw new Error((await response.text()) || response.statusText);
    return await response.json();
  } catch (error) {
    toast(error.message);
    return null;
  }
}

function listen() {
  const source = new EventSource(`/api/events?language=${LANGUAGE}`);
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onopen = () => { byId("offline").hidden = true; };
  source.onerror = () => { // the browser tries again by itself, except after a refusal
    byId("offline").hidden = false;
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

function toast(text) {
  byId("toast").textContent = text;
  byId("toast").classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => byId("toast").classList.remove("shown"), 3500);
}

// -- the conversation --------------------------------------------------------------

const acts = {
  command: (text) => ask("send", { text }),
  copy: (text) => navigator.clipboard.writeText(text).then(() => toast(say("Copied")), () => toast(say("The browser did not allow copying"))),
  async press(message, row, column, key, button) {
    if (key.url) return window.open(key.url, "_blank", "noopener");
    if (key.copy_text) return acts.copy(key.copy_text.text);
    button.setAttribute("aria-busy", "true");
    const answer = await ask("press", { message: message.message_id, row, column });
    button.removeAttribute("aria-busy");
    if (answer?.url) window.open(answer.url, "_blank", "noopener");
    if (answer?.text) (answer.alert ? alert : toast)(answer.text);
  },
};

function show(view) {
  const first = chat.title === undefined;
  const said = view.messages.at(-1)?.message_id !== chat.messages.at(-1)?.message_id && view.messages.at(-1)?.out;
  chat = view;
  document.title = byId("title").textContent = chat.title;
  byId("avatar").textContent = [...chat.title][0].toUpperCase();
  byId("slash").hidden = !chat.commands.length;
  byId("subtitle").textContent = chat.action ? `${chat.action === "typing" ? say("typing") : say("working")}…` : say("bot");
  byId("subtitle").classList.toggle("busy", Boolean(chat.action));
  draw();
  if (first) setTimeout(() => log.setAttribute("aria-live", "polite"), 300);
  if (following || said) log.scrollTop = log.scrollHeight;
}

// Nodes whose content is as it was stay; the others take their places.
function draw() {
  const parts = [];
  if (!chat.messages.length) parts.push(["welcome", chat.greeting, () => welcome(chat.greeting)]);
  let last = "";
  for (const message of chat.messages) {
    const label = day.format(message.date * 1000);
    if (label !== last) parts.push([label, label, () => el("p", { class: "day" }, label)]);
    last = label;
    parts.push([message.message_id, message, () => bubble(message, acts)]);
  }
  if (chat.draft) parts.push(["draft", chat.draft, () => draft(chat.draft)]);
  const nodes = parts.map(([key, content, make]) => {
    const [now, old] = [JSON.stringify(content), drawn.get(key)];
    if (old?.content === now) return old.node;
    const node = make();
    if (old) node.classList.add("still");
    drawn.set(key, { content: now, node });
    return node;
  });
  nodes.forEach((node, at) => {
    if (log.children[at] !== node) log.insertBefore(node, log.children[at] ?? null);
  });
  while (log.children.length > nodes.length) log.lastElementChild.remove();
  const kept = new Set(parts.map(([key]) => key));
  for (const key of drawn.keys()) if (!kept.has(key)) drawn.delete(key);
}

// An empty chat: what the bot says of itself, and the way to begin.
function welcome(text) {
  return el("div", { class: "welcome" }, text ? el("p", {}, text) : null,
    el("button", { type: "button", class: "start", onclick: () => acts.command("/start") }, say("Start")));
}

// A text that is being written: quiet for screen readers until it is a message.
function draft({ text, entities, can_stop, thread }) {
  const body = text ? format(text, entities, acts) : [el("span", { class: "thinking" }, say("Thinking…"))];
  const stop = can_stop ? el("button", { type: "button", class: "stop", onclick: () => ask("stop", { thread }) }, say("Stop")) : null;
  return el("article", { class: "message draft", "aria-live": "off", "aria-busy": "true", "aria-label": say("Being written") },
    el("div", { class: "bubble" }, el("div", { class: "text" }, ...body), stop));
}

log.addEventListener("scroll", () => { following = log.scrollHeight - log.clientHeight - log.scrollTop < NEAR; });
log.addEventListener("load", () => { if (following) log.scrollTop = log.scrollHeight; }, true);
new ResizeObserver(() => { if (following) log.scrollTop = log.scrollHeight; }).observe(log);

// -- the field at the bottom -------------------------------------------------------

function fill(text) {
  field.value = text;
  typed();
}

async function submit() {
  const text = field.value.trim();
  if (!text) return;
  fill("");
  if (!(await ask("send", { text }))) fill(text);
}

async function upload(files) {
  let caption = field.value.trim();
  fill("");
  for (const file of files) {
    const form = new FormData();
    form.append("kind", PICTURES.includes(file.type) && file.size <= PICTURE_BYTES ? "photo" : "document");
    form.append("caption", caption);
    form.append("file", file, file.name);
    await ask("upload", form);
    caption = "";
  }
}

function typed() {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, 160)}px`;
  offer(/^\/\w*$/.test(field.value) ? field.value.slice(1).toLowerCase() : null);
}

// The commands that begin so; null closes the list.
function offer(prefix) {
  const found = prefix === null ? [] : chat.commands.filter(({ command }) => command.startsWith(prefix));
  byId("commands").replaceChildren(...found.map(({ command, description }, at) =>
    el("li", { id: `command-${at}`, role: "option", onclick: () => { fill(""); acts.command(`/${command}`); field.focus(); } },
      el("strong", {}, `/${command}`), el("span", {}, description))));
  byId("commands").hidden = !found.length;
  byId("slash").setAttribute("aria-expanded", String(found.length > 0));
  choose(0);
}

function choose(at) {
  const items = [...byId("commands").children];
  items.forEach((item) => item.setAttribute("aria-selected", "false"));
  const item = items.at(at % items.length);
  item?.setAttribute("aria-selected", "true");
  item?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", item?.id ?? "");
}

function pressed(event) {
  const items = [...byId("commands").children];
  const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") {
    offer(null);
  } else if (items.length && step) {
    choose(at + step);
  } else if (items.length && (event.key === "Enter" || event.key === "Tab")) {
    items[at].click();
  } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    submit();
  } else {
    return;
  }
  event.preventDefault();
}

field.addEventListener("input", typed);
field.addEventListener("keydown", pressed);
byId("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
byId("slash").addEventListener("click", () => { offer(byId("commands").hidden ? "" : null); field.focus(); });
byId("attach").addEventListener("click", () => byId("files").click());
byId("files").addEventListener("change", async () => { await upload([...byId("files").files]); byId("files").value = ""; });
listen();
if (matchMedia("(pointer: fine)").matches) field.focus();
