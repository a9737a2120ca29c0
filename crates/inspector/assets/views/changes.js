// What differs between two points, and the calls that changed files.

import { h, show } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { VirtualList } from "../lib/virtual.js";
import { clock, number, plural, visible } from "../lib/format.js";
import { files } from "../lib/text.js";

const NAMES = 6;

function changing(row, id, limit) {
  return h(`div.record${row.visible ? "" : ".gone"}${row.position < limit ? "" : ".dim"}`, h("span.position", String(row.position)), h("time.quiet", { datetime: row.at }, clock(row.at)),
    h("span.kind.opens", { "data-href": `#/session/${id}/call/${row.call}` }, visible(row.tool)), row.kept ? null : h("span.tag.failed", "rolled back"),
    h("span.words", row.files ? row.files.slice(0, NAMES).map((file) => [h(`span.tag.${file.change}`, file.change), h("code", visible(file.file)), " "]) : h("span.quiet", "paths are not recorded"), row.files?.length > NAMES ? `and ${row.files.length - NAMES} more` : null));
}

export async function changes(pane, { id, at, point, signal }) {
  const from = h("input", { id: "from", value: "start", size: 12 });
  const to = h("input", { id: "to", value: point(), size: 12 });
  const content = h("div");
  const compare = async () => {
    show(content, h("p.quiet", "Comparing …"));
    try {
      const list = [];
      let next = null;
      let report;
      do {
        report = await get(`/sessions/${id}/diff`, { from: from.value, to: to.value, limit: 100, first: next }, signal);
        list.push(...report.files);
        next = report.next;
      } while (next !== null && list.length < 300);
      const slices = Object.entries(report.state);
      show(content, h("p", `${plural(report.total ?? list.length, "file")}, ${plural(slices.length, "slice")} and ${plural(Math.abs(report.messages.to - report.messages.from), "message")} differ.`),
        slices.length ? h("ul", slices.map(([name, counts]) => h("li", h("code", visible(name)), ` ${number(counts[0])} → ${number(counts[1])} items`))) : null, files(list), next !== null ? h("p.quiet", "More files differ: choose nearer points.") : null);
    } catch (error) { if (!signal.aborted) show(content, h("p.error", { role: "alert" }, error.message)); }
  };
  const limit = at === null || Number.isNaN(Number(at)) ? Infinity : Number(at);
  const page = (first, count) => get(`/sessions/${id}/changes`, { from: first, limit: count }, signal);
  const first = await page(0, 200);
  const list = new VirtualList({
    label: "Calls that changed files", height: 28,
    load: async (start, count) => (start === 0 ? first.calls : (await page(start, count)).calls),
    draw: (row) => changing(row, id, limit),
    select: (row) => { if (row) { from.value = `before:${row.call}`; to.value = `after:${row.call}`; compare(); } },
  });
  show(pane, h("h2", "Changes"), h("form.filters", { onsubmit: (event) => { event.preventDefault(); compare(); } },
    h("label", { for: "from" }, "From point "), from, h("label", { for: "to" }, " to "), to, h("button", { type: "submit" }, "Compare")),
  h("h3", `Calls that changed files (${number(first.total)})`), first.total ? [h("p.quiet", "Choose one to see what changed around it."), list.element] : h("p.quiet", "None."), h("h3", "Differences"), content);
  list.element.classList.add(first.total > 8 ? "some" : "few");
  list.element.style.height = `${Math.min(8, first.total) * 28 + 2}px`;
  list.setTotal(first.total);
  await compare();
}
