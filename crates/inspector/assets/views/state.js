// The working state at the selected point, by slice, with the record that wrote each item, and what differs from another point.

import { h, show, button } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { VirtualList } from "../lib/virtual.js";
import { json, line, number, plural, visible } from "../lib/format.js";
import { value } from "../lib/text.js";

const MOST = 1000;

const key = (item) => JSON.stringify(item);

/** Links to the record that wrote something, and to its call. */
function writer(by, id) {
  if (!by) return h("span.quiet", "no call");
  const session = by.session ?? id;
  return [by.position === undefined ? null : [h("a", { href: `#/session/${session}?at=${Number(by.position) + 1}&tab=state` }, `record ${by.position}`), " · "],
    by.call ? h("a", { href: `#/session/${session}/call/${by.call}` }, h("code", visible(by.tool ?? "call"))) : h("span.quiet", "no call")];
}

/** Items of logs name their calls themselves. */
const own = (item) => (typeof item?.call_id === "string" ? { call: item.call_id, tool: item.name } : null);

export async function state(pane, { id, at, point, signal }) {
  const page = await get(`/sessions/${id}/state`, { at: point() }, signal);
  const content = h("div.state");
  const other = h("input", { id: "other", value: "start", size: 12 });
  const buttons = page.slices.map((slice) => button(`${visible(slice.name)} (${number(slice.count)})`, () => failing(() => open(slice.name, slice.count)), { "data-slice": slice.name, "aria-pressed": "false" }));
  // Everything that was written since the start, by item.
  const written = get(`/sessions/${id}/state/diff`, { from: "start", to: point(), limit: MOST }, signal)
    .then((report) => new Map(report.slices.map((slice) => [slice.name, new Map(slice.added.map((each) => [key(each.item), each.writer]))])), () => new Map());
  const press = (name) => { for (const each of buttons) each.setAttribute("aria-pressed", String(each.dataset.slice === name)); };
  const open = async (slice, count) => {
    press(slice);
    const load = (from, limit) => get(`/sessions/${id}/state`, { at: point(), slice, from, limit }, signal);
    const [first, by] = await Promise.all([load(0, 200), written]);
    const rowsOf = (part) => part.items.map((item) => ({ item, by: by.get(slice)?.get(key(item)) ?? own(item) }));
    const chosen = h("div");
    const choose = (row, index) => row && show(chosen, h("h4", `Item ${index + 1}`), h("p", "Last written by ", writer(row.by, id), "."), value(row.item, `Item ${index + 1} of ${visible(slice)}`));
    const list = new VirtualList({
      label: `Items of ${visible(slice)}`, height: 28,
      load: async (from, limit) => rowsOf(from === 0 && first.items.length === Math.min(limit, count) ? first : await load(from, limit)),
      draw: (row, index) => h("div.record.item", h("span.position", String(index + 1)), h("span.words", h("code", line(JSON.stringify(row.item), 200))), row.by ? h("span.quiet.num", row.by.tool ? visible(row.by.tool) : `record ${row.by.position}`) : null),
      select: choose,
    });
    list.element.style.height = `${Math.min(10, count) * 28 + 2}px`;
    list.element.classList.add("few");
    show(content, h("h3", h("code", visible(slice)), h("span.quiet", ` ${plural(count, "item")}`)), count ? list.element : h("p.quiet", "Empty."), chosen);
    list.setTotal(count);
    if (count) { list.reveal(0); choose(rowsOf(first)[0], 0); }
  };
  const compare = async () => {
    press(null);
    show(content, h("p.quiet", "Comparing …"));
    const report = await get(`/sessions/${id}/state/diff`, { from: other.value, to: point(), limit: MOST }, signal);
    const blocks = report.slices.map(({ name, removed, added }) => h("section", h("h3", h("code", visible(name)), h("span.quiet", ` ${number(removed.length)} gone, ${number(added.length)} new`)),
      h("div.diff", { tabindex: "0", role: "region", "aria-label": `Diff of ${visible(name)}` }, removed.map((each) => h("div.removed", `- ${visible(json(each)).slice(0, 4000)}`)),
        added.map(({ item, writer: by }) => h("div.added", `+ ${visible(json(item)).slice(0, 4000)}`, h("span.by", " written by ", writer(by, id)))))));
    show(content, h("p", `From ${visible(other.value)} to ${at ?? "the newest record"}: ${plural(report.slices.length, "slice")} ${report.slices.length === 1 ? "differs" : "differ"}.`, report.is_cut ? " There are more items than are shown: choose nearer points." : ""), blocks);
  };
  const failing = (action) => action().catch((error) => { if (!signal.aborted) show(content, h("p.error", { role: "alert" }, error.message)); });
  show(pane, h("h2", at === null ? "State" : `State at point ${at}`),
    h("form.filters", { onsubmit: (event) => { event.preventDefault(); failing(compare); } }, h("label", { for: "other" }, "Compare with point "), other, h("button", { type: "submit" }, "Compare")),
    page.slices.length ? h("p.actions", { role: "group", "aria-label": "Slices" }, buttons) : h("p.quiet", "Nothing is in the state."), content);
  const start = page.slices.find((slice) => !/^(prompt_|tool_)/.test(slice.name)) ?? page.slices[0];
  if (start) await failing(() => open(start.name, start.count));
}
