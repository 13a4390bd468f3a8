// One message as it is seen: text and entities, media, keyboard, reactions. Text always becomes a text node.

import { say } from "./words.js";

const COPY = "M9 9V5.5A1.5 1.5 0 0110.5 4h8A1.5 1.5 0 0120 5.5v8a1.5 1.5 0 01-1.5 1.5H15M5.5 9h8A1.5 1.5 0 0115 10.5v8a1.5 1.5 0 01-1.5 1.5h-8A1.5 1.5 0 014 18.5v-8A1.5 1.5 0 015.5 9z";
const LINK = "M9 15l6-6M10 6.5l1-1a4.2 4.2 0 016 6l-1 1M14 17.5l-1 1a4.2 4.2 0 01-6-6l1-1";
const PAPER = "M7 3.5h7l4.5 4.5v11A1.5 1.5 0 0117 20.5H7A1.5 1.5 0 015.5 19V5A1.5 1.5 0 017 3.5zM13.5 3.5V8.5h5";
const SVG = "http://www.w3.org/2000/svg";
const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"]);
const TAGS = { bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code", blockquote: "blockquote" };
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }); // as the bot writes them

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

function icon(path) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

function brief(message) {
  const text = message.text ?? message.caption ?? message.document?.file_name;
  return text ? text.replace(/\s+/g, " ").slice(0, 120) : say("Message");
}

// `acts`: command(text), copy(text), press(message, row, column, key, button).
export function bubble(message, acts) {
  const text = message.text ?? message.caption ?? "";
  const at = time.format(message.date * 1000);
  const edited = message.edit_date ? `${say("edited")} ` : "";
  const inside = el("div", { class: message.photo ? "bubble picture" : "bubble" },
    replied(message),
    media(message, text),
    text ? el("div", { class: "text" }, ...format(text, message.entities ?? message.caption_entities, acts)) : null,
    el("span", { class: "meta" }, edited, el("time", {}, at)),
    reactions(message));
  const label = `${message.out ? say("You") : message.from.first_name}, ${at}`;
  return el("article", { class: message.out ? "message out" : "message", "aria-label": label }, inside, keyboard(message, acts));
}

function replied(message) {
  const target = message.reply_to_message;
  if (!target) return null;
  return el("div", { class: "reply" }, el("strong", {}, target.from.first_name), el("span", {}, message.quote?.text ?? brief(target)));
}

function reactions(message) {
  if (!message.reactions.length) return null;
  const pills = message.reactions.map((emoji) =>
    el("span", { class: "pill", role: "img", "aria-label": say("Reaction {emoji}", { emoji }) }, emoji === "❤" ? "❤\ufe0f" : emoji));
  return el("div", { class: "reactions" }, ...pills);
}

function keyboard(message, acts) {
  const rows = message.reply_markup?.inline_keyboard;
  if (!rows) return null;
  return el("div", { class: "keyboard", role: "group", "aria-label": say("Choices") },
    ...rows.map((row, number) => el("div", { class: "keys" }, ...row.map((key, column) =>
      el("button", { type: "button", class: "key", onclick: (event) => acts.press(message, number, column, key, event.currentTarget) }, key.text, key.url || key.copy_text ? icon(LINK) : null)))));
}

// -- files ---------------------------------------------------------------------

const fileUrl = (file) => `/api/files/${encodeURIComponent(file.file_unique_id)}`;

function media(message, caption) {
  if (message.photo) return photo(message.photo.at(-1), caption || say("Photo"));
  const sound = message.voice ?? message.audio;
  if (sound) return el("audio", { src: fileUrl(sound), controls: true, preload: "none", "aria-label": sound.file_name ?? say("Voice message") });
  return message.document ? file(message.document) : null;
}

function photo(size, alt) {
  const image = el("img", { src: fileUrl(size), alt, width: size.width, height: size.height });
  image.style.width = `${Math.min(size.width, (420 * size.width) / size.height, 420)}px`;
  return el("a", { class: "photo", href: fileUrl(size), target: "_blank", rel: "noopener", "aria-label": say("Open picture: {name}", { name: alt }) }, image);
}

function file(shown) {
  const words = el("span", { class: "file-words" }, el("span", { class: "file-name" }, shown.file_name), el("span", { class: "file-size" }, size(shown.file_size)));
  return el("a", { class: "file", href: fileUrl(shown), download: shown.file_name }, el("span", { class: "disc" }, icon(PAPER)), words);
}

function size(bytes) {
  const step = Math.min(3, Math.floor(Math.log2(bytes || 1) / 10));
  const value = bytes / 1024 ** step;
  return `${value.toFixed(step && value < 10 ? 1 : 0)} ${["B", "KB", "MB", "GB"][step]}`;
}

// -- a text and its entities, whose offsets are those of JavaScript's own strings ------------------------------

export function format(text, entities, acts) {
  return spans(text, 0, text.length, [...(entities ?? [])], acts);
}

function spans(text, start, end, entities, acts) {
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
    const children = spans(text, entity.offset, last, inner, acts);
    nodes.push(element(entity, text.slice(entity.offset, last), children, acts));
    at = last;
    if (block) at += /^\n{0,2}/.exec(text.slice(at, end))[0].length;
  }
  if (at < end) nodes.push(text.slice(at, end));
  return nodes;
}

function element(entity, raw, children, acts) {
  if (TAGS[entity.type]) return el(TAGS[entity.type], {}, ...children);
  if (entity.type === "pre") return code(raw, entity.language, acts);
  if (entity.type === "expandable_blockquote") return el("blockquote", { class: "long", tabindex: 0 }, ...children);
  if (entity.type === "bot_command") return el("button", { type: "button", class: "link", onclick: () => acts.command(raw) }, ...children);
  if (entity.type === "spoiler") return el("details", { class: "spoiler" }, el("summary", {}, say("Hidden text, press to show")), ...children);
  const url = entity.type === "url" ? raw : entity.url;
  if (!/^(https?|mailto|tg):/i.test(url)) return el("span", {}, ...children);
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

function code(raw, language, acts) {
  const button = el("button", { type: "button", "aria-label": say("Copy the code"), onclick: () => acts.copy(raw) }, icon(COPY));
  const label = language ? say("Code, {language}", { language }) : say("Preformatted text");
  const body = el("pre", { tabindex: 0, role: "region", "aria-label": label }, el("code", {}, raw));
  return el("div", { class: "code" }, el("div", { class: "code-head" }, el("span", {}, language ?? ""), button), body);
}
