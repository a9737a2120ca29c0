// What every scene uses: settings, pictures in all sizes and themes, and checks of what is drawn.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const settings = JSON.parse(process.argv[2]);
const axe = settings.axe ? readFileSync(settings.axe, "utf8") : null;
const WIDTHS = [[360, 740], [1280, 800], [2560, 1300]];
export const TABS = ["Conversation", "Time", "Graph", "State", "Files", "Changes", "Requests", "Steer"];

export const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

export const keep = async (page, name) => writeFileSync(join(settings.pictures, `${name}.png`), await page.picture());

/** Records the notices of a page from now on. They vanish after some seconds, so a slow test may not see them. */
export const recordNotices = (page) => page.evaluate(`(() => {
  window.noticed = [];
  const watcher = new MutationObserver((changes) => { for (const change of changes) for (const each of change.addedNodes) window.noticed.push(each.textContent); });
  watcher.observe(document.getElementById("notices"), { childList: true });
})()`);

/** Waits until so many notices with a text were shown. */
export const noticed = (page, text, times = 1) => page.until(`window.noticed.filter((each) => each.includes(${JSON.stringify(text)})).length >= ${times}`, `the notice "${text}" was shown ${times} times`);

/** Throws unless a condition holds in the page. */
export async function expect(page, expression, what) {
  if (!(await page.evaluate(expression))) throw new Error(`${what}; the page shows: ${(await page.evaluate("document.body.innerText")).slice(0, 800)}`);
}

// Controls that lie over each other, and texts that are cut without a mark. What a scrolling box hides is not in sight.
const FAULTS = `(() => {
  const seen = (element) => {
    let box = element.getBoundingClientRect();
    let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
    for (let outer = element.parentElement; outer; outer = outer.parentElement) {
      if (getComputedStyle(outer).overflow === "visible") continue;
      const clip = outer.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, clip.left), Math.max(top, clip.top), Math.min(right, clip.right), Math.min(bottom, clip.bottom)];
    }
    [left, top, right, bottom] = [Math.max(left, 0), Math.max(top, 0), Math.min(right, innerWidth), Math.min(bottom, innerHeight)];
    return right - left > 2 && bottom - top > 2 ? { left, top, right, bottom } : null;
  };
  const name = (element) => element.tagName.toLowerCase() + " " + (element.textContent || element.placeholder || element.id).trim().slice(0, 40);
  const root = document.querySelector("dialog[open]") ?? document.body;
  const controls = [...root.querySelectorAll("button, input, select, textarea, h1, h2, h3, .tag, .tile, figure, table, article > p")].filter((each) => each.checkVisibility() && !each.closest("#notices") && !each.closest(".hidden") && getComputedStyle(each).clipPath === "none").map((element) => [element, seen(element)]).filter(([, box]) => box);
  const faults = [];
  for (const [index, [one, a]] of controls.entries()) for (const [other, b] of controls.slice(index + 1)) {
    if (one.contains(other) || other.contains(one)) continue;
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2) faults.push(name(one) + " lies over " + name(other));
  }
  for (const element of root.querySelectorAll("h1, h2, h3, button, .tag, .tile strong, .axis, .lane-name, .gauge span, summary, th, label")) {
    if (!element.checkVisibility() || element.closest(".hidden, .virtual-row")) continue;
    if (element.clientWidth && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).textOverflow !== "ellipsis" && getComputedStyle(element).overflowX !== "visible") faults.push(name(element) + " is cut");
  }
  for (const element of root.querySelectorAll("p, h1, h2, h3, li, figcaption, summary, label")) {
    if (!element.checkVisibility() || element.closest(".hidden, .scroll, .virtual-row, pre, .diff, #notices") || getComputedStyle(element).overflowX !== "visible") continue;
    if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 1) faults.push(name(element) + " sticks out");
  }
  return [...new Set(faults)].slice(0, 5);
})()`;

/** Pictures in all sizes and both themes; nothing may stick out, lie over something else or be cut, and axe-core may find nothing serious. */
export async function look(page, name) {
  for (const theme of ["light", "dark"]) {
    for (const [width, height] of WIDTHS) {
      await page.size(width, height, theme);
      await pause(150);
      await keep(page, `${name}-${width}-${theme}`);
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      if (wide > 0) throw new Error(`${name} at ${width} pixels is ${wide} pixels too wide`);
      const faults = await page.evaluate(FAULTS);
      if (faults.length) throw new Error(`${name} at ${width} pixels: ${faults.join("; ")}`);
    }
    await page.size(1280, 800, theme);
    if (axe) await accessible(page, `${name} (${theme})`);
  }
  await page.size(1280, 800, "light");
}

async function accessible(page, name) {
  // The page's own rules forbid foreign scripts; DevTools may evaluate them.
  await page.evaluate(`${axe}; undefined`);
  const found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] }).then((result) => result.violations.filter((each) => ['serious', 'critical'].includes(each.impact)).map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`))");
  if (found.length) throw new Error(`${name}: axe-core found ${found.join("; ")}`);
}

/** Every control that a screen reader finds has a name. */
export async function named(page, what) {
  const { nodes } = await page.send("Accessibility.getFullAXTree");
  const roles = new Set(["button", "link", "textbox", "searchbox", "combobox", "tab", "option", "listbox", "meter", "dialog", "img", "region", "tabpanel"]);
  const nameless = nodes.filter((node) => !node.ignored && roles.has(node.role?.value) && !node.name?.value?.trim()).map((node) => `${node.role.value} ${node.backendDOMNodeId}`);
  if (nameless.length) throw new Error(`${what}: controls without a name: ${nameless.slice(0, 5).join(", ")}`);
}

/** Opens a pane and waits until it is drawn. */
export async function tab(page, name) {
  await page.click(".tab", name);
  await page.until(`document.querySelector('.tab[aria-selected="true"]').textContent === ${JSON.stringify(name)}`);
  await page.until("!document.querySelector('.pane').hasAttribute('aria-busy') && !/^Loading/.test(document.querySelector('.pane').innerText)", `the pane ${name} is drawn`);
}

/** Opens the session with this mission from the list. */
export async function openSession(page, mission) {
  await page.click("tbody tr:not([data-origin=fork]) a", mission);
  await page.until("document.querySelectorAll('.virtual-row').length > 0 && document.querySelector('.pane-body')", "the session is drawn");
}
