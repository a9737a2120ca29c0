// Keys, deep links, names for screen readers, and less motion.

import { expect, named, openSession, settings, tab } from "./look.mjs";

const at = "Number(new URLSearchParams(location.hash.split('?')[1]).get('at'))";

export const keys = {
  async keys(page) {
    await page.until("document.querySelectorAll('tbody tr').length > 1");
    await page.key("?");
    await page.shows("Next session");
    await named(page, "the dialog of keys");
    await page.key("Escape");
    await page.until("!document.querySelector('dialog')", "Escape closes the dialog");
    for (const [key, row] of [["j", 0], ["j", 1], ["k", 0]]) {
      await page.key(key);
      await page.until(`[...document.querySelectorAll('tbody tr')].findIndex((each) => each.classList.contains('active')) === ${row}`, `${key} moves to row ${row}`);
    }
    await page.key("Enter");
    await page.until("location.hash.startsWith('#/session/')");
    await page.until("document.querySelector('.pane-body')");
    for (const [key, address] of [["o", "#/overview"], ["q", "#/query"], ["s", "#/"]]) {
      await page.key("g", key);
      await page.until(`location.hash === ${JSON.stringify(address)}`, `g ${key} goes to ${address}`);
      await page.evaluate("document.activeElement.blur()");
    }
    await page.until("document.querySelectorAll('tbody tr').length > 1");
    await page.key("/");
    await page.until("document.activeElement.id === 'search'", "/ goes to the search");
    // Letters are text in a field.
    await page.key("j");
    await expect(page, "document.querySelector('tr.active') === null || document.getElementById('search').value === 'j'", "a letter in a field is a command");
    await page.key("Escape");
    await page.until("document.activeElement.id !== 'search'", "Escape leaves the field");
  },
  async session_keys(page) {
    await openSession(page, settings.mission);
    for (const [key, heading] of [["4", "State"], ["l", "Files"], ["h", "State"], ["1", "Conversation"]]) {
      await page.key(key);
      await page.until(`document.querySelector('.tab[aria-selected="true"]').textContent === ${JSON.stringify(heading)}`, `${key} opens ${heading}`);
    }
    await page.key("k");
    await page.until(`${at} > 0`, "k selects the record before");
    const point = await page.evaluate(at);
    await page.key("k");
    await page.until(`${at} === ${point - 1}`);
    await page.key("j");
    await page.until(`${at} === ${point}`);
    await expect(page, `document.querySelector('.records .virtual').getAttribute('aria-activedescendant').endsWith('-${point - 1}')`, "the active record is not announced");
    await page.key("e");
    await page.shows("Newest record");
    await page.key("/");
    await page.until("document.activeElement.id === 'find'", "/ finds in the session");
    await page.type("#find", settings.find);
    await page.key("Enter");
    await page.until("/^1 of /.test(document.querySelector('.find [role=status]').textContent)", "a text is found");
    await page.until(`${at} > 0`);
    await page.key("Escape");
    const found = await page.evaluate(at);
    await page.key("n");
    await page.until(`/^2 of |^1 of 1$/.test(document.querySelector('.find [role=status]').textContent)`, "n goes to the next place");
    await page.key("N");
    await page.until(`${at} === ${found}`, "N goes back");
    await page.type("#find", "no such words anywhere");
    await page.key("Enter");
    await page.shows("nothing found");
    await page.key("Escape");
    // The tabs follow arrow keys when they have the focus.
    await page.evaluate("document.querySelector('.tab[aria-selected=true]').focus()");
    await page.key("ArrowRight");
    await page.until("document.activeElement.textContent === 'Time' && document.activeElement.getAttribute('aria-selected') === 'true'");
    await page.key("u");
    await page.until("location.hash === '#/'");
  },
  async links(page) {
    await openSession(page, settings.mission);
    const id = await page.evaluate("location.hash.split('/')[2].split('?')[0]");
    const open = async (path) => { await page.open("about:blank"); await page.open(`${settings.link}&to=${encodeURIComponent(path)}`); };
    await open(`/session/${id}?at=7&tab=state`);
    await page.shows("State at point 7");
    await expect(page, "!location.href.includes('token')", "the token stays in the address");
    await expect(page, "document.querySelector('.virtual-row[aria-selected=true] .position').textContent === '6'", "the record of the point is not selected");
    await page.evaluate("location.hash = location.hash.replace('at=7', 'at=9')");
    await page.shows("State at point 9");
    await page.evaluate("history.back()");
    await page.shows("State at point 7");
    await open(`/session/${id}?at=100000`);
    await page.until("document.querySelector('.pane [role=alert]')", "a point that does not exist is an error");
    await open("/session/ffffffffffff");
    await page.until("document.querySelector('main [role=alert]')", "a session that does not exist is an error");
    await open("/no/such/page");
    await page.shows("There is no such page");
    // Without a token, the page asks for one.
    await page.evaluate("sessionStorage.clear()");
    await page.open("about:blank");
    await page.open(settings.link.split("#")[0]);
    await page.shows("The link has a token");
    await named(page, "sign in");
    await page.type("#token", "wrong");
    await page.click("button", "Continue");
    await page.shows("This token is not that of the server");
    await page.type("#token", settings.link.split("token=")[1]);
    await page.click("button", "Continue");
    await page.until("document.querySelectorAll('tbody tr').length > 0", "a typed token opens the page");
  },
  async motion(page) {
    const animated = "(() => { const box = document.createElement('article'); box.className = 'message arriving'; const words = document.createElement('div'); words.className = 'prose'; box.append(words); document.body.append(box); const name = getComputedStyle(words, '::after').animationName; box.remove(); return name; })()";
    await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "no-preference" }] });
    await expect(page, `${animated} === "blink"`, "the cursor of an arriving answer does not blink");
    await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "reduce" }] });
    await expect(page, `${animated} === "none"`, "the cursor blinks in spite of the wish for less motion");
    await openSession(page, settings.mission);
    await tab(page, "Time");
    await expect(page, "document.getAnimations().length === 0", "something moves");
  },
  async theme(page) {
    await page.until("document.querySelectorAll('tbody tr').length > 0");
    const back = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await back();
    await page.click("button[aria-label='Light or dark']");
    if (await back() === light) throw new Error("the theme does not change");
    await page.open(settings.link);
    await page.until("document.documentElement.dataset.theme === 'dark'", "the theme is kept");
    await page.evaluate("localStorage.clear()");
  },
};
