// What can be changed while it runs: the model, each chat's settings, the stop of everything.

import { get, press } from "./api.js";
import { ask, button, empty, h, redraw, tag, toast } from "./dom.js";
import { number, whenWithin } from "./format.js";

// The settings of a chat: their names, and the words of a choice where its own are not plain.
const NAMES = { thinking: "Thinking", tools: "Lines of tools", voice: "Answers as voice", language: "Language" };
const WORDS = { tools: { long: "long ones" }, voice: { off: "no", same: "to voice messages", always: "always" } };

export async function showSettings(into) {
  const draw = async () => {
    const { chats, profiles, status, choices, languages, timezone, frozen, file } = await get("settings");
    const most = Math.max(...choices.thinking.map(([, value]) => value));
    const thinking = (value) => (value === null ? "as the model has it" : value === 0 ? "off" : value === most ? "as long as it likes" : `${value.toLocaleString("en")} tokens`);
    const label = (name, word, value) => (name === "thinking" ? thinking(value) : name === "language" ? languages[word] ?? "as the app has it" : WORDS[name]?.[word] ?? word);
    const set = async (chat, setting, text) => {
      if (await press("set", { chat, setting, text }) !== null) await again();
    };
    const lend = (text, number) => button(text, async (event) => {
      event.target.disabled = true;
      await press("lend", { number });
      await again();
    }, "quiet");
    const select = (chat, name, now) => h("label.field", h("span", NAMES[name] ?? name), h("select", { onchange: (event) => set(chat.chat, name, event.target.value) },
      choices[name].map(([word, value], place) => h("option", { value: word, selected: value === (now ?? null) || (now === undefined && place === 0) }, label(name, word, value)))));
    redraw(into, h("h1", "Settings"),
      h("section", h("h2", "Model"), profiles.length ? h("ul.rows", profiles.map((profile) => h("li",
        h("div.grow", h("p.what", profile.title || profile.name), h("p.meta", [profile.name, profile.good, profile.bad, profile.decode_tok_s && `${number(profile.decode_tok_s)} tokens/s (${profile.source})`].filter(Boolean).join(" · "))),
        profile.name === status.backend.profile ? tag("serves", "good") : profile.here ? h("div.acts", button("Use", async (event) => {
          if (!(await ask(`Switch to ${profile.name}?`, { text: "Turns that run end first; loading takes a while.", yes: "Switch" }))) return;
          event.target.disabled = true;
          toast("Switching…");
          if (await press("model", { id: profile.name }) !== null) await again();
          else event.target.disabled = false;
        }, "quiet")) : tag("not downloaded")))) : empty("The model server is another's, or does not answer."),
        profiles.length > 0 && status.gpus.length > 0 && h("div.actions",
          status.backend.lent_until ? [h("p.meta", `The card is lent until ${whenWithin(status.backend.lent_until)}.`), lend("Take the card back", 0)]
            : [1, 2, 8].map((hours) => lend(`Lend the card for ${hours} h`, hours * 3600)))),
      h("section", h("h2", "Chats"), chats.length ? h("ul.rows", chats.map((chat) => {
        let now = {};
        try { now = JSON.parse(chat.settings); } catch { /* the defaults */ }
        return h("li.wrap", { id: `chat-${chat.chat}` }, h("div.grow", h("p.what", chat.title || chat.chat), h("p.meta", chat.chat)), h("div.filters",
          Object.keys(choices).map((name) => select(chat, name, now[name])),
          h("form.inline", { onsubmit: (event) => { event.preventDefault(); set(chat.chat, "timezone", event.target.elements.zone.value.trim()); } },
            h("label.field", h("span", "Time zone"), h("input", { name: "zone", value: chat.timezone, placeholder: timezone, autocomplete: "off" })), h("button.quiet", { type: "submit" }, "Set"))));
      })) : empty("No chat yet.")),
      h("section", h("h2", "Stop everything"), frozen ? h("p", `Frozen since ${whenWithin(frozen)}. In a terminal: `, h("code", "voltaire thaw")) : [
        h("p", "No tool runs and no job starts until ", h("code", "voltaire thaw"), ". Turns stop, standing permissions end."),
        h("div.actions", button("Freeze", async () => {
          if (await ask("Freeze everything?", { text: "It is thawed in a terminal, or with a code in the chat.", yes: "Freeze", danger: true })) {
            if (await press("freeze") !== null) await again();
          }
        }, "danger"))]),
      h("section", h("h2", "Everything else"), h("p", file ? ["stands in ", h("code", file), "; the bot reads it when it starts."] : "has its default: there is no configuration file.")));
  };
  const again = async () => {
    try { await draw(); } catch (error) { toast(error.message); }
  };
  await draw();
  return null;
}
