// Budgets of the latest evaluations, and gauges that show how much of them is spent.

import { h } from "./dom.js";
import { attempt, get } from "./api.js";
import { duration, money, number } from "./format.js";

const PARTS = { money_micros: ["money", money], total_tokens: ["tokens", number], input_tokens: ["tokens in", number], output_tokens: ["tokens out", number],
  reasoning_tokens: ["reasoning", number], turns: ["turns", number], calls: ["calls", number], millis: ["time", duration] };
const SUMMED = ["money_micros", "input_tokens", "output_tokens", "reasoning_tokens", "turns", "calls", "millis"];

/** Reads budgets of all sessions, or of one: `{session, mission, limits, spent}`. Stores whose SQL differs have none. */
export async function budgets(session, signal) {
  const only = session ? `AND session = '${String(session).replaceAll("'", "''")}'` : "";
  const sql = `WITH latest AS (SELECT session, max(position) AS position FROM records WHERE kind = 'evaluation_started' ${only} GROUP BY session),
    limited AS (SELECT r.session, r.position, r.at, r.data ->> '$.budget' AS limits FROM latest JOIN records r USING (session, position) WHERE r.data ->> '$.budget' IS NOT NULL ORDER BY r.at DESC LIMIT 30)
    SELECT b.session, s.mission, b.limits, ${SUMMED.map((name) => `sum(c.data ->> '$.amounts.${name}') AS ${name}`).join(", ")}
    FROM limited b JOIN sessions s USING (session) LEFT JOIN records c ON c.session = b.session AND c.kind = 'budget_charged' AND c.position > b.position GROUP BY b.session ORDER BY b.at DESC`;
  const page = await attempt(get("/query", { sql, limit: 30 }, signal), signal);
  return (page?.rows ?? []).map((row) => {
    const spent = Object.fromEntries(SUMMED.map((name, index) => [name, row[3 + index] ?? 0]));
    spent.total_tokens = spent.input_tokens + spent.output_tokens;
    return { session: row[0], mission: row[1], limits: JSON.parse(row[2]), spent };
  });
}

/** Gauges of a budget: a bar for each limit. */
export function gauges({ limits, spent }) {
  return h("div.gauges", Object.entries(limits).filter(([name, limit]) => PARTS[name] && typeof limit === "number").map(([name, limit]) => {
    const [label, format] = PARTS[name];
    const share = limit ? (spent[name] ?? 0) / limit : 1;
    const words = `${label} ${format(spent[name] ?? 0)} of ${format(limit)}`;
    return h("div.gauge", h("span", words), h(`div.gauge-bar${share >= 1 ? ".spent" : share >= 0.8 ? ".near" : ""}`, { role: "meter", "aria-label": words, "aria-valuemin": 0, "aria-valuemax": limit, "aria-valuenow": Math.min(limit, spent[name] ?? 0) }, h("div", { "width%": Math.min(100, share * 100) })));
  }));
}
