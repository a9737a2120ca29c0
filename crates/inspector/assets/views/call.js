// The page of a call: arguments, output, effect, attempts, files as diffs, and the proof that a failed one left nothing.

import { h, show } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import { duration, moment, number, short, visible } from "../lib/format.js";
import { files, text, value } from "../lib/text.js";

const tree = (root) => (root ? h("code", String(root.tree ?? root.id ?? JSON.stringify(root)).slice(0, 16)) : "–");

export async function call(main, { parts, signal, go, title }) {
  const [, id, , name] = parts;
  const report = await get(`/sessions/${id}/calls/${name}`, { diff: true }, signal);
  title(`${report.name} ${report.status}`);
  const row = await get(`/sessions/${id}/calls`, { last: true, limit: 1000 }, signal).then((page) => page.calls.find((each) => each.call === report.call), () => null);
  const attempts = h("table.list", h("thead", h("tr", ["Attempt", "Record", "Started", "Ended", "Outcome", "Took", "Rescue"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", report.attempts.map((attempt) => h(`tr${attempt.visible ? "" : ".gone"}`, h("td.num", attempt.attempt), h("td", h("a", { href: `#/session/${id}?at=${attempt.position + 1}` }, attempt.position)), h("td", moment(attempt.started_at)), h("td", moment(attempt.finished_at)),
      h("td", attempt.outcome ?? "not recorded"), h("td.num", attempt.elapsed_micros === null ? "–" : duration(attempt.elapsed_micros / 1000)), h("td", attempt.rescue ? h("a", { href: `#/session/${id}?at=rescue:${attempt.position}&tab=files` }, "files as it left them") : "–")))));
  const proof = row && (row.root_before || row.root_after) ? h("section", h("h2", "Files before and after"), h("p", "Before ", tree(row.root_before), " after ", tree(row.root_after), ". ",
    report.rolled_back ? (JSON.stringify(row.root_after ?? row.root_before) === JSON.stringify(row.root_before) ? h("strong", "The attempt failed, and the files are the ones of before: the digests are equal.") : "The attempt failed; its changes were undone.") : JSON.stringify(row.root_before) === JSON.stringify(row.root_after) ? "It changed no file." : null)) : null;
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
