// A text and its entities become elements. Offsets are those of JavaScript's own strings.

import { copy, el, icon } from "./dom.js";
import { say } from "./words.js";

const COPY = "M9 9V5.5A1.5 1.5 0 0110.5 4h8A1.5 1.5 0 0120 5.5v8a1.5 1.5 0 01-1.5 1.5H15M5.5 9h8A1.5 1.5 0 0115 10.5v8a1.5 1.5 0 01-1.5 1.5h-8A1.5 1.5 0 014 18.5v-8A1.5 1.5 0 015.5 9z";
const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"]);
const SIMPLE = { bold: "strong", italic: "em", underline: "u", strikethrough: "s" };
const SAFE_LINK = /^(https?|mailto|tg):/i;

// `command` is called with a bot command that was pressed.
export function format(text, entities, command) {
  const fragment = document.createDocumentFragment();
  fragment.append(...spans(text, 0, text.length, [...(entities ?? [])], command));
  return fragment;
}

function spans(text, start, end, entities, command) {
  const nodes = [];
  let at = start;
  while (entities.length) {
    const entity = entities.shift();
    const last = Math.min(entity.offset + entity.length, end);
    if (entity.offset < at) continue;
    const inner = [];
    while (entities.length && entities[0].offset < last) inner.push(entities.shift());
    const block = BLOCKS.has(entity.type);
    if (entity.offset > at) nodes.push(block ? text.slice(at, entity.offset).replace(/\n{1,2}$/, "") : text.slice(at, entity.offset));
    const children = spans(text, entity.offset, last, inner, command);
    nodes.push(element(entity, text.slice(entity.offset, last), children, command));
    at = last;
    if (block) at += /^\n{0,2}/.exec(text.slice(at, end))[0].length;
  }
  if (at < end) nodes.push(text.slice(at, end));
  return nodes;
}

function element(entity, raw, children, command) {
  if (SIMPLE[entity.type]) return el(SIMPLE[entity.type], {}, ...children);
  switch (entity.type) {
    case "code":
      return el("code", {}, ...children);
    case "pre":
      return code(raw, entity.language);
    case "blockquote":
      return el("blockquote", {}, ...children);
    case "expandable_blockquote":
      return folded(children);
    case "spoiler":
      return spoiler(children);
    case "text_link":
      return link(entity.url, children);
    case "url":
      return link(/^[a-z][a-z0-9+.-]*:/i.test(raw) ? raw : `https://${raw}`, children);
    case "email":
      return link(`mailto:${raw}`, children);
    case "bot_command":
      return el("button", { type: "button", class: "link", onclick: () => command(raw) }, ...children);
    case "mention":
    case "text_mention":
    case "hashtag":
    case "cashtag":
      return el("span", { class: "tag" }, ...children);
    default:
      return el("span", {}, ...children);
  }
}

function link(url, children) {
  if (!SAFE_LINK.test(url)) return el("span", { class: "tag" }, ...children);
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

function code(raw, language) {
  const button = el("button", { type: "button", "aria-label": say("Copy the code"), onclick: () => copy(raw) }, icon(COPY));
  const head = el("div", { class: "code-head" }, el("span", {}, language ?? ""), button);
  const label = language ? say("Code, {language}", { language }) : say("Preformatted text");
  const body = el("pre", { tabindex: 0, role: "region", "aria-label": label }, el("code", {}, raw));
  return el("div", { class: "code" }, head, body);
}

function folded(children) {
  const body = el("div", { class: "fold-body" }, ...children);
  const toggle = el("button", { type: "button", class: "fold", "aria-expanded": "false" }, say("Show all"));
  const quote = el("blockquote", { class: "folded" }, body, toggle);
  toggle.addEventListener("click", () => {
    const open = quote.classList.toggle("open");
    toggle.setAttribute("aria-expanded", String(open));
    toggle.textContent = open ? say("Show less") : say("Show all");
  });
  return quote;
}

// After a layout: quotes that are short enough need no button.
export function settleFolds(root) {
  for (const quote of root.querySelectorAll("blockquote.folded:not(.open)")) {
    const body = quote.querySelector(".fold-body");
    quote.classList.toggle("short", body.scrollHeight <= body.clientHeight + 2);
  }
}

function spoiler(children) {
  const hidden = el("span", { class: "spoiler", role: "button", tabindex: 0, "aria-label": say("Hidden text, press to show") }, el("span", { "aria-hidden": "true" }, ...children));
  const show = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    hidden.className = "";
    for (const name of ["role", "tabindex", "aria-label"]) hidden.removeAttribute(name);
    hidden.firstElementChild.removeAttribute("aria-hidden");
  };
  hidden.addEventListener("click", show);
  hidden.addEventListener("keydown", show);
  return hidden;
}
