// What differs between two points, and the calls that changed files.

import { h, show, button } from "../lib/dom.js";
import { all, get } from "../lib/api.js";
import { clock, plural, visible } from "../lib/format.js";
import { files } from "../lib/text.js";

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
      show(content, h("p", `${plural(report.total ?? list.length, "file")}, ${plural(slices.length, "slice")} and ${report.messages.to - report.messages.from} messages differ.`),
        slices.length ? h("ul", slices.map(([name, [a, b]]) => h("li", h("code", visible(name)), ` ${a} → ${b} items`))) : null, files(list), next !== null ? h("p.quiet", "More files differ: choose nearer points.") : null);
    } catch (error) { if (!signal.aborted) show(content, h("p.error", { role: "alert" }, error.message)); }
  };
  show(pane, h("h2", "Changes"), h("form.filters", { onsubmit: (event) => { event.preventDefault(); compare(); } },
    h("label", { for: "from" }, "From point "), from, h("label", { for: "to" }, " to "), to, h("button", { type: "submit" }, "Compare")), content, h("h3", "Calls that changed files"), h("div.calls"));
  const rows = await all(`/sessions/${id}/changes`, "calls", {}, 5000, signal);
  const limit = at === null || Number.isNaN(Number(at)) ? Infinity : Number(at);
  const shown = rows.filter((row) => row.position < limit).slice(-300);
  show(pane.querySelector(".calls"), shown.length ? h("ul.plain", shown.map((row) => h(`li${row.visible ? "" : ".gone"}`, h("a", { href: `#/session/${id}/call/${row.call}` }, h("code", visible(row.tool))), h("span.quiet", ` turn ${row.turn}, ${clock(row.at)}, record ${row.position} `),
    row.kept ? null : h("span.tag.failed", "rolled back"), " ", row.files ? row.files.slice(0, 12).map((file) => [h(`span.tag.${file.change}`, file.change), h("code", visible(file.file)), " "]) : h("span.quiet", "paths are not recorded"), row.files?.length > 12 ? `and ${row.files.length - 12} more` : null, " ",
    button("Compare around it", () => { from.value = `before:${row.call}`; to.value = `after:${row.call}`; compare(); }, { class: "link" })))) : h("p.quiet", "None."));
  await compare();
}
