// Making elements. Whatever comes from outside becomes a text node, made visible first.

const SVG = "http://www.w3.org/2000/svg";
// Control characters, directions and invisible ones would change what a line seems to say.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb]/g;
export const LONGEST = 20000; // characters of a text shown at once

export const visible = (text) =>
  String(text ?? "").replace(HIDDEN, (sign) => `⟨${sign.codePointAt(0).toString(16).padStart(4, "0")}⟩`);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : visible(value));
  }
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    node.append(child instanceof Node ? child : visible(child));
  }
  return node;
}

const made = (node, rest) => {
  const plain = rest[0] && rest[0].constructor === Object ? rest.shift() : {};
  return filled(node, plain, rest);
};

export const h = (tag, ...rest) => {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  return made(node, rest);
};

export const s = (tag, ...rest) => made(document.createElementNS(SVG, tag), rest);

export const byId = (id) => document.getElementById(id);

// A long text: its beginning, and the rest when it is asked for.
export function long(text, tag = "pre.text", most = 3000) {
  const whole = String(text ?? "");
  // What may have to be scrolled must be reached by the keyboard.
  const node = h(tag, tag === "pre.text" && whole.length > 600 ? { tabindex: 0 } : {}, whole.slice(0, most));
  if (whole.length <= most) return node;
  let shown = most;
  const label = () => `Show more (${(whole.length - shown).toLocaleString("en")} characters left)`;
  const more = h("button.quiet", { type: "button", onclick: () => {
    node.append(visible(whole.slice(shown, shown + LONGEST)));
    shown += LONGEST;
    if (shown >= whole.length) more.remove();
    else more.textContent = label();
  } }, label());
  return h("div", node, more);
}

export const button = (label, act, kind = "") =>
  h(`button${kind && `.${kind}`}`, { type: "button", onclick: act }, label);

export const tag = (label, kind = "") => h(`span.tag${kind && `.${kind}`}`, label);

export const empty = (text) => h("p.empty", text);

export function table(label, heads, rows) {
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": label }, h("table",
    h("thead", h("tr", heads.map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", rows.map((row) => h("tr", row.map((cell) => h(cell instanceof Node && cell.matches(".moment") ? "td.moment" : "td", cell)))))));
}

let toastTimer = 0;
export function toast(text) {
  byId("toast").textContent = visible(text);
  byId("toast").classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => byId("toast").classList.remove("shown"), 6000);
}

export async function copy(text, told = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
    toast(told);
  } catch {
    toast("The browser did not allow copying.");
  }
}

// Shows again what was changed; the focus stays in its row, whose id names it: a key that is on its way finds its button.
export function redraw(into, ...children) {
  const reachable = "a, button, input, select";
  const row = document.activeElement.closest("[id]");
  const place = into.contains(row) ? [...row.querySelectorAll(reachable)].indexOf(document.activeElement) : -1;
  into.replaceChildren(...children);
  if (place >= 0) byId(row.id)?.querySelectorAll(reachable)[place]?.focus();
}

// Asks before something is done: true, or the text that was written; null where it was not wanted.
export function ask(title, { text = "", value = null, yes = "Yes", no = "Cancel", danger = false, area = false } = {}) {
  const dialog = byId("dialog");
  return new Promise((answer) => {
    let given = null;
    const label = h("label.field", h("span", "Text"), area ? h("textarea", { rows: 5 }) : h("input", { type: "text" }));
    const field = label.lastElementChild;
    const form = h("form", { method: "dialog", onsubmit: (event) => {
      event.preventDefault();
      given = value === null ? true : field.value;
      dialog.close();
    } },
    h("h2", { id: "dialog-title" }, title), text && h("p", text), value !== null && label,
    h("div.actions", no && button(no, () => dialog.close()), h(`button.${danger ? "danger" : "primary"}`, { type: "submit" }, yes)));
    if (value !== null) field.value = value;
    dialog.replaceChildren(form);
    dialog.onclose = () => answer(given);
    dialog.showModal();
  });
}
