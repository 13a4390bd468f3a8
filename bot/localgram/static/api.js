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

function post(act, body) {
  return ask(act, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

export const home = () => ask("home");
export const send = (text, reply_to) => post("send", { text, reply_to });
export const edit = (message, text) => post("edit", { message, text });
export const press = (message, row, column) => post("press", { message, row, column });
export const react = (message, emoji) => post("react", { message, emoji });
export const stop = (thread) => post("stop", { thread });
export const block = (blocked) => post("block", { blocked });
export const fileUrl = (file) => `/api/files/${encodeURIComponent(file.file_unique_id)}`;

export function upload(file, fields) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value) form.append(name, value);
  form.append("file", file, file.name || "file");
  return ask("upload", { method: "POST", body: form });
}

export function listen(feed, after, { event, open, closed }) {
  const place = new URLSearchParams({ ...(user && { user }), feed, after });
  const source = new EventSource(`/api/events?${place}`);
  source.onmessage = (message) => event(JSON.parse(message.data));
  source.onopen = open;
  source.onerror = closed;
  return source;
}
