// Figures, characters and colors, as people read them.
"use strict";

// Figures: four digits, all seventeen, two decimals for a cell, a share in percent.
const minus = (text) => text.split("-").join("−");
const count = (n) => n.toLocaleString("en-US");
const all_digits = (x) => minus(x.toPrecision(17));
const percent = (p) => p < 0.0005 ? "<0.1%" : `${(100 * p).toFixed(p >= 0.0995 ? 0 : 1)}%`;
const sign_of = (text) => Number(text) === 0 ? text.replace("-", "") : minus(text.startsWith("-") ? text : `+${text}`);
const signed = (x, digits = 3) => sign_of(x.toFixed(digits));
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

function short(x)
{
    const size = abs(x);
    return minus(x === 0 ? "0" : !Number.isFinite(x) ? String(x) : size < 1e-4 || size >= 1e5 ? x.toExponential(3)
        : x.toPrecision(4));
}

function tiny(x)
{
    const size = abs(x);
    return minus(size >= 1e4 ? x.toExponential(0) : x.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0));
}

// A character as something that can be seen and that turns no text around it.
function visible(c)
{
    if (/^[\p{L}\p{N}\p{P}\p{S}]$/u.test(c)) {
        return c;
    }
    const code = c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return c === " " ? "␣" : /^\p{M}$/u.test(c) ? `◌${c}` : `U+${code}`;
}

const visible_word = (word) => Array.from(word).map(visible).join("");
const isolated = (text) => `\u2068${text}\u2069`;
const token_text = (id) => id === state.model.BOS ? "end" : visible(state.model.uchars[id]);
const seen_text = (pos) => pos === 0 ? "start" : visible(state.model.uchars[state.shown.tokens[pos]]);
const before_text = (pos) => state.shown.tokens.slice(1, pos + 1).map((id) => visible(state.model.uchars[id])).join("");

const glyph = (text) => h(Array.from(text).length > 2 ? "small" : "bdi", text);

// What a document is called, from the name of its file: cities.txt has cities; otherwise they are lines.
function noun(n)
{
    const name = (state.file.data || "").split(".")[0].toLowerCase();
    const many = /^[a-z]{3,}s$/.test(name) && name !== "documents" ? name : name.startsWith("names")
        ? "names" : "lines";
    return n !== 1 ? many : many.endsWith("ies") ? `${many.slice(0, -3)}y` : many.slice(0, -1);
}

const plural_noun = (n) => `${count(n)} ${noun(n)}`;

// Colors: from nothing to full, by a strength from -1 to 1, which is relative to the largest of the row.
const largest = (numbers) => numbers.reduce((most, x) => max(most, abs(x)), 0) || 1;

const THEME = ["paper", "raised", "line", "ink", "soft", "accent", "negative", "positive", "share", "head0", "head1",
               "head2", "head3", "rule"];

function read_theme()
{
    const style = getComputedStyle(document.documentElement);
    state.theme = Object.fromEntries(THEME.map((name) => {
        const hex = style.getPropertyValue(`--${name}`).trim();
        return [name, [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16))];
    }));
}

function mixed(strength, up = "positive")
{
    const full = strength < 0 ? state.theme.negative : state.theme[up];
    const part = min(1, abs(strength)) || 0;
    return state.theme.raised.map((c, k) => round(c + (full[k] - c) * part));
}

const signed_color = (x) => `var(--${x < 0 ? "negative" : "positive"})`;
const css_color = (rgb) => `rgb(${rgb.join(" ")})`;

// A picture, a dot per number: strength(row, col) is null where there is nothing.
function picture(rows, cols, strength, up, painted, attributes = {})
{
    const paint = (canvas) => {
        const context = canvas.getContext("2d");
        const image = context.createImageData(cols, rows);
        for (let i = 0; i < rows * cols; i++) {
            const strong = strength(floor(i / cols), i % cols);
            image.data.set([...(strong === null ? state.theme.raised : mixed(strong, up)), 255], 4 * i);
        }
        canvas.width = cols;
        canvas.height = rows;
        context.putImageData(image, 0, 0);
    };
    return h("canvas", { ...attributes, width: cols, height: rows, painted: `${painted} ${state.theme.raised}`,
        paint });
}

const map_picture = (weights, painted, attributes) => picture(weights.length, weights.length,
    (row, col) => col <= row ? weights[row][col] : null, "share", painted, { role: "img", ...attributes });

const head_color = (head) => state.model.n_head <= 4 ? `var(--head${head})`
    : head === head_in_focus() ? "var(--head1)" : RULE;
const head_tag = (head) => h("span.tag", { style: `--of: ${head_color(head)}` }, String(head));

// A value's name for people: q[3], attn_wq[3][5], "q[3], product 5"; then what it is about, and the position if that is
// another than the chosen one. For the graph, briefly.
function name_for_people(at, brief = false)
{
    const vector = vector_of(state.shown.tape, at);
    const { stage: of, part, cols } = vector;
    if (vector.w) {
        return name_of_parameter(at, vector.w, brief);
    }
    const k = at - (part ? vector.at : of.at);
    const n = part ? vector.n : of.n;
    const index = n > 1 ? `[${cols ? floor(k / cols) : k}]` : "";
    const name = brief ? of.kind.name : of.name;
    const about = part || n === 1 ? "" : of.kind.labels === "tokens" ? ` ${quoted(k)}`
        : of.kind.labels === "positions" ? ` ${isolated(seen_text(k))}` : "";
    const own = cols ? `product ${k % cols}` : part ? `${part}${index}` : "";
    const what = own ? (brief ? own : `${name}${cols ? index : ""}, ${own}`)
        : about && brief ? `${name}${about}` : `${name}${index}${about}`;
    const is_here = of.pos === state.choice.pos || of.kind.of_word;
    return what + (is_here || brief ? "" : ` at ${of.pos} ${isolated(seen_text(of.pos))}`);
}

function name_of_parameter(at, w, brief)
{
    const row = floor((at - w.at) / w.cols);
    const col = (at - w.at) % w.cols;
    const layer = state.model.n_layer > 1 && w.layer !== null && !brief ? `layer${w.layer}.` : "";
    const about = w.rows === state.model.vocab_size && w.name !== "wpe" && !brief ? ` ${quoted(row)}` : "";
    return `${layer}${brief ? w.short : w.own}[${row}][${col}]${about}`;
}

const quoted = (id) => id === state.model.BOS ? "end" : `“${isolated(visible(state.model.uchars[id]))}”`;

const link_to = (at, text = name_for_people(at)) => link(text, () => go_to_place(at));

function go_to_place(at)
{
    const { name, i, pos } = address_of(state.shown.tape, at);
    const vector = vector_of(state.shown.tape, at);
    const stays = pos === null || (vector.stage && vector.stage.kind.of_word);
    update({ value: `${name}.${i}`, pos: stays ? state.choice.pos : pos });
}

// A position for people: "the start", "y", "the second a".
function letter_at(pos)
{
    const text = seen_text(pos);
    const { tokens } = state.shown;
    const same = each(pos + 1, (k) => k).filter((k) => k > 0 && tokens[k] === tokens[pos]);
    const all = tokens.slice(1, state.shown.n).filter((id) => id === tokens[pos]).length;
    const ordinal = ["first", "second", "third", "fourth", "fifth"][same.length - 1] || `${same.length}th`;
    return pos === 0 ? "the start" : all > 1 ? `the ${ordinal} ${isolated(text)}` : isolated(text);
}
