// One session: its records with lanes and branches on the left, panes on the right. One selected point drives all panes; `null` is
// the newest record, and then the page follows what happens.

import { h, show, button, notice } from "../lib/dom.js";
import { all, follow, get } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { VirtualList } from "../lib/virtual.js";
import { ago, line, money, number, plural, short, visible } from "../lib/format.js";
import { badge } from "./sessions.js";
import { decision } from "./decide.js";
import { Find } from "./find.js";
import { budgets, gauges } from "../lib/budget.js";
import { recordRow, Lanes } from "./records.js";
import { waterfall } from "./waterfall.js";
import { transcript } from "./transcript.js";
import { state } from "./state.js";
import { files } from "./files.js";
import { changes } from "./changes.js";
import { graph } from "./graph.js";
import { requests } from "./request.js";
import { steer } from "./steer.js";

const TABS = { transcript: ["Conversation", transcript], time: ["Time", waterfall], graph: ["Graph", graph], state: ["State", state], files: ["Files", files],
  changes: ["Changes", changes], requests: ["Requests", requests], steer: ["Steer", steer] };

export async function session(main, context) {
  const { parts, query, signal, server, go } = context;
  let overview = await get(`/sessions/${parts[1]}`, {}, signal);
  const id = overview.session;
  context.title(line(overview.mission, 60) || short(id));
  const model = { id, at: query.get("at"), tab: TABS[query.get("tab")] ? query.get("tab") : "transcript", head: overview.records, overview, server, signal, go,
    live: new EventTarget(), point: () => model.at ?? "head" };
  const base = `/session/${id}`;
  const address = () => {
    const used = new URLSearchParams();
    if (model.at !== null) used.set("at", model.at);
    if (model.tab !== "transcript") used.set("tab", model.tab);
    return `${base}${used.size ? `?${used}` : ""}`;
  };

  const lanes = new Lanes();
  const list = new VirtualList({
    label: "Records of the session", height: 26,
    load: async (from, limit) => {
      const rows = await all(`/sessions/${id}/records`, "lines", { from, all: true }, limit, signal);
      lanes.add(rows);
      return rows;
    },
    draw: (row) => recordRow(row, lanes, model),
    select: (row, index) => select(String(index + 1)),
    forget: (rows) => lanes.forget(rows),
  });
  const find = new Find(id, signal, (position) => { list.reveal(position); select(String(position + 1)); });
  const header = h("header.session");
  const pending = h("section.waiting", { "aria-label": "Waiting for a person" });
  const tabs = h("div.tabs", { role: "tablist", "aria-label": "Panes" });
  const pane = h("section.pane", { role: "tabpanel", id: "pane", tabindex: "0" });
  const place = h("p.place", { role: "status" });
  const budget = h("div");
  let limits = null;
  const loadBudget = () => budgets(id, signal).then(([found]) => { limits = found ?? null; show(budget, limits ? gauges(limits) : null); });

  const revealTab = () => {
    const chosen = tabs.querySelector("[aria-selected=true]");
    if (chosen) tabs.scrollLeft = chosen.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - chosen.clientWidth) / 2;
  };
  new ResizeObserver(revealTab).observe(tabs);
  let stopPane = null;
  const openPane = async () => {
    stopPane?.abort();
    const stop = stopPane = new AbortController();
    signal.addEventListener("abort", () => stop.abort(), { once: true });
    for (const tab of tabs.children) {
      const here = tab.id === `tab-${model.tab}`;
      tab.setAttribute("aria-selected", String(here));
      tab.tabIndex = here ? 0 : -1;
    }
    pane.setAttribute("aria-labelledby", `tab-${model.tab}`);
    revealTab();
    // What is there stays until its successor is ready, so that moving through records does not flicker.
    const body = h("div.pane-body");
    body.scrollerWidth = pane.clientWidth;
    pane.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => { if (!stop.signal.aborted) show(pane, h("p.quiet", "Loading …")); }, 400);
    let after = null;
    try { after = await TABS[model.tab][1](body, { ...model, signal: stop.signal, reload, scroller: pane }); } catch (error) {
      show(body, h("p.error", { role: "alert" }, error.message));
    }
    clearTimeout(slow);
    if (stop.signal.aborted) return;
    show(pane, body);
    pane.removeAttribute("aria-busy");
    pane.scrollTop = 0;
    after?.();
  };
  const names = Object.keys(TABS);
  const stepTab = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    nextTab(step);
    tabs.querySelector("[aria-selected=true]").focus();
  };
  show(tabs, names.map((name) => h("button.tab", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "pane", onclick: () => { model.tab = name; moved(); }, onkeydown: stepTab }, TABS[name][0])));
  const nextTab = (step) => { model.tab = names[(names.indexOf(model.tab) + step + names.length) % names.length]; moved(); };
  const moved = () => { clearTimeout(settling); history.replaceState(null, "", `#${address()}`); drawPlace(); openPane(); };
  // Who holds a key down passes many records; the pane follows where it stops.
  let settling = null;
  const select = (at) => { model.at = at; drawPlace(); clearTimeout(settling); settling = setTimeout(moved, 70); };
  const drawPlace = () => show(place, model.at === null ? h("span.where", "Newest record, live") : [h("span.where", `Point ${model.at} of ${number(model.head)}`), button("Back to the newest", () => { select(null); list.reveal(model.head - 1); })]);
  const drawHeader = () => {
    const status = overview.status?.status ?? overview.status;
    show(header, h("div.title", h("h1", line(overview.mission, 200) || "(no message)"), badge(status)),
      h("p.facts", overview.reason ? h("span", `waits: ${overview.reason} `) : null, h("span", `${visible(overview.agent ?? "no agent name")} · `),
        h("span.path", visible(overview.workspace ?? "no directory")), h("span", ` · ${plural(overview.turns, "turn")} · ${plural(overview.calls, "call")} · money ${money(overview.spent.money_micros)} · changed ${ago(overview.updated_at)} · `),
        h("code", id), overview.parent ? [" · ", h("a", { href: `#/session/${overview.parent}` }, `${overview.origin} of ${short(overview.parent)}`)] : null),
      budget,
      overview.failure ? h("p.error", visible([overview.failure.kind?.replaceAll("_", " "), overview.failure.message].filter(Boolean).join(": ") || JSON.stringify(overview.failure))) : null,
      overview.rights?.length ? h("details", h("summary", "What its agent may do"), h("ul", overview.rights.map((right) => h("li", visible(right))))) : null);
    show(budget, limits ? gauges(limits) : null);
    show(pending, overview.decisions.map((each) => decision(id, each, server, reload)));
  };
  const reload = async () => {
    overview = await get(`/sessions/${id}`, {}, signal);
    model.overview = overview;
    drawHeader();
    if (limits) await loadBudget();
  };
  let due = null;
  const soon = () => { due ??= setTimeout(() => { due = null; reload().catch(() => {}); }, 300); };

  show(main, header, pending, h("div.split", h("section.records", { "aria-label": "Records" }, h("div.place-bar", place, find.element), list.element), h("section.panes", { "aria-label": "Details" }, tabs, pane)));
  model.reload = reload;
  drawHeader();
  loadBudget().catch(() => {});
  drawPlace();
  list.setTotal(model.head);
  list.reveal(model.at === null || Number.isNaN(Number(model.at)) ? model.head - 1 : Number(model.at) - 1);
  openPane();
  bind([
    ["j", "Next record", () => list.move(1)], ["k", "Previous record", () => list.move(-1)],
    ["h", "Pane to the left", () => nextTab(-1)], ["l", "Pane to the right", () => nextTab(1)],
    ["e", "Newest record, live", () => { select(null); list.reveal(model.head - 1); }],
    ["Enter", "Open the call or request of the record", () => { const href = list.href(); if (href) location.hash = href; }],
    ["/", "Find in this session", () => find.focus()], ["n", "Next place found", () => find.step(1)], ["N", "Place found before", () => find.step(-1)],
    ["u", "All sessions", () => go("/")],
    ...names.map((name, index) => [String(index + 1), TABS[name][0], () => { model.tab = name; moved(); }]),
  ]);
  follow(id, model.head, {
    record: (record) => {
      model.head = Math.max(model.head, record.position + 1);
      if (record.kind === "rewound") list.reset(model.head); else list.setTotal(model.head);
      if (model.at === null) list.reveal(model.head - 1);
      drawPlace();
      model.live.dispatchEvent(new CustomEvent("record", { detail: record }));
      soon();
    },
    live: (piece) => model.live.dispatchEvent(new CustomEvent("live", { detail: piece })),
    missed: (count) => model.live.dispatchEvent(new CustomEvent("missed", { detail: count })),
    end: (end) => { if (end.reason === "removed") notice("The session was removed."); },
    state: (word) => { place.dataset.stream = word; },
  }, signal);
  signal.addEventListener("abort", () => { clearTimeout(due); clearTimeout(settling); });
  return (next) => {
    if (next.parts[0] !== "session" || next.parts.length !== 2 || next.parts[1] !== parts[1]) return false;
    model.at = next.query.get("at");
    model.tab = TABS[next.query.get("tab")] ? next.query.get("tab") : "transcript";
    drawPlace();
    if (model.at !== null && !Number.isNaN(Number(model.at))) list.reveal(Number(model.at) - 1);
    openPane();
    return true;
  };
}
