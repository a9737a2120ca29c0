// Clicks through the inspector. Arguments: a JSON object with `browser` (program), `link` (with the token), `pictures` (directory),
// `axe` (file of axe-core, or null) and `steps` (names of the scenes below). Prints a line for each scene; exits with 1 if one failed.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Browser } from "./chromium.mjs";

const settings = JSON.parse(process.argv[2]);
const axe = settings.axe ? readFileSync(settings.axe, "utf8") : null;
const WIDTHS = [[360, 740], [1280, 800], [2560, 1300]];
const TABS = ["Conversation", "Time", "Graph", "State", "Files", "Changes", "Requests", "Steer"];

/** Pictures in all sizes and both themes; nothing may stick out, and axe-core may find nothing serious. */
async function look(page, name) {
  for (const theme of ["light", "dark"]) {
    for (const [width, height] of WIDTHS) {
      await page.size(width, height, theme);
      await new Promise((resolve) => setTimeout(resolve, 150));
      writeFileSync(join(settings.pictures, `${name}-${width}-${theme}.png`), await page.picture());
      const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
      if (wide > 0) throw new Error(`${name} at ${width} pixels is ${wide} pixels too wide`);
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

const tab = async (page, name) => { await page.click(".tab", name); await page.until(`document.querySelector('.tab[aria-selected="true"]').textContent === ${JSON.stringify(name)}`); await page.until("!/^Loading/.test(document.querySelector('.pane').innerText)"); };

const scenes = {
  async empty(page) {
    await page.shows("No sessions here");
    await look(page, "empty");
  },
  async list(page) {
    await page.until("document.querySelectorAll('tbody tr').length > 0");
    await look(page, "sessions");
    await page.key("?");
    await page.shows("Next session");
    await page.click("dialog button", "Close");
    await page.key("j");
    await page.until("document.querySelectorAll('tr.active').length === 1");
    await page.key("Enter");
    await page.until("location.hash.startsWith('#/session/')");
    await page.key("g");
    await page.key("s");
    await page.until("location.hash === '#/'");
    await page.key("/");
    await page.until("document.activeElement.id === 'search'");
    await page.type("#search", "no such mission anywhere");
    await page.shows("No sessions here");
    await page.type("#search", "");
    await page.evaluate("(() => { const field = document.getElementById('search'); field.value = ''; field.dispatchEvent(new Event('input')); field.blur(); })()");
    await page.until("document.querySelectorAll('tbody tr').length > 0");
  },
  async session(page) {
    await page.click("tbody a", settings.mission);
    await page.until("document.querySelectorAll('.virtual-row').length > 0");
    for (const name of TABS) { await tab(page, name); await look(page, `session-${name.toLowerCase()}`); }
    await tab(page, "Conversation");
    const before = await page.evaluate("location.hash");
    await page.click(".virtual-row .record:not(.dim) .kind");
    await page.until(`location.hash !== ${JSON.stringify(before)} && location.hash.includes("at=")`);
    await page.key("j");
    await page.key("e");
    await page.shows("Newest record");
  },
  async call(page) {
    await page.click("tbody a", settings.mission);
    await tab(page, "Conversation");
    await page.click(".message.call a code");
    await page.shows("Attempts");
    await look(page, "call");
    await page.key("u");
    await tab(page, "Requests");
    await page.click(".pane tbody a");
    await page.shows("rendered now");
    await look(page, "request");
  },
  async files(page) {
    await page.click("tbody a", settings.mission);
    await tab(page, "Files");
    await page.click(".tree button", settings.file);
    await page.click("button", "Who wrote each line");
    await page.until("document.querySelectorAll('table.blame a').length > 0");
    await look(page, "blame");
    await tab(page, "State");
    await page.click("form button", "Compare");
    await page.shows("slice");
  },
  async overview(page) {
    await page.click("nav a", "Overview");
    await page.shows("Requests by day");
    await look(page, "overview");
    await page.click("nav a", "Query");
    await page.click("button", "Run");
    await page.shows("row");
    await look(page, "query");
  },
  async hostile(page) {
    await page.click("tbody a", settings.hostile);
    for (const name of TABS) await tab(page, name);
    await tab(page, "Conversation");
    await page.shows("<script>");
    await look(page, "hostile");
    if (await page.evaluate("'pwned' in window || document.querySelector('main script, main iframe, main img[src^=\"http\"]') !== null")) throw new Error("text became a part of the page");
  },
  async read_only(page) {
    await page.click("tbody a", settings.mission);
    await tab(page, "Steer");
    await page.shows("This server is read-only");
  },
  async approve(page) {
    await page.shows("Waiting for you");
    await look(page, "waiting");
    await page.click(".decision button", "Approve");
    await page.shows("Decided.");
    await page.until("!document.querySelector('.decision')", "nothing waits any more");
  },
  async steer(page) {
    await page.click("tbody a", settings.mission);
    await tab(page, "Steer");
    await page.type("#say", "and again");
    await page.click("button", "Send");
    await page.shows(settings.answer);
    await page.click(".virtual-row .record:not(.dim) .kind");
    await page.until("location.hash.includes('at=')");
    await page.click("button", "Rewind to point");
    await page.shows("will change");
    await look(page, "rewind");
    await page.click("dialog button", "Rewind");
    await page.shows("Done. Undo brings it back.");
    await page.click("button", "Undo the last rewind");
    await page.click("dialog button", "Undo");
    await page.until("document.querySelectorAll('.notice').length >= 2");
    await page.click("button", "Fork …");
    await page.click("dialog button", "Fork");
    await page.until("document.body.innerText.includes('fork of')");
  },
  async picture(page) {
    await page.click("tbody a", settings.mission);
    await tab(page, "Changes");
    await page.until("document.querySelectorAll('.diff').length > 0");
    await page.size(1280, 720, "light");
    await new Promise((resolve) => setTimeout(resolve, 300));
    writeFileSync(join(settings.pictures, "inspector.png"), await page.picture());
  },
  async long(page) {
    await page.click("tbody a", settings.long);
    await page.until("document.querySelectorAll('.virtual-row').length > 0");
    const rows = await page.evaluate("document.querySelectorAll('.virtual-row').length");
    if (rows > 200) throw new Error(`${rows} rows exist at once`);
    for (const part of [0, 0.5, 0.25, 1]) {
      await page.evaluate(`(() => { const list = document.querySelector('.virtual'); list.scrollTop = list.scrollHeight * ${part}; })()`);
      await page.until("[...document.querySelectorAll('.virtual-row .position')].length > 5");
    }
    await look(page, "long");
  },
};

const browser = await Browser.start(settings.browser);
let failed = 0;
for (const name of settings.steps) {
  const page = await browser.page();
  try {
    await page.size(1280, 800, "light");
    await page.open(settings.link);
    await page.until("document.querySelector('#bar nav')");
    await scenes[name](page);
    const origin = new URL(settings.link).origin;
    const foreign = page.requests.filter((url) => !url.startsWith(origin) && !url.startsWith("blob:") && !url.startsWith("about:"));
    if (foreign.length) throw new Error(`requests to others: ${foreign.join(", ")}`);
    if (page.problems.length) throw new Error(page.problems.join("; "));
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    writeFileSync(join(settings.pictures, `failed-${name}.png`), await page.picture().catch(() => Buffer.alloc(0)));
    console.log(`failed ${name}: ${error.message}`);
  }
  await page.send("Page.close").catch(() => {});
}
await browser.stop();
process.exit(failed ? 1 : 0);
