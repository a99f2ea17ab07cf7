// What a page must show, checked within it. The shell test appends this to a copy of the page, with what the program
// says of the same model in `expected`: figures of heads, eval, a resumed run, the reference gradients.
"use strict";

const expected = JSON.parse(document.getElementById("expected").textContent);
const lines = [], violations = [];
const page = window.microgpt;
const near_enough = (a, b) => Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b));
document.addEventListener("securitypolicyviolation", (e) => violations.push(`${e.violatedDirective} ${e.blockedURI}`));

function check(what, good, wanted, seen)
{
    lines.push(good ? `ok - ${expected.name}: ${what}` : `not ok - ${expected.name}: ${what}: expected ${wanted}, saw ${seen}`);
}
const same = (what, wanted, seen) => check(what, wanted === seen, JSON.stringify(wanted), JSON.stringify(seen));

// Two lists of numbers; one line for all of them, which tells the first that is off.
function same_numbers(what, wanted, seen)
{
    const off = wanted.findIndex((x, i) => !near_enough(seen[i], x));
    check(`${what} (${wanted.length} figures)`, wanted.length === seen.length && wanted.length > 0 && off < 0,
        `${wanted.length} figures, number ${off} ${wanted[off]}`, `${seen.length}, and ${seen[off]}`);
}

function fails(what, action)
{
    try {
        action();
        check(what, false, "an error", "none");
    } catch (e) {
        check(what, true);
    }
}

const rows_of = (tsv) => tsv.trim().split("\n").slice(1).map((row) => row.split("\t").map(Number));

/* The figures of the program. */
function check_figures()
{
    for (const { word, heads, loss, views, cut } of expected.words) {
        const seen = page.forward(word), rows = rows_of(heads || "");
        if (heads) {
            same_numbers(`${word}: weights as in heads --tsv`, rows.map((r) => r[4]), rows.map(([li, h, query, key]) => seen.weights[li][h][query][key]));
        }
        same_numbers(`${word}: loss as in eval`, [loss], [seen.loss]);
        same(`${word}: a row a position`, cut || Array.from(word).length + 1, seen.logits.length);
        same_numbers(`${word}: losses of the true ones`, seen.losses, seen.losses.map((_, pos) => -Math.log(seen.probs[pos][seen.tokens[pos + 1]])));
        for (const row of rows_of(views)) {
            same_numbers(`${word}: loss without layer ${row[0]} head ${row[1]}`, [row[8]], [page.forward(word, { silent: [[row[0], row[1]]] }).loss]);
        }
    }
    fails("an unknown character throws", () => page.forward("\u{1f5ff}"));
    const all = [];
    for (let li = 0; li < page.config.n_layer; li++) {
        for (let h = 0; h < page.config.n_head; h++) {
            all.push([li, h]);
        }
    }
    const { word } = expected.words[0];
    check("all heads silent: another loss", expected.config.step === 0 || page.forward(word, { silent: all }).loss !== page.forward(word).loss, "a difference", "none");
    for (const [key, value] of Object.entries(expected.config)) {
        same(`config.${key}`, value, page.config[key]);
    }
}

function check_gradients()
{
    for (const { word, grads } of expected.gradients || []) {
        same_numbers(`${word}: the reference gradients`, grads, Object.values(page.backward(word).grads).flat(2));
    }
}

// The losses of a resumed run, which the page must have too when it takes the same steps; then the model of the file.
function check_steps()
{
    for (const { word, losses } of expected.steps || []) {
        const before = page.forward(word).loss;
        same_numbers(`${word}: ${losses.length} steps as a resumed run takes them`, losses, losses.map(() => page.step(word)));
        page.reset();
        same("reset brings the file's model back", before, page.forward(word).loss);
    }
}

// Every value of every stage, and what is between: what its users add is its gradient, and it is what its operands make.
function check_explanations()
{
    let values = 0, wrong = 0, first = "";
    const work = { add: (o) => o[0].value + o[1].value, mul: (o) => o[0].value * o[1].value, log: (o) => Math.log(o[0].value), exp: (o) => Math.exp(o[0].value),
                   relu: (o) => Math.max(0, o[0].value), copy: (o) => o[0].value, sum: (o) => o.reduce((s, x) => s + x.value, 0),
                   dot: (o) => o.reduce((s, x, i) => s + (i % 2 ? 0 : x.value * o[i + 1].value), 0), pow: null, constant: null, parameter: null };
    const names = ["emb", "emb_norm", "x", "x_norm", "q", "k", "q.products", "head0.attn_logits", "head0.attn_weights",
                   "head0.attn_weights.exps", "head0.head_out", "x_attn", "x_wo", "x_mid", "mid_norm.scale", "fc1", "act", "fc2",
                   "x_out", "logits", "probs", "logprob", "loss_t", "losses", "loss", "tok_emb", "pos_emb", "layer0.attn_wo"];
    const n = Array.from(choice.word).length + 1;
    for (const name of names.filter((each) => shown.tape.atomic || !each.endsWith("products"))) {
        for (const pos of [0, n - 1]) {
            const at = name === "head0.attn_weights" || name === "head0.attn_logits" ? pos : 0;
            const { value, grad, op, operands, users } = page.explain(name, at, pos);
            const added = users.reduce((sum, u) => sum + u.adds, 0), made = work[op] ? work[op](operands) : value;
            const bad = !near_enough(added, grad) || !near_enough(made, value) || operands.some((o) => !Number.isFinite(o.derivative));
            values++;
            wrong += bad;
            first = bad && !first ? `${name} at ${pos}: ${added} for ${grad}, ${made} for ${value}` : first;
        }
    }
    check(`${values} values: users add up to the gradient, operands make the value`, wrong === 0, "no exception", `${wrong}: ${first}`);
    fails("no such value", () => page.explain("logits", 1e6, 0));
    fails("no such name", () => page.explain("nothing", 0, 0));
}

/* The page itself, used as people use it. */
const field = document.getElementById("word"), inspector = document.getElementById("inspector");
const press = (e, key) => e.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const address = () => new URLSearchParams(location.hash.slice(1));
const mean_shown = () => document.querySelector(".mean .number").textContent;
const later = (ms) => new Promise((done) => setTimeout(done, ms));

function type(word)
{
    field.value = word;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}

async function check_use()
{
    const { word } = expected.words[0], seen = page.forward(word), n = seen.logits.length;
    const is_alone = window.parent === window, empty = () => [...document.querySelectorAll("section")].filter((e) => !e.lastElementChild.firstChild);
    for (let i = 0; i < 20 && empty().length; i++) {
        await later(1000);
    }
    same("after a moment all sections are there", "", empty().map((e) => e.id).join());
    observer.disconnect();                                           // as if the screen were long
    for (const id of Object.keys(views)) {
        near.add(id);
        draw(id);
    }
    type(word);
    same("typing: the address has the word", word, address().get("word"));
    same("typing: a tile a position", n, document.querySelectorAll(".tile .char").length);
    same("typing: the mean loss", seen.loss.toFixed(4), mean_shown());
    same("typing: the true one is marked at every position", n, document.querySelectorAll(".bar-of.true").length);
    same("typing: a map a head", page.config.n_layer * page.config.n_head, document.querySelectorAll(".small-map").length);
    type(`${word}\u{1f5ff}`);
    check("an unknown character: said, and the word stays", /does not know/.test(document.getElementById("alert").textContent) && address().get("word") === word,
        "a message", document.getElementById("alert").textContent);
    type(word);

    const chars = [...document.querySelectorAll(".tile .char")], last = Math.min(2, n - 1);
    chars[last].focus();
    chars[last].click();
    same("a click on a character: the position", String(last), address().get("pos"));
    press(document.querySelector(".tile [aria-pressed=true]"), "ArrowLeft");
    same("an arrow key: the position before", String(Math.max(0, last - 1)), address().get("pos"));
    press(document.activeElement, "ArrowRight");
    same("and back: the focus went with it", String(last), address().get("pos"));

    document.querySelector('[data-go="logits.0"]').click();
    same("a click on a number: the address", "logits.0", address().get("value"));
    check("the inspector shows it", inspector.textContent.includes(short(page.explain("logits", 0, last).value)), short(page.explain("logits", 0, last).value),
        inspector.textContent.slice(0, 200));
    const steps = [];
    for (let i = 0; i < 12 && !/^Made by (mul|dot)/m.test([...inspector.querySelectorAll("h3")].map((e) => e.textContent).join("\n")); i++) {
        inspector.querySelector("td .link").click();
        steps.push(address().get("value"));
    }
    check("click by click down to a multiplication", steps.length > 0 || !shown.tape.atomic, "a way", "none");
    if (is_alone) {                                                  // frames share their history
        const deepest = address().get("value"), before = steps.at(-2) ?? "logits.0";
        history.back();
        await later(500);
        same("back goes back", before, address().get("value"));
        history.forward();
        await later(500);
        same("and forward, forward", deepest, address().get("value"));
    }
    press(document.body, "Escape");
    same("Escape closes the inspector", null, address().get("value"));

    const toggle = document.querySelector(".switch input");
    toggle.click();
    same("a head silenced: the loss on the page", page.forward(word, { silent: [[0, 0]] }).loss.toFixed(4), mean_shown());
    document.querySelector(".switch input").click();
    same("and heard again", seen.loss.toFixed(4), mean_shown());

    document.querySelector("#learning .action").click();
    const learned = page.forward(word).loss;
    check("one step on the word lowers its loss", learned < seen.loss, `less than ${seen.loss}`, learned);
    same("and the page shows it", learned.toFixed(4), mean_shown());
    [...document.querySelectorAll("#learning .quiet")].at(-1).click();
    same("reset", seen.loss.toFixed(4), mean_shown());

    const name = document.querySelector(".names button");
    document.querySelectorAll("section").forEach((section) => draw(section.id));
    same("ten names", 10, document.querySelectorAll(".names button").length);
    name.click();
    same("a click on one: it is the word", Array.from(address().get("word")).map(visible).join("") || "(nothing)", name.textContent);
    type(word);

    const empty_buttons = [...document.querySelectorAll("button")].filter((b) => !b.textContent.trim() && !b.getAttribute("aria-label"));
    same("every button has a label", 0, empty_buttons.length);
    const stops = [...document.querySelectorAll("[data-row]")].filter((row) => row.querySelector(row.dataset.row) &&
        [...row.querySelectorAll(row.dataset.row)].filter((e) => e.tabIndex === 0).length !== 1);
    same("one tab stop a row", 0, stops.length);
}

function check_peace()
{
    same("no request", 0, performance.getEntriesByType("resource").length);
    same("no violation of the policy", "", violations.join(", "));
    same("nothing of the model has run", undefined, window.pwned);
    same("nothing of the model is markup", 0, document.querySelectorAll("main img, main script, aside img, aside script, body > img, iframe, object").length);
    same("nothing is wider than the screen", true, document.documentElement.scrollWidth <= window.innerWidth);
}

// How long it takes, in real time. Others may be at work on this machine, so a chain of multiplications that takes 15 ms
// on an idle one is timed beside it, and the time is counted as if it had taken that.
function on_an_idle_machine(milliseconds)
{
    const start = performance.now();
    let x = 1;
    for (let i = 0; i < 5e6; i++) {
        x = x * 0.9999999 + 1e-9;
    }
    const busy = Math.max(1, (performance.now() - start) / 15 * (x > 0));
    return milliseconds / busy;
}

function check_speed()
{
    const times = [], drawn = on_an_idle_machine(expected.drawn);
    check(`from the first byte to the first drawing: ${drawn.toFixed(0)} ms`, drawn < 300, "less than 300 ms", expected.drawn);
    for (let i = 0; i < 8; i++) {
        type("mariah");
        const start = performance.now();
        type("mariahcarolina");
        document.body.getBoundingClientRect();                       // the layout, too
        times.push(on_an_idle_machine(performance.now() - start));
    }
    const time = Math.min(...times);
    check(`a keystroke: ${time.toFixed(1)} ms`, time < 50, "less than 50 ms", times.join(" "));
}

function report()
{
    if (window.parent !== window) {
        window.parent.postMessage(lines.join("\n"), "*");
    } else {
        const pre = document.createElement("pre");
        pre.id = "report";
        pre.textContent = `\n${lines.join("\n")}\n`;
        document.body.append(pre);
    }
}

(async () => {
    try {
        if (expected.speed) {
            expected.drawn = performance.now();
            check_speed();
            report();
            return;
        }
        check_figures();
        check_gradients();
        check_steps();
        type(expected.words[0].word);
        check_explanations();
        if (expected.use) {
            await check_use();
        }
        check_peace();
    } catch (e) {
        check("the checks", false, "no error", e.stack);
    }
    report();
})();
