// The page: which chat is open, and what happens in it.

import * as api from "./api.js";
import { brief, timeOf } from "./bubble.js";
import { Composer } from "./composer.js";
import { byId, copy, el, openMenu, toast } from "./dom.js";
import { Log } from "./log.js";
import { Waiting } from "./waiting.js";
import { say, translatePage } from "./words.js";

translatePage();

const FAVOURITES = [["👍", say("Thumbs up")], ["❤", say("Heart")], ["🔥", say("Fire")], ["🎉", say("Party")], ["🤔", say("Thinking")], ["👎", say("Thumbs down")]];
const chats = new Map(); // by id: the server's view, with `unread` and, once open, `messages`
const presses = new Map(); // by query id: the button that waits for an answer
let pressing = Promise.resolve(); // until the server has named the query of every press so far
let me = null;
let bot = null;
let open = null; // {id, thread}
let source = null;
let shows = 0;
let held = null; // events that came while a chat was being fetched

const waiting = new Waiting(() => live());
const log = new Log({
  command: (text) => composer.say(text),
  menu: (message, anchor) => openMenu(anchor, entries(message), FAVOURITES, (emoji) => react(message, emoji)),
  jump: (id) => log.jump(id),
  react,
  press,
});
const composer = new Composer(() => ({ chat: open.id, thread: open.thread, commands: chats.get(open.id).commands }));

function react(message, emoji) {
  api.react(open.id, message.message_id, emoji).catch((error) => toast(error.message));
}

function entries(message) {
  const text = message.text ?? message.caption;
  const own = message.out && text !== undefined;
  return [
    [say("Reply"), () => composer.reply(message)],
    ...(text ? [[say("Copy text"), () => copy(text)]] : []),
    ...(own ? [[say("Edit"), () => composer.edit(message)]] : []),
  ];
}

async function press(message, row, column, key, button) {
  if (key.url) return window.open(key.url, "_blank", "noopener");
  if (key.copy_text) return copy(key.copy_text.text);
  button.setAttribute("aria-busy", "true");
  setTimeout(() => button.removeAttribute("aria-busy"), 15000);
  const named = api.press(open.id, message.message_id, row, column).then(({ query }) => presses.set(query, button));
  pressing = Promise.allSettled([pressing, named]);
  try {
    await named;
  } catch (error) {
    button.removeAttribute("aria-busy");
    toast(error.message);
  }
}

// A quick bot's answer overtakes the response that names its query.
async function answered(event) {
  await pressing;
  const button = presses.get(event.query);
  button?.removeAttribute("aria-busy");
  if (!presses.delete(event.query)) return;
  if (event.url) window.open(event.url, "_blank", "noopener");
  if (!event.text) return;
  if (!event.alert) return toast(event.text);
  byId("alert-text").textContent = event.text;
  byId("alert").showModal();
}

// What is being written or done in the open topic.
function live() {
  if (!open) return;
  const draft = waiting.draft(open.id, open.thread);
  if (draft) log.showDraft(draft, () => api.stop(open.id, open.thread).catch((error) => toast(error.message)));
  else log.dropDraft();
  subtitle();
  list();
}

function subtitle() {
  const chat = chats.get(open.id);
  const line = waiting.line(open.id, open.thread);
  const calm = chat.blocked ? say("blocked") : chat.type === "private" ? say("bot") : say("Members: {count}", { count: chat.members });
  byId("subtitle").textContent = line ? `${line}…` : calm;
  byId("subtitle").classList.toggle("busy", Boolean(line));
}

function initial(title) {
  return [...title][0]?.toUpperCase() ?? "?";
}

function tone(chat) {
  return `tone-${chat.type === "private" ? 0 : 1 + (Math.abs(chat.id) % 4)}`;
}

function lastLine(message) {
  const words = brief(message);
  return message.out ? say("You: {words}", { words }) : words;
}

function list() {
  const rows = [...chats.values()].sort((a, b) => (b.last?.date ?? 0) - (a.last?.date ?? 0));
  byId("chats").replaceChildren(...rows.map((chat) => {
    const busy = waiting.line(chat.id, null);
    const last = chat.last ? lastLine(chat.last) : say("No messages yet");
    return el("li", {}, el("button", { type: "button", "aria-current": chat.id === open?.id ? "true" : null, onclick: () => show(chat.id) },
      el("span", { class: `avatar ${tone(chat)}`, "aria-hidden": "true" }, initial(chat.title)),
      el("span", { class: "line" }, el("strong", {}, chat.title), el("time", {}, chat.last ? timeOf(chat.last) : "")),
      el("span", { class: "line" }, el("span", { class: busy ? "last busy" : "last" }, busy ? `${busy}…` : last),
        chat.unread ? el("span", { class: "badge", "aria-label": say("Unread: {count}", { count: chat.unread }) }, String(chat.unread)) : null)));
  }));
}

function head() {
  const chat = chats.get(open.id);
  document.title = chat.title;
  byId("title").textContent = chat.title;
  byId("avatar").textContent = initial(chat.title);
  byId("avatar").className = `avatar ${tone(chat)}`;
  byId("slash").hidden = !chat.commands.length;
  byId("composer").inert = chat.closed || chat.blocked;
  const pinned = chat.messages?.get(chat.pinned.at(-1));
  byId("pinned").hidden = !pinned;
  byId("pinned").replaceChildren(...(pinned ? [el("strong", {}, say("Pinned")), el("span", {}, brief(pinned))] : []));
  byId("pinned").onclick = () => log.jump(pinned.message_id);
  topics(chat);
  subtitle();
}

function topics(chat) {
  const strip = byId("topics");
  strip.hidden = !chat.forum;
  const tab = (name, thread) => el("button", { type: "button", role: "tab", "aria-selected": String(open.thread === thread), onclick: () => show(chat.id, thread) }, name);
  const tabs = chat.topics.map((topic) => tab(topic.name, topic.message_thread_id));
  const add = el("button", { type: "button", class: "add", "aria-label": say("New topic"), onclick: newTopic }, "+");
  strip.replaceChildren(tab("General", null), ...tabs, add);
  strip.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

async function newTopic() {
  const name = await question(say("Name of the topic"));
  if (!name) return;
  try {
    const topic = await api.createTopic(open.id, name);
    await show(open.id, topic.message_thread_id);
  } catch (error) {
    toast(error.message);
  }
}

function question(label) {
  const dialog = byId("prompt");
  byId("prompt-label").textContent = label;
  byId("prompt-input").value = "";
  dialog.returnValue = "";
  dialog.showModal();
  byId("prompt-input").focus();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "ok" ? byId("prompt-input").value.trim() : "");
  });
}

byId("prompt-input").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  byId("prompt").close("ok");
});

function here(message) {
  return (message.message_thread_id ?? null) === open.thread;
}

// What a fetched chat tells may be older than the events that have come meanwhile: they wait.
async function fetched(id) {
  const number = ++shows;
  held ??= [];
  let history = null;
  try {
    history = await api.history(id);
  } finally {
    if (number === shows && !history) go(() => true);
  }
  return number === shows ? history : null; // another chat was opened meanwhile
}

function go(wanted) {
  const events = held;
  held = null;
  for (const [event, at] of events) if (wanted(event, at)) heard(event, at);
}

async function show(id, thread = null) {
  const history = await fetched(id);
  if (!history) return;
  open = { id, thread };
  chats.set(id, { ...history, unread: 0, messages: new Map(history.messages.map((message) => [message.message_id, message])) });
  document.body.classList.add("open");
  composer.drop();
  log.clear();
  log.names = history.type !== "private";
  log.root.setAttribute("aria-live", "off");
  if (!history.messages.length && history.type === "private") log.welcome(history.greeting);
  for (const message of history.messages.filter(here)) log.add(message);
  log.toEnd();
  setTimeout(() => log.root.setAttribute("aria-live", "polite"), 300);
  for (const event of history.waiting) waiting.heard(event);
  go((event, at) => event.chat !== id || at > history.event);
  head();
  live();
  if (matchMedia("(pointer: fine)").matches) byId("text").focus();
}

function posted(event) {
  const chat = chats.get(event.chat);
  if (!chat) return reload();
  chat.last = event.message;
  const seen = open?.id === event.chat && document.body.classList.contains("open");
  if (!seen) chat.unread = (chat.unread ?? 0) + (event.message.out ? 0 : 1);
  if (chat.messages?.has(event.message.message_id)) return;
  chat.messages?.set(event.message.message_id, event.message);
  if (open?.id === event.chat && here(event.message)) log.add(event.message);
}

function edited(event) {
  const chat = chats.get(event.chat);
  chat?.messages?.set(event.message.message_id, event.message);
  if (chat?.last?.message_id === event.message.message_id) chat.last = event.message;
  if (open?.id === event.chat) log.replace(event.message);
}

function deleted(event) {
  const chat = chats.get(event.chat);
  for (const id of event.ids) chat?.messages?.delete(id);
  if (chat?.messages) chat.last = [...chat.messages.values()].at(-1) ?? null;
  if (open?.id === event.chat) log.remove(event.ids);
}

function changed(event) {
  const chat = chats.get(event.chat);
  chats.set(event.chat, { ...chat, ...event.view });
  if (open?.id === event.chat) head();
}

function heard(event, at) {
  if (event.event === "lost") return reload();
  if (held) return held.push([event, at]);
  if (event.event === "posted") posted(event);
  if (event.event === "edited") edited(event);
  if (event.event === "deleted") deleted(event);
  if (event.event === "answered") answered(event);
  if (event.event === "changed") changed(event);
  waiting.heard(event);
  list();
}

// The browser tries again by itself, except after a refusal.
function closed() {
  byId("offline").hidden = false;
  if (source.readyState !== EventSource.CLOSED) return;
  setTimeout(() => api.home().then(reload, closed), 2000);
}

function reload() {
  location.reload();
}

byId("back").addEventListener("click", () => {
  document.body.classList.remove("open");
  byId("chats").querySelector('[aria-current="true"]')?.focus();
});

byId("more").addEventListener("click", () => {
  const chat = chats.get(open.id);
  const blocking = chat.blocked ? say("Unblock the bot") : say("Block the bot");
  openMenu(byId("more"), [
    [say("To the newest message"), () => log.toEnd()],
    ...(chat.forum ? [[say("New topic"), newTopic]] : []),
    ...(chat.type === "private" ? [[blocking, () => api.block(open.id, !chat.blocked)]] : []),
  ]);
});

async function start() {
  const home = await api.home();
  me = home.me;
  bot = home.bot;
  for (const chat of home.chats) chats.set(chat.id, { ...chat, unread: 0 });
  document.body.classList.toggle("single", chats.size < 2);
  document.body.dataset.me = me.id;
  document.body.dataset.bot = bot.id;
  source = api.listen(home.feed, home.event, {
    event: heard,
    open: () => { byId("offline").hidden = true; },
    closed,
  });
  list();
  await show(home.chats[0].id);
}

start().catch((error) => {
  document.body.classList.add("open");
  byId("offline").textContent = error.message;
  byId("offline").hidden = false;
});
