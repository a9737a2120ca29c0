// The page of a call: arguments, output, effect, attempts, files as diffs, and the proof that a failed one left nothing.

import { h, show } from "../lib/dom.js";
import { attempt as orNull, get } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { duration, moment, number, short, visible } from "../lib/format.js";
import { files, text, value } from "../lib/text.js";

const tree = (root) => (root ? h("code.digest", String(root.tree ?? JSON.stringify(root))) : "–");

/** The digests of the files before the last attempt and after it, from the records that start and end it. */
async function rootsOf(id, report, signal) {
  const attempt = report.attempts.at(-1);
  if (!attempt) return null;
  const page = await orNull(get(`/sessions/${id}/records`, { from: attempt.position, kind: ["call_started", "call_finished"], all: true, limit: 1000 }, signal), signal);
  const mine = (page?.lines ?? []).filter((row) => row.data.call_id === report.call);
  return { before: mine.find((row) => row.kind === "call_started")?.data.root, after: mine.find((row) => row.kind === "call_finished")?.data.root };
}

export async function call(main, { parts, signal, go, title }) {
  const [, id, , name] = parts;
  const report = await get(`/sessions/${id}/calls/${name}`, { diff: true }, signal);
  title(`${report.name} ${report.status}`);
  const roots = await rootsOf(report.session ?? id, report, signal);
  const attempts = h("table.list", h("thead", h("tr", ["Attempt", "Record", "Started", "Ended", "Outcome", "Took", "Rescue"].map((each) => h(["Attempt", "Took"].includes(each) ? "th.num" : "th", { scope: "col" }, each)))),
    h("tbody", report.attempts.map((attempt) => h(`tr${attempt.visible ? "" : ".gone"}`, h("td.num", { "data-label": "Attempt" }, attempt.attempt), h("td", { "data-label": "Record" }, h("a", { href: `#/session/${id}?at=${attempt.position + 1}` }, attempt.position)), h("td", { "data-label": "Started" }, moment(attempt.started_at)), h("td", { "data-label": "Ended" }, moment(attempt.finished_at)),
      h("td", { "data-label": "Outcome" }, attempt.outcome ?? "not recorded"), h("td.num", { "data-label": "Took" }, attempt.elapsed_micros === null ? "–" : duration(attempt.elapsed_micros / 1000)), h("td", { "data-label": "Rescue" }, attempt.rescue ? h("a", { href: `#/session/${id}?at=rescue:${attempt.position}&tab=files` }, "files as it left them") : "–")))));
  const equal = JSON.stringify(roots?.before) === JSON.stringify(roots?.after ?? roots?.before);
  const proof = roots?.before ? h("section", h("h2", report.rolled_back ? "Proof of the rollback" : "Files before and after"),
    h("table.roots", h("tbody", h("tr", h("th", { scope: "row" }, "before"), h("td", tree(roots.before))), h("tr", h("th", { scope: "row" }, "after"), h("td", tree(roots.after ?? roots.before))))),
    h("p", report.rolled_back ? (equal ? h("strong", "The call failed, and its files are those of before: the digests are equal.") : "The call failed; what it had changed was undone.") : equal ? "It changed no file." : "It changed files: the digests differ.")) : null;
  show(main, h("div.pad", h("p", h("a", { href: `#/session/${id}` }, `← session ${short(id)}`)),
    h("h1", h("code", visible(report.name)), " ", h(`span.tag.${report.status === "ok" ? "completed" : report.status === "failed" ? "failed" : "paused"}`, report.status), report.visible ? null : h("span.tag", "before a rewind"), report.rolled_back ? h("span.tag.failed", "rolled back") : null),
    h("p.facts", `turn ${report.turn} · effect ${report.effect ?? "unknown"} · asked at ${moment(report.asked_at)}`, report.request ? ` · by ${visible(report.request.provider)} ${visible(report.request.model)}` : "",
      report.sub_agent ? [" · ", h("a", { href: `#/session/${report.sub_agent}` }, `sub-agent ${short(report.sub_agent)}`)] : null),
    h("section", h("h2", report.edited ? "Arguments of the model" : "Arguments"), value(report.arguments, "Arguments")),
    report.edited ? h("section", h("h2", "Arguments that ran, as a person edited them"), value(report.edited, "Edited arguments")) : null,
    report.output !== null ? h("section", h("h2", "Output, as the model receives it"), text(report.output, { label: "Output" })) : null,
    report.decisions.length || report.pauses.length ? h("section", h("h2", "People"), h("ul", report.pauses.map((pause) => h("li", `${moment(pause.at)}: waited (${pause.reason})`)),
      report.decisions.map((each) => h("li", `${moment(each.at)}: `, h("code", visible(JSON.stringify(each.decision)).slice(0, 500)), each.by ? ` by ${visible(each.by)}` : "")))) : null,
    h("section", h("h2", "Attempts"), report.attempts.length ? h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Attempts" }, attempts) : h("p.quiet", "It was not started.")),
    proof,
    h("section", h("h2", "Files it changed"), report.rolled_back ? h("p", "Of the failed attempt; they were restored.") : null, files(report.files)),
    report.steps.length ? h("section", h("h2", "Finished steps"), report.steps.map((step) => h("details", h("summary", visible(step.name)), value(step.value, step.name)))) : null,
    Object.keys(report.spent ?? {}).length ? h("section", h("h2", "Charged"), h("p", Object.entries(report.spent).map(([key, amount]) => `${key.replaceAll("_", " ")} ${number(amount)}`).join(", "))) : null));
  bind([["u", "Back to the session", () => go(`/session/${id}`)]]);
}
