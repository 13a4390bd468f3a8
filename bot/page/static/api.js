// Requests to the page's own address, and what is new, for as long as somebody looks.

import { toast } from "./dom.js";

export let session = { parts: [], reasons: [] };

// The change token of the session; other ports of this host cannot read it.
export const token = () => localStorage.getItem("change") ?? "";
export const keepToken = (given) => localStorage.setItem("change", given);

export class Closed extends Error {}

async function answered(response) {
  if (response.ok) return response.json();
  const text = (await response.text()) || `HTTP ${response.status}`;
  throw response.status === 403 ? new Closed(text) : new Error(text);
}

export const get = async (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  const text = new URLSearchParams(given.map(([name, value]) => [name, value === true ? "1" : value])).toString();
  return answered(await fetch(`/api/${path}${text && `?${text}`}`));
};

// Inside of Telegram the address says who opened the page, signed.
export async function enter(signed) {
  const response = await fetch("/api/telegram", { method: "POST", headers: { "Content-Type": "application/json" }, body: signed });
  keepToken((await answered(response)).token);
}

export async function open() {
  session = await get("session");
}

// One change; what happened is said. Its answer, or null where nothing was changed.
export async function press(change, fields = {}, { quiet = false } = {}) {
  try {
    const response = await fetch(`/api/do/${change}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Voltaire-Change": token() },
      body: JSON.stringify(fields),
    });
    const { told } = await answered(response);
    if (!quiet) toast(told);
    return told;
  } catch (error) {
    toast(error instanceof TypeError ? "Nobody answers: is the page still served? Look again before you press once more." : error.message);
    return null;
  }
}

// What is new; the stream ends while the page is hidden.
export function follow(onNow, onLink) {
  let stream = null;
  const start = () => {
    if (stream || document.hidden) return;
    stream = new EventSource("/api/live");
    stream.addEventListener("now", (event) => {
      onLink(true);
      onNow(JSON.parse(event.data));
    });
    stream.onerror = () => onLink(false);
  };
  const stop = () => {
    stream?.close();
    stream = null;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  start();
}
