// Numbers, times and amounts as a person reads them. What is not known is a dash.

export const DASH = "–";
const known = (value) => value !== null && value !== undefined && Number.isFinite(Number(value));

export const int = (value) => (known(value) ? Math.round(value).toLocaleString("en") : DASH);

export const short = (value) => {
  if (!known(value)) return DASH;
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(0)}k`;
  return int(value);
};

export const number = (value, digits = 0) => (known(value) ? Number(value).toFixed(digits) : DASH);

export const percent = (share) => (known(share) ? `${Math.round(100 * share)} %` : DASH);

export const gib = (mib) => (known(mib) ? (mib / 1024).toFixed(1) : DASH);

export function seconds(value) {
  if (!known(value)) return DASH;
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 90) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  if (value < 172800) return `${Math.floor(value / 3600)} h ${Math.round((value % 3600) / 60)} min`;
  return `${Math.round(value / 86400)} days`;
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const SECOND = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

const date = (at) => new Date(typeof at === "string" ? at : at * 1000);
const right = (when) => !Number.isNaN(when.getTime());

export const clock = (at) => (at && right(date(at)) ? CLOCK.format(date(at)) : DASH);
export const exact = (at) => (at && right(date(at)) ? `${YEAR.format(date(at))} ${SECOND.format(date(at))}` : DASH);

export function day(at) {
  const when = date(at);
  if (!right(when)) return DASH;
  const today = new Date();
  const days = Math.round((new Date(today.toDateString()) - new Date(when.toDateString())) / 864e5);
  if (days === 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days === -1) return "Tomorrow";
  return Math.abs(days) < 300 ? DAY.format(when) : YEAR.format(when);
}

export function when(at) {
  if (!at || !right(date(at))) return DASH;
  const name = day(at);
  return name === "Today" ? clock(at) : `${name}, ${clock(at)}`;
}

// The same within a sentence.
export const whenWithin = (at) => when(at).replace(/^(Tomorrow|Yesterday)/, (name) => name.toLowerCase());

export const one = (count, what, many = `${what}s`) => `${int(count)} ${Number(count) === 1 ? what : many}`;
