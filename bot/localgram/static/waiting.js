// Drafts and "is typing", by topic, each gone when its time is over.

import { say } from "./words.js";

const LINES = {
  typing: say("typing"),
  upload_photo: say("sending a picture"),
  upload_document: say("sending a file"),
  record_voice: say("recording"),
  upload_voice: say("sending a voice message"),
  record_video: say("recording"),
  upload_video: say("sending a video"),
  choose_sticker: say("choosing a sticker"),
  find_location: say("finding a place"),
};

class Expiring {
  constructor(changed) {
    this.changed = changed;
    this.values = new Map();
    this.timers = new Map();
  }

  key(chat, thread) {
    return `${chat}/${thread ?? ""}`;
  }

  put(chat, thread, value, seconds) {
    const key = this.key(chat, thread);
    clearTimeout(this.timers.get(key));
    this.values.set(key, value);
    this.timers.set(key, setTimeout(() => this.drop(chat, thread), seconds * 1000));
    this.changed();
  }

  drop(chat, thread) {
    const key = this.key(chat, thread);
    clearTimeout(this.timers.get(key));
    if (this.values.delete(key)) this.changed();
  }

  get(chat, thread) {
    return this.values.get(this.key(chat, thread)) ?? null;
  }
}

export class Waiting {
  constructor(changed) {
    this.drafts = new Expiring(changed);
    this.actions = new Expiring(changed);
  }

  heard(event) {
    if (event.event === "drafted") this.drafts.put(event.chat, event.thread, event, event.seconds);
    if (event.event === "draft_ended") this.drafts.drop(event.chat, event.thread);
    if (event.event === "acted") this.actions.put(event.chat, event.thread, LINES[event.action] ?? say("working"), event.seconds);
    if (event.event === "posted" && event.message.from.is_bot) {
      this.actions.drop(event.chat, event.message.message_thread_id);
      this.drafts.drop(event.chat, event.message.message_thread_id);
    }
  }

  draft(chat, thread) {
    return this.drafts.get(chat, thread);
  }

  // What the line under the name says; "" for nothing. A draft says itself what goes on.
  line(chat, thread) {
    return this.actions.get(chat, thread) ?? "";
  }
}
