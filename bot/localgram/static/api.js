// The server, as the page sees it.

import { LANGUAGE, say } from "./words.js";

const user = new URLSearchParams(location.search).get("user");
const suffix = `?${new URLSearchParams({ ...(user && { user }), language: LANGUAGE })}`;

const AWAY = say("The demo does not answer: nothing was sent. Is make demo still running in its terminal?");

async function ask(path, options) {
  const response = await fetch(`/api/${path}${suffix}`, options).catch(() => { throw new Error(AWAY); });
  if (!response.ok) throw new Error((await response.text()) || response.statusText);
  return response.json();
}

function post(chat, act, body) {
  return ask(`chats/${chat}/${act}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

export const home = () => ask("home");
export const history = (chat) => ask(`chats/${chat}`);
export const send = (chat, text, thread, reply_to) => post(chat, "send", { text, thread, reply_to });
export const edit = (chat, message, text) => post(chat, "edit", { message, text });
export const press = (chat, message, row, column) => post(chat, "press", { message, row, column });
export const react = (chat, message, emoji) => post(chat, "react", { message, emoji });
export const createTopic = (chat, name) => post(chat, "topics", { name });
export const stop = (chat, thread) => post(chat, "stop", { thread });
export const block = (chat, blocked) => post(chat, "block", { blocked });
export const fileUrl = (file) => `/api/files/${encodeURIComponent(file.file_unique_id)}`;

export function upload(chat, file, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value) form.append(name, value);
  form.append("file", file, file.name || "file");
  return ask(`chats/${chat}/upload`, { method: "POST", body: form });
}

export function listen(feed, after, { event, open, closed }) {
  const place = new URLSearchParams({ ...(user && { user }), feed, after });
  const source = new EventSource(`/api/events?${place}`);
  source.onmessage = (message) => event(JSON.parse(message.data), Number(message.lastEventId));
  source.onopen = open;
  source.onerror = closed;
  return source;
}
