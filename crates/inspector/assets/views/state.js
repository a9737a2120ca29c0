// The working state at the selected point, by slice, and what differs from another point.

import { h, show, button } from "../lib/dom.js";
import { all, get } from "../lib/api.js";
import { number, plural, visible } from "../lib/format.js";
import { value } from "../lib/text.js";

async function items(id, at, slice, signal) {
  return all(`/sessions/${id}/state`, "items", { at, slice }, 2000, signal);
}

/** The position of the latest record that changed a slice before a point. */
async function lastWriter(id, slice, at, signal) {
  const page = await get(`/sessions/${id}/records`, { kind: "slice_changed", all: true, limit: 1000, ...(at === null || Number.isNaN(Number(at)) ? { last: true } : { before: at }) }, signal);
  const limit = at === null || Number.isNaN(Number(at)) ? Infinity : Number(at);
  return page.lines.filter((row) => row.data.slice === slice && row.position < limit && row.visible).at(-1) ?? null;
}

async function writerLine(id, slice, at, signal) {
  const record = await lastWriter(id, slice, at, signal).catch(() => null);
  if (!record) return h("p.quiet", "No record of this session itself wrote it.");
  const before = await get(`/sessions/${id}/records`, { from: Math.max(0, record.position - 200), limit: 201, all: true }, signal);
  const open = new Map();
  for (const row of before.lines) {
    if (row.position > record.position) break;
    if (row.kind === "call_started") open.set(row.data.call_id, row);
    if (row.kind === "call_finished") open.delete(row.data.call_id);
  }
  const call = [...open.values()].at(-1);
  return h("p", "Last written by ", h("a", { href: `#/session/${id}?at=${record.position + 1}&tab=state` }, `record ${record.position}`),
    call ? [", within the call ", h("a", { href: `#/session/${id}/call/${call.data.call_id}` }, h("code", visible(call.data.name)))] : null, ".");
}

export async function state(pane, { id, at, point, signal }) {
  const page = await get(`/sessions/${id}/state`, { at: point() }, signal);
  const content = h("div");
  const other = h("input", { id: "other", value: "start", size: 12 });
  const open = async (slice) => {
    show(content, h("p.quiet", "Loading …"));
    const list = await items(id, point(), slice, signal);
    show(content, h("h3", h("code", visible(slice))), await writerLine(id, slice, at, signal), list.length ? value(list, `Items of ${visible(slice)}`) : h("p.quiet", "Empty."));
  };
  const compare = async () => {
    show(content, h("p.quiet", "Comparing …"));
    const report = await get(`/sessions/${id}/diff`, { from: other.value, to: point(), names: true }, signal);
    const changed = Object.entries(report.state);
    const blocks = await Promise.all(changed.map(async ([slice, [before, after]]) => {
      const [old, now] = await Promise.all([items(id, other.value, slice, signal), items(id, point(), slice, signal)]);
      const key = (each) => JSON.stringify(each);
      const [was, is] = [new Set(old.map(key)), new Set(now.map(key))];
      return h("section", h("h3", h("code", visible(slice)), ` ${before} → ${after} items`), await writerLine(id, slice, at, signal),
        h("div.diff", { tabindex: "0", role: "region", "aria-label": `Diff of ${visible(slice)}` }, old.filter((each) => !is.has(key(each))).map((each) => h("div.removed", `- ${visible(key(each)).slice(0, 4000)}`)),
          now.filter((each) => !was.has(key(each))).map((each) => h("div.added", `+ ${visible(key(each)).slice(0, 4000)}`))));
    }));
    show(content, h("p", `From ${visible(other.value)} to ${at ?? "the newest record"}: ${plural(changed.length, "slice")} differ, ${report.messages.from} → ${report.messages.to} messages.`), blocks);
  };
  const failing = (action) => () => action().catch((error) => show(content, h("p.error", { role: "alert" }, error.message)));
  show(pane, h("h2", at === null ? "State" : `State at point ${at}`),
    h("form.filters", { onsubmit: (event) => { event.preventDefault(); failing(compare)(); } }, h("label", { for: "other" }, "Compare with point "), other, h("button", { type: "submit" }, "Compare")),
    page.slices.length ? h("p.actions", page.slices.map((slice) => button(`${visible(slice.name)} (${number(slice.count)})`, failing(() => open(slice.name))))) : h("p.quiet", "No slices."), content);
}
