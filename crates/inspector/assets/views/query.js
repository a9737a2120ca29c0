// SQL over the views of the store, read-only.

import { h, show } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { plural, visible } from "../lib/format.js";

const EXAMPLE = "SELECT tool, count(*) AS calls, sum(status = 'failed') AS failed FROM calls GROUP BY tool ORDER BY calls DESC";

export async function query(main, { query: address, signal, title }) {
  title("Query");
  const field = h("textarea", { id: "sql", rows: 5, maxlength: 8000, value: address.get("sql") ?? EXAMPLE });
  const result = h("div");
  const run = async () => {
    history.replaceState(null, "", `#/query?${new URLSearchParams({ sql: field.value })}`);
    show(result, h("p.quiet", "Running …"));
    try {
      const page = await get("/query", { sql: field.value, limit: 1000 }, signal);
      show(result, h("p.quiet", { role: "status" }, plural(page.rows.length, "row"), page.is_cut ? ", cut: there are more" : ""),
        h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Result" }, h("table.list", h("thead", h("tr", page.columns.map((name, index) => h(typeof page.rows[0]?.[index] === "number" ? "th.num" : "th", { scope: "col" }, visible(name))))),
          h("tbody", page.rows.map((row) => h("tr", row.map((cell) => h(typeof cell === "number" ? "td.num" : "td", cell === null ? h("span.quiet", "null") : visible(String(cell).slice(0, 2000))))))))));
    } catch (error) { if (!signal.aborted) show(result, h("p.error", { role: "alert" }, error.message)); }
  };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } });
  show(main, h("div.pad", h("h1", "Query"), h("p.quiet", "SQL over the views of the store (sessions, messages, calls, requests, changes …), read-only. Ctrl+Enter runs it."),
    h("form", { onsubmit: (event) => { event.preventDefault(); run(); } }, h("label.hidden", { for: "sql" }, "SQL"), field, h("p.actions", h("button.primary", { type: "submit" }, "Run"))), result));
  bind([["/", "Edit the query", () => field.focus()]]);
  if (address.get("sql")) await run();
}
