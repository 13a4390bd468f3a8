// Making elements. Text always becomes a text node.

import { say } from "./words.js";

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function icon(path) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

// The heart is a plain sign unless it is asked to be a picture.
export const drawn = (emoji) => (emoji === "❤" ? "❤\ufe0f" : emoji);

export const byId = (id) => document.getElementById(id);

let toastTimer = 0;

export function toast(text) {
  byId("toast").textContent = text;
  byId("toast").classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => byId("toast").classList.remove("shown"), 3500);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(say("Copied"));
  } catch {
    toast(say("The browser did not allow copying"));
  }
}

// A menu at an element: rows of [label, act, danger], and reactions in a first row of their own.
export function openMenu(anchor, entries, reactions = [], react = null) {
  const menu = byId("menu");
  const close = (act) => () => {
    menu.hidePopover();
    anchor.focus({ preventScroll: true });
    act();
  };
  menu.replaceChildren();
  if (reactions.length) {
    const emojis = reactions.map(([emoji, name]) =>
      el("button", { type: "button", role: "menuitem", "aria-label": name, onclick: close(() => react(emoji)) }, drawn(emoji)));
    menu.append(el("div", { class: "emojis" }, ...emojis));
  }
  for (const [label, act] of entries) {
    menu.append(el("button", { type: "button", role: "menuitem", class: "entry", onclick: close(act) }, label));
  }
  menu.showPopover();
  place(menu, anchor.getBoundingClientRect());
  menu.querySelector("button")?.focus();
}

function place(menu, at) {
  const { offsetWidth: width, offsetHeight: height } = menu;
  const left = Math.min(Math.max(8, at.left), innerWidth - width - 8);
  const below = at.bottom + 4;
  const top = below + height < innerHeight - 8 ? below : Math.max(8, at.top - height - 4);
  menu.style.left = `${left}px`;
  menu.style.top = `${top}px`;
}

byId("menu").addEventListener("keydown", (event) => {
  const items = [...byId("menu").querySelectorAll("button")];
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  items.at((items.indexOf(document.activeElement) + step) % items.length)?.focus();
});
