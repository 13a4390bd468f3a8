// The field at the bottom: writing, commands, files, voice, replies and edits.

import * as api from "./api.js";
import { brief } from "./bubble.js";
import { byId, el, toast } from "./dom.js";
import { clock } from "./media.js";
import { say } from "./words.js";

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const PICTURE_BYTES = 10 * 2 ** 20;

export class Composer {
  constructor(commands) {
    this.commands = commands;
    this.replying = null;
    this.editing = null;
    this.recorder = null;
    this.text = byId("text");
    this.text.addEventListener("input", () => this.#typed());
    this.text.addEventListener("keydown", (event) => this.#key(event));
    this.text.addEventListener("paste", (event) => this.#dropped(event, event.clipboardData));
    byId("composer").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    byId("slash").addEventListener("click", () => this.#slash());
    byId("attach").addEventListener("click", () => byId("files").click());
    byId("files").addEventListener("change", () => this.#files([...byId("files").files]));
    byId("voice").addEventListener("click", () => this.#voice());
    byId("context-drop").addEventListener("click", () => this.drop());
    const main = document.querySelector("main");
    main.addEventListener("dragover", (event) => event.preventDefault());
    main.addEventListener("drop", (event) => this.#dropped(event, event.dataTransfer));
  }

  async #try(act) {
    try {
      await act();
      return true;
    } catch (error) {
      toast(error.message || say("That did not work"));
      return false;
    }
  }

  async submit() {
    const text = this.text.value.trim();
    if (!text) return;
    const { editing, replying } = this;
    this.#fill("");
    this.drop();
    const act = () => (editing ? api.edit(editing.message_id, text) : api.send(text, replying?.message_id));
    if (!(await this.#try(act))) this.#fill(text);
  }

  say(text) {
    return this.#try(() => api.send(text));
  }

  #fill(text) {
    this.text.value = text;
    this.#typed();
  }

  reply(message) {
    this.drop();
    this.replying = message;
    this.#context(say("Reply to {who}", { who: message.from.first_name }), brief(message));
  }

  edit(message) {
    this.drop();
    this.editing = message;
    this.#context(say("Edit message"), brief(message));
    this.#fill(message.text ?? message.caption ?? "");
  }

  #context(title, text) {
    byId("context-title").textContent = title;
    byId("context-text").textContent = text;
    byId("context").hidden = false;
    this.text.focus();
  }

  drop() {
    if (this.editing) this.#fill("");
    this.replying = this.editing = null;
    byId("context").hidden = true;
  }

  #typed() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, 160)}px`;
    const filled = Boolean(this.text.value.trim());
    byId("send").hidden = !filled;
    byId("voice").hidden = filled;
    const word = /^\/(\w*)$/.exec(this.text.value);
    this.#commands(word ? word[1].toLowerCase() : null);
  }

  #slash() {
    if (byId("commands").hidden) this.#commands("");
    else this.#commands(null);
    this.text.focus();
  }

  #commands(prefix) {
    const list = byId("commands");
    const found = prefix === null ? [] : this.commands().filter(({ command }) => command.startsWith(prefix));
    list.replaceChildren(...found.map(({ command, description }, at) =>
      el("li", { id: `command-${at}`, role: "option", "aria-selected": String(at === 0), onclick: () => this.#pick(command) },
        el("strong", {}, `/${command}`), el("span", {}, description))));
    list.hidden = !found.length;
    byId("slash").setAttribute("aria-expanded", String(!list.hidden));
    this.#active();
  }

  #active() {
    const chosen = byId("commands").querySelector('[aria-selected="true"]');
    if (chosen) this.text.setAttribute("aria-activedescendant", chosen.id);
    else this.text.removeAttribute("aria-activedescendant");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  #pick(command) {
    this.#fill("");
    this.say(`/${command}`);
    this.text.focus();
  }

  #key(event) {
    const list = byId("commands");
    if (!list.hidden && this.#choose(event, list)) return;
    if (event.key === "Escape") this.drop();
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    }
  }

  #choose(event, list) {
    const items = [...list.children];
    const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      items[at].setAttribute("aria-selected", "false");
      items.at((at + step) % items.length).setAttribute("aria-selected", "true");
      this.#active();
    } else if (event.key === "Enter" || event.key === "Tab") {
      items[at].click();
    } else if (event.key === "Escape") {
      this.#commands(null);
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  #dropped(event, carried) {
    const files = [...(carried?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.#files(files);
  }

  async #files(files) {
    byId("files").value = "";
    const photos = files.every((file) => PICTURES.includes(file.type) && file.size <= PICTURE_BYTES);
    const album = photos && files.length > 1 ? String(Date.now()) : "";
    let caption = this.text.value.trim();
    this.#fill("");
    for (const file of files) {
      const kind = photos ? "photo" : "document";
      await this.#try(() => api.upload(file, { kind, caption, album }));
      caption = "";
    }
  }

  async #voice() {
    if (this.recorder) return this.recorder.stop();
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      return toast(say("No microphone here, or it is not allowed"));
    }
    this.#record(stream);
  }

  #record(stream) {
    const parts = [];
    const started = performance.now();
    const recorder = (this.recorder = new MediaRecorder(stream));
    const seconds = () => (performance.now() - started) / 1000;
    const ticking = setInterval(() => { this.text.placeholder = say("Recording {time}", { time: clock(seconds()) }); }, 250);
    byId("voice").classList.add("recording");
    byId("voice").setAttribute("aria-label", say("Send the voice message"));
    recorder.ondataavailable = (event) => parts.push(event.data);
    recorder.onstop = () => {
      clearInterval(ticking);
      for (const track of stream.getTracks()) track.stop();
      this.recorder = null;
      this.text.placeholder = say("Message");
      byId("voice").classList.remove("recording");
      byId("voice").setAttribute("aria-label", say("Record a voice message"));
      const said = new File(parts, "voice.ogg", { type: recorder.mimeType.split(";")[0] });
      this.#try(() => api.upload(said, { kind: "voice", seconds: Math.round(seconds()) }));
    };
    recorder.start();
  }
}
