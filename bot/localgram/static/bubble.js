// One message as it is seen.

import { drawn, el, icon } from "./dom.js";
import { format } from "./format.js";
import { media } from "./media.js";
import { say } from "./words.js";

const DOTS = "M6 12h.01M12 12h.01M18 12h.01";
const LINK = "M9 15l6-6M10 6.5l1-1a4.2 4.2 0 016 6l-1 1M14 17.5l-1 1a4.2 4.2 0 01-6-6l1-1";
const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

export const timeOf = (message) => time.format(message.date * 1000);

export function brief(message) {
  const text = message.text ?? message.caption;
  if (text) return text.replace(/\s+/g, " ").slice(0, 120);
  const named = { photo: say("Photo"), voice: say("Voice message"), audio: say("Audio"), video: say("Video") };
  for (const [kind, name] of Object.entries(named)) if (message[kind]) return name;
  if (message.document) return message.document.file_name || say("File");
  return say("Message");
}

// `acts`: command(text), press(message, row, column, button), menu(message, anchor), jump(id), react(message, emoji).
export function bubble(message, acts) {
  const text = message.text ?? message.caption ?? "";
  const picture = Boolean(message.photo || message.video);
  const label = `${message.out ? say("You") : message.from.first_name}, ${timeOf(message)}`;
  const classes = ["bubble", message.out && "out", picture && "picture", picture && !text && "bare"];
  const inside = el("div", { class: classes.filter(Boolean).join(" ") },
    forwarded(message),
    replied(message, acts),
    media(message, text),
    text ? el("div", { class: "text" }, format(text, message.entities ?? message.caption_entities, acts.command)) : null,
    meta(message),
    reactions(message, acts),
    el("button", { type: "button", class: "icon acts", "aria-label": say("Act on this message"), "aria-haspopup": "menu", onclick: (event) => acts.menu(message, event.currentTarget) }, icon(DOTS)),
  );
  inside.addEventListener("contextmenu", (event) => {
    if (event.target.closest("a, img, pre") || getSelection()?.toString()) return;
    event.preventDefault();
    acts.menu(message, inside.querySelector(".acts"));
  });
  const article = el("article", { class: message.out ? "message out" : "message", "aria-label": label, "data-id": message.message_id, "data-album": message.media_group_id }, inside, keyboard(message, acts));
  return article;
}

function forwarded(message) {
  if (!message.forward_origin) return null;
  const from = message.forward_origin.sender_user?.first_name ?? say("someone");
  return el("p", { class: "forwarded" }, say("Forwarded from {who}", { who: from }));
}

function replied(message, acts) {
  const target = message.reply_to_message;
  if (!target) return null;
  const words = message.quote?.text ?? brief(target);
  return el("button", { type: "button", class: "reply", "aria-label": say("In reply to {who}: {words}", { who: target.from.first_name, words }), onclick: () => acts.jump(target.message_id) },
    el("strong", {}, target.from.first_name), el("span", {}, words));
}

function meta(message) {
  const edited = message.edit_date ? `${say("edited")} ` : "";
  return el("span", { class: "meta" }, edited, el("time", { datetime: new Date(message.date * 1000).toISOString() }, timeOf(message)));
}

function reactions(message, acts) {
  if (!message.reactions?.length) return null;
  const counted = new Map();
  for (const { emoji, mine } of message.reactions) {
    const before = counted.get(emoji) ?? { count: 0, mine: false };
    counted.set(emoji, { count: before.count + 1, mine: before.mine || mine });
  }
  const pills = [...counted].map(([emoji, { count, mine }]) =>
    el("button", { type: "button", class: mine ? "pill mine" : "pill", "aria-pressed": String(mine), "aria-label": say("Reaction {emoji}, {count}", { emoji, count }), onclick: () => acts.react(message, mine ? "" : emoji) }, drawn(emoji), count > 1 ? ` ${count}` : ""));
  return el("div", { class: "reactions" }, ...pills);
}

function keyboard(message, acts) {
  const rows = message.reply_markup?.inline_keyboard;
  if (!rows?.length) return null;
  return el("div", { class: "keyboard", role: "group", "aria-label": say("Choices") },
    ...rows.map((row, number) => el("div", { class: "keys" }, ...row.map((key, column) =>
      el("button", { type: "button", class: "key", onclick: (event) => acts.press(message, number, column, key, event.currentTarget) }, key.text, key.url || key.copy_text ? icon(LINK) : null)))));
}
