// Draws the README's picture from a real page, in Chromium: the film of a whole run, and below it a name with its arcs
// and one number in the hand. Usage: node picture.js PAGE.html PICTURE.png; make picture calls it. CHROMIUM may say which.
"use strict";
const fs = require("fs");
const puppeteer = require("puppeteer-core");
const [page, picture] = process.argv.slice(2);
const WIDTH = 1280, VALUE = "x_out.14", WORD = "maria";

// The pieces of the page, moved into one frame: they are shown as they are, only their places differ.
function compose(width)
{
    const take = (selector) => document.querySelector(selector), make = (tag, style, ...content) => {
        const e = document.createElement(tag);
        e.style.cssText = style;
        e.append(...content);
        return e;
    };
    const heading = (text, more) => make("p", "margin: 0 0 6px; max-width: none",
        make("b", "font-size: 20px; font-weight: 650", text),
        make("span", "color: var(--soft); margin-left: 12px; font-size: 15px", more));
    const film = take(".film"), inspector = take("#panel"), title = take("#title").textContent;
    const word = take(".word"), reading = take(".reading");
    for (const selector of ["#panel .close", "#panel .how", "#undo", "#made"]) {
        document.querySelectorAll(selector).forEach((e) => e.remove());
    }
    film.querySelector(".at")?.classList.remove("at");
    inspector.style.cssText = "display: block; position: static; height: auto; max-height: none; overflow: visible; " +
        "border: 0; border-left: 1px solid var(--line); padding: 0 0 0 28px; margin: 0; width: 388px; box-shadow: none";
    film.style.cssText = "overflow: visible; padding: 0; margin: 0 -8px 14px";
    reading.querySelectorAll(".total, .hint, p").forEach((e) => e.remove());
    reading.style.cssText = "padding: 0; margin: 10px 0 0";
    reading.querySelector(".looks").style.cssText = "grid-template-columns: repeat(2, 1fr)";
    const left = make("div", "min-width: 0",
        heading("What it reads", "Arcs: who looks where. Bars: what it expects next."), word, reading);
    const below = make("div", "display: grid; grid-template-columns: minmax(0, 1fr) 388px; gap: 36px; " +
        "padding-top: 18px; border-top: 1px solid var(--line)", left, inspector);
    const all = make("div", `width: ${width}px; padding: 26px 32px; background: var(--paper); box-sizing: border-box`,
        make("h1", "font-size: 28px; line-height: 34px; margin: 0 0 14px", title),
        heading("How it learned", "A row per head; below, what the model writes: from noise to names."), film, below);
    all.id = "picture";
    document.body.className = "open";
    document.body.replaceChildren(all);
}

(async () => {
    const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
    const browser = await puppeteer.launch({ executablePath, headless: true,
        args: ["--no-sandbox", "--disable-gpu"] });
    const tab = await browser.newPage();
    await tab.setViewport({ width: WIDTH, height: 1400, deviceScaleFactor: 1.5 });
    await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    await tab.goto(`file://${fs.realpathSync(page)}#word=${WORD}&pos=4`);
    await tab.waitForFunction(() => window.microgpt);
    await tab.waitForFunction(() => window.microgpt.snapshots.at(-1) === window.microgpt.config.step, { timeout: 120000 });
    await tab.evaluate(() => document.getElementById("learn").scrollIntoView());
    await new Promise((done) => setTimeout(done, 1500));
    await tab.evaluate((value) => { location.hash += `&value=${value}`; }, VALUE);
    await tab.evaluate((value, pos) => {
        const m = window.microgpt, [name, i] = value.split(".");
        m.edit(name, Number(i), pos, m.explain(name, Number(i), pos).value - 1.5);
    }, VALUE, 4);
    await new Promise((done) => setTimeout(done, 1500));
    await tab.evaluate(compose, WIDTH);
    await new Promise((done) => setTimeout(done, 300));
    await (await tab.$("#picture")).screenshot({ path: picture });
    await browser.close();
})().catch((error) => {
    console.error(error.message);
    process.exit(1);
});
