// Deliveries: what is in doubt, what waits, what arrived under which id.

import { get, press } from "./api.js";
import { ask, button, empty, h, long, tag } from "./dom.js";
import { when } from "./format.js";

const KINDS = { uncertain: ["In doubt", "warning"], failed: ["Refused", "warning"], waiting: ["Waiting", ""], sending: ["Being sent", ""], delivered: ["Delivered", "good"] };

export async function showDeliveries(into) {
  const draw = async () => {
    const { deliveries } = await get("deliveries");
    into.replaceChildren(h("h1", "Deliveries"));
    for (const [state, [title, kind]] of Object.entries(KINDS)) {
      const rows = deliveries.filter((row) => row.state === state);
      if (!rows.length && state !== "delivered") continue;
      into.append(h("section", h("h2", title), rows.length ? h("ul.rows", rows.map((row) => item(row, kind))) : empty("Nothing was sent yet.")));
    }
  };
  const item = (row, kind) => {
    let ids = [];
    try { ids = JSON.parse(row.message_ids); } catch { /* none */ }
    return h("li", h("div.grow", long(row.text, "p.said", 400),
      h("p.meta", `${row.chat} · ${when(row.changed_at)}${ids.length ? ` · message ${ids.join(", ")}` : ""}${row.attempts > 1 ? ` · ${row.attempts} attempts` : ""} `, row.turn && h("a", { href: `#/turns/${encodeURIComponent(row.turn)}` }, "turn"), row.error && [" ", tag(row.error, kind)])),
    row.state === "uncertain" && h("div.acts", button("Show again", async () => {
      if (await ask("Send it once more?", { text: "It may stand in the chat twice then.", yes: "Show again" }) && await press("show-again", { number: row.id }) !== null) await draw();
    })));
  };
  await draw();
  return null;
}
