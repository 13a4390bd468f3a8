// What runs now: the model and why, speed against its own best, who waits, the cards.

import { get, press } from "./api.js";
import { bar, drawing, legend, spark } from "./charts.js";
import { ask, button, empty, h, tag } from "./dom.js";
import { clock, gib, int, number, one, percent, seconds, short, when, whenWithin } from "./format.js";
import { questionCard } from "./people.js";
import { turnRow } from "./turns.js";

const GOOD = new Set(["ready", "busy", "sleeping"]);
const SPANS = ["hour", "day", "month"];
let span = "hour";

// Builds a part again where what it shows has changed, and leaves the focus where it was.
function part(node, build) {
  let before = "";
  return (fields) => {
    const text = JSON.stringify(fields);
    if (text === before) return;
    before = text;
    const focused = node.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") || document.activeElement.textContent : "";
    node.replaceChildren(...[build(fields)].flat(2).filter(Boolean));
    if (focused) [...node.querySelectorAll("button, a")].find((each) => (each.getAttribute("aria-label") || each.textContent) === focused)?.focus();
  };
}

export async function showNow(into) {
  const names = ["state", "figures", "attention", "work", "alerts", "last"];
  const at = Object.fromEntries(names.map((name) => [name, h(`section.${name}`)]));
  const cards = h("section.cards");
  into.append(h("h1.unseen", "Now"), at.state, at.attention, at.work, at.figures, cards, at.last, at.alerts);
  const parts = {
    state: part(at.state, state), figures: part(at.figures, figures), attention: part(at.attention, attention),
    work: part(at.work, work), alerts: part(at.alerts, alerts), last: part(at.last, last),
  };
  const drawCards = cardSection(cards);
  const update = (now) => {
    if (now.why) return;
    const { status } = now;
    parts.state({ backend: status.backend, bot: status.bot, frozen: now.frozen, version: status.version, uptime: Math.floor((status.uptime_s ?? 0) / 60) });
    parts.attention({ questions: now.questions, uncertain: now.uncertain, failed: status.bot.outbox_failed, aside: status.bot.set_aside });
    parts.work({ running: now.running.map((turn) => ({ id: turn.id, chat: turn.chat, title: turn.title, asked: turn.asked, kind: turn.kind, started_at: turn.started_at, tools: turn.tools })), waiting: now.waiting, gpu: now.gpu_waiting, minute: Math.floor(now.at / 10) });
    parts.figures({ speeds: now.speeds, speed: status.speed, warm: status.backend.warm, n_ctx: status.backend.n_ctx, memory: status.memory_mib, together: status.memory_mib.backend === null && status.backend.state !== "stopped", idle: status.idle, jobs: status.jobs });
    parts.last({ turns: now.turns });
    parts.alerts({ alerts: now.alerts ?? [] });
    drawCards(now);
  };
  update(await get("now"));
  return update;
}

function state({ backend, bot, frozen, version, uptime }) {
  const good = GOOD.has(backend.state);
  const warming = backend.total ? ` ${percent(backend.done / backend.total)}` : "";
  return [
    frozen && h("p.frozen", { role: "alert" }, `Frozen since ${whenWithin(frozen)}: no tool runs and no job starts. `, h("code", "voltaire thaw")),
    h("p.kicker", backend.profile || "model server"),
    h("p.headline", backend.model || "No model", h(`span.state.${good ? "good" : backend.state === "failed" ? "bad" : "mid"}`, backend.state + warming)),
    backend.reason && h("p.reason", backend.reason),
    backend.held && h("p.reason", `Held: ${backend.held}`),
    (backend.less_memory ?? []).length > 0 && h("p.reason", `With less memory: ${backend.less_memory.join(", ")}`),
    h("p.meta", [
      backend.n_ctx && `window of ${int(backend.n_ctx)} tokens`,
      backend.restarts ? `${one(backend.restarts, "restart")}, the last ${whenWithin(backend.last_restart?.at)}: ${backend.last_restart?.cause ?? ""}` : backend.state !== "stopped" && "no restart",
      backend.restored && `${one(backend.restored.chats, "prompt")} from the disk, ${seconds(backend.restored.seconds)} of reading saved`,
      uptime > 0 && `up ${seconds(uptime * 60)}`,
      bot.username || bot.polling_ok !== null ? `${bot.username ? `@${bot.username.replace(/^@/, "")} ` : "bot "}${bot.polling_ok ? "listens" : bot.problem || "does not listen"}` : "the bot is stopped",
      `Voltaire ${version}`,
    ].filter(Boolean).join(" · ")),
  ];
}

function attention({ questions, uncertain, failed, aside }) {
  const told = [
    uncertain && h("a.note", { href: "#/deliveries" }, `${one(uncertain, "message")} may not have arrived`),
    failed && h("a.note", { href: "#/deliveries" }, `${one(failed, "message")} could not be delivered`),
    aside && h("p.note", `${one(aside, "row")} set aside, which could not be read`),
  ].filter(Boolean);
  return [questions.map(questionCard), told.length > 0 && h("div.notes", told)];
}

function work({ running, waiting, gpu }) {
  if (!running.length && !waiting.length) return [h("h2", "Working"), empty(gpu ? `${one(gpu, "request")} ${gpu === 1 ? "waits" : "wait"} for the model.` : "Nothing runs, and nobody waits.")];
  return [
    h("h2", "Working"),
    h("ul.rows", running.map((turn) => h("li.running",
      h("div.grow", h("p.what", h("a", { href: `#/turns/${encodeURIComponent(turn.id)}` }, turn.asked || turn.kind)),
        h("p.meta", [turn.title || turn.chat, `for ${seconds(Date.now() / 1000 - turn.started_at)}`, ...Object.entries(turn.tools).map(([name, count]) => `${name} ×${count}`)].join(" · "))),
      button("Stop", async () => {
        if (await ask("Stop this turn?", { text: turn.asked, yes: "Stop it", danger: true })) await press("stop", { chat: turn.chat });
      }, "danger")))),
    waiting.length > 0 && h("ul.rows.queue", { "aria-label": "In the queue" }, waiting.map((each, place) => h("li",
      h("span.place", String(place + 1)), h("div.grow", h("p.what", each.words || each.kind), h("p.meta", `${each.title || each.chat} · since ${clock(each.received_at)}`))))),
    gpu > 0 && h("p.meta", `${one(gpu, "request")} before the model`),
  ];
}

function figures({ speeds, speed, warm, memory, together, idle, jobs }) {
  const recent = speeds.recent;
  const of = (name) => recent.map((call) => call[name]);
  const newest = (name) => of(name).filter((value) => value !== null).at(-1);
  const against = (value, best) => (value && best ? `${percent(Math.min(value / best, 1))} of this machine's best, ${number(Math.max(value, best))}` : "");
  const figure = (label, value, unit, under, line) => h("div.figure", h("p.label", label), h("p.value", value, unit && h("small", ` ${unit}`)), under && h("p.under", under), line);
  const writes = newest("decode_tok_s"), reads = newest("prefill_tok_s");
  return [h("h2", "Figures"), h("div.figures",
    figure("Writes", number(writes ?? speed.decode_tok_s, writes < 10 ? 1 : 0), "tokens/s", against(writes, speeds.best_decode_tok_s), spark(of("decode_tok_s"), `The last ${recent.length} calls`, speeds.best_decode_tok_s ?? 0)),
    figure("Reads", int(reads ?? speed.prefill_tok_s), "tokens/s", against(reads, speeds.best_prefill_tok_s), spark(of("prefill_tok_s"), `The last ${recent.length} calls`, speeds.best_prefill_tok_s ?? 0)),
    figure("First word", seconds(newest("ttft_ms") === undefined ? NaN : newest("ttft_ms") / 1000), "", "in the last call", spark(of("ttft_ms"), `The last ${recent.length} calls`)),
    figure("From the cache", percent(speeds.cached_share_day), "", "of all prompts in 24 hours", spark(recent.map((call) => (call.prompt_tokens ? (call.cached_tokens ?? 0) / call.prompt_tokens : null)), `The last ${recent.length} calls`, 1)),
    figure("Warm prefix", warm ? int(warm.cached_tokens) : "–", warm && `of ${int(warm.tokens)}`, warm ? `by ${warm.source}, in ${seconds(warm.seconds)}` : "nothing is warm"),
    figure("Between turns", idle.tokens ? short(idle.tokens) : "0", "tokens", idle.seconds ? `${seconds(idle.seconds)}${idle.wh === null ? "" : `, ${number(idle.wh, 2)} Wh`} in 24 hours` : "read ahead in 24 hours"),
    figure("Memory", int(memory.bot || memory.backend ? memory.bot + memory.backend : null), "MiB", `bot ${together ? "and backend" : `${int(memory.bot)}, backend`} ${int(together ? memory.bot : memory.backend)}, model server ${int(memory.server)}`),
    figure("Jobs", int(jobs.active), "", jobs.next_at ? `${jobs.overdue ? "overdue since" : "next"} ${whenWithin(jobs.next_at)}` : "none is due"),
  )];
}

function last({ turns }) {
  if (!turns.length) return [h("h2", "Last turns"), empty("No turn yet.")];
  const longest = Math.max(...turns.map((turn) => Object.values(turn.seconds).reduce((a, b) => a + b, 0)));
  return [h("div.head", h("h2", "Last turns"), h("a", { href: "#/turns" }, "All turns")),
    legend(["waiting", "reading", "thinking", "writing", "tools", "approvals", "sending", "other"]),
    h("ul.rows.turns", turns.map((turn) => turnRow(turn, longest)))];
}

function alerts({ alerts: found }) {
  if (!found.length) return [];
  return [h("h2", "Alerts"), h("ul.rows", found.map((alert) => h("li", tag(alert.level, alert.level), h("div.grow", h("p.what", alert.text), h("p.meta", when(alert.at))))))];
}

// -- cards ----------------------------------------------------------------------

function cardSection(into) {
  let drawn = 0, known = "", seen = [];
  const table = h("div"), graphs = h("div.graphs"), choice = h("div.segmented", { role: "group", "aria-label": "Time of the graphs" });
  for (const name of SPANS) {
    choice.append(h("button", { type: "button", "aria-pressed": String(name === span), onclick: () => {
      span = name;
      for (const each of choice.children) each.setAttribute("aria-pressed", String(each.textContent === name));
      load();
    } }, name));
  }
  const title = h("h2", "Cards");
  into.append(h("div.head", title, choice), table, graphs);

  async function load() {
    drawn = Date.now();
    let found;
    try {
      found = await get("drawings", { span, zone: Intl.DateTimeFormat().resolvedOptions().timeZone });
    } catch (error) {
      found = { drawings: [], why: error.message };
    }
    graphs.replaceChildren(...(found.drawings.length ? found.drawings.map(drawing) : [empty(found.why)]));
  }

  return (now) => {
    const { gpus } = now.status;
    if (!gpus.length && now.processor) seen = [...seen, now.processor].slice(-900);
    const text = JSON.stringify([gpus, now.processor, now.price_kwh]);
    if (text !== known) {
      known = text;
      title.textContent = gpus.length ? (gpus.length > 1 ? "Cards" : "Card") : "Processor";
      table.replaceChildren(...(gpus.length ? gpus.map((gpu) => gpuFacts(gpu, now.price_kwh)) : seen.length ? [processorFacts(seen)] : []));
    }
    if (Date.now() - drawn > 60000) load();
  };
}

const fact = (label, value) => h("div", h("dt", label), h("dd", value));

function gpuFacts(gpu, price) {
  const joules = gpu.tokens_per_joule ? 1 / gpu.tokens_per_joule : null;
  const memory = gpu.memory_total_mib ? gpu.memory_used_mib / gpu.memory_total_mib : null;
  return h("div.card", h("p.name", gpu.name, (gpu.throttle ?? []).map((why) => tag(`slowed: ${why}`, "warning"))),
    h("dl.facts",
      fact("Temperature", `${number(gpu.temperature_c)} °C${gpu.memory_temperature_c ? `, memory ${number(gpu.memory_temperature_c)} °C` : ""}`),
      fact("Power", `${number(gpu.power_w)} of ${number(gpu.power_limit_w)} W`),
      fact("Clock", `${int(gpu.sm_clock_mhz)} MHz`),
      fact("Load", `${number(gpu.utilization)} %`),
      fact("Memory", h("span", `${gib(gpu.memory_used_mib)} of ${gib(gpu.memory_total_mib)} GiB`)),
      joules && fact("Joules per token", number(joules, 2)),
      joules && price > 0 && fact("Price of a million tokens", number(joules * 1e6 / 3.6e6 * price, 2)),
      gpu.ecc_uncorrected ? fact("Memory errors", int(gpu.ecc_uncorrected)) : null),
    memory !== null && bar({ read: memory }, { whole: 1, say: percent, slim: true }));
}

// `seen`: what was told since the page was opened, the newest last.
function processorFacts(seen) {
  const processor = seen.at(-1);
  const line = (field, label) => spark(seen.map((each) => each[field]), `${label} since this page was opened`);
  return h("div.card", h("p.name", processor.name || "Processor"),
    h("dl.facts", fact("Cores", int(processor.cores)), fact("Load", [number(processor.load, 2), line("load", "Load")]),
      fact("Memory", [`${gib(processor.memory_used_mib)} of ${gib(processor.memory_total_mib)} GiB`, line("memory_used_mib", "Memory in use")]),
      processor.temperature_c && fact("Temperature", `${number(processor.temperature_c)} °C`)));
}
