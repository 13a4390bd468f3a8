// People and permissions: who may talk, what waits for an owner's word, what is allowed for good.

import { get, press } from "./api.js";
import { LONGEST, ask, button, byId, empty, h, long, tag, toast } from "./dom.js";
import { seconds, when } from "./format.js";
import { turnLink } from "./turns.js";

const ANSWERS = { once: "Allow once", chat: "Always in this chat", denied: "Deny" };

// A question that waits; the first press counts, here or in the chat.
export function questionCard(question) {
  const shown = h("pre.text", { tabindex: 0 }, question.shown);
  const all = question.whole && button(`Show all ${question.whole.length.toLocaleString("en")} characters`, () => {
    shown.replaceWith(long(question.whole, "pre.text", LONGEST));
    all.remove();
  }, "quiet");
  const card = h("article.question", { "aria-label": "A question" },
    h("p.kicker", "May it do this?"), shown, all,
    question.because && h("p.reason", `This chat holds strangers' text: ${question.because}`),
    h("p.meta", `${question.title || question.chat} · ${question.scope} · ${seconds(Math.max(0, question.expires_at - Date.now() / 1000))} left `, question.turn && h("a", { href: turnLink(question.turn) }, "turn")),
    h("div.actions", Object.entries(ANSWERS).filter(([answer]) => answer !== "chat" || question.may_last).map(([answer, label]) =>
      button(label, async () => {
        for (const each of card.querySelectorAll("button")) each.disabled = true;
        const told = await press("decide", { id: question.id, decision: answer });
        if (told === null) for (const each of card.querySelectorAll("button")) each.disabled = false;
        else card.replaceChildren(h("p.meta", { role: "status" }, told));
      }, { once: "primary", chat: "", denied: "danger" }[answer]))));
  return card;
}

export async function showPeople(into) {
  let seen = "";
  const draw = async () => {
    const { people, configured, questions, grants } = await get("people");
    const open = questions.filter((each) => each.state === "asked");
    const decided = questions.filter((each) => each.state !== "asked");
    seen = JSON.stringify(open.map((each) => each.id));
    into.replaceChildren(h("h1", "People"),
      h("section", h("h2", "Waiting for your word"), open.length ? open.map(questionCard) : empty("Nothing is asked.")),
      h("section", h("div.head", h("h2", "Who may talk"), button("Let somebody in", pair, "quiet")),
        h("ul.rows", configured.map((each) => h("li", h("div.grow", h("p.what", each.person), h("p.meta", `${each.source} · by the configuration`)), tag(each.role, "good"))),
          people.filter((each) => each.role !== "stranger").map((each) => h("li",
            h("div.grow", h("p.what", each.name || each.person), h("p.meta", `${each.source} ${each.person} · ${each.added_by ? `by ${each.added_by}, ` : ""}${when(each.added_at)}`)),
            tag(each.role, { owner: "good", member: "good", refused: "warning" }[each.role] ?? ""),
            h("div.acts", (each.role === "member" || each.role === "owner" || each.role === "refused") && button(each.role === "refused" ? "Forget" : "Let go", async () => {
              if (await ask(`${each.role === "refused" ? "Forget that" : "Let go of"} ${each.name || each.person}?`, { text: "They may ask to be let in again.", yes: "Let go", danger: true }) && await press("let-go", { id: `${each.source}:${each.person}` }) !== null) await draw();
            }, "quiet")))))),
      h("section", h("h2", "Standing permissions"), grants.length ? h("ul.rows", grants.map((each) => h("li", h("div.grow", h("p.what", h("code", each.scope)), h("p.meta", `${each.title || each.chat} · by ${each.granted_by}, ${when(each.granted_at)}`)),
        h("div.acts", button("Take back", async () => {
          if (await press("revoke", { chat: each.chat, id: each.scope }) !== null) await draw();
        }, "quiet"))))) : empty("None.")),
      h("section", h("h2", "Decided"), decided.length ? h("ul.rows", decided.map((each) => h("li", h("div.grow", long(each.what, "p.what.whole", 300), h("p.meta", `${each.title || each.chat} · ${when(each.decided_at ?? each.asked_at)}${each.decided_by ? ` · by ${each.decided_by}` : ""} `, each.turn && h("a", { href: turnLink(each.turn) }, "turn"))), tag(each.state, each.state === "denied" || each.state === "expired" ? "warning" : "good")))) : empty("Nothing was decided yet.")));
  };
  const pair = async () => {
    const code = await press("pair", {}, { quiet: true });
    if (code) await ask("A code for one person, for an hour", { text: `Whoever sends this to the bot may talk from then on:  /start ${code}`, yes: "Done", no: "" });
  };
  await draw();
  return (now) => {
    if (JSON.stringify((now.questions ?? []).map((each) => each.id)) !== seen && !byId("dialog").open) draw().catch((error) => toast(error.message));
  };
}
