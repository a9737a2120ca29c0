// The pages, one by one: each is clicked through and looked at.

import { TABS, expect, keep, look, named, openSession, pause, settings, tab } from "./look.mjs";

export const pages = {
  async empty(page) {
    await page.shows("No sessions here");
    await look(page, "empty");
    await page.click("nav a", "Overview");
    await page.shows("Requests by day");
    await look(page, "empty-overview");
  },
  async list(page) {
    await page.until("document.querySelectorAll('tbody tr').length > 0");
    await look(page, "sessions");
    await named(page, "sessions");
    const all = await page.evaluate("document.querySelectorAll('tbody tr').length");
    await page.evaluate("(() => { const field = document.getElementById('status'); field.value = 'stopped'; field.dispatchEvent(new Event('change')); })()");
    await page.until(`document.querySelectorAll('tbody tr').length < ${all} && [...document.querySelectorAll('tbody tr')].every((row) => row.dataset.status === 'stopped')`, "only stopped sessions are listed");
    await page.evaluate("(() => { const field = document.getElementById('status'); field.value = ''; field.dispatchEvent(new Event('change')); })()");
    await page.until(`document.querySelectorAll('tbody tr').length === ${all}`);
    await page.type("#search", "no such mission anywhere");
    await page.shows("No sessions here");
    await page.evaluate("(() => { const field = document.getElementById('search'); field.value = ''; field.dispatchEvent(new Event('input')); field.blur(); })()");
    await page.until(`document.querySelectorAll('tbody tr').length === ${all}`);
  },
  async session(page) {
    await openSession(page, settings.mission);
    for (const name of TABS) {
      await tab(page, name);
      await pause(150);
      await look(page, `session-${name.toLowerCase()}`);
      await named(page, name);
    }
    // One selected point drives all panes.
    await tab(page, "Conversation");
    const before = await page.evaluate("document.querySelectorAll('.message').length");
    await page.evaluate("document.querySelector('.records .virtual').scrollTop = 0");
    await page.click(".virtual-row .kind.call_started");
    await page.until("location.hash.includes('at=') && /at point/.test(document.querySelector('.pane h2').textContent)", "the conversation is that of the point");
    await expect(page, `document.querySelectorAll('.message').length < ${before}`, "messages after the point are shown");
    for (const name of ["State", "Files"]) { await tab(page, name); await page.until("/at point/.test(document.querySelector('.pane h2').textContent)"); }
  },
  async time(page) {
    await openSession(page, settings.mission);
    await tab(page, "Time");
    await page.until("document.querySelectorAll('.bar.model').length > 0 && document.querySelectorAll('.bar.tool').length > 0", "requests and calls have bars");
    await expect(page, "document.querySelectorAll('.retry').length >= 2", "failed attempts are not marked");
    await expect(page, "document.querySelectorAll('.bar.person').length > 0 || !document.querySelector('.kind.paused')", "waits for a person have no bars");
    await page.click("button[aria-label='Zoom in']");
    await page.click("button", "Start");
    await page.until("document.querySelectorAll('.bar').length > 0");
    await page.click(".timeline g[role=link] .bar.tool");
    await page.until("location.hash.includes('/call/')", "a bar opens its call");
  },
  async graph(page) {
    await openSession(page, settings.mission);
    await tab(page, "Graph");
    for (const word of ["rewound", "fork", "rescue", "head"].map((each) => ({ rewound: "back to" })[each] ?? each)) await page.shows(word);
    await expect(page, "document.querySelectorAll('.edge').length > 0 && document.querySelectorAll('.node.change').length > 0", "branches and changes are not drawn");
    await page.click(".pane .words", "fork ");
    await page.until("document.querySelector('header.session')?.innerText.includes('fork of')", "a fork opens its session");
    await page.evaluate("history.back()");
    await page.shows("back to");
    if (settings.parent) {
      await page.key("u");
      await openSession(page, settings.parent);
      await tab(page, "Graph");
      await page.click(".pane .words", "sub-agent");
      await page.until("document.querySelector('header.session')?.innerText.includes('call of')", "a sub-agent opens its session");
    }
  },
  async call(page) {
    await openSession(page, settings.mission);
    await tab(page, "Changes");
    await page.click(".pane .virtual-row .words");
    await page.until("document.getElementById('from').value.startsWith('before:') && document.querySelectorAll('.diff').length > 0", "the changes around a call are compared");
    await tab(page, "Conversation");
    await page.click(".message.call a code");
    await page.shows("Attempts");
    await look(page, "call");
    await named(page, "call");
    await page.key("u");
    await tab(page, "Requests");
    await page.click(".pane .words.opens");
    await page.shows("rendered now");
    await look(page, "request");
    await named(page, "request");
  },
  async compression(page) {
    await openSession(page, settings.shortened);
    await tab(page, "Requests");
    await page.until("document.querySelectorAll('.pane .words.opens').length >= 10");
    await page.evaluate("location.hash = [...document.querySelectorAll('.pane .words.opens')].at(-1).dataset.href");
    await page.shows("as recorded");
    await page.shows("Left out or shortened");
    await page.click("summary", "Left out or shortened");
    await page.until("document.querySelectorAll('details[open] li a').length > 0");
    await page.evaluate("document.querySelector('main').scrollTop = 0");
    await look(page, "request-shortened");
    await page.click("details[open] li a");
    await page.until("location.hash.includes('at=')", "a message that was left out opens in the conversation");
  },
  async rollback(page) {
    await openSession(page, settings.mission);
    await tab(page, "Conversation");
    await page.click(".message.failed a code");
    await page.shows("Proof of the rollback");
    await page.shows("the digests are equal");
    await look(page, "rollback");
  },
  async failed(page) {
    await openSession(page, settings.failed);
    await page.shows("the script fails here");
    await look(page, "failed");
    await tab(page, "Requests");
    await page.shows("failure");
  },
  async files(page) {
    await openSession(page, settings.mission);
    await tab(page, "Files");
    await page.click(".tree button", settings.file);
    await page.click("button", "Who wrote each line");
    await page.until("document.querySelectorAll('table.blame a').length > 0");
    await look(page, "blame");
    await page.type("#path-filter", "no such path");
    await page.until("document.querySelectorAll('.tree button').length === 0");
    await tab(page, "State");
    await page.shows(settings.item ?? "item");
    await page.click("form button", "Compare");
    await page.shows("slice");
    await page.until("document.querySelectorAll('.diff .added').length > 0", "new items are shown");
    await page.until("[...document.querySelectorAll('.diff .by')].some((each) => /record \\d+ · update_plan_step/.test(each.textContent))", "the call that wrote an item is named");
    await look(page, "state-diff");
  },
  async overview(page) {
    await page.click("nav a", "Overview");
    await page.shows("Requests by day");
    await page.shows("Slowest calls");
    if (settings.budget) await page.until("document.querySelectorAll('.gauge-bar[role=meter]').length >= 2", "budgets have gauges");
    await look(page, "overview");
    await named(page, "overview");
    await page.click("button", "7 days");
    await page.until("location.hash.includes('days=7')");
    await page.click("nav a", "Query");
    await page.click("button", "Run");
    await page.shows("row");
    await look(page, "query");
    await page.type("#sql", "DELETE FROM sessions");
    await page.click("button", "Run");
    await page.until("document.querySelector('[role=alert]')", "SQL that writes is refused");
  },
  async read_only(page) {
    await openSession(page, settings.mission);
    await tab(page, "Steer");
    await page.shows("This server is read-only");
    await expect(page, "!document.getElementById('say')", "a read-only page offers to say something");
  },
  async bundle(page) {
    await page.until("document.querySelectorAll('tbody tr').length === 1");
    await page.shows("read-only");
    await openSession(page, settings.mission);
    for (const name of TABS) await tab(page, name);
    await page.click("nav a", "Overview");
    await page.shows("Requests by day");
    await keep(page, "bundle-overview");
  },
  async picture(page) {
    await openSession(page, settings.mission);
    await tab(page, "Changes");
    await page.until("document.querySelectorAll('.diff').length > 0");
    await page.size(1280, 720, "light");
    await pause(300);
    await keep(page, "inspector");
  },
};
