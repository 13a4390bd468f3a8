// The draft and "is typing", each gone when its time is over.

import { say } from "./words.js";

const LINES = {
  typing: say("typing"),
  upload_photo: say("sending a picture"),
  upload_document: say("sending a file"),
  record_voice: say("recording"),
  upload_voice: say("sending a voice message"),
};

export class Waiting {
  constructor(changed) {
    this.changed = changed;
    this.draft = null;
    this.line = ""; // under the name; a draft says itself what goes on
    this.timers = {};
  }

  heard(event) {
    if (event.event === "drafted") this.#put("draft", event, event.seconds);
    if (event.event === "acted") this.#put("line", LINES[event.action] ?? say("working"), event.seconds);
    if (event.event === "draft_ended") this.#put("draft", null);
    if (event.event === "posted" && event.message.from.is_bot) {
      this.#put("line", "");
      this.#put("draft", null);
    }
  }

  #put(name, value, seconds = 0) {
    clearTimeout(this.timers[name]);
    if (seconds) this.timers[name] = setTimeout(() => this.#put(name, name === "draft" ? null : ""), seconds * 1000);
    if (this[name] === value) return;
    this[name] = value;
    this.changed();
  }
}
