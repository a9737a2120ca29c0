// Clicks through the inspector. Arguments: a JSON object with `browser` (program), `link` (with the token), `pictures` (directory),
// `axe` (file of axe-core, or null) and `steps` (names of scenes). Prints a line for each scene; exits with 1 if one failed.

import { Browser } from "./chromium.mjs";
import { hostile } from "./hostile.mjs";
import { keys } from "./keys.mjs";
import { long } from "./long.mjs";
import { keep, settings } from "./look.mjs";
import { pages } from "./pages.mjs";
import { steer } from "./steer.mjs";

const scenes = { ...pages, ...keys, ...hostile, ...steer, ...long };
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
    if (foreign.length) throw new Error(`requests to others: ${foreign.map((url) => url.slice(0, 100)).join(", ")}`);
    if (page.problems.length) throw new Error(page.problems.join("; "));
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    await keep(page, `failed-${name}`).catch(() => {});
    console.log(`failed ${name}: ${error.message}`);
  }
  await page.send("Page.close").catch(() => {});
}
await browser.stop();
process.exit(failed ? 1 : 0);
