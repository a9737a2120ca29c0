// Steering: a chat, and changes of the history, each with a preview of what it changes.

import { h, show, button, notice, ask } from "../lib/dom.js";
import { download, get, post, remove } from "../lib/api.js";
import { line, plural, short, visible } from "../lib/format.js";
import { files } from "../lib/text.js";
import { transcript } from "./transcript.js";

function preview(report) {
  const plan = report.own_files ?? {};
  const effects = report.effects ?? [];
  return h("div.preview", h("p", `${plural((plan.changes ?? []).length, "file")} will change.`), files((plan.changes ?? []).slice(0, 200).map((each) => ({ path: each.path, change: each.change ?? each.kind ?? "modified" })), 0),
    plan.merged?.length ? h("p", "Merged with edits of others: ", plan.merged.map(visible).join(", ")) : null,
    plan.conflicts?.length ? h("p.error", "Left alone, because someone else changed them: ", plan.conflicts.map((each) => visible(each.path ?? each)).join(", ")) : null,
    effects.length ? h("div", h("p", "These calls changed something outside, and that stays:"), h("ul", effects.map((each) => h("li", h("code", visible(each.name)), ` ${line(JSON.stringify(each.arguments), 120)}`)))) : null);
}

export async function steer(pane, model) {
  const { id, at, point, server, signal, live, reload, go } = model;
  if (!server.write) { show(pane, h("h2", "Steer"), h("p", "This server is read-only. Start it with ", h("code", "backstitch ui --write"), " to change sessions here."), h("p.actions", exports(id))); return; }
  const conversation = h("div.steer-conversation", { tabindex: "0", role: "region", "aria-label": "Conversation" });
  const output = h("pre.text.wrap.live-output", { hidden: true, tabindex: "0", role: "region", "aria-label": "Output of the running tool" });
  const field = h("textarea", { id: "say", rows: 3, placeholder: "Say something (Ctrl+Enter sends)" });
  const attempt = async (action, done) => { try { const result = await action(); if (done) notice(done); await reload(); return result; } catch (error) { notice(error.message, "error"); return null; } };
  const running = () => ["running", "runnable"].includes(model.overview.status?.status ?? model.overview.status);
  const say = async () => {
    const text = field.value.trim();
    if (!text) return;
    const fresh = await get(`/sessions/${id}`);
    const busy = ["running", "runnable"].includes(fresh.status?.status ?? fresh.status) || fresh.holder;
    if (await attempt(() => post(`/sessions/${id}/${busy ? "send" : "ask"}`, { text }), busy ? "Sent; it is read at the next turn." : null)) field.value = "";
  };
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); say(); } });

  const confirm = async (title, path, body, verb) => {
    const seen = await attempt(() => post(`/sessions/${id}/${path}`, { ...body, dry_run: true }));
    if (!seen) return;
    const answer = await ask(title, preview(seen), verb, { danger: true });
    if (answer) await attempt(() => post(`/sessions/${id}/${path}`, body), "Done. Undo brings it back.");
  };
  const where = at === null ? "the newest record" : `point ${at}`;
  const project = model.overview.isolated_from ?? model.overview.workspace;
  const forkOf = () => ({ at: point(), ...(project ? { isolated: true, directory: project } : {}) });
  const fork = async () => {
    const answer = await ask(`Fork from ${where}`, h("p", "The fork has the conversation, the state and a copy of the files of that point; this session stays as it is."), "Fork");
    if (!answer) return;
    const made = await attempt(() => post(`/sessions/${id}/fork`, forkOf()));
    if (made) go(`/session/${made.session}?tab=steer`);
  };
  const edit = async () => {
    const words = h("textarea", { id: "instead", name: "text", rows: 5, required: true });
    const answer = await ask(`Continue differently from ${where}`, h("div.fields", h("p", "A fork with a copy of the files begins there and gets this message."), h("label", { for: "instead" }, "Message"), words), "Fork and send");
    if (!answer) return;
    const made = await attempt(() => post(`/sessions/${id}/fork`, forkOf()));
    if (made && await attempt(() => post(`/sessions/${made.session}/ask`, { text: answer.text }))) go(`/session/${made.session}?tab=steer`);
  };
  const redact = async () => {
    const answer = await ask("Redact a value", h("div.fields", h("p", "Every place where this session and its family hold the value is overwritten. This cannot be undone."), h("label", { for: "value" }, "Value"), h("input", { id: "value", name: "value", required: true, autocomplete: "off" })), "Redact", { danger: true });
    if (answer) await attempt(() => post(`/sessions/${id}/redact`, { value: answer.value }), "Redacted.");
  };
  const erase = async () => {
    const answer = await ask("Delete the session", h("p", "Its records are removed for good; its directory stays as it is."), "Delete", { danger: true });
    if (answer && await attempt(async () => { await remove(`/sessions/${id}`); go("/"); return true; })) notice("Deleted.");
  };
  show(pane, conversation, output, h("form.say", { onsubmit: (event) => { event.preventDefault(); say(); } }, h("label.hidden", { for: "say" }, "Message"), field,
    h("p.actions", h("button.primary", { type: "submit" }, "Send"), button("Resume", () => attempt(() => post(`/sessions/${id}/resume`, {}), "Resumed.")), button("Pause", () => attempt(() => post(`/sessions/${id}/pause`), "It pauses after the current step.")), button("Cancel", () => attempt(() => post(`/sessions/${id}/cancel`), "It is being cancelled."), { class: "danger" }))),
  h("h3", `History, at ${where}`), h("p.actions", button(`Rewind to ${where} …`, () => confirm(`Rewind to ${where}?`, "rewind", { to: point() }, "Rewind"), { disabled: at === null }), button("Undo the last rewind …", () => confirm("Undo the last rewind?", "undo", {}, "Undo")), button("Redo …", () => confirm("Redo?", "redo", {}, "Redo")), button("Fork …", fork), button("Edit and continue …", edit)),
  model.overview.isolated_from ? h("p.actions", button("Apply its files to the project …", () => applyFiles())) : null,
  h("h3", "Session"), h("p.actions", exports(id), button("Redact a value …", redact), button("Delete …", erase, { class: "danger" })));
  async function applyFiles() {
    const seen = await attempt(() => post(`/sessions/${id}/apply`, { dry_run: true }));
    if (!seen) return;
    const changes = seen.changes ?? seen.files ?? [];
    if (await ask("Apply to the project?", files(changes.map((each) => ({ path: each.path ?? each, change: each.change ?? each.kind ?? "modified" })), 0), "Apply")) await attempt(() => post(`/sessions/${id}/apply`, {}), "Applied.");
  }
  live.addEventListener("live", ({ detail }) => {
    if (detail.kind !== "output") return;
    output.hidden = false;
    output.append(visible(detail.text));
    if (output.textContent.length > 20000) output.textContent = output.textContent.slice(-10000);
    output.scrollTop = output.scrollHeight;
  }, { signal });
  live.addEventListener("record", ({ detail }) => { if (detail.kind === "call_finished") { output.hidden = true; output.textContent = ""; } }, { signal });
  pane.classList.add("steer");
  if (running()) field.placeholder = "It works: what you send is read at its next turn";
  return transcript(conversation, { ...model, scroller: conversation });
}

const exports = (id) => [button("Save as a bundle", () => download(`/sessions/${id}/export`, { format: "bundle" }, `backstitch-${short(id)}.bundle`).catch((error) => notice(error.message, "error"))),
  button("Save as Markdown", () => download(`/sessions/${id}/export`, { format: "markdown" }, `backstitch-${short(id)}.md`).catch((error) => notice(error.message, "error")))];
