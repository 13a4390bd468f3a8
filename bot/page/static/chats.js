// Chats: what was said, what is remembered, what stands in the prompt now.

import { get, press } from "./api.js";
import { ask, button, empty, h, long, redraw, tag, toast } from "./dom.js";
import { exact, one, when, whenWithin } from "./format.js";
import { turnLink } from "./turns.js";

export async function showChats(into, here) {
  const { chats } = await get("chats");
  const chosen = here.rest[0] ?? "";
  const known = chats.find((chat) => chat.chat === chosen);
  if (!known) {
    into.append(h("h1", "Chats"), chats.length ? h("ul.rows", chats.map((chat) => h("li", h("a.turn", { href: `#/chats/${encodeURIComponent(chat.chat)}` },
      h("span.top", h("span.what", chat.title || chat.chat), chat.blocked ? tag("has blocked the bot", "warning") : null, h("span.time", when(chat.active_at))),
      h("span.meta", `${chat.chat} · ${one(chat.conversations, "conversation")} · ${one(chat.notes, "note")}`))))) : empty("No chat yet."));
    return null;
  }
  const words = here.query.get("words") ?? "";
  const [fields, { changes }] = await Promise.all([get("chat", { chat: chosen, words }), get("changes", { chat: chosen })]);
  const search = h("input", { type: "search", value: words, placeholder: "Words that were said" });
  const notes = h("section");
  const conversation = Number(here.rest[1]) || fields.conversations.find((each) => each.current)?.id;
  const opened = h("section");
  into.append(h("p.back", h("a", { href: "#/chats" }, "Chats")), h("h1", known.title || known.chat),
    h("p.meta", `${known.chat} · `, h("a", { href: `/api/export?chat=${encodeURIComponent(chosen)}`, download: "voltaire-chat.json" }, "Export as JSON"), " · ",
      h("a", { href: `#/turns?chat=${encodeURIComponent(chosen)}` }, "Turns")),
    notes,
    changes.length ? h("section", h("h2", "Changed files"), changes.map((each) => h("details", h("summary", `${each.number} · ${when(each.at)} · ${one(each.changes.length, "file")}${each.undone ? " · taken back" : ""}`),
      long(each.changes.join("\n")), each.lines.length ? long(each.lines.join("\n")) : "", h("p.meta", h("a", { href: turnLink(each.turn) }, "turn"))))) : "",
    h("form.filters", { role: "search", onsubmit: (event) => { event.preventDefault(); location.hash = `#/chats/${encodeURIComponent(chosen)}?words=${encodeURIComponent(search.value)}`; } },
      h("label.field.wide", h("span", "Find in this chat"), search)),
    fields.found === null ? "" : h("section", h("h2", `Found: ${words}`), fields.found.length ? h("ol.steps", fields.found.map((each) => message(each))) : empty("Nothing holds these words.")),
    h("div.columns", h("section.list", h("h2", "Conversations"), h("ul.plain", fields.conversations.map((each) =>
      h("li", h("a", { href: `#/chats/${encodeURIComponent(chosen)}/${each.id}`, "aria-current": each.id === conversation ? "true" : null }, each.title || "Without words"),
        h("span.meta", ` ${when(each.active_at)}${each.current ? " · current" : ""}${each.compacted ? ` · compacted ×${each.compacted}` : ""}`))))), opened));
  drawNotes(notes, chosen, fields.notes);
  if (conversation) await drawConversation(opened, conversation);
  return null;
}

function message(step) {
  const who = step.own ? "Program" : { user: "Person", assistant: "Model", tool: `Tool ${step.name}` }[step.role];
  return h(`li.step.${step.role}${step.live ? "" : ".gone"}`,
    h("p.who", who, h("span.time", { title: exact(step.at) }, when(step.at)), !step.live && tag("no longer in the prompt"), step.short !== null && step.live && tag("shortened in the prompt"),
      step.stranger && tag(`strangers' text: ${step.stranger}`, "warning"), step.turn && h("a.small", { href: turnLink(step.turn) }, "turn")),
    step.role === "tool" ? h("details", h("summary", "Output"), long(step.text)) : step.text && long(step.text, "p.said"),
    step.calls.map((call) => h("p.call", h("code", call.name), long(call.arguments, "code.arguments", 300))));
}

async function drawConversation(into, id) {
  const list = h("ol.steps");
  let before = 0;
  const more = button("Earlier messages", load, "quiet");
  async function load() {
    try {
      const { messages, summary } = await get("messages", { conversation: id, before });
      if (!before && summary) summed.append(h("details.summary", h("summary", "Summary that stands in for what compaction dropped"), long(summary, "p.said")));
      list.prepend(...messages.map(message));
      before = messages[0]?.position ?? 0;
      more.hidden = before <= 1;
    } catch (error) {
      toast(error.message);
    }
  }
  const summed = h("div");
  into.append(h("h2", "Conversation"), summed, more, list);
  await load();
}

function drawNotes(into, chat, notes) {
  const again = async () => drawNotes(into, chat, (await get("chat", { chat })).notes);
  const act = async (change, fields) => {
    if (await press(change, { chat, ...fields }) !== null) await again();
  };
  redraw(into, h("div.head", h("h2", "Notes"), button("Add a note", async () => {
    const text = await ask("A new note", { value: "", yes: "Keep it", area: true });
    if (text) await act("note-add", { text });
  }, "quiet")),
  notes.length ? h("ul.rows", notes.map((note) => h(`li${note.deleted_at ? ".gone" : ""}`, { id: `note-${note.id}` },
    h("div.grow", h("p.what.whole", note.text),
      h("p.meta", note.pinned ? "pinned · " : "", `saved ${whenWithin(note.saved_at)} · `, note.source ? ["from “", note.source.slice(0, 90), "” ", note.source_turn && h("a", { href: turnLink(note.source_turn) }, "turn")] : "written by hand",
        note.in_prompt ? " · in the prompt now" : "", note.deleted_at ? ` · deleted ${whenWithin(note.deleted_at)}` : "", " ", note.stranger && tag(`strangers' text: ${note.stranger}`, "warning"))),
    h("div.acts", note.deleted_at ? button("Restore", () => act("note-restore", { number: note.id }), "quiet") : [
      button(note.pinned ? "Unpin" : "Pin", () => act("note-pin", { number: note.id, on: !note.pinned }), "quiet"),
      button("Edit", async () => {
        const text = await ask("Change the note", { value: note.text, yes: "Change it", area: true });
        if (text && text !== note.text) await act("note-edit", { number: note.id, text });
      }, "quiet"),
      button("Delete", async () => {
        if (await ask("Delete this note?", { text: note.text, yes: "Delete it", danger: true })) await act("note-delete", { number: note.id });
      }, "quiet"),
    ])))) : empty("No notes yet."));
}
