// Jobs: the next times on a line of days, how the last ones ended, pause, run, edit.

import { get, press } from "./api.js";
import { ask, button, empty, h, long, redraw, s, table, tag, toast } from "./dom.js";
import { clock, day, when, whenWithin } from "./format.js";

const DAYS = 7;

export async function showJobs(into) {
  const draw = async () => {
    const { jobs, occurrences } = await get("jobs");
    redraw(into, h("h1", "Jobs"), jobs.length ? days(jobs) : empty("No jobs. In the chat: “every weekday at 8 summarise the website repo”."),
      h("ul.rows", jobs.map(item)),
      h("h2", "What became of them"), occurrences.length ? table("Occurrences", ["Due", "Job", "Ended as", "Why"], occurrences.map((each) => [
        h("span.moment", when(each.due_at)), long(each.task, "span", 120), tag(each.state, { failed: "warning", missed: "warning", done: "good" }[each.state] ?? ""),
        h("span", long(each.detail, "span", 300), " ", each.turn && h("a", { href: `#/turns/${encodeURIComponent(each.turn)}` }, "turn")),
      ])) : empty("Nothing was due yet."));
  };
  const act = async (change, fields) => {
    if (await press(change, fields) === null) return;
    try { await draw(); } catch (error) { toast(error.message); }
  };
  const item = (job) => h("li", { id: `job-${job.id}` },
    h("div.grow", long(job.task, "p.what.whole", 400), h("p.meta", [job.words, job.title || job.chat, job.kind, job.made_by === "model" && "planned by the agent", job.state === "paused" ? "paused" : job.next_at && `${job.overdue ? "overdue since" : "next"} ${whenWithin(job.next_at)}`].filter(Boolean).join(" · "), " ",
      job.stranger && tag(`strangers' text: ${job.stranger}`, "warning"))),
    h("div.acts",
      button(job.state === "paused" ? "Go on" : "Pause", () => act("job-pause", { chat: job.chat, number: job.id, on: job.state !== "paused" }), "quiet"),
      button("Run now", async () => {
        if (await ask("Run this job now?", { text: job.task, yes: "Run it" })) await act("job-run", { chat: job.chat, number: job.id });
      }, "quiet"),
      button("Edit", async () => {
        const text = await ask("Another time, or time and task", { value: job.words, yes: "Change it" });
        if (text && text !== job.words) await act("job-edit", { chat: job.chat, number: job.id, text });
      }, "quiet"),
      button("Delete", async () => {
        if (await ask("Delete this job?", { text: job.task, yes: "Delete it", danger: true })) await act("job-remove", { chat: job.chat, number: job.id });
      }, "quiet")));
  await draw();
  return null;
}

// The coming days side by side, each due time where it lies in its day.
function days(jobs) {
  const start = new Date(new Date().toDateString());
  const due = jobs.flatMap((job) => job.times.map((at) => ({ at, task: job.task.slice(0, 120) }))).sort((a, b) => a.at - b.at);
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": "The next seven days" }, h("ol.days", Array.from({ length: DAYS }, (_, place) => {
    const from = new Date(start.getFullYear(), start.getMonth(), start.getDate() + place).getTime() / 1000;
    const to = new Date(start.getFullYear(), start.getMonth(), start.getDate() + place + 1).getTime() / 1000;
    const here = due.filter((each) => each.at >= from && each.at < to);
    return h("li", h("p.label", day(from + 43200)),
      s("svg", { viewBox: "0 0 240 12", preserveAspectRatio: "none", "aria-hidden": "true" }, s("path", { class: "grid", d: "M0 6H240" }),
        here.map((each) => s("rect", { class: "due", x: (((each.at - from) / (to - from)) * 236).toFixed(1), width: 4, height: 12, rx: 1 }))),
      here.length ? h("ul.plain", here.slice(0, 4).map((each) => h("li", h("b", clock(each.at)), " ", each.task)), here.length > 4 && h("li.meta", `and ${here.length - 4} more`)) : h("p.meta", "nothing"));
  })));
}
