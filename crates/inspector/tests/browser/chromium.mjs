// A browser, driven over the DevTools protocol through two pipes: no port is opened, and no package is needed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Browser {
  static async start(program) {
    const browser = new Browser();
    browser.profile = mkdtempSync(join(tmpdir(), "inspector-profile-"));
    browser.process = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe", `--user-data-dir=${browser.profile}`, "about:blank"],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    browser.waiting = new Map();
    browser.listeners = [];
    browser.next = 1;
    let rest = "";
    browser.process.stdio[4].setEncoding("utf8").on("data", (text) => {
      rest += text;
      let end;
      while ((end = rest.indexOf("\0")) >= 0) { browser.receive(JSON.parse(rest.slice(0, end))); rest = rest.slice(end + 1); }
    });
    browser.process.on("exit", () => { for (const { reject } of browser.waiting.values()) reject(new Error("the browser ended")); });
    return browser;
  }

  receive(message) {
    const waits = this.waiting.get(message.id);
    if (waits) {
      this.waiting.delete(message.id);
      if (message.error) waits.reject(new Error(`${waits.method}: ${message.error.message}`)); else waits.resolve(message.result);
    } else for (const listener of this.listeners) listener(message);
  }

  send(method, params = {}, sessionId) {
    const id = this.next++;
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, method }));
  }

  async page() {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    this.listeners.push((message) => { if (message.sessionId === sessionId) page.event(message); });
    for (const domain of ["Page", "Runtime", "Log", "Network", "Accessibility"]) await page.send(`${domain}.enable`);
    return page;
  }

  async stop() {
    await this.send("Browser.close").catch(() => {});
    const isOver = () => this.process.exitCode !== null || this.process.signalCode !== null;
    const kill = setTimeout(() => this.process.kill("SIGKILL"), 5000);
    if (!isOver()) await new Promise((resolve) => this.process.once("exit", resolve));
    clearTimeout(kill);
    // Its children may still write there for a moment, which is no concern of a scene.
    try { rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 }); } catch (error) { console.error(`the profile stays: ${error.message}`); }
  }
}

export class Page {
  constructor(browser, session) { Object.assign(this, { browser, session, problems: [], requests: [], bytes: 0 }); }

  send(method, params) { return this.browser.send(method, params, this.session); }

  event({ method, params }) {
    if (method === "Runtime.exceptionThrown") this.problems.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Log.entryAdded" && params.entry.level === "error" && !/status of 4\d\d|favicon/.test(params.entry.text)) this.problems.push(params.entry.text);
    if (method === "Page.javascriptDialogOpening") { this.problems.push(`a dialog: ${params.message}`); this.send("Page.handleJavaScriptDialog", { accept: false }); }
    if (method === "Network.loadingFinished") this.bytes += params.encodedDataLength;
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async open(url) {
    await this.send("Page.navigate", { url });
    await this.until("document.readyState === 'complete'");
  }

  async until(expression, what = expression) {
    const end = Date.now() + 30000;
    for (;;) {
      try { if (await this.evaluate(expression)) return; } catch (error) { if (Date.now() > end) throw error; }
      if (Date.now() > end) throw new Error(`it did not come true: ${what}; the page shows: ${(await this.evaluate("document.body.innerText")).slice(0, 1500)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  shows(text) { return this.until(`document.body.innerText.includes(${JSON.stringify(text)})`, `the page shows "${text}"`); }

  /** Clicks the first visible element with this selector whose text contains `text`, as a person would. */
  async click(selector, text = "") {
    const find = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((each) => each.checkVisibility() && !each.disabled && each.textContent.includes(${JSON.stringify(text)}))`;
    await this.until(`!!(${find})`, `there is a ${selector} with "${text}"`);
    const box = await this.evaluate(`(() => { const each = ${find}; each.scrollIntoView({ block: "center" }); const box = each.getClientRects()[0]; return { x: box.x + box.width / 2, y: box.y + box.height / 2 }; })()`);
    for (const type of ["mousePressed", "mouseReleased"]) await this.send("Input.dispatchMouseEvent", { type, x: box.x, y: box.y, button: "left", clickCount: 1 });
  }

  async type(selector, text) {
    await this.until(`!!document.querySelector(${JSON.stringify(selector)})`);
    await this.evaluate(`(() => { const field = document.querySelector(${JSON.stringify(selector)}); field.focus(); field.select?.(); })()`);
    await this.send("Input.insertText", { text });
  }

  /** Presses keys one after the other. The browser gets all of them at once, so that no stall of this process lies between two. */
  key(...keys) {
    return Promise.all(keys.flatMap((key) => [
      this.send("Input.dispatchKeyEvent", { type: "keyDown", key, text: key.length === 1 ? key : key === "Enter" ? "\r" : undefined, windowsVirtualKeyCode: key === "Enter" ? 13 : key === "Escape" ? 27 : undefined }),
      this.send("Input.dispatchKeyEvent", { type: "keyUp", key }),
    ]));
  }

  async size(width, height, theme) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: theme }] });
  }

  async picture() { return Buffer.from((await this.send("Page.captureScreenshot", { format: "png" })).data, "base64"); }
}
