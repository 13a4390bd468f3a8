// The page: one chat, and what happens in it.

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { byId, copy, openMenu, toast } from "./dom.js";
import { Log } from "./log.js";
import { Waiting } from "./waiting.js";
import { say, translatePage } from "./words.js";

translatePage();

const FAVOURITES = [["👍", say("Thumbs up")], ["❤", say("Heart")], ["🔥", say("Fire")], ["🎉", say("Party")], ["🤔", say("Thinking")], ["👎", say("Thumbs down")]];
const presses = new Map(); // by query id: the button that waits for an answer
let pressing = Promise.resolve(); // until the server has named the query of every press so far
let chat = null; // the server's view
let source = null;

const waiting = new Waiting(() => live());
const log = new Log({
  command: (text) => composer.say(text),
  menu: (message, anchor) => openMenu(anchor, entries(message), FAVOURITES, (emoji) => react(message, emoji)),
  jump: (id) => log.jump(id),
  react,
  press,
});
const composer = new Composer(() => chat.commands);

function react(message, emoji) {
  api.react(message.message_id, emoji).catch((error) => toast(error.message));
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
  const named = api.press(message.message_id, row, column).then(({ query }) => presses.set(query, button));
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

// What is being written or done.
function live() {
  const draft = waiting.draft;
  if (draft) log.showDraft(draft, () => api.stop(draft.thread).catch((error) => toast(error.message)));
  else log.dropDraft();
  const calm = chat.blocked ? say("blocked") : say("bot");
  byId("subtitle").textContent = waiting.line ? `${waiting.line}…` : calm;
  byId("subtitle").classList.toggle("busy", Boolean(waiting.line));
}

function head(view) {
  chat = { ...chat, ...view };
  document.title = byId("title").textContent = chat.title;
  byId("avatar").textContent = [...chat.title][0]?.toUpperCase() ?? "?";
  byId("slash").hidden = !chat.commands.length;
  byId("composer").inert = chat.blocked;
  live();
}

function heard(event) {
  if (event.event === "lost") return location.reload();
  if (event.event === "posted") log.add(event.message);
  if (event.event === "edited") log.replace(event.message);
  if (event.event === "deleted") log.remove(event.ids);
  if (event.event === "answered") answered(event);
  if (event.event === "changed") head(event.view);
  waiting.heard(event);
}

// The browser tries again by itself, except after a refusal.
function closed() {
  byId("offline").hidden = false;
  if (source.readyState !== EventSource.CLOSED) return;
  setTimeout(() => api.home().then(() => location.reload(), closed), 2000);
}

byId("more").addEventListener("click", () => {
  const blocking = chat.blocked ? say("Unblock the bot") : say("Block the bot");
  openMenu(byId("more"), [
    [say("To the newest message"), () => log.toEnd()],
    [blocking, () => api.block(!chat.blocked)],
  ]);
});

async function start() {
  const home = await api.home();
  head(home.view);
  log.root.setAttribute("aria-live", "off");
  if (!home.messages.length) log.welcome(chat.greeting);
  for (const message of home.messages) log.add(message);
  log.toEnd();
  setTimeout(() => log.root.setAttribute("aria-live", "polite"), 300);
  for (const event of home.waiting) waiting.heard(event);
  source = api.listen(home.feed, home.event, {
    event: heard,
    open: () => { byId("offline").hidden = true; },
    closed,
  });
  if (matchMedia("(pointer: fine)").matches) byId("text").focus();
}

start().catch((error) => {
  byId("offline").textContent = error.message;
  byId("offline").hidden = false;
});
