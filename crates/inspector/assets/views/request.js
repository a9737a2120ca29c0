// Requests to the model: a list, and a page for one that is rendered again from the journal and compared with what was sent.

import { h, show } from "../lib/dom.js";
import { all, get } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { VirtualList } from "../lib/virtual.js";
import { bytes, clock, duration, line, moment, money, number, plural, short, visible } from "../lib/format.js";
import { text, value } from "../lib/text.js";

const took = (row) => (row.finished_at ? Date.parse(row.finished_at) - Date.parse(row.started_at) : null);

function requestRow(row) {
  const { usage } = row;
  return h("div.record.request", h("span.position", String(row.started.position)), h("time.quiet", { datetime: row.started_at }, clock(row.started_at)), h("span.num", `turn ${row.turn}`),
    h("span.words.opens", { "data-href": `#/session/${row.started.session}/request/${row.started.position}` }, visible(`${row.provider} ${row.model}`)),
    row.failures.length ? h("span.tag.failed", plural(row.failures.length, "failure")) : null, row.finished_at ? null : h("span.tag.paused", "open"),
    h("span.num.tokens", `${number(usage?.input_tokens)} in`, usage?.cache_read_tokens ? h("span.quiet", ` (${number(usage.cache_read_tokens)} cached)`) : null, `, ${number(usage?.output_tokens)} out`),
    h("span.num.cost", row.length ? bytes(row.length) : ""), h("span.num.quiet.took", duration(took(row))));
}

export async function requests(pane, { id, signal }) {
  const page = (from, limit) => get(`/sessions/${id}/requests`, { from, limit }, signal);
  const first = await page(0, 200);
  const list = new VirtualList({
    label: "Requests", height: 30,
    load: async (from, limit) => (from === 0 && first.requests.length === Math.min(limit, first.total) ? first : await page(from, limit)).requests,
    draw: requestRow,
    select: (row) => { if (row) location.hash = `#/session/${row.started.session}/request/${row.started.position}`; },
  });
  pane.classList.add("fill");
  show(pane, h("h2", "Requests"), h("p.quiet", plural(first.total, "request"), ": what was sent to the model, by turn, with tokens, costs and time."), first.total ? list.element : null);
  return () => list.setTotal(first.total);
}

function blocks(request) {
  // The parts of a request by the names that providers use; whatever else there is follows as JSON.
  const list = request.messages ?? request.input ?? request.contents;
  if (!Array.isArray(list)) return value(request, "Request");
  const { messages, input, contents, ...rest } = request;
  return [h("h3", `Messages (${list.length})`), list.map((each, index) => h("details", { open: index >= list.length - 2 }, h("summary", `${index + 1} ${visible(each.role ?? each.type ?? "message")} · ${bytes(JSON.stringify(each).length)}`), value(each, `Message ${index + 1}`))),
    h("h3", "Everything else"), Object.entries(rest).map(([name, content]) => h("details", h("summary", `${visible(name)} · ${bytes(JSON.stringify(content)?.length ?? 0)}`), value(content, name)))];
}

/** The longest text of a message of the conversation, by which it is known. */
function textOf({ content }) {
  const texts = [];
  const collect = (each) => {
    if (typeof each === "string") texts.push(each);
    else if (each && typeof each === "object") Object.values(each).forEach(collect);
  };
  if (content.kind === "parts") collect(content.parts.map((part) => part.text));
  else if (content.kind === "option_result") collect(content.error_message ?? content.result);
  return texts.reduce((longest, each) => (each.length > longest.length ? each : longest), "").trim();
}

/** Compares the request with the conversation beside it: messages whose text it does not hold were left out or shortened. */
function leftOut(id, position, sent, signal) {
  const place = h("p.quiet", "Comparing with the conversation …");
  const compare = async () => {
    const whole = JSON.stringify(sent);
    const rows = await all(`/sessions/${id}/transcript`, "messages", { at: position }, 2000, signal);
    const escaped = (text) => JSON.stringify(text).slice(1, -1);
    const count = (text) => whole.split(text).length - 1;
    // How often the request holds each text, in a string or in a string within a string.
    const held = new Map();
    const gone = rows.toReversed().filter((row) => {
      const text = textOf(row.message.message);
      if (row.is_cut || !text) return false;
      if (!held.has(text)) held.set(text, count(escaped(text)) + (escaped(escaped(text)) === escaped(text) ? 0 : count(escaped(escaped(text)))));
      held.set(text, held.get(text) - 1);
      return held.get(text) < 0;
    }).reverse();
    show(place, rows.length ? `Of ${plural(rows.length, "message")} before it, ${gone.length ? `${number(gone.length)} are not in it as they are in the conversation.` : "none is left out."}` : "It begins the conversation.");
    if (gone.length) place.after(h("details", h("summary", "Left out or shortened"), h("ul.plain", gone.slice(0, 200).map((row) => h("li", h("a", { href: `#/session/${row.session}?at=${row.position + 1}` }, `record ${row.position}`), ` ${line(textOf(row.message.message), 120)}`)), gone.length > 200 ? h("li.quiet", `and ${number(gone.length - 200)} more`) : null)));
  };
  compare().catch((error) => { if (!signal.aborted) show(place, error.message); });
  return h("section", h("h2", "Left out by compression"), place, h("p", h("a", { href: `#/session/${id}?at=${position}` }, "The conversation at this point")));
}

export async function request(main, { parts, signal, go, title }) {
  const [, id, , position] = parts;
  title(`Request ${position}`);
  const [report, page] = await Promise.all([get(`/sessions/${id}/requests/${position}`, {}, signal),
    get(`/sessions/${id}/records`, { from: position, kind: ["request_started", "request_finished", "request_failed", "budget_charged"], all: true, limit: 200 }, signal)]);
  const mine = page.lines.filter((row) => row.data.evaluation_id === report.evaluation && row.data.turn === report.turn);
  const [start, end] = [mine.find((row) => row.kind === "request_started"), mine.find((row) => row.kind === "request_finished")];
  const failures = mine.filter((row) => row.kind === "request_failed");
  const charged = end && page.lines.find((row) => row.kind === "budget_charged" && row.position > end.position && row.position <= end.position + 3);
  const usage = { ...end?.data.usage, money_micros: charged?.data.amounts.money_micros };
  const form = (name, each) => h("tr", h("th", { scope: "row" }, name), h("td", { "data-label": "Digest" }, h("code.digest", each.digest ?? "–")), h("td.num", { "data-label": "Length" }, bytes(each.length)), h("td", { "data-label": "Renderer" }, each.renderer ?? "–"));
  show(main, h("div.pad", h("p", h("a", { href: `#/session/${id}?tab=requests` }, `← session ${short(id)}`)),
    h("h1", `Request of turn ${report.turn}`, " ", h(`span.tag.${report.agrees ? "completed" : "failed"}`, report.agrees ? "as recorded" : "differs")),
    h("p.facts", `${visible(report.provider)} ${visible(report.model)}`, start ? ` · ${moment(start.at)} · took ${end ? duration(Date.parse(end.at) - Date.parse(start.at)) : "–"} · ${end?.data.finish ?? "no end is recorded"}` : ""),
    h("div.tiles", Object.entries({ "Tokens in": usage.input_tokens, "Read from the cache": usage.cache_read_tokens, "Written to the cache": usage.cache_write_tokens, "Tokens out": usage.output_tokens, Reasoning: usage.reasoning_tokens })
      .filter(([name, count]) => count || /^Tokens/.test(name)).map(([name, count]) => h("div.tile", h("span.quiet", name), h("strong", number(count)))), h("div.tile", h("span.quiet", "Money"), h("strong", money(usage.money_micros)))),
    h("p", visible(report.verdict.slice(0, 1).toUpperCase() + report.verdict.slice(1)), ".", report.redacted ? " Records that it depends on were redacted since." : ""),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Digests" }, h("table.list", h("thead", h("tr", ["", "Digest", "Length", "Renderer"].map((name) => h(name === "Length" ? "th.num" : "th", { scope: "col" }, name || "Form")))), h("tbody", form("sent", report.recorded), form("rendered now", report.rendered)))),
    report.request ? leftOut(id, position, report.request, signal) : null,
    failures.length ? h("section", h("h2", "Failed attempts"), h("ul", failures.map((each) => h("li", `${moment(each.at)} ${visible(each.data.kind)}: ${visible(each.data.message ?? "")}`)))) : null,
    h("section", h("h2", "The request"), report.request ? blocks(report.request) : h("p.quiet", "This policy sends no requests.")),
    report.request ? h("details", h("summary", "All of it as JSON"), text(JSON.stringify(report.request, null, 2), { label: "Request as JSON" })) : null));
  bind([["u", "Back to the session", () => go(`/session/${id}?tab=requests`)]]);
}
