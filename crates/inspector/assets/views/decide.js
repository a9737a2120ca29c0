// A decision that a session waits for: what it is about, the change as it would be, and the buttons that decide.

import { h, show, button, notice, ask } from "../lib/dom.js";
import { get, post } from "../lib/api.js";
import { line, short, visible } from "../lib/format.js";
import { unified } from "../lib/lines.js";
import { value, text, diff } from "../lib/text.js";

/** What the arguments of a file tool would change, as far as they say it: against the file as it is now, if there is one. */
async function proposal(session, { name, arguments: given }) {
  if (!given || typeof given !== "object") return null;
  if (typeof given.command === "string") return text(given.command, { label: "Command" });
  if (typeof given.old === "string" && typeof given.new === "string") return diff(unified(given.old, given.new), `Change of ${visible(given.path ?? name)}`);
  if (typeof given.text !== "string" || typeof given.path !== "string") return null;
  const now = await get(`/sessions/${session}/file`, { path: given.path, at: "head" }).then((file) => file.text, () => null);
  return [h("p.quiet", now === null ? "A new file: " : "Changes the file ", h("code", visible(given.path))), diff(unified(now ?? "", given.text), `New text of ${visible(given.path)}`)];
}

const hasMore = (given) => typeof given !== "object" || Object.keys(given).some((name) => !["command", "path", "text", "old", "new"].includes(name));

/** Draws one decision. `done` is called after it was made. */
export function decision(owner, pending, server, done) {
  const session = owner.session ?? owner;
  const act = (label, action, kind) => button(label, async (event) => {
    event.target.disabled = true;
    try { await action(); await done(); } catch (error) { notice(error.message, "error"); event.target.disabled = false; }
  }, kind ? { class: kind } : {});
  const decide = async (body) => {
    const report = await post(`/sessions/${pending.session}/decide`, { calls: [pending.call], ...body });
    if (!report.sent && report.waiting === 0) await post(`/sessions/${session}/resume`, {});
    notice("Decided.");
  };
  const resolve = async (body) => {
    const report = await post(`/sessions/${pending.session}/resolve`, { ...(pending.call ? { call: pending.call } : {}), ...body });
    if (!report.sent) await post(`/sessions/${session}/resume`, {});
    notice("Decided.");
  };
  const edit = async () => {
    const field = h("textarea", { id: "arguments", name: "arguments", rows: 12, value: JSON.stringify(pending.arguments, null, 2) });
    const answer = await ask(`Edit the arguments of ${visible(pending.name ?? "the call")}`, h("div.fields", h("label", { for: "arguments" }, "Arguments as JSON"), field), "Run with these");
    if (answer) await decide({ decision: "edit", arguments: JSON.parse(answer.arguments) });
  };
  const deny = async () => {
    const answer = await ask("Deny the call", h("div.fields", h("label", { for: "reason" }, "Reason, which the model reads (optional)"), h("input", { id: "reason", name: "reason" })), "Deny");
    if (answer) await decide({ decision: "deny", ...(answer.reason ? { reason: answer.reason } : {}) });
  };
  const actions = !server.write ? h("p.quiet", "This server is read-only: start it with --write to decide here.")
    : pending.reason === "approval"
      ? [act("Approve", () => decide({ decision: "approve" }), "primary"), act("Always allow such calls", () => decide({ decision: "approve", always: true })), act("Edit …", edit), act("Deny …", deny, "danger")]
      : pending.reason === "effect_unknown"
        ? [act("It happened", () => resolve({ decision: "happened" })), act("Run it again", () => resolve({ decision: "retry" })), act("Fail the call", () => resolve({ decision: "fail" }), "danger")]
        : pending.reason === "files"
          ? [act("Keep the files", () => post(`/sessions/${session}/resume`, { files: "keep" })), act("Restore the files", () => post(`/sessions/${session}/resume`, { files: "restore" }), "danger")]
          : [act("Continue", () => post(`/sessions/${session}/resume`, {}), "primary")];
  const place = h("div");
  const ready = proposal(session, pending).then((content) => content && show(place, content));
  const block = h("article.decision", { "aria-label": `Decision: ${pending.reason}` },
    h("p", h("span.tag.paused", pending.reason.replace("_", " ")), " ", pending.name ? h("code", visible(pending.name)) : null, " ",
      owner.session ? h("a", { href: `#/session/${session}` }, line(owner.mission, 80) || short(session)) : null,
      pending.call ? [" ", h("a.quiet", { href: `#/session/${pending.session}/call/${pending.call}` }, "call page")] : null),
    pending.detail ? h("p", visible(pending.detail)) : null,
    place,
    // Whatever the picture above does not show, such as rights that a command needs, is shown without a click.
    pending.arguments ? h("details", { open: hasMore(pending.arguments) }, h("summary", "Arguments"), value(pending.arguments, "Arguments")) : null,
    pending.files?.length ? h("p", "Files: ", pending.files.map((path) => [h("code", visible(path)), " "])) : null,
    h("div.actions", actions));
  block.ready = ready;
  return block;
}
