/*
 * One headless Chromium for the tests of pages, driven line by line: a JSON command on stdin, a JSON
 * answer on stdout. BROWSER_TOOLS is where playwright-core and axe-core are (tools/fetch-page-tools).
 *
 *   {do: "open", url, width, height, scheme, script, media}   a page of its own; script false: without; media: "print"
 *   {do: "eval", code}                                  what the expression is worth in the page
 *   {do: "wait", code, ms}                              until it is true
 *   {do: "click", selector} {do: "press", key}
 *   {do: "look", width, height, scheme}                 the same page in another window
 *   {do: "axe"}                                         what axe-core objects to
 *   {do: "seen"}                                        requests, messages, dialogs of this page so far
 *   {do: "shot", path, full}
 */
"use strict";
const fs = require("fs");
const path = require("path");
const readline = require("readline");
const tools = process.env.BROWSER_TOOLS;
const { chromium } = require(path.join(tools, "node_modules/playwright-core"));
const axe = fs.readFileSync(path.join(tools, "node_modules/axe-core/axe.min.js"), "utf8");

let browser, context, page, seen;

async function open(c) {
  if (context) await context.close();
  context = await browser.newContext({
    viewport: { width: c.width || 1280, height: c.height || 900 }, colorScheme: c.scheme || "light",
    javaScriptEnabled: c.script !== false, bypassCSP: Boolean(c.bypass),
  });
  page = await context.newPage();
  await page.emulateMedia({ media: c.media || "screen", colorScheme: c.scheme || "light" });
  seen = { requests: [], messages: [], dialogs: [] };
  page.on("request", (r) => seen.requests.push(r.url()));
  page.on("console", (m) => seen.messages.push(m.text()));
  page.on("pageerror", (e) => seen.messages.push(String(e)));
  page.on("dialog", (d) => { seen.dialogs.push(d.message()); d.dismiss(); });
  const began = Date.now();
  await page.goto(c.url, { waitUntil: "load" });
  return { ms: Date.now() - began };
}

const commands = {
  open,
  look: async (c) => {
    await page.setViewportSize({ width: c.width, height: c.height });
    await page.emulateMedia({ colorScheme: c.scheme });
    return true;
  },
  eval: (c) => page.evaluate(c.code),
  // Not waitForFunction(): it evaluates in the page, which the page's policy forbids.
  wait: async (c) => {
    const limit = Date.now() + (c.ms || 60000);
    while (!(await page.evaluate(c.code))) {
      if (Date.now() > limit) throw new Error("it did not come true");
      await new Promise((r) => setTimeout(r, 100));
    }
    return true;
  },
  click: async (c) => { await page.click(c.selector); return true; },
  press: async (c) => { await page.keyboard.press(c.key); return true; },
  axe: async () => {
    await page.evaluate(axe);
    const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    return result.violations.map((v) => ({ id: v.id, nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)) }));
  },
  seen: async () => seen,
  shot: async (c) => { await page.screenshot({ path: c.path, fullPage: Boolean(c.full) }); return true; },
};

(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync"],
  });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const c = JSON.parse(line);
    let answer;
    try {
      answer = { ok: await commands[c.do](c) };
    } catch (e) {
      answer = { error: String(e) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
  await browser.close();
})();
