// The conversation: messages in order, albums together, days apart, the newest in view.

import { bubble } from "./bubble.js";
import { byId, el } from "./dom.js";
import { format, settleFolds } from "./format.js";
import { say } from "./words.js";

const NEAR = 80; // pixels from the end that still count as reading the newest
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

export class Log {
  constructor(acts) {
    this.acts = acts;
    this.root = byId("log");
    this.draft = null;
    this.lastDay = "";
    this.following = true;
    this.root.addEventListener("scroll", () => this.#arrow());
    byId("down").addEventListener("click", () => this.toEnd());
    this.root.addEventListener("load", () => this.#stay(), true);
    new ResizeObserver(() => this.#stay()).observe(this.root);
  }

  node(id) {
    return this.root.querySelector(`[data-id="${id}"]`);
  }

  // An empty chat: what the bot says of itself, and the way to begin.
  welcome(text) {
    const start = el("button", { type: "button", class: "start", onclick: () => this.acts.command("/start") }, say("Start"));
    this.root.append(el("div", { class: "welcome" }, text ? el("p", {}, text) : null, start));
  }

  add(message) {
    this.root.querySelector(".welcome")?.remove();
    this.#day(message);
    const node = bubble(message, this.acts);
    const last = this.root.lastElementChild === this.draft ? this.draft?.previousElementSibling : this.root.lastElementChild;
    this.#join(node, last, message);
    this.dropDraft(message.from.is_bot);
    settleFolds(node);
    if (message.out) this.toEnd();
    else this.#stay();
  }

  #day(message) {
    const label = day.format(message.date * 1000);
    if (label === this.lastDay) return;
    this.lastDay = label;
    this.root.insertBefore(el("p", { class: "day" }, label), this.draft);
  }

  #join(node, last, message) {
    const album = message.media_group_id;
    if (album && last?.dataset.group === album) {
      last.querySelector(".album-items").append(node);
      this.#caption(last, node);
    } else if (album && message.photo) {
      const group = el("div", { class: message.out ? "album out" : "album", "data-group": album, role: "group", "aria-label": say("Album") }, el("div", { class: "album-items" }, node));
      this.root.insertBefore(group, this.draft);
      this.#caption(group, node);
    } else {
      const same = last?.classList.contains("message") && last.classList.contains("out") === Boolean(message.out);
      node.classList.toggle("follows", Boolean(same));
      this.root.insertBefore(node, this.draft);
    }
  }

  // The words under a picture of an album stand under the album.
  #caption(album, node) {
    const text = node.querySelector(".text");
    if (!text) return;
    node.querySelector(".bubble").classList.add("bare");
    album.querySelector(":scope > .text")?.remove();
    album.append(text);
  }

  replace(message) {
    const old = this.node(message.message_id);
    if (!old) return false;
    const node = bubble(message, this.acts);
    node.classList.toggle("follows", old.classList.contains("follows"));
    const open = [...old.querySelectorAll("blockquote.folded")].map((quote) => quote.classList.contains("open"));
    node.classList.add("still");
    old.replaceWith(node);
    const album = node.closest(".album");
    if (album) this.#caption(album, node);
    [...node.querySelectorAll("blockquote.folded")].forEach((quote, at) => open[at] && quote.querySelector(".fold").click());
    settleFolds(node);
    this.#stay();
    return true;
  }

  remove(ids) {
    for (const id of ids) {
      const node = this.node(id);
      const album = node?.closest(".album");
      node?.remove();
      if (album && !album.querySelector("article")) album.remove();
    }
  }

  // A text that is being written: quiet for screen readers until it is a message.
  showDraft(draft, stop) {
    const body = el("div", { class: "text" }, draft.text ? format(draft.text, draft.entities, () => {}) : el("span", { class: "thinking" }, say("Thinking…")));
    const button = draft.can_stop ? el("button", { type: "button", class: "stop", onclick: stop }, say("Stop")) : null;
    const inside = el("div", { class: "bubble" }, body, button);
    if (!this.draft) {
      this.draft = el("article", { class: "message draft", "aria-live": "off", "aria-busy": "true", "aria-label": say("Being written") });
      this.root.append(this.draft);
    }
    this.draft.replaceChildren(inside);
    settleFolds(this.draft);
    this.#stay();
  }

  dropDraft(wanted = true) {
    if (!wanted || !this.draft) return;
    this.draft.remove();
    this.draft = null;
  }

  jump(id) {
    const node = this.node(id);
    node?.scrollIntoView({ block: "center", behavior: "smooth" });
    node?.classList.add("hit");
    setTimeout(() => node?.classList.remove("hit"), 1600);
  }

  toEnd() {
    this.following = true;
    this.root.scrollTop = this.root.scrollHeight;
    this.#arrow();
  }

  #stay() {
    if (this.following) this.root.scrollTop = this.root.scrollHeight;
    this.#arrow();
  }

  #arrow() {
    const left = this.root.scrollHeight - this.root.clientHeight - this.root.scrollTop;
    this.following = left < NEAR;
    byId("down").hidden = this.following;
  }
}
