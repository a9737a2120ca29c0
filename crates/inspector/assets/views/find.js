// Search within a session: its messages, arguments and results. The places found are stepped through.

import { h } from "../lib/dom.js";
import { get } from "../lib/api.js";

const MOST = 1000;

export class Find {
  constructor(id, signal, jump) {
    Object.assign(this, { id, signal, jump, places: [], here: -1, asked: "" });
    this.field = h("input", { type: "search", id: "find", maxlength: 200, placeholder: "Find ( / )" });
    this.words = h("span.quiet", { role: "status" });
    this.element = h("form.find", { role: "search", onsubmit: (event) => { event.preventDefault(); this.enter(event); } }, h("label.hidden", { for: "find" }, "Find in this session"), this.field, this.words);
  }

  focus() { this.field.focus(); this.field.select(); }

  async enter() {
    const text = this.field.value.trim();
    if (text === this.asked) { this.step(1); return; }
    this.asked = text;
    this.places = [];
    this.here = -1;
    this.words.textContent = "";
    if (!text) return;
    const pattern = text.toLowerCase().replaceAll("!", "!!").replaceAll("%", "!%").replaceAll("_", "!_").replaceAll("'", "''");
    const sql = `SELECT position FROM messages WHERE session = '${this.id}' AND lower(text) LIKE '%${pattern}%' ESCAPE '!' ORDER BY position LIMIT ${MOST}`;
    try {
      const page = await get("/query", { sql, limit: MOST }, this.signal);
      this.places = page.rows.map(([position]) => Number(position));
      if (!this.places.length) this.words.textContent = "nothing found";
      this.step(1);
    } catch (error) { this.words.textContent = error.message; this.asked = ""; }
  }

  step(by) {
    if (!this.places.length) return;
    this.here = (this.here + by + this.places.length) % this.places.length;
    this.words.textContent = `${this.here + 1} of ${this.places.length}${this.places.length === MOST ? "+" : ""}`;
    this.jump(this.places[this.here]);
  }
}
