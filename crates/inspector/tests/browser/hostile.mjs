// Everything that models, tools, files and people say is hostile here; none of it may become a part of the page.

import { TABS, expect, look, openSession, pause, settings, tab } from "./look.mjs";

// Elements that only hostile text would make, and what their scripts would leave.
const INERT = "!('pwned' in window) && document.querySelector('main script, main iframe, main object, main style, main [onerror], main [onclick], main a[href^=\"javascript\" i], main img:not([src^=\"blob:\"])') === null";
// Raw characters that control terminals or turn text around.
const RAW = "/[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]/.test(document.body.textContent)";

async function inert(page, where) {
  await expect(page, INERT, `${where}: text became a part of the page`);
  await expect(page, `!${RAW}`, `${where}: a control character is in the page`);
}

export const hostile = {
  async hostile(page) {
    await page.shows("Hostile <script>");
    await inert(page, "the list");
    await openSession(page, settings.hostile);
    for (const name of TABS) {
      await tab(page, name);
      await inert(page, name);
    }
    await tab(page, "Conversation");
    await page.evaluate("document.querySelector('.pane').scrollTop = 0");
    await page.evaluate("for (const each of document.querySelectorAll('.pane details')) each.open = true");
    await page.shows("<script>");
    await inert(page, "opened details");
    await look(page, "hostile");
  },
  async hostile_media(page) {
    await openSession(page, settings.hostile);
    await tab(page, "Conversation");
    const count = await page.evaluate("document.querySelectorAll('.media button').length");
    if (count < 2) throw new Error(`${count} media are offered`);
    await page.evaluate("for (const each of document.querySelectorAll('.media button')) each.click()");
    await page.until("document.querySelectorAll('.media button').length === 0", "all media are loaded");
    await page.until("[...document.querySelectorAll('.media img')].every((each) => each.complete)");
    await expect(page, "[...document.querySelectorAll('.media img')].some((each) => each.naturalWidth > 0)", "no picture is shown");
    await expect(page, "[...document.querySelectorAll('.media a')].every((each) => each.download)", "a file opens in the page");
    await inert(page, "media");
    // A foreign address is named and never loaded.
    await page.shows("https://example.org/a.png");
    if (page.requests.some((url) => url.includes("example.org"))) throw new Error("a foreign picture was loaded");
  },
  async hostile_files(page) {
    await openSession(page, settings.hostile);
    await tab(page, "Files");
    await page.click(".tree button", "onerror");
    await page.shows("Who wrote each line");
    await inert(page, "a file");
    await page.click("button", "Who wrote each line");
    await page.until("document.querySelectorAll('table.blame a').length > 0");
    await inert(page, "blame");
    await tab(page, "Changes");
    await inert(page, "diff");
    await tab(page, "Conversation");
    await page.click(".message.call a code");
    await page.shows("Attempts");
    await inert(page, "a call");
    const wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    if (wide > 0) throw new Error(`a long line makes the page ${wide} pixels wider`);
  },
  async policy(page) {
    // The rules of the page forbid what hostile text would need, even if it became an element.
    const rules = ["script-src-elem", "img-src", "frame-src", "style-src-elem", "connect-src"];
    const refused = await page.evaluate(`new Promise((resolve) => {
      const found = [];
      const end = () => { for (const each of [script, image, frame, sheet]) each.remove(); resolve(found); };
      document.addEventListener("securitypolicyviolation", (event) => {
        found.push(event.effectiveDirective);
        if (${JSON.stringify(rules)}.every((rule) => found.includes(rule))) end();
      });
      const script = document.createElement("script");
      script.textContent = "window.pwned = 1";
      document.body.append(script);
      const image = new Image();
      image.src = "https://example.org/pixel.png";
      document.body.append(image);
      const frame = document.createElement("iframe");
      frame.src = "https://example.org/";
      document.body.append(frame);
      const sheet = document.createElement("style");
      sheet.textContent = "body { display: none }";
      document.body.append(sheet);
      fetch("https://example.org/").catch(() => {});
      setTimeout(end, 30000);
    })`);
    for (const rule of rules) if (!refused.includes(rule)) throw new Error(`${rule} is not enforced: ${refused}`);
    await expect(page, "!('pwned' in window)", "an inline script ran");
    await pause(450);
    // What was refused is not a defect of the page, and was not sent.
    page.problems.length = 0;
    page.requests.length = 0;
  },
};
