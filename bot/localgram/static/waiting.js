// Drafts and "is typing", by topic, each gone when its time is over.

const LINES = {
  typing: "typing",
  upload_photo: "sending a picture",
  upload_document: "sending a file",
  record_voice: "recording",
  upload_voice: "sending a voice message",
  record_video: "recording",
  upload_video: "sending a video",
  choose_sticker: "choosing a sticker",
  find_location: "finding a place",
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
    if (event.event === "acted") this.actions.put(event.chat, event.thread, LINES[event.action] ?? "working", event.seconds);
    if (event.event === "posted" && event.message.from.is_bot) {
      this.actions.drop(event.chat, event.message.message_thread_id);
      this.drafts.drop(event.chat, event.message.message_thread_id);
    }
  }

  draft(chat, thread) {
    return this.drafts.get(chat, thread);
  }

  // What the line under the name says; "" for nothing.
  line(chat, thread) {
    if (this.draft(chat, thread)) return "writing";
    return this.actions.get(chat, thread) ?? "";
  }
}
