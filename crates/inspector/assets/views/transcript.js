// The conversation up to the selected point, newest part first loaded, with media and live pieces of the answer that arrives.

import { h, show, button, append } from "../lib/dom.js";
import { blob, get } from "../lib/api.js";
import { moment, number, visible } from "../lib/format.js";
import { text, value } from "../lib/text.js";

const SHOWN = ["image/png", "image/jpeg", "image/gif", "image/webp"];

function media(part, session) {
  const label = `${part.modality ?? "media"}${part.mime_type ? ` (${visible(part.mime_type)})` : ""}`;
  const object = /^blob:([0-9a-f]+)$/.exec(part.url ?? "")?.[1] ?? part.object;
  if (!object) return h("p.media", label, part.url ? [": ", h("code", visible(part.url))] : "");
  const box = h("p.media", button(`Show ${label}`, async () => {
    const data = await blob(`/sessions/${session}/media/${object}`);
    const type = SHOWN.includes(part.mime_type) ? part.mime_type : "application/octet-stream";
    const url = URL.createObjectURL(new Blob([data], { type }));
    show(box, type === "application/octet-stream" ? h("a", { href: url, download: `media-${object.slice(0, 8)}` }, `Save ${label}`)
      : h("img", { src: url, alt: visible(part.prompt_hint ?? label) }));
  }));
  return box;
}

function parts(list, session) {
  return (list ?? []).map((part) => (part.kind === "media" ? media(part, session) : text(part.text ?? "(stored apart)", { label: "Message" })));
}

/** Draws a message. */
export function message(row, id) {
  const { message: inner } = row;
  const content = inner.message.content;
  const role = inner.role ?? (content.kind === "option_call" ? "assistant" : content.kind === "option_result" ? "tool" : inner.message.role_hint_for_llm ?? "assistant");
  const head = (who, more) => h("p.who", h("strong", who), " ", more, h("span.quiet", ` ${moment(inner.created_at)} · turn ${inner.turn} · `),
    h("a.quiet", { href: `#/session/${id}?at=${row.position + 1}` }, `record ${row.position}`), inner.state === "interrupted" ? h("span.tag.paused", "interrupted") : null);
  if (content.kind === "option_call") {
    return h("article.message.call", head("call", h("a", { href: `#/session/${id}/call/${content.invocation_id}` }, h("code", visible(content.option_name)))),
      h("details", h("summary", "Arguments"), value(content.arguments?.object ?? content.arguments, "Arguments")));
  }
  if (content.kind === "option_result") {
    const result = content.result;
    return h(`article.message.result${content.is_error ? ".failed" : ""}`, head(content.is_error ? "error of" : "result of", h("a", { href: `#/session/${id}/call/${content.invocation_id}` }, h("code", visible(content.option_name)))),
      content.error_message ? text(content.error_message, { label: "Error" }) : null,
      result !== null && result !== undefined ? h("details", { open: String(JSON.stringify(result)).length < 600 }, h("summary", "Result"), value(result, "Result")) : null, parts(content.parts, id));
  }
  const body = parts(content.parts, id);
  return h(`article.message.${role}`, head({ system: "system", user: "you", assistant: "agent", tool: "tool" }[role] ?? role),
    role === "system" ? h("details", h("summary", "System message"), body) : body,
    inner.provider?.model ? h("p.quiet", `${visible(inner.provider.provider)} ${visible(inner.provider.model)}${inner.provider.usage ? ` · ${number(inner.provider.usage.input_tokens)} in, ${number(inner.provider.usage.output_tokens)} out` : ""}`) : null);
}

export async function transcript(pane, { id, at, point, signal, live }) {
  const list = h("div.transcript");
  const arriving = h("article.message.assistant.arriving", { hidden: true, "aria-live": "polite" }, h("p.who", h("strong", "agent"), h("span.quiet", " arriving")), h("pre.text.wrap", { tabindex: "0", role: "region", "aria-label": "Arriving answer" }));
  const words = arriving.querySelector("pre");
  const load = (query) => get(`/sessions/${id}/transcript`, { at: point(), limit: 60, ...query }, signal);
  let changed = false;
  live.addEventListener("record", () => { changed = true; }, { signal, once: true });
  const page = await load({ last: true });
  const earlier = button("Earlier messages", async () => {
    const more = await load({ before: previous });
    const known = new Set([...list.children].map((element) => element.dataset.key));
    list.prepend(...more.messages.filter((row) => !known.has(keyOf(row))).map(draw));
    previous = more.previous;
    earlier.hidden = previous === null;
  });
  const keyOf = (row) => `${row.session} ${row.position}`;
  const draw = (row) => { const element = message(row, id); element.dataset.key = keyOf(row); return element; };
  let { previous } = page;
  earlier.hidden = previous === null;
  append(list, page.messages.map(draw));
  show(pane, h("h2", at === null ? "Conversation" : `Conversation at point ${at}`), page.total ? null : h("p.quiet", "No messages yet."), earlier, list, arriving);
  if (at !== null) return;
  pane.scrollTop = pane.scrollHeight;
  let skip = false;
  const bottom = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 120;
  const stay = (action) => { const follow = bottom(); action(); if (follow) pane.scrollTop = pane.scrollHeight; };
  live.addEventListener("live", ({ detail }) => {
    if (detail.kind !== "text" || skip || detail.session !== id) return;
    stay(() => { arriving.hidden = false; words.append(visible(detail.text)); });
  }, { signal });
  live.addEventListener("missed", () => { skip = true; words.append(" … the rest follows with the record"); }, { signal });
  const refresh = async () => {
    const fresh = await load({ last: true });
    const known = new Set([...list.children].map((element) => element.dataset.key));
    stay(() => {
      append(list, fresh.messages.filter((row) => !known.has(keyOf(row))).map(draw));
      skip = false;
      words.replaceChildren();
      arriving.hidden = true;
    });
  };
  live.addEventListener("record", ({ detail }) => {
    if (detail.kind === "rewound") list.replaceChildren();
    if (detail.kind === "message_appended" || detail.kind === "rewound") refresh();
  }, { signal });
  // Something happened while the page was loaded.
  if (changed) await refresh();
}
