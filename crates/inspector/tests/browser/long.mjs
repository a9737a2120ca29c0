// A session with very many calls: every pane scrolls, and the page holds a bounded number of elements.

import { expect, look, openSession, pause, settings, tab } from "./look.mjs";

const MOST_ELEMENTS = 6000;

/** Scrolls a box by `step` in each frame, and reports the frames and the most elements that existed. */
const scroll = (selector, axis, step, frames) => `new Promise((resolve) => {
  const box = document.querySelector(${JSON.stringify(selector)});
  const times = [];
  let [last, most] = [performance.now(), 0];
  const tick = (now) => {
    times.push(now - last);
    last = now;
    most = Math.max(most, document.querySelectorAll("*").length);
    box.${axis} += ${step};
    if (times.length < ${frames}) { requestAnimationFrame(tick); return; }
    times.sort((a, b) => a - b);
    resolve({ median: Math.round(times[times.length >> 1]), late: Math.round(times[Math.floor(times.length * 0.95)]), most });
  };
  requestAnimationFrame(tick);
})`;

async function measured(page, what, ...how) {
  const { median, late, most } = await page.evaluate(scroll(...how));
  // Times depend on the machine, so they are printed; the number of elements does not.
  console.log(`long: ${what}: a frame takes ${median} ms, 95 % up to ${late} ms; ${most} elements; ${Math.round(page.bytes / 1024)} KiB so far`);
  if (most > MOST_ELEMENTS) throw new Error(`${what}: ${most} elements exist at once`);
}

export const long = {
  async long(page) {
    const start = Date.now();
    await openSession(page, settings.long);
    await page.until("document.querySelectorAll('.message').length > 5 && document.querySelectorAll('.records .position').length > 5");
    console.log(`long: opened in ${Date.now() - start} ms with ${Math.round(page.bytes / 1024)} KiB`);
    await look(page, "long");
    await measured(page, "records", ".records .virtual", "scrollTop", -300, 120);
    for (const part of [0, 0.5, 0.25, 1]) {
      await page.evaluate(`(() => { const list = document.querySelector('.records .virtual'); list.scrollTop = list.scrollHeight * ${part}; })()`);
      await page.until("document.querySelectorAll('.records .position').length > 5", `records at ${part} are loaded`);
    }
    // The conversation grows upwards and is cut below.
    await measured(page, "conversation", ".pane", "scrollTop", -300, 240);
    await expect(page, "document.querySelectorAll('.message').length <= 300", "messages that are out of sight exist");
    await expect(page, "!document.querySelector('.pane button').hidden", "there are no earlier messages");
    await tab(page, "Time");
    await page.until("document.querySelectorAll('.bar').length > 0");
    await look(page, "long-time");
    await measured(page, "time", ".timeline-scroll", "scrollLeft", -300, 120);
    await page.click("button", "Start");
    await page.until("document.querySelectorAll('.bar').length > 0 && document.querySelector('.timeline-scroll').scrollLeft === 0");
    await tab(page, "Requests");
    await page.until("document.querySelectorAll('.pane .virtual-row .position').length > 0");
    await measured(page, "requests", ".pane .virtual", "scrollTop", 300, 30);
    await tab(page, "Graph");
    await page.shows("head");
    await tab(page, "State");
    await page.click("button", "tool_invoked");
    await page.until("document.querySelectorAll('.state .virtual-row').length > 0");
    await measured(page, "items of the state", ".state .virtual", "scrollTop", 300, 60);
    await look(page, "long-state");
    // A key that is held down passes records; the pane follows where it stops.
    await tab(page, "Conversation");
    await page.evaluate("document.activeElement.blur()");
    for (let index = 0; index < 60; index += 1) await page.key("k");
    await page.until("/at point/.test(document.querySelector('.pane h2')?.textContent)");
    await pause(100);
    // The first call of all has its page, with the proof, however many follow.
    await page.evaluate("document.querySelector('.records .virtual').scrollTop = 0");
    await page.click(".virtual-row .opens", "read_file");
    await page.shows("Attempts");
  },
};
