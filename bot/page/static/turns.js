// Turns: where the seconds and tokens went, and why the agent did what it did.

import { get, session } from "./api.js";
import { bar, keyed, legend, tokensSaid } from "./charts.js";
import { button, copy, empty, h, long, tag, toast, visible } from "./dom.js";
import { clock, day, exact, int, number, one, percent, seconds, short, whenWithin } from "./format.js";

const total = (turn) => Object.values(turn.seconds).reduce((a, b) => a + b, 0);
export const turnLink = (id) => `#/turns/${encodeURIComponent(id)}`;

export const tokensOf = (turn) => ({
  cached: turn.cached_tokens,
  read: Math.max(0, turn.prompt_tokens - turn.cached_tokens - turn.reread),
  reread: turn.reread,
  written: turn.completion_tokens,
});

const ENDS = { done: "", cancelled: "stopped", tool_limit: "tool limit", loop: "went in circles", context: "window full", backend: "model away", error: "failed" };
const ended = (turn) => (turn.state === "open" ? tag("running", "live") : ENDS[turn.reason] !== "" && tag(ENDS[turn.reason] ?? turn.reason, "warning"));

export function turnRow(turn, longest) {
  const tools = Object.entries(turn.tools).map(([name, count]) => (count > 1 ? `${name} ×${count}` : name));
  return h("li", h("a.turn", { href: turnLink(turn.id) },
    h("span.top", h("span.what", turn.asked || turn.kind), ended(turn), turn.feedback === -1 && tag("👎", "warning"), h("span.time", seconds(total(turn)))),
    bar(turn.seconds, { whole: longest }),
    h("span.meta", [clock(turn.started_at), turn.title || turn.chat, turn.prompt_tokens > 0 && `${short(turn.prompt_tokens)} in, ${percent(turn.cached_tokens / turn.prompt_tokens)} cached, ${short(turn.completion_tokens)} out`, turn.reread > 0 && `${short(turn.reread)} read again`, ...tools].filter(Boolean).join(" · "))));
}

export async function showTurns(into, here) {
  if (here.rest[0]) return showTurn(into, here.rest[0]);
  const wanted = Object.fromEntries(here.query);
  const first = await get("turns", { ...wanted, choices: true });
  const go = (fields) => {
    const query = new URLSearchParams(Object.entries({ ...wanted, ...fields }).filter(([, value]) => value));
    location.hash = `#/turns?${query}`;
  };
  const select = (label, name, choices) => h("label.field", h("span", label), h("select", { onchange: (event) => go({ [name]: event.target.value }) },
    choices.map(([value, text]) => h("option", { value, selected: (wanted[name] ?? "") === value }, text))));
  const search = h("input", { type: "search", name: "words", value: wanted.words ?? "", placeholder: "Words that were said" });
  const list = h("div");
  const more = button("Older turns", load, "quiet");
  let before = 0, name = "";
  const longest = Math.max(1, ...first.turns.map(total));
  into.append(h("h1", "Turns"),
    h("form.filters", { role: "search", onsubmit: (event) => { event.preventDefault(); go({ words: search.value.trim() }); } },
      h("label.field.wide", h("span", "Find"), search),
      select("Chat", "chat", [["", "All"], ...first.chats.map((chat) => [chat.chat, chat.title || chat.chat])]),
      select("Tool", "tool", [["", "Any"], ...first.tools.map((tool) => [tool, tool])]),
      select("Ended", "reason", [["", "In any way"], ...session.reasons.map((reason) => [reason, ENDS[reason] || reason])]),
      select("Slow", "slow", [["", "Any time"], ["10", "over 10 s"], ["30", "over 30 s"], ["120", "over 2 min"]]),
      select("Read again", "reread", [["", "Does not matter"], ["1", "Some tokens"]]),
      Object.keys(wanted).length > 0 && h("a", { href: "#/turns" }, "All")),
    legend(session.parts), list, more);
  function add({ turns, more: left }) {
    for (const turn of turns) {
      if (day(turn.started_at) !== name) {
        name = day(turn.started_at);
        list.append(h("h2.day", name), h("ul.rows.turns"));
      }
      list.lastElementChild.append(turnRow(turn, longest));
      before = turn.started_at;
    }
    more.hidden = !left;
  }
  async function load() {
    try {
      add(await get("turns", { ...wanted, before }));
    } catch (error) {
      toast(error.message);
    }
  }
  add(first);
  if (!first.turns.length) list.append(empty(Object.keys(wanted).length ? "No turn fits." : "No turn yet: say something to the bot."));
  return null;
}

// -- one turn -------------------------------------------------------------------

async function showTurn(into, id) {
  const found = await get(`turns/${encodeURIComponent(id)}`);
  const { turn, steps, calls, runs, approvals, received, sent } = found;
  const tokens = tokensOf(turn);
  const prompt = h("div");
  const asked = received.map((row) => row.words).join("\n") || turn.asked;
  into.append(
    h("p.back", h("a", { href: "#/turns" }, "Turns")),
    h("h1.asked", visible(asked).slice(0, 300) || turn.kind),
    h("p.meta", [exact(turn.started_at), turn.title || turn.chat, turn.kind === "job" && "by a job", `turn ${turn.id}`].filter(Boolean).join(" · "), " ", ended(turn)),
    h("div.two",
      h("section", h("h2", `Seconds: ${seconds(total(turn))}`), bar(turn.seconds), keyed(turn.seconds, seconds)),
      h("section", h("h2", `Tokens: ${int(turn.prompt_tokens)} in, ${int(turn.completion_tokens)} out`), bar(tokens, { say: tokensSaid }), keyed(tokens, int))),
    h("section", h("h2", "Step by step"), h("ol.steps", steps.map((step) => stepItem(step, runs, approvals)))),
    h("section", h("div.head", h("h2", "The prompt"), button("Show what the model was sent", async (event) => {
      event.target.disabled = true;
      try {
        prompt.replaceChildren(...[promptView(await get(`turns/${encodeURIComponent(id)}/prompt`)), rendered(id)].flat().filter(Boolean));
        event.target.remove();
      } catch (error) {
        event.target.disabled = false;
        toast(error.message);
      }
    }, "quiet")), prompt),
    h("section", h("h2", "Model calls"), calls.length ? callTable(calls) : empty("None is on record.")),
    h("section", h("h2", "Delivered"), sent.length ? h("ul.rows", sent.map(sentItem)) : empty("Nothing was sent: the chat reads its answers itself.")),
    h("section", h("h2", "Once more"),
      h("p", "The same requests to the model that serves now, dry: nothing is executed or sent. In a terminal:"),
      h("p.command", h("code", `voltaire model try --turn ${turn.id}`), button("Copy", () => copy(`voltaire model try --turn ${turn.id}`), "quiet")),
      h("div.actions", button("Copy this turn as JSON", () => copy(JSON.stringify(found, null, 1)), "quiet"))));
  return null;
}

const ROLES = { user: "Person", assistant: "Model", tool: "Tool" };

function stepItem(step, runs, approvals) {
  const run = runs.find((each) => each.call === step.call);
  const questions = approvals.filter((each) => step.call && each.call === step.call);
  const took = run?.finished_at ? seconds(run.finished_at - run.started_at) : run && "did not finish";
  return h(`li.step.${step.role}`,
    h("p.who", step.own ? "Program" : ROLES[step.role] ?? step.role, step.name && h("code", step.name), took && h("span.time", took),
      step.stranger && tag(`strangers' text: ${step.stranger}`, "warning"), !step.live && tag("no longer in the prompt"), step.short !== null && tag("shortened in the prompt")),
    step.thought && h("details", h("summary", `Thought (${one(step.thought.length, "character")})`), long(step.thought, "p.thought")),
    step.head && h("details", h("summary", "Context that the program added"), long(step.head)),
    step.text && (step.role === "tool" ? h("details", { open: step.text.length < 600 }, h("summary", "Output"), long(step.text)) : long(step.text, "p.said")),
    step.calls.map((call) => h("p.call", h("code", call.name), long(call.arguments, "code.arguments", 1500))),
    questions.map((each) => h("p.question", tag(each.state, each.state === "denied" ? "warning" : "good"), ` ${each.decided_by ? `by ${each.decided_by}, ` : ""}after ${seconds((each.decided_at ?? each.expires_at) - each.asked_at)}: `, long(each.what, "span", 400))));
}

function promptView({ system, tools, messages, compacted, parts, measured }) {
  return [
    h("p", measured ? "Tokens by part, shared out by characters:" : "Tokens by part, estimated by characters:"),
    bar(parts, { say: tokensSaid }), keyed(parts, int),
    compacted > 0 && h("p.meta", `The conversation was compacted ${one(compacted, "time")}, so what stood before may have been longer then.`),
    h("details", h("summary", "Fixed prefix: system text and tools"), long(system), long(tools)),
    h("ol.steps", messages.map((step) => h(`li.step.${step.role}`, h("p.who", step.own ? "Program" : ROLES[step.role], step.name && h("code", step.name)),
      (step.short ?? step.head + step.text) && long(step.short ?? step.head + step.text, "pre.text", 1200), step.calls.map((call) => h("p.call", h("code", call.name), long(call.arguments, "code.arguments", 600)))))),
  ];
}

// The same as one text, which the server's own template makes.
function rendered(id) {
  const into = h("div");
  into.append(button("As the server renders it", async (event) => {
    event.target.disabled = true;
    try {
      const { text, why } = await get(`turns/${encodeURIComponent(id)}/rendered`);
      into.replaceChildren(h("h3", "As the server renders it"), h("p.meta", "By the template of the model that serves now."), text ? long(text, "pre.text", 6000) : empty(why));
    } catch (error) {
      event.target.disabled = false;
      toast(error.message);
    }
  }, "quiet"));
  return into;
}

function callTable(calls) {
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Model calls" }, h("table",
    h("thead", h("tr", ["When", "Prompt", "Cached", "New", "Read again", "Written", "First word", "Reads", "Writes"].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", calls.flatMap((call) => [
      h("tr", h("td", call.purpose === "turn" ? clock(call.at) : `${clock(call.at)} ${call.purpose}`),
        [int(call.prompt_tokens), int(call.cached_tokens), int(call.new_tokens), int(call.reread), int(call.completion_tokens), seconds(call.ttft_ms === null ? NaN : call.ttft_ms / 1000), number(call.prefill_tok_s), number(call.decode_tok_s, 1)].map((cell) => h("td.num", cell))),
      call.difference && h("tr", h("td.why", { colspan: 9 }, "Read again because: ", long(call.difference, "span", 300))),
    ]))));
}

function sentItem(row) {
  let ids = [];
  try { ids = JSON.parse(row.message_ids); } catch { /* shown as none */ }
  return h("li", h("div.grow", long(row.text, "p.said", 1500),
    h("p.meta", `${row.state} ${whenWithin(row.changed_at)}${ids.length ? ` as ${ids.join(", ")}` : ""} · ${seconds(row.changed_at - row.created_at)}${row.error ? ` · ${row.error}` : ""}`)));
}
