// What a page must show, checked within it. The shell test appends this to a copy of the page, with what the program
// says of the same model in `expected`: figures of heads, eval and a resumed run, the reference gradients.
"use strict";

const expected = JSON.parse(document.getElementById("expected").textContent);
const lines = [], violations = [];
const page = window.microgpt;
document.addEventListener("securitypolicyviolation", (e) => violations.push(`${e.violatedDirective} ${e.blockedURI}`));

function check(what, good, wanted, seen)
{
    const about = `${expected.name}: ${what}`;
    lines.push(good ? `ok - ${about}` : `not ok - ${about}: expected ${wanted}, saw ${seen}`);
}

const same = (what, wanted, seen) => check(what, wanted === seen, JSON.stringify(wanted), JSON.stringify(seen));
const near_enough = (a, b) => Math.abs(a - b) <= 1e-12 * Math.max(1, Math.abs(b));

// Two lists of numbers; one line for all of them, which tells the first that is off.
function same_numbers(what, wanted, seen)
{
    const off = wanted.findIndex((x, i) => !near_enough(seen[i], x));
    check(`${what} (${wanted.length} figures)`, wanted.length === seen.length && wanted.length > 0 && off < 0,
        `${wanted.length} figures, number ${off} ${wanted[off]}`, `${seen.length}, and ${seen[off]}`);
}

function fails(what, action)
{
    let error = null;
    try {
        action();
    } catch (e) {
        error = e;
    }
    check(what, error !== null, "an error", "none");
}

const rows_of = (tsv) => tsv.trim().split("\n").slice(1).map((row) => row.split("\t").map(Number));

/* The figures of the program. */
function check_word({ word, heads, loss, views: without_heads, cut })
{
    const seen = page.forward(word), rows = rows_of(heads || "");
    if (heads) {
        same_numbers(`${word}: weights as in heads --tsv`, rows.map((r) => r[4]),
            rows.map(([li, h, query, key]) => seen.weights[li][h][query][key]));
    }
    same_numbers(`${word}: loss as in eval`, [loss], [seen.loss]);
    same(`${word}: a row a position`, cut || Array.from(word).length + 1, seen.logits.length);
    same_numbers(`${word}: losses of the true ones`, seen.losses,
        seen.losses.map((_, pos) => -Math.log(seen.probs[pos][seen.tokens[pos + 1]])));
    for (const row of rows_of(without_heads)) {
        const [li, h] = row, quiet = page.forward(word, { silent: [[li, h]] });
        same_numbers(`${word}: loss without layer ${li} head ${h}, as in heads --tsv`, [row[8]], [quiet.loss]);
    }
}

function check_figures()
{
    expected.words.forEach(check_word);
    fails("an unknown character throws", () => page.forward("\u{1f5ff}"));
    for (const [key, value] of Object.entries(expected.config)) {
        same(`config.${key}`, value, page.config[key]);
    }
    for (const { word, grads } of expected.gradients || []) {
        same_numbers(`${word}: the reference gradients`, grads, Object.values(page.backward(word).grads).flat(2));
    }
}

// The losses of a resumed run, which the page must have too when it takes the same steps; then the model of the file.
function check_steps()
{
    for (const { word, losses } of expected.steps || []) {
        const before = page.forward(word).loss, seen = losses.map(() => page.step(word));
        same_numbers(`${word}: ${losses.length} steps as a resumed run takes them`, losses, seen);
        page.reset();
        same("reset brings the file's model back", before, page.forward(word).loss);
    }
}

// Values of every stage, and between: what its users add is its gradient, and it is what its operands make.
const work = {
    add: (o) => o[0].value + o[1].value, mul: (o) => o[0].value * o[1].value, copy: (o) => o[0].value,
    log: (o) => Math.log(o[0].value), exp: (o) => Math.exp(o[0].value), relu: (o) => Math.max(0, o[0].value),
    sum: (o) => o.reduce((sum, x) => sum + x.value, 0),
    dot: (o) => o.reduce((sum, x, i) => sum + (i % 2 ? 0 : x.value * o[i + 1].value), 0),
};
const names = [
    "tok_emb", "pos_emb", "emb", "emb_norm", "x", "x_norm", "q", "k", "v", "q.products", "head0.attn_logits",
    "head0.attn_weights", "head0.attn_weights.exps", "head0.head_out", "x_attn", "x_wo", "x_mid", "mid_norm.scale",
    "fc1", "act", "fc2", "x_out", "logits", "probs", "logprob", "loss_t", "losses", "loss", "layer0.attn_wo",
];

function check_explanations()
{
    const n = Array.from(choice.word).length + 1, wrong = [];
    let values = 0;
    for (const name of names.filter((each) => shown.tape.atomic || !each.endsWith("products"))) {
        for (const pos of [0, n - 1]) {
            const i = /attn_(logits|weights)$/.test(name) ? pos : 0;
            const { value, grad, op, operands, users } = page.explain(name, i, pos);
            const added = users.reduce((sum, u) => sum + u.adds, 0), made = work[op] ? work[op](operands) : value;
            const good = operands.every((o) => Number.isFinite(o.derivative) && o.name) && users.every((u) => u.name);
            if (!near_enough(added, grad) || !near_enough(made, value) || !good) {
                wrong.push(`${name} at ${pos}: ${added} for ${grad}, ${made} for ${value}`);
            }
            values++;
        }
    }
    same(`${values} values: users add up to the gradient, operands make the value`, "", wrong.join("; "));
    fails("no such element", () => page.explain("logits", 1e6, 0));
    fails("no such name", () => page.explain("nothing", 0, 0));
}

/* The page itself, used as people use it. */
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const press = (e, key) => e.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const address = (name) => new URLSearchParams(location.hash.slice(1)).get(name);
const mean_shown = () => one(".mean .number").textContent;
const later = (ms) => new Promise((done) => setTimeout(done, ms));
const is_alone = window.parent === window;         // frames share their history, and are not scrolled

function type(word)
{
    by_id("word").value = word;
    by_id("word").dispatchEvent(new InputEvent("input", { bubbles: true }));
}

async function check_drawing()
{
    const empty = () => all("section").filter((e) => !e.lastElementChild.firstChild);
    for (let i = 0; i < 20 && empty().length; i++) {
        await later(1000);
    }
    same("after a moment all sections are there", "", empty().map((e) => e.id).join());
    observer.disconnect();                                           // from here on, as if the screen were long
    for (const id of Object.keys(views)) {
        near.add(id);
        draw(id);
    }
}

function check_typing(word, seen)
{
    const n = seen.logits.length;
    type(word);
    same("typing: the address has the word", word, address("word"));
    same("typing: a tile a position", n, all(".tile .char").length);
    same("typing: the mean loss", seen.loss.toFixed(4), mean_shown());
    same("typing: the true one is marked at every position", n, all(".bar-of.true").length);
    same("typing: a map a head", page.config.n_layer * page.config.n_head, all(".small-map").length);
    type(`${word}\u{1f5ff}`);
    same("an unknown character: it is said", true, /does not know/.test(by_id("alert").textContent));
    same("and the word stays", word, address("word"));
    type(word);
}

function check_position(n)
{
    const last = Math.min(2, n - 1);
    all(".tile .char")[last].focus();
    all(".tile .char")[last].click();
    same("a click on a character: the position", String(last), address("pos"));
    press(document.activeElement, "ArrowLeft");
    same("an arrow key: the position before", String(Math.max(0, last - 1)), address("pos"));
    press(document.activeElement, "ArrowRight");
    same("and back: the focus went with it", String(last), address("pos"));
    document.activeElement.blur();
    press(document.body, "ArrowLeft");
    press(document.body, "ArrowRight");
    same("the same from anywhere", String(last), address("pos"));
}

async function check_inspector()
{
    const inspector = by_id("inspector"), made_by = () => /Made by (\w+)/.exec(inspector.textContent)[1];
    one('[data-go="logits.0"]').click();
    same("a click on a number: the address", "logits.0", address("value"));
    same("the cell is marked", 1, all(".cell.chosen").length);
    const { value, grad } = page.explain("logits", 0, choice.pos);
    same("the inspector has its value", true, inspector.textContent.includes(short(value)));
    same("and its gradient", true, inspector.textContent.includes(short(grad)));
    const way = ["logits.0"];
    for (let i = 0; i < 12 && !/mul|dot/.test(made_by()); i++) {
        inspector.querySelector("td .link").click();
        way.push(address("value"));
    }
    check("click by click down to a multiplication", /mul|dot/.test(made_by()), "mul", `${made_by()} after ${way}`);
    if (is_alone) {
        history.back();
        await later(500);
        same("back goes back", way.at(-2), address("value"));
        history.forward();
        await later(500);
        same("and forward, forward", way.at(-1), address("value"));
    }
    go({ value: "layer0.attn_wq.0" });
    inspector.querySelector(".picture").focus();
    press(document.activeElement, "ArrowDown");
    same("an arrow key in a matrix", `layer0.attn_wq.${page.config.n_embd}`, address("value") || "");
    same("what Adam would do", true, inspector.textContent.includes("learning rate"));
    press(document.body, "Escape");
    same("Escape closes the inspector", null, address("value"));
}

function check_change(word, seen)
{
    one(".switch input").click();
    same("a head silenced: the loss", page.forward(word, { silent: [[0, 0]] }).loss.toFixed(4), mean_shown());
    one(".switch input").click();
    same("and heard again", seen.loss.toFixed(4), mean_shown());
    one("#learning .action").click();
    const learned = page.forward(word).loss;
    check("one step on the word lowers its loss", learned < seen.loss, `less than ${seen.loss}`, learned);
    same("and the page shows it", learned.toFixed(4), mean_shown());
    all("#learning .quiet").at(-1).click();
    same("reset", seen.loss.toFixed(4), mean_shown());
}

function check_samples(word)
{
    same("ten names", 10, all(".names button").length);
    const [name] = all(".names button");
    name.click();
    same("a click on one: it is the word", visible_word(address("word")) || "(nothing)", name.textContent);
    type(word);
}

// Addresses may come from anyone.
async function check_addresses(word)
{
    for (const hash of ["#word=%3Cimg%20src%3Dx%20onerror%3Dpwned%3D1%3E&pos=1", "#pos=-7&value=__proto__.0", "#%00%ff",
                        "#pos=1e9", "#value=logits.9999999", "#value=constructor.prototype.0&pos=NaN", "#value=."]) {
        history.replaceState(null, "", hash);
        window.dispatchEvent(new PopStateEvent("popstate"));
        same(`the address ${hash}: the word stays`, word, choice.word);
        check("at a position that there is", choice.pos >= 0 && choice.pos < shown.n, `0 to ${shown.n}`, choice.pos);
    }
    type("");
    type(word);
    same("and all is well again", word, address("word"));
}

async function check_use()
{
    const { word } = expected.words[0], seen = page.forward(word);
    await check_drawing();
    check_typing(word, seen);
    check_position(seen.logits.length);
    await check_inspector();
    check_change(word, seen);
    check_samples(word);
    await check_addresses(word);
    same("every button has a label", 0,
        all("button").filter((b) => !b.textContent.trim() && !b.getAttribute("aria-label")).length);
    const items = (row) => [...row.querySelectorAll(row.dataset.row)];
    same("one tab stop a row", 0, all("[data-row]").filter((row) => items(row).length &&
        items(row).filter((e) => e.tabIndex === 0).length !== 1).length);
}

function check_peace()
{
    same("no request", 0, performance.getEntriesByType("resource").length);
    same("no violation of the policy", "", violations.join(", "));
    same("nothing of the model has run", undefined, window.pwned);
    same("nothing of the model is markup", 0, all("main script, aside script, img, iframe").length);
    same("nothing is wider than the screen", true, document.documentElement.scrollWidth <= window.innerWidth);
}

// How long it takes, in real time. Others may be at work on this machine, so a chain of multiplications that takes
// 10 ms on an idle one is timed beside it, and the time is counted as if it had taken that.
function on_an_idle_machine(milliseconds)
{
    const start = performance.now();
    let x = 1;
    for (let i = 0; i < 5e6; i++) {
        x = x * 0.9999999 + 1e-9;
    }
    return milliseconds / Math.max(1, (performance.now() - start) / 10 * (x > 0));
}

function check_speed(drawn)
{
    const times = [], first = on_an_idle_machine(drawn);
    check(`from the first byte to the first drawing: ${first.toFixed(0)} ms`, first < 300, "less than 300 ms", drawn);
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
    if (!is_alone) {
        window.parent.postMessage(lines.join("\n"), "*");
        return;
    }
    const pre = document.createElement("pre");
    pre.id = "report";
    pre.textContent = `\n${lines.join("\n")}\n`;
    document.body.append(pre);
}

(async () => {
    try {
        if (expected.speed) {
            check_speed(performance.now());
        } else {
            check_figures();
            check_steps();
            type(expected.words[0].word);
            check_explanations();
            if (expected.use) {
                await check_use();
            }
            check_peace();
        }
    } catch (e) {
        check("the checks", false, "no error", e.stack);
    }
    report();
})();
