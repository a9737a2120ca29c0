// Requests to the model: a list, and a page for one that is rendered again from the journal and compared with what was sent.

import { h, show, button } from "../lib/dom.js";
import { all, get } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { bytes, clock, duration, moment, money, number, plural, short, visible } from "../lib/format.js";
import { text, value } from "../lib/text.js";

const took = (row) => (row.finished_at ? Date.parse(row.finished_at) - Date.parse(row.started_at) : null);

export async function requests(pane, { id, signal }) {
  let rows = [];
  let next = null;
  const body = h("tbody");
  const more = button("More requests", () => load());
  const load = async () => {
    const page = await get(`/sessions/${id}/requests`, { limit: 200, from: next }, signal);
    rows = [...rows, ...page.requests];
    next = page.next;
    show(body, rows.map((row) => h("tr", h("td", { "data-label": "Record" }, h("a", { href: `#/session/${row.started.session}/request/${row.started.position}` }, `${row.started.position}`)), h("td.num", { "data-label": "Turn" }, row.turn), h("td", { "data-label": "Model" }, visible(`${row.provider} ${row.model}`)),
      h("td", { "data-label": "Started" }, clock(row.started_at)), h("td.num", { "data-label": "Took" }, duration(took(row))), h("td.num", { "data-label": "In" }, number(row.usage?.input_tokens)), h("td.num", { "data-label": "Cached" }, number(row.usage?.cache_read_tokens ?? row.usage?.cached_tokens)), h("td.num", { "data-label": "Out" }, number(row.usage?.output_tokens)), h("td.num", { "data-label": "Money" }, money(row.usage?.money_micros)), h("td.num", { "data-label": "Size" }, bytes(row.length)),
      h("td", { "data-label": "End" }, row.failures.length ? h("span.tag.failed", plural(row.failures.length, "failure")) : null, " ", row.finish ?? (row.finished_at ? "" : "open")))));
    more.hidden = next === null;
    show(count, plural(page.total ?? rows.length, "request"));
  };
  const count = h("p.quiet");
  show(pane, h("h2", "Requests"), count, h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table of requests" }, h("table.list", h("thead", h("tr", ["Record", "Turn", "Model", "Started", "Took", "In", "Cached", "Out", "Money", "Size", "End"].map((name) => h("th", { scope: "col" }, name)))), body)), more);
  await load();
}

function blocks(request) {
  // The parts of a request by the names that providers use; whatever else there is follows as JSON.
  const list = request.messages ?? request.input ?? request.contents;
  if (!Array.isArray(list)) return value(request, "Request");
  const { messages, input, contents, ...rest } = request;
  return [h("h3", `Messages (${list.length})`), list.map((each, index) => h("details", { open: index >= list.length - 2 }, h("summary", `${index + 1} ${visible(each.role ?? each.type ?? "message")} · ${bytes(JSON.stringify(each).length)}`), value(each, `Message ${index + 1}`))),
    h("h3", "Everything else"), Object.entries(rest).map(([name, content]) => h("details", h("summary", `${visible(name)} · ${bytes(JSON.stringify(content)?.length ?? 0)}`), value(content, name)))];
}

export async function request(main, { parts, signal, go, title }) {
  const [, id, , position] = parts;
  title(`Request ${position}`);
  const [report, rows] = await Promise.all([get(`/sessions/${id}/requests/${position}`, {}, signal), all(`/sessions/${id}/requests`, "requests", {}, 20000, signal)]);
  const row = rows.find((each) => String(each.started.position) === position);
  const form = (name, each) => h("tr", h("th", { scope: "row" }, name), h("td", h("code", each.digest ?? "–")), h("td.num", bytes(each.length)), h("td", each.renderer ?? "–"));
  const left = report.left_out ?? report.omitted;
  show(main, h("div.pad", h("p", h("a", { href: `#/session/${id}?tab=requests` }, `← session ${short(id)}`)),
    h("h1", `Request of turn ${report.turn}`, " ", h(`span.tag.${report.agrees ? "completed" : "failed"}`, report.agrees ? "as recorded" : "differs")),
    h("p.facts", `${visible(report.provider)} ${visible(report.model)}`, row ? ` · ${moment(row.started_at)} · took ${duration(took(row))} · ${number(row.usage?.input_tokens)} tokens in, ${number(row.usage?.output_tokens)} out · money ${money(row.usage?.money_micros)}` : ""),
    h("p", visible(report.verdict), report.redacted ? " Records that it depends on were redacted since." : ""),
    h("table.list", h("thead", h("tr", ["", "Digest", "Length", "Renderer"].map((name) => h("th", { scope: "col" }, name || "Form")))), h("tbody", form("sent", report.recorded), form("rendered now", report.rendered))),
    left ? h("section", h("h2", "Left out by compression"), value(left, "Left out")) : null,
    row?.failures.length ? h("section", h("h2", "Failed attempts"), h("ul", row.failures.map((each) => h("li", `${moment(each.at)} ${visible(each.kind)}: ${visible(each.message)}`)))) : null,
    h("section", h("h2", "The request"), report.request ? blocks(report.request) : h("p.quiet", "This policy sends no requests.")),
    report.request ? h("details", h("summary", "All of it as JSON"), text(JSON.stringify(report.request, null, 2), { label: "Request as JSON" })) : null));
  bind([["u", "Back to the session", () => go(`/session/${id}?tab=requests`)]]);
}
