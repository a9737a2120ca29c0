// Long texts, JSON and diffs, shown in bounded pieces.

import { h, button } from "./dom.js";
import { visible, json, bytes } from "./format.js";

const PIECE = 20000;
const PROSE = 6000;

/** A text in its own box; of a long one the beginning, and a button for more. */
export function text(value, { label = "Text", wrap = true, prose = false } = {}) {
  const whole = String(value ?? "");
  const pre = prose ? h("div.prose") : h(`pre.text${wrap ? ".wrap" : ""}`, { tabindex: "0", role: "region", "aria-label": label });
  let shown = 0;
  const more = button("", () => extend(PIECE));
  const extend = (piece) => {
    pre.append(visible(whole.slice(shown, shown + piece)));
    shown += piece;
    more.textContent = `Show more (${bytes(whole.length - shown)} left)`;
    more.hidden = shown >= whole.length;
  };
  extend(prose ? PROSE : PIECE);
  return h("div.long", pre, more);
}

/** A value as JSON. */
export const value = (content, label = "Value") => text(json(content), { label });

const KINDS = { "+": "added", "-": "removed", "@": "hunk" };

/** A unified diff, coloured, with marks that do not need colour. */
export function diff(unified, label = "Diff") {
  const lines = String(unified).split("\n");
  if (lines.at(-1) === "") lines.pop();
  const table = h("div.diff", { tabindex: "0", role: "region", "aria-label": label });
  let shown = 0;
  const more = button("", () => extend());
  const extend = () => {
    for (const line of lines.slice(shown, shown + 1000)) {
      const head = line.startsWith("+++") || line.startsWith("---");
      table.append(h(`div.${head ? "head" : KINDS[line[0]] ?? "same"}`, visible(line.slice(0, 5000)) || " "));
    }
    shown += 1000;
    more.textContent = `Show more (${lines.length - shown} lines left)`;
    more.hidden = shown >= lines.length;
  };
  extend();
  return h("div.long", table, more);
}

/** Files that changed, each with its diff behind a heading. */
export function files(list, open = 5) {
  if (!list?.length) return h("p.quiet", "No files changed.");
  return list.map((file, index) => h("details.file", { open: index < open },
    h("summary", h(`span.tag.${file.change}`, file.change), " ", h("code", visible(file.path))),
    typeof file.diff === "string" ? diff(file.diff, `Diff of ${visible(file.path)}`) : h("p.quiet", file.diff === null ? "Empty, not text, or too large to compare." : "")));
}
