// Costs and failures by day, model, tool and tag; slow calls, loops, and sessions near their budget.

import { h, show, svg, button } from "../lib/dom.js";
import { attempt, get } from "../lib/api.js";
import { budgets, gauges } from "../lib/budget.js";
import { duration, line, money, number, short, visible } from "../lib/format.js";

const SPANS = [["7 days", 7], ["30 days", 30], ["90 days", 90], ["everything", null]];

/** Every day of a span, also those without rows. */
function everyDay(rows, days) {
  const known = new Map(rows.map((row) => [row.day, row]));
  const last = new Date();
  const first = new Date(days ? Date.now() - (days - 1) * 86400000 : Date.parse(rows[0]?.day ?? last));
  const list = [];
  for (let day = new Date(`${first.toISOString().slice(0, 10)}T00:00:00Z`); day <= last && list.length < 400; day = new Date(day.getTime() + 86400000)) {
    const name = day.toISOString().slice(0, 10);
    list.push(known.get(name) ?? { day: name });
  }
  return list;
}

/** Bars by day; their values are in the name of the picture, for those who do not see it. */
function plot(rows, field, label, format) {
  const [width, height, left] = [420, 150, 8];
  const step = (width - left - 4) / Math.max(rows.length, 7);
  const most = Math.max(1, ...rows.map((row) => row[field] ?? 0));
  const used = rows.filter((row) => row[field]);
  const every = Math.ceil(rows.length / 6);
  const bars = rows.map((row, index) => {
    const size = ((row[field] ?? 0) / most) * (height - 48);
    const middle = left + (index + 0.5) * step;
    return svg("g", {}, svg("title", {}, `${row.day}: ${format(row[field] ?? 0)}`), svg("rect", { x: left + index * step + step * 0.12, y: height - 22 - size, width: step * 0.76, height: Math.max(size, row[field] ? 2 : 0), rx: Math.min(2, step / 6), class: `bar ${field.startsWith("fail") ? "failed" : "model"}` }),
      (rows.length - 1 - index) % every === 0 ? svg("text", { x: Math.min(width - 18, Math.max(18, middle)), y: height - 6, class: "axis", "text-anchor": "middle" }, row.day.slice(5)) : null);
  });
  return h("figure", h("figcaption", label, h("strong", used.length ? ` most ${format(most)}` : " none")), svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": `${label}: ${used.map((row) => `${row.day} ${format(row[field])}`).join(", ") || "nothing"}` },
    svg("line", { x1: left, x2: width - 4, y1: height - 21.5, y2: height - 21.5, class: "lane" }), bars));
}

function table(title, rows, key) {
  const columns = [["requests", "Requests", number], ["failures", "Failed attempts", number], ["input_tokens", "Tokens in", number], ["output_tokens", "Tokens out", number], ["money_micros", "Money", money], ["calls", "Calls", number], ["failed_calls", "Failed calls", number], ["call_millis", "Time in calls", duration], ["model_millis", "Time in models", duration]];
  const used = columns.filter(([name]) => rows.some((row) => row[name]));
  if (!rows.length) return null;
  return h("section", h("h2", title), h("div.scroll", { tabindex: "0", role: "region", "aria-label": title }, h("table.list", h("thead", h("tr", h("th", { scope: "col" }, key[0].toUpperCase() + key.slice(1)), used.map(([, label]) => h("th.num", { scope: "col" }, label)))),
    h("tbody", rows.map((row) => h("tr", h("th", { scope: "row" }, visible(row[key] || "(none)")), used.map(([name, label, format]) => h(`td.num${name.startsWith("fail") && row[name] ? ".bad" : ""}`, { "data-label": label }, format(row[name])))))))));
}

const ask = (sql, signal) => attempt(get("/query", { sql, limit: 50 }, signal), signal);
const quote = (text) => String(text).replaceAll("'", "''");

export async function overview(main, { query, signal, title, go }) {
  title("Overview");
  const days = query.has("days") ? (query.get("days") === "all" ? null : Number(query.get("days"))) : 30;
  const since = days === null ? null : new Date(Date.now() - days * 86400000).toISOString();
  const report = await get("/stats", { since }, signal);
  const where = since ? `WHERE started_at >= '${quote(since)}'` : "";
  const [slow, loops, tags, limited] = await Promise.all([
    ask(`SELECT session, call, tool, millis FROM calls ${where} ORDER BY millis DESC LIMIT 15`, signal),
    ask(`SELECT session, tool, arguments, count(*) AS times FROM calls ${where} GROUP BY session, tool, arguments HAVING count(*) >= 3 ORDER BY times DESC LIMIT 15`, signal),
    ask("SELECT tag.key || '=' || tag.value AS tag, count(*) AS sessions, sum(money_micros) AS money FROM sessions, json_each(sessions.tags) AS tag GROUP BY 1 ORDER BY 3 DESC LIMIT 30", signal),
    budgets(null, signal),
  ]);
  const sum = report.total;
  const tile = (label, text) => h("div.tile", h("span.quiet", label), h("strong", text));
  const rows = (result, columns) => (result?.rows ?? []).map((row) => Object.fromEntries(columns.map((name, index) => [name, row[result.columns.indexOf(name) >= 0 ? result.columns.indexOf(name) : index]])));
  const slowRows = rows(slow, ["session", "call", "tool", "millis"]);
  const loopRows = rows(loops, ["session", "tool", "arguments", "times"]);
  const tagRows = rows(tags, ["tag", "sessions", "money"]);
  const daily = everyDay(report.days ?? [], days);
  show(main, h("div.pad", h("h1", "Overview"),
    h("p.actions", { role: "group", "aria-label": "Time" }, SPANS.map(([label, count]) => button(label, () => go(`/overview?days=${count ?? "all"}`), { "aria-pressed": String(count === days) }))),
    report.unreadable.length ? h("p.error", { role: "alert" }, report.unreadable.map(visible).join("; ")) : null,
    h("div.tiles", tile("Sessions", number(report.sessions)), tile("Requests", number(sum.requests)), tile("Failed attempts", number(sum.failures)), tile("Tokens in", number(sum.input_tokens)), tile("Tokens out", number(sum.output_tokens)), tile("Money", money(sum.money_micros)), tile("Calls", number(sum.calls)), tile("Failed calls", number(sum.failed_calls))),
    h("div.plots", plot(daily, "money_micros", "Money by day", money), plot(daily, "requests", "Requests by day", number), plot(daily, "calls", "Calls by day", number), plot(daily, "failed_calls", "Failed calls by day", number)),
    limited.length ? h("section", h("h2", "Budgets of the latest evaluations"), h("div.budgets", limited.map((each) => h("article.budget", h("h3", h("a", { href: `#/session/${each.session}` }, line(each.mission, 80) || short(each.session))), gauges(each))))) : null,
    table("Models", report.models ?? [], "model"), table("Tools", report.tools ?? [], "tool"), table("Agents", report.agents ?? [], "agent"),
    tagRows.length ? h("section", h("h2", "Tags"), h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Tags" }, h("table.list", h("thead", h("tr", ["Tag", "Sessions", "Money"].map((name, index) => h(index ? "th.num" : "th", { scope: "col" }, name)))), h("tbody", tagRows.map((row) => h("tr", h("th", { scope: "row" }, visible(row.tag)), h("td.num", { "data-label": "Sessions" }, number(row.sessions)), h("td.num", { "data-label": "Money" }, money(row.money)))))))) : null,
    slowRows.length ? h("section", h("h2", "Slowest calls"), h("ul.plain", slowRows.map((row) => h("li", h("a", { href: `#/session/${row.session}/call/${row.call}` }, h("code", visible(row.tool))), h("span.quiet", ` ${duration(row.millis)} · session ${short(row.session)}`))))) : null,
    loopRows.length ? h("section", h("h2", "Loops: the same call again and again"), h("ul.plain", loopRows.map((row) => h("li", h("a", { href: `#/session/${row.session}` }, `session ${short(row.session)}`), " ", h("code", visible(row.tool)), ` ${row.times} times with `, h("code", line(row.arguments, 100)))))) : null));
}
