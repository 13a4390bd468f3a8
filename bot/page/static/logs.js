// Logs: the ledger of what was asked, decided and reached, and the model server's last lines.

import { get } from "./api.js";
import { button, copy, empty, h, long, table } from "./dom.js";
import { exact, when } from "./format.js";

export async function showLogs(into) {
  const { server, why, ledger } = await get("logs");
  const facts = (text) => {
    try { return Object.entries(JSON.parse(text)).map(([name, value]) => `${name}: ${value}`).join(" · "); } catch { return text; }
  };
  const lines = long(server.join("\n"), "pre.text", 60000);
  into.append(h("h1", "Logs"),
    h("section", h("h2", "Ledger"), h("p.meta", "What was asked, decided, allowed, reached and changed; ", h("code", "voltaire audit"), " has all of it and checks it."),
      ledger.length ? table("Ledger", ["When", "What", "Chat", "Facts"], ledger.map((row) => [h("span.moment", { title: exact(row.at) }, when(row.at)), row.kind, row.chat, long(facts(row.facts), "span", 300)])) : empty("Nothing is on record.")),
    h("section", h("div.head", h("h2", "Model server"), server.length > 0 && button("Copy", () => copy(server.join("\n")), "quiet")),
      server.length ? h("div.scroll.log", { tabindex: 0, role: "region", "aria-label": "Lines of the model server" }, lines) : empty(why || "It has said nothing yet."),
      h("p.meta", "The bot's own lines: ", h("code", "journalctl -u voltaire-bot"), ", or where you started it.")));
  // The newest are the last ones.
  requestAnimationFrame(() => (lines.matches("pre") ? lines : lines.firstChild).scrollTo(0, 1e9));
  return null;
}
