// Steering: decisions, a chat, rewinds, forks, and lists that follow what happens.

import { expect, keep, look, named, noticed, openSession, recordNotices, settings, tab } from "./look.mjs";

export const steer = {
  async approve(page) {
    await page.shows("Waiting for you");
    await look(page, "waiting");
    await named(page, "waiting");
    await expect(page, "document.querySelectorAll('.decision .diff .removed').length > 0 && document.querySelectorAll('.decision .diff .added').length > 0", "the decision does not show what would change");
    await page.click(".decision button", "Edit");
    await page.until("document.getElementById('arguments')");
    await look(page, "edit");
    await page.type("#arguments", JSON.stringify(settings.edited));
    await recordNotices(page);
    await page.click("dialog button", "Run with these");
    await noticed(page, "Decided.");
    await page.until("document.querySelectorAll('.decision').length === 1", "one decision is left");
    await page.click(".decision button", "Deny");
    await page.type("#reason", "not today");
    await page.click("dialog button", "Deny");
    await page.until("!document.querySelector('.decision')", "nothing waits any more");
  },
  async start(page) {
    // Another page shows the new session without being reloaded.
    const other = await page.browser.page();
    await other.open(settings.link);
    await other.until("document.querySelectorAll('tbody tr').length > 0");
    await page.send("Page.bringToFront");
    await page.click("button", "New session");
    await page.until("document.getElementById('mission')");
    await look(page, "new-session");
    await page.type("#mission", "Sew a sleeve");
    await page.evaluate(`document.getElementById('agent').value = ${JSON.stringify(settings.agent)}`);
    await page.click("dialog button", "Start");
    await page.until("location.hash.startsWith('#/session/')");
    await page.shows("The hem is");
    await other.send("Page.bringToFront");
    await other.until("document.querySelector('tbody').innerText.includes('Sew a sleeve')", "the list follows");
    await other.send("Page.close");
    await page.send("Page.bringToFront");
  },
  async steer(page) {
    await openSession(page, settings.mission);
    await tab(page, "Steer");
    await page.type("#say", "and again");
    await page.click("button", "Send");
    await page.shows(settings.answer);
    await keep(page, "chat");
    await page.evaluate("document.querySelector('.records .virtual').scrollTop = 0");
    await page.click(".virtual-row .kind.call_started");
    await page.until("location.hash.includes('at=') && !!document.querySelector('.steer')");
    await page.click("button", "Rewind to point");
    await page.shows("will change");
    await look(page, "rewind");
    await recordNotices(page);
    await page.click("dialog button", "Rewind");
    await noticed(page, "Done. Undo brings it back.");
    await page.click("button", "Undo the last rewind");
    await page.click("dialog button", "Undo");
    await noticed(page, "Done. Undo brings it back.", 2);
    await page.click("button", "Fork …");
    await page.click("dialog button", "Fork");
    await page.until("document.querySelector('header.session').innerText.includes('fork of')");
  },
  async edit_and_continue(page) {
    await openSession(page, settings.mission);
    await tab(page, "Steer");
    await page.click("button", "Edit and continue");
    await page.until("document.querySelector('dialog textarea')");
    await page.type("dialog textarea", "with a red thread");
    await page.click("dialog button", "Fork and send");
    await page.until("document.querySelector('header.session').innerText.includes('fork of')");
    await page.shows("with a red thread");
  },
  async erase(page) {
    await openSession(page, "Sew a sleeve");
    await tab(page, "Steer");
    await page.click("button", "Delete …");
    await page.click("dialog button", "Delete");
    await page.until("location.hash === '#/' && !document.querySelector('tbody').innerText.includes('Sew a sleeve')", "the session is gone");
  },
};
