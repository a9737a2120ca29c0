// A list of any length, of which only the rows in sight exist as elements. Rows have one height, are loaded in pages on demand, and
// pages that are far away are forgotten.

import { h } from "./dom.js";

const PAGE = 200;
const KEPT = 25;
let lists = 0;

export class VirtualList {
  /**
   * `load(from, count)` resolves to rows from an index on; `draw(row, index)` returns the content of a row; `select(row, index)` is
   * called when a row is chosen; `forget(rows)` when a page is dropped.
   */
  constructor({ label, height, load, draw, select, forget }) {
    Object.assign(this, { height, load, draw, select, forget });
    this.name = `list-${lists += 1}`;
    this.total = 0;
    this.active = -1;
    this.pages = new Map();
    this.drawn = new Map();
    // Rows may be drawn anew between the press and the release of a button, so the press counts. Screen readers only click.
    this.body = h("div.virtual-body", { role: "presentation", onmousedown: (event) => { if (event.button === 0) this.click(event); },
      onclick: (event) => { if (event.detail === 0) this.click(event); } });
    this.element = h("div.virtual", { role: "listbox", tabindex: "0", "aria-label": label, onscroll: () => this.request(),
      onkeydown: (event) => this.key(event) }, this.body);
    new ResizeObserver(() => this.render()).observe(this.element);
  }

  /** Sets the number of rows. A page that is not full is loaded again when it is looked at. */
  setTotal(total) {
    this.total = total;
    this.render();
  }

  /** Forgets what is loaded. */
  reset(total) {
    for (const { rows } of this.pages.values()) if (rows) this.forget?.(rows);
    this.pages.clear();
    this.total = total;
    this.redraw();
  }

  /** Draws the rows in sight anew. */
  redraw() {
    for (const { element } of this.drawn.values()) element.remove();
    this.drawn.clear();
    this.render();
  }

  row(index) {
    const number = Math.floor(index / PAGE);
    let page = this.pages.get(number);
    const isShort = page?.rows && page.rows.length < Math.min(PAGE, this.total - number * PAGE) && page.seen !== this.total;
    if ((!page || isShort) && !page?.isLoading) {
      // Pages that are only passed by are not loaded.
      if (this.isFast) { this.settle ??= setTimeout(() => { this.settle = null; this.isFast = false; this.render(); }, 90); return null; }
      page ??= { rows: null };
      this.pages.set(number, page);
      page.isLoading = true;
      const seen = this.total;
      const done = (rows) => {
        Object.assign(page, { rows, seen, isLoading: false });
        if (this.pages.get(number) !== page) return;
        this.trim(number);
        this.redraw();
      };
      this.load(number * PAGE, PAGE).then(done, (error) => done([{ error: error.message }]));
    }
    return page?.rows?.[index % PAGE] ?? null;
  }

  trim(near) {
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
    for (const page of far.slice(0, Math.max(0, far.length - KEPT))) {
      const { rows } = this.pages.get(page);
      this.pages.delete(page);
      if (rows) this.forget?.(rows);
    }
  }

  request() {
    this.isFast = Math.abs(this.element.scrollTop - (this.seen ?? 0)) > this.element.clientHeight * 3;
    this.seen = this.element.scrollTop;
    if (this.isFast) { clearTimeout(this.settle); this.settle = null; }
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = null; this.render(); });
  }

  create(index, row) {
    return h("div.virtual-row", {
      role: "option", id: `${this.name}-${index}`, top: index * this.height, height_px: this.height, "aria-setsize": this.total, "aria-posinset": index + 1,
    }, row ? (row.error ? h("span.error", row.error) : this.draw(row, index)) : h("span.quiet", "…"));
  }

  /** Makes the rows in sight, and keeps those that are there already. */
  render() {
    const { scrollTop, clientHeight } = this.element;
    this.body.style.height = `${this.total * this.height}px`;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - 6);
    const last = Math.min(this.total, Math.ceil((scrollTop + clientHeight) / this.height) + 6);
    for (const [index, { element }] of this.drawn) if (index < first || index >= last) { element.remove(); this.drawn.delete(index); }
    for (let index = first; index < last; index += 1) {
      const row = this.row(index);
      const known = this.drawn.get(index);
      let element = known?.element;
      if (!known || known.row !== row) {
        element = this.create(index, row);
        if (known) known.element.replaceWith(element); else this.body.append(element);
        this.drawn.set(index, { row, element });
      }
      element.setAttribute("aria-selected", String(index === this.active));
    }
    if (this.active >= first && this.active < last) this.element.setAttribute("aria-activedescendant", `${this.name}-${this.active}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** Makes a row the active one and brings it into sight. */
  reveal(index) {
    this.active = Math.max(0, Math.min(index, this.total - 1));
    const top = this.active * this.height;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.element.scrollTop = top + this.height - clientHeight;
    this.seen = this.element.scrollTop;
    this.isFast = false;
    this.render();
  }

  choose(index) {
    if (index < 0 || index >= this.total) return;
    this.reveal(index);
    this.select?.(this.row(index), index);
  }

  click(event) {
    const target = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-href]");
    if (target) location.hash = target.dataset.href;
    else this.choose(Math.floor((event.clientY - this.body.getBoundingClientRect().top) / this.height));
  }

  move(step) { this.choose(Math.max(0, Math.min(this.total - 1, this.active + step))); }

  /** The address that the active row opens. */
  href() { return this.drawn.get(this.active)?.element.querySelector("[data-href]")?.dataset.href; }

  key(event) {
    const rows = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: rows, PageUp: -rows, Home: -this.total, End: this.total };
    const href = event.key === "Enter" && this.href();
    if (href) { event.stopPropagation(); location.hash = href; return; }
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(steps[event.key]);
  }
}
