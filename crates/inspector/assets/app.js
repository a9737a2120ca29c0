// The page: reads the token, draws the bar, and shows the view that the address names.
//
// Addresses: `#/` sessions, `#/session/ID?at=POINT&tab=NAME`, `#/session/ID/call/CALL`, `#/session/ID/request/POSITION`, `#/overview`,
// `#/query`. Each can be sent to others who have the token.

import { h, show, button, notice } from "./lib/dom.js";
import { get, readToken, setToken } from "./lib/api.js";
import { bind, bindCommon, help } from "./lib/keys.js";
import { sessions } from "./views/sessions.js";
import { session } from "./views/session.js";
import { call } from "./views/call.js";
import { request } from "./views/request.js";
import { overview } from "./views/overview.js";
import { query } from "./views/query.js";

const main = document.getElementById("main");
const bar = document.getElementById("bar");
let current = null;
export let server = null;

/** Goes to an address of the page. */
export function go(path) { location.hash = path; }

function parseAddress() {
  const [path, search] = (location.hash.slice(1) || "/").split("?");
  return { parts: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(search ?? "") };
}

const VIEWS = [
  [(parts) => parts.length === 0, sessions],
  [(parts) => parts[0] === "overview", overview],
  [(parts) => parts[0] === "query", query],
  [(parts) => parts[0] === "session" && parts[2] === "call" && parts[3], call],
  [(parts) => parts[0] === "session" && parts[2] === "request" && parts[3], request],
  [(parts) => parts[0] === "session" && parts[1], session],
];

function render() {
  if (/^#(token=|main$)/.test(location.hash)) return;
  const address = parseAddress();
  const view = VIEWS.find(([fits]) => fits(address.parts))?.[1];
  if (view && current?.view === view && current.update?.(address)) return;
  current?.stop.abort();
  const stop = new AbortController();
  current = { view, stop };
  bind([]);
  for (const link of bar.querySelectorAll("nav a")) {
    const here = link.getAttribute("href") === `#/${["overview", "query"].includes(address.parts[0]) ? address.parts[0] : ""}`;
    if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  if (!view) { show(main, h("p.pad", "There is no such page. ", h("a", { href: "#/" }, "All sessions"))); return; }
  const context = { ...address, signal: stop.signal, server, go, title: (text) => { document.title = `${text} · Backstitch`; } };
  show(main, h("p.pad.quiet", "Loading …"));
  Promise.resolve(view(main, context)).then((update) => { if (current.stop === stop) current.update = update; }, (error) => {
    if (stop.signal.aborted) return;
    if (error.status === 401) { signIn(true); return; }
    show(main, h("div.pad", h("h1", error.title ?? "That did not work"), h("p.error", { role: "alert" }, error.message),
      h("p", button("Try again", render), " ", h("a", { href: "#/" }, "All sessions"))));
  });
}

function drawBar() {
  const theme = localStorage.getItem("backstitch-theme");
  if (theme) document.documentElement.dataset.theme = theme;
  const flip = () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("backstitch-theme", document.documentElement.dataset.theme);
  };
  show(bar, h("a.brand", { href: "#/" }, "Backstitch"),
    h("nav", { "aria-label": "Pages" }, h("a", { href: "#/" }, "Sessions"), h("a", { href: "#/overview" }, "Overview"), h("a", { href: "#/query" }, "Query")),
    h("span.spring"), server && h("span.quiet.store", { title: server.store }, server.store),
    server && h(`span.tag.${server.write ? "write" : "read"}`, server.write ? "can change" : "read-only"),
    button("?", help, { "aria-label": "Keys" }), button("◐", flip, { "aria-label": "Light or dark" }));
}

function signIn(isWrong = false) {
  document.title = "Sign in · Backstitch";
  const field = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
  show(main, h("form.pad.signin", { onsubmit: (event) => { event.preventDefault(); setToken(field.value.trim()); start(); } },
    h("h1", "The link has a token"), h("p", "Open the link that ", h("code", "backstitch ui"), " printed, or paste its token (the part behind ", h("code", "token="), ")."),
    isWrong ? h("p.error", { role: "alert" }, "This token is not that of the server, which makes a new one at each start.") : null,
    h("label", { for: "token" }, "Token"), field, h("button.primary", { type: "submit" }, "Continue")));
  field.focus();
}

async function start() {
  drawBar();
  try {
    server = await get("/server");
  } catch (error) {
    if (error.status === 401) { signIn(true); return; }
    show(main, h("div.pad", h("h1", error.title ?? "No connection"), h("p.error", { role: "alert" }, error.message), button("Try again", start)));
    return;
  }
  drawBar();
  render();
}

bindCommon([
  ["?", "Show the keys", help],
  ["g s", "Go to the sessions", () => go("/")],
  ["g o", "Go to the overview", () => go("/overview")],
  ["g q", "Go to the query page", () => go("/query")],
]);
window.addEventListener("hashchange", () => { if (readToken() && location.hash.startsWith("#/")) render(); });
window.addEventListener("unhandledrejection", (event) => { if (event.reason?.name !== "AbortError") notice(event.reason?.message ?? "That did not work", "error"); });
if (readToken()) start(); else { drawBar(); signIn(); }
