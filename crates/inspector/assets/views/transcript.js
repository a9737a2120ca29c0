// The conversation up to the selected point, with media and live pieces of the answer that arrives. Only a stretch of a long one exists as
// elements: it grows where it is scrolled to.

import { h, show, button } from "../lib/dom.js";
import { blob, get } from "../lib/api.js";
import { bytes, line, moment, number, visible } from "../lib/format.js";
import { text, value } from "../lib/text.js";

// Only these are shown, and only if their bytes say so; whatever a model or tool names its media.
const SHOWN = [["image/png", "89504e47"], ["image/jpeg", "ffd8ff"], ["image/gif", "47494638"], ["image/webp", "52494646"]];

async function pictureType(data) {
  const start = [...new Uint8Array(await data.slice(0, 8).arrayBuffer())].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return SHOWN.find(([, magic]) => start.startsWith(magic))?.[0] ?? null;
}

function media(part, session) {
  const label = `${part.modality ?? "media"}${part.mime_type ? ` (${visible(part.mime_type)})` : ""}`;
  const object = /^blob:([0-9a-f]+)$/.exec(part.url ?? "")?.[1] ?? part.object;
  if (!object) return h("p.media", label, part.url ? [": ", h("code", visible(part.url))] : "");
  const box = h("p.media", button(`Show ${label}`, async () => {
    const data = await blob(`/sessions/${session}/media/${object}`);
    const type = await pictureType(data);
    const url = URL.createObjectURL(new Blob([data], { type: type ?? "application/octet-stream" }));
    show(box, type ? h("img", { src: url, alt: visible(part.prompt_hint ?? label) })
      : h("a", { href: url, download: `media-${object.slice(0, 8)}` }, `Save ${label} (${bytes(data.size)})`));
  }));
  return box;
}

function parts(list, session) {
  return (list ?? []).map((part) => (part.kind === "media" ? media(part, session) : text(part.text ?? "(stored apart)", { label: "Message", prose: true })));
}

/** Draws a message. */
export function message(row, id) {
  const { message: inner } = row;
  const content = inner.message.content;
  const role = inner.role ?? (content.kind === "option_call" ? "assistant" : content.kind === "option_result" ? "tool" : inner.message.role_hint_for_llm ?? "assistant");
  const head = (who, more) => h("p.who", h("strong", who), " ", more, h("span.quiet", ` ${moment(inner.created_at)} · turn ${inner.turn} · `),
    h("a.quiet", { href: `#/session/${row.session ?? id}?at=${row.position + 1}` }, `record ${row.position}`), inner.state === "interrupted" ? h("span.tag.paused", "interrupted") : null);
  if (content.kind === "option_call") {
    const given = content.arguments?.object ?? content.arguments;
    return h("article.message.call", head("call", h("a", { href: `#/session/${row.session ?? id}/call/${content.invocation_id}` }, h("code", visible(content.option_name)))),
      h("details", h("summary", h("code", line(JSON.stringify(given ?? null), 110))), value(given, "Arguments")));
  }
  if (content.kind === "option_result") {
    const result = content.result;
    return h(`article.message.result${content.is_error ? ".failed" : ""}`, head(content.is_error ? "error of" : "result of", h("a", { href: `#/session/${row.session ?? id}/call/${content.invocation_id}` }, h("code", visible(content.option_name)))),
      content.error_message ? text(content.error_message, { label: "Error" }) : null,
      result !== null && result !== undefined ? h("details", { open: String(JSON.stringify(result)).length < 600 }, h("summary", "Result"), value(result, "Result")) : null, parts(content.parts, id));
  }
  const body = parts(content.parts, id);
  return h(`article.message.${role}`, head({ system: "system", user: "you", assistant: "agent", tool: "tool" }[role] ?? role),
    role === "system" ? h("details", h("summary", "System message"), body) : body,
    inner.provider?.model ? h("p.quiet", `${visible(inner.provider.provider)} ${visible(inner.provider.model)}${inner.provider.usage ? ` · ${number(inner.provider.usage.input_tokens)} in, ${number(inner.provider.usage.output_tokens)} out` : ""}`) : null);
}

const PAGE = 60;
const MOST = 240;

/** A stretch of the conversation: pages are loaded at the end that is scrolled to, and dropped at the other one. */
class Stretch {
  constructor(id, load, scroller) {
    Object.assign(this, { id, load, scroller, pages: [], elements: new Map(), busy: false });
    this.list = h("div.transcript");
    this.earlier = button("Earlier messages", () => this.extend("earlier"));
    this.later = button("Later messages", () => this.extend("later"));
  }

  page({ messages, previous, next }) {
    const keys = messages.map((row) => {
      const key = `${row.session} ${row.position}`;
      if (!this.elements.has(key)) this.elements.set(key, message(row, this.id));
      return key;
    });
    return { keys, previous, next };
  }

  all(page) { return page.keys.map((key) => this.elements.get(key)); }

  /** The newest messages, after what is there; a gap in between begins the stretch anew. */
  tail(answer) {
    const joins = this.pages.at(-1)?.next === null && answer.messages.some((row) => this.elements.has(`${row.session} ${row.position}`));
    if (!joins) this.clear();
    const page = this.page(answer);
    const fresh = new Set(page.keys);
    for (const each of this.pages) each.keys = each.keys.filter((key) => !fresh.has(key));
    this.pages = [...this.pages.filter((each) => each.keys.length), page];
    this.list.append(...this.all(page));
    this.drop("first");
    this.mark();
  }

  clear() { this.pages = []; this.elements.clear(); this.list.replaceChildren(); }

  count() { return this.pages.reduce((sum, page) => sum + page.keys.length, 0); }

  drop(end) {
    while (this.count() > MOST && this.pages.length > 1) {
      const page = end === "first" ? this.pages.shift() : this.pages.pop();
      const before = this.scroller.scrollHeight;
      for (const key of page.keys) { this.elements.get(key).remove(); this.elements.delete(key); }
      if (end === "first") this.scroller.scrollTop -= before - this.scroller.scrollHeight;
    }
  }

  mark() {
    this.earlier.hidden = (this.pages[0]?.previous ?? null) === null;
    this.later.hidden = (this.pages.at(-1)?.next ?? null) === null;
  }

  async extend(end) {
    const [first, last] = [this.pages[0], this.pages.at(-1)];
    const cursor = end === "earlier" ? first?.previous : last?.next;
    if (this.busy || (cursor ?? null) === null) return;
    this.busy = true;
    try {
      const answer = await this.load(end === "earlier" ? { before: cursor } : { from: cursor });
      answer.messages = answer.messages.filter((row) => !this.elements.has(`${row.session} ${row.position}`));
      const page = this.page(answer);
      if (end === "earlier") {
        const below = this.scroller.scrollHeight - this.scroller.scrollTop;
        this.pages.unshift(page);
        this.list.prepend(...this.all(page));
        this.scroller.scrollTop = this.scroller.scrollHeight - below;
        this.drop("last");
      } else {
        this.pages.push(page);
        this.list.append(...this.all(page));
        this.drop("first");
      }
      this.mark();
    } finally { this.busy = false; }
  }
}

/** Draws the conversation; returns what scrolls to its end once it is in the page. */
export async function transcript(pane, { id, at, point, signal, live, scroller }) {
  const load = (query) => get(`/sessions/${id}/transcript`, { at: point(), limit: PAGE, ...query }, signal);
  const stretch = new Stretch(id, load, scroller);
  const arriving = h("article.message.assistant.arriving", { hidden: true, "aria-live": "polite" }, h("p.who", h("strong", "agent"), h("span.quiet", " arriving")), h("div.prose"));
  const words = arriving.querySelector(".prose");
  let changed = false;
  live.addEventListener("record", () => { changed = true; }, { signal, once: true });
  const page = await load({ last: true });
  stretch.tail(page);
  const none = h("p.quiet", { hidden: page.total > 0 }, "No messages yet.");
  show(pane, h("h2", at === null ? "Conversation" : `Conversation at point ${at}`), none, stretch.earlier, stretch.list, stretch.later, arriving);
  const near = () => {
    if (!pane.isConnected) return;
    if (scroller.scrollTop < 500) stretch.extend("earlier").catch(() => {});
    else if (scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 500) stretch.extend("later").catch(() => {});
  };
  const end = () => { scroller.scrollTop = scroller.scrollHeight; scroller.addEventListener("scroll", near, { signal, passive: true }); };
  if (at !== null) return end;
  let skip = false;
  const atEnd = () => scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 120;
  const stay = (action) => { const follow = atEnd(); action(); if (follow) scroller.scrollTop = scroller.scrollHeight; };
  live.addEventListener("live", ({ detail }) => {
    if (detail.kind !== "text" || skip || detail.session !== id) return;
    stay(() => { arriving.hidden = false; words.append(visible(detail.text)); });
  }, { signal });
  live.addEventListener("missed", () => { skip = true; words.append(" … the rest follows with the record"); }, { signal });
  const refresh = async () => {
    const fresh = await load({ last: true });
    // Who reads earlier messages stays there: the end follows when it is scrolled to.
    if ((stretch.pages.at(-1)?.next ?? null) === null) stay(() => stretch.tail(fresh));
    none.hidden = fresh.total > 0;
    skip = false;
    words.replaceChildren();
    arriving.hidden = true;
  };
  let due = null;
  live.addEventListener("record", ({ detail }) => {
    if (detail.kind === "rewound") stretch.clear();
    if (detail.kind === "message_appended" || detail.kind === "rewound") due ??= setTimeout(() => { due = null; refresh().catch(() => {}); }, 60);
  }, { signal });
  // Something happened while the page was loaded.
  if (changed) await refresh();
  return end;
}
