// Texts for people from values.

// Control characters, and those that change the direction of text, are shown as escapes: they cannot move or hide other text.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** Returns a text in which every character can be seen. */
export function visible(text) {
  return String(text).replace(/\r\n/g, "\n").replace(HIDDEN, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

/** The first line of a text, at most `most` characters. */
export function line(text, most = 160) {
  const first = visible(String(text ?? "").trim().replace(/\s+/g, " "));
  return first.length > most ? `${first.slice(0, most - 1)}…` : first;
}

export const number = (value) => Number(value ?? 0).toLocaleString("en");

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = Number(value ?? 0);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) { size /= 1024; unit += 1; }
  return `${unit && size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** Money from millionths of its unit. The store does not name the unit. */
export const money = (micros) => (micros ? (micros / 1e6).toFixed(micros < 1e4 ? 6 : 4) : "–");

export function duration(millis) {
  if (millis === null || millis === undefined || Number.isNaN(millis)) return "–";
  if (millis === 0) return "0 ms";
  if (millis < 1) return `${Math.round(millis * 1000)} µs`;
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60000) return `${(millis / 1000).toFixed(1)} s`;
  if (millis < 3600000) return `${Math.floor(millis / 60000)} min ${Math.round((millis % 60000) / 1000)} s`;
  return `${Math.floor(millis / 3600000)} h ${Math.round((millis % 3600000) / 60000)} min`;
}

export function ago(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  if (seconds < 5) return "now";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return "now";
}

export const clock = (time) => (time ? new Date(time).toLocaleTimeString("en-GB", { hour12: false }) : "–");
export const moment = (time) => (time ? new Date(time).toLocaleString("en-GB", { hour12: false }) : "–");
export const short = (id) => String(id ?? "").slice(-6);

/** A count with its noun: `plural(1, "file")`. */
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

export const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
