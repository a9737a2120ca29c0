// All sessions: what waits for a person on top, then a table with filters and search. It keeps itself up to date.

import { h, show, button, notice, ask } from "../lib/dom.js";
import { followList, get, post } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { ago, line, money, number, plural, short, visible } from "../lib/format.js";
import { decision } from "./decide.js";

const STATUS = ["running", "runnable", "interrupted", "new", "stopped", "paused", "idle", "failed", "poisoned"];

export const badge = (status) => h(`span.tag.${status}`, status);

export async function sessions(main, { query, signal, server, go, title }) {
  title("Sessions");
  const filter = { search: query.get("search") ?? "", status: query.get("status") ?? "", origin: query.get("origin") ?? "" };
  let rows = [];
  let next = null;
  let active = -1;

  const search = h("input", { type: "search", id: "search", value: filter.search, maxlength: 200, placeholder: "Search missions, agents, directories, tags ( / )" });
  const status = h("select", { id: "status" }, h("option", { value: "" }, "any status"), STATUS.map((word) => h("option", { value: word, selected: word === filter.status }, word)));
  const origin = h("select", { id: "origin" }, [["", "sessions and forks"], ["root", "no forks"], ["fork", "forks"], ["call", "sub-agents"]]
    .map(([value, text]) => h("option", { value, selected: value === filter.origin }, text)));
  const waiting = h("section.waiting", { "aria-label": "Waiting for a person" });
  const body = h("tbody");
  const table = h("table.list", h("thead", h("tr", ["Status", "Mission", "Agent", "Directory", "Turns", "Money", "Outcome", "Changed"].map((name) => h(["Turns", "Money", "Changed"].includes(name) ? "th.num" : "th", { scope: "col" }, name)))), body);
  const more = button("Older sessions", () => load(false));
  const count = h("p.quiet.count", { role: "status" });

  const draw = () => {
    show(body, rows.map((row, index) => h("tr", { "data-status": row.status, "data-origin": row.origin, class: index === active ? "active" : null },
      h("td", { "data-label": "Status" }, badge(row.status), row.reason ? h("span.quiet", ` ${row.reason}`) : null, row.waiting ? h("span.tag.paused", "inbox") : null),
      h("td.mission", { "data-label": "Mission" }, h("a", { href: `#/session/${row.session}` }, line(row.mission, 140) || "(no message)"),
        row.origin !== "root" ? h("span.quiet", ` ${row.origin} of ${short(row.parent)}`) : null,
        Object.entries(row.tags).map(([key, value]) => h("span.tag", `${visible(key)}=${visible(value)}`))),
      h("td", { "data-label": "Agent" }, visible(row.agent ?? "–")),
      h("td.path", { "data-label": "Directory" }, visible(row.workspace ?? "–")),
      h("td.num", { "data-label": "Turns" }, number(row.turns)),
      h("td.num", { "data-label": "Money" }, money(row.spent.money_micros)),
      h("td", { "data-label": "Outcome" }, row.outcome ?? "–"),
      h("td.num", { "data-label": "Changed", title: row.updated_at }, ago(row.updated_at)))));
    more.hidden = !next;
    table.hidden = !rows.length;
    show(count, rows.length ? `${plural(rows.length, "session")}${next ? " shown, there are older ones" : ""}` : Object.values(filter).some(Boolean) ? "No sessions here fit the search and the filters." : "No sessions here yet. Start one with `backstitch run \"…\"`.");
  };

  const parameters = () => ({ search: filter.search, status: filter.status, origin: filter.origin || null });
  async function load(fresh) {
    const page = await get("/sessions", { ...parameters(), limit: 100, cursor: fresh ? null : next }, signal);
    const before = JSON.stringify([rows, next]);
    rows = fresh ? page.sessions : [...rows, ...page.sessions];
    next = page.next;
    // What has not changed stays, with the focus of the person.
    if (JSON.stringify([rows, next]) === before && body.childElementCount) return;
    if (fresh && page.unreadable.length) show(broken, page.unreadable.map((entry) => h("p.error", `${entry.session}: ${visible(entry.error)}`)));
    draw();
  }
  async function loadWaiting() {
    const page = await get("/approvals", { limit: 20 }, signal);
    const blocks = page.sessions.flatMap((entry) => entry.decisions.map((pending) => decision(entry.session, pending, server, refresh)));
    // What is shown above the table does not push it away under the pointer.
    await Promise.race([Promise.all(blocks.map((block) => block.ready)), new Promise((resolve) => setTimeout(resolve, 1000))]);
    show(waiting, blocks.length ? [h("h2", `Waiting for you (${blocks.length}${page.next ? "+" : ""})`), blocks] : null);
  }
  const refresh = async () => {
    if (signal.aborted) return;
    if (!next || rows.length <= 100) await load(true);
    if (!waiting.querySelector(":focus-within, details[open]")) await loadWaiting();
  };
  const apply = () => {
    Object.assign(filter, { search: search.value.trim(), status: status.value, origin: origin.value });
    const used = new URLSearchParams(Object.entries(filter).filter(([, value]) => value));
    history.replaceState(null, "", `#/${used.size ? `?${used}` : ""}`);
    load(true).catch((error) => notice(error.message, "error"));
  };
  let pause;
  search.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(apply, 200); });
  status.addEventListener("change", apply);
  origin.addEventListener("change", apply);

  const broken = h("div", { role: "alert" });

  await Promise.all([load(true), loadWaiting().catch((error) => { if (!signal.aborted) notice(error.message, "error"); })]);
  show(main, h("div.pad", h("h1", "Sessions"), waiting,
    h("form.filters", { role: "search", onsubmit: (event) => { event.preventDefault(); apply(); } },
      h("label.hidden", { for: "search" }, "Search"), search, h("label.hidden", { for: "status" }, "Status"), status,
      h("label.hidden", { for: "origin" }, "Origin"), origin,
      server.write && button("New session", () => start(server, go), { class: "primary" })),
    broken, count,
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Table of sessions" }, table),
    more));
  const move = (step) => {
    active = Math.max(0, Math.min(rows.length - 1, active + step));
    draw();
    body.children[active]?.scrollIntoView({ block: "nearest" });
  };
  bind([
    ["j", "Next session", () => move(1)], ["k", "Previous session", () => move(-1)],
    ["Enter", "Open the session", () => active >= 0 && go(`/session/${rows[active].session}`)],
    ["/", "Search", () => search.focus()],
    ...(server.write ? [["n", "New session", () => start(server, go)]] : []),
  ]);
  // Changes are streamed, but not those of sub-agents; they, and all while the stream is broken, are read again and again.
  let isLive = false;
  let due = null;
  const soon = () => { due ??= setTimeout(() => { due = null; refresh().catch(() => {}); }, 300); };
  followList({ session: soon, removed: soon, missed: soon, state: (word) => { isLive = word === "live"; if (isLive) soon(); } }, signal);
  const timer = setInterval(() => { if (!document.hidden && (!isLive || filter.origin === "call")) refresh().catch(() => {}); }, 3000);
  signal.addEventListener("abort", () => { clearInterval(timer); clearTimeout(pause); clearTimeout(due); });
}

/** Asks for a mission and starts a session. */
async function start(server, go) {
  const offered = await get("/agents");
  const fields = h("div.fields",
    h("label", { for: "mission" }, "Mission"), h("textarea", { id: "mission", name: "mission", rows: 4, required: true }),
    h("label", { for: "directory" }, "Directory"), h("input", { id: "directory", name: "directory", value: server.roots?.[0] ?? "" }),
    h("label", { for: "agent" }, "Agent"), h("select", { id: "agent", name: "agent" }, h("option", { value: "" }, "that of the settings"), offered.agents.map((agent) => h("option", { value: agent.name }, visible(agent.name)))),
    h("label", { for: "model" }, "Model (empty: that of the agent)"), h("input", { id: "model", name: "model" }),
    h("label", { for: "mode" }, "Mode"), h("select", { id: "mode", name: "mode" }, ["", "plan", "ask", "auto"].map((word) => h("option", { value: word }, word || "that of the agent"))));
  const answer = await ask("New session", fields, "Start");
  if (!answer) return;
  const body = Object.fromEntries(Object.entries(answer).filter(([, text]) => text.trim()));
  try {
    const started = await post("/sessions", body);
    go(`/session/${started.session}?tab=steer`);
  } catch (error) { notice(error.message, "error"); }
}
