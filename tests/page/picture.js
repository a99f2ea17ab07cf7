// Draws the README's picture from a real page, in Chromium: the film of a whole run, and below it a name with its arcs
// and one number in the hand. Usage: node picture.js PAGE.html PICTURE.png; make picture calls it. CHROMIUM may say which.
"use strict";
const fs = require("fs");
const zlib = require("zlib");
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
    for (const selector of ["#panel .close", "#panel .how", "#panel .undo", "#made"]) {
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

// The pixels of a picture, which the browser decodes: four bytes each, in base64.
async function pixels_of(shot)
{
    const bytes = Uint8Array.from(atob(shot), (c) => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes]));
    const { width, height } = image, context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, width, height), parts = [];
    for (let i = 0; i < data.length; i += 30000) {
        parts.push(btoa(String.fromCharCode(...data.subarray(i, i + 30000))));
    }
    return { width, height, data: parts.join("") };
}

// A PNG of 256 colors, the most frequent ones; all others become the nearest of them.
function png(width, height, pixels)
{
    const count = new Map(), color_at = (i) => pixels.readUIntBE(4 * i, 3);
    for (let i = 0; i < width * height; i++) {
        count.set(color_at(i), (count.get(color_at(i)) || 0) + 1);
    }
    const parts = (color) => [color >> 16, color >> 8 & 255, color & 255];
    const palette = [...count.keys()].sort((a, b) => count.get(b) - count.get(a)).slice(0, 256).map(parts);
    const index = new Map([...count.keys()].map((color) => {
        const off = palette.map((p) => p.reduce((sum, x, k) => sum + (x - parts(color)[k]) ** 2, 0));
        return [color, off.indexOf(Math.min(...off))];
    }));
    const rows = Buffer.alloc((width + 1) * height);
    for (let i = 0; i < width * height; i++) {
        rows[i + 1 + Math.floor(i / width)] = index.get(color_at(i));
    }
    const chunk = (type, content) => {
        const body = Buffer.concat([Buffer.from(type), content]), ends = Buffer.alloc(8);
        ends.writeUInt32BE(content.length);
        ends.writeUInt32BE(crc(body), 4);
        return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
    };
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width);
    header.writeUInt32BE(height, 4);
    header.set([8, 3], 8);
    return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header),
        chunk("PLTE", Buffer.from(palette.flat())), chunk("IDAT", zlib.deflateSync(rows, { level: 9 })),
        chunk("IEND", Buffer.alloc(0))]);
}

function crc(bytes)
{
    let c = -1;
    for (const byte of bytes) {
        c ^= byte;
        for (let k = 0; k < 8; k++) {
            c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
        }
    }
    return ~c >>> 0;
}

(async () => {
    const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
    const browser = await puppeteer.launch({ executablePath, headless: true,
        args: ["--no-sandbox", "--disable-gpu"] });
    const tab = await browser.newPage();
    await tab.setViewport({ width: WIDTH, height: 1400, deviceScaleFactor: 2 });
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
    const shot = await (await tab.$("#picture")).screenshot({ encoding: "base64" });
    const { width, height, data } = await tab.evaluate(pixels_of, shot);
    fs.writeFileSync(picture, png(width, height, Buffer.from(data, "base64")));
    await browser.close();
})().catch((error) => {
    console.error(error.message);
    process.exit(1);
});
