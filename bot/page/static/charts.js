// Bars and lines as SVG. Each has its figures in words, for those who do not see it.

import { h, s } from "./dom.js";
import { clock, day, int, number, seconds } from "./format.js";

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

const STEPS = [1, 2, 5];
function ticks(low, high, count = 3) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (STEPS.find((each) => each * power >= rough) ?? 10);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + 1e-9; at += step) found.push(at);
  return found;
}

const TIME_STEPS = [600, 900, 1800, 3600, 7200, 10800, 14400, 21600, 43200, 86400, 172800, 345600, 604800];

// Curves over time: [{label, points: [[at, value]]}]; `marked` are [from, to] in which a card was slowed.
export function lines(title, curves, since, until, { unit = "", digits = 0, zero = false, marked = [] } = {}) {
  const phone = matchMedia("(max-width: 700px)").matches;
  const W = phone ? 340 : 520, H = 150, L = 38, R = W - 6, T = 8, B = H - 20;
  const values = curves.flatMap((curve) => curve.points.map(([, value]) => value));
  if (!values.length) return null;
  let low = zero ? 0 : Math.min(...values), high = Math.max(...values);
  const spare = (high - low) * 0.1 || Math.max(1, Math.abs(high) * 0.1);
  low = zero ? 0 : Math.max(0, low - spare);
  high += spare;
  const x = (at) => L + ((at - since) / (until - since)) * (R - L);
  const y = (value) => B - ((value - low) / (high - low)) * (B - T);
  const span = until - since;
  const step = TIME_STEPS.find((each) => span / each <= (phone ? 4 : 6)) ?? 604800;
  const zone = new Date().getTimezoneOffset() * 60;
  const times = [];
  for (let at = Math.ceil((since - zone) / step) * step + zone; at < until; at += step) times.push(at);
  const gap = span / 40;
  const path = (points) => points.map(([at, value], place) =>
    `${place === 0 || at - points[place - 1][0] > gap ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  const last = (curve) => number(curve.points.at(-1)[1], digits);
  const words = curves.map((curve) => {
    const own = curve.points.map(([, value]) => value);
    return `${curve.label || title} now ${last(curve)}${unit}, lowest ${number(Math.min(...own), digits)}, highest ${number(Math.max(...own), digits)}`;
  }).join("; ");
  return h("figure.chart",
    h("figcaption", h("strong", title), curves.map((curve, place) => h("span", s("svg", { viewBox: "0 0 18 8", "aria-hidden": "true" }, s("path", { class: `curve c${place % 4}`, d: "M0 4H18" })), `${curve.label ? `${curve.label} ` : ""}${last(curve)}${unit}`))),
    s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": words + (marked.length ? "; slowed at times" : "") },
      marked.map(([from, to]) => s("rect", { class: "slowed", x: x(from).toFixed(1), y: T, width: Math.max(1.5, x(to) - x(from)).toFixed(1), height: B - T })),
      ticks(low, high).map((value) => [s("path", { class: "grid", d: `M${L} ${y(value).toFixed(1)}H${R}` }), s("text", { x: L - 6, y: (y(value) + 4).toFixed(1), "text-anchor": "end" }, value >= 10000 ? `${value / 1000}k` : String(+value.toFixed(2)))]),
      times.map((at) => s("text", { x: x(at).toFixed(1), y: H - 4, "text-anchor": "middle" }, span > 2 * 86400 ? day(at).replace(/^\w+,? (?=\d)/, "") : clock(at))),
      curves.map((curve, place) => s("path", { class: `curve c${place % 4}`, d: path(curve.points) }))));
}

export const tokensSaid = (count) => `${int(count)} tokens`;
