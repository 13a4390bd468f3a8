// Bars and small lines as SVG. Each has its figures in words, for those who do not see it.

import { h, s } from "./dom.js";
import { int, seconds } from "./format.js";

export const PART_NAMES = {
  waiting: "waiting", reading: "reading", thinking: "thinking", writing: "writing",
  tools: "tools", approvals: "approvals", sending: "sending", other: "other",
  prefix: "fixed prefix", summary: "summary", notes: "notes", history: "history", new: "new",
  cached: "from the cache", read: "read", reread: "read again", written: "written",
};

// A bar of named amounts; `whole` is what its full width stands for.
export function bar(amounts, { whole = 0, say = seconds, slim = false } = {}) {
  const listed = Object.entries(amounts).filter(([, amount]) => amount > 0);
  const sum = listed.reduce((total, [, amount]) => total + amount, 0);
  const words = listed.map(([name, amount]) => `${PART_NAMES[name] ?? name} ${say(amount)}`).join(", ");
  let x = 0;
  const scale = 1000 / Math.max(whole, sum, 1e-9);
  return s("svg", { class: slim ? "bar slim" : "bar", viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img", "aria-label": words || "nothing" },
    s("rect", { class: "ground", width: 1000, height: 10 }),
    listed.map(([name, amount]) => {
      const width = Math.max(1.5, amount * scale);
      const rect = s("rect", { class: `part-${name}`, x: x.toFixed(2), width: width.toFixed(2), height: 10 }, s("title", `${PART_NAMES[name] ?? name}: ${say(amount)}`));
      x += amount * scale;
      return rect;
    }));
}

export const legend = (names) => h("ul.legend", { "aria-label": "Colours" },
  names.map((name) => h("li", s("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, s("rect", { class: `part-${name}`, width: 10, height: 10, rx: 2 })), PART_NAMES[name] ?? name)));

export const keyed = (amounts, say) => h("dl.keyed",
  Object.entries(amounts).filter(([, amount]) => amount > 0).map(([name, amount]) =>
    h("div", h("dt", s("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, s("rect", { class: `part-${name}`, width: 10, height: 10, rx: 2 })), PART_NAMES[name] ?? name), h("dd", say(amount)))));

// A small line without axes.
export function spark(values, label, best = 0) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length < 2) return null;
  const top = Math.max(best, ...known) * 1.06 || 1;
  const x = (place) => 2 + (place / (values.length - 1)) * 196;
  const y = (value) => 42 - (value / top) * 38;
  const points = values.map((value, place) => (value === null || value === undefined ? null : `${x(place).toFixed(1)} ${y(value).toFixed(1)}`)).filter(Boolean);
  return s("svg", { class: "spark", viewBox: "0 0 200 46", preserveAspectRatio: "none", role: "img", "aria-label": label },
    best > 0 && s("path", { class: "best", d: `M0 ${y(best).toFixed(1)}H200` }),
    s("path", { class: "line", d: `M${points.join("L")}` }));
}

// A drawing that the backend made, as a chat gets it too; the style sheet gives its colours.
export function drawing(svg) {
  const found = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  return h("figure.chart", document.adoptNode(found));
}

export const tokensSaid = (count) => `${int(count)} tokens`;
