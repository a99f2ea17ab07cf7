// The map of the model: where the chosen value is, what leads to it, what uses it.
"use strict";

// The columns before the layers, of a layer, and after them; a residual connection leads around each part of a layer.
const EMBED = [["embed"]];
const PARTS = [[["norm"], ["q", "k", "v"], ["heads"], ["wo"], ["add"]], [["mid"], ["mlp"], ["out"]]];
const GUESS = [["logits"], ["probs"], ["loss"]];
const IN_LAYER = new Set(PARTS.flat(2));
const ORDER = [...EMBED, ...PARTS.flat(), ...GUESS];
const MATRIX_BLOCK = { wte: "embed", wpe: "embed", lm_head: "logits", wq: "q", wk: "k", wv: "v", wo: "wo", fc1: "mlp",
                       fc2: "mlp" };
const BLOCK_TEXT = { mid: "norm", mlp: "MLP", add: "+", out: "+" };
const PHONE_TEXT = { embed: "emb", q: "qkv", heads: "head", add: "+", mid: "norm", out: "+", logits: "logit",
                     probs: "prob" };

// Where a value is on the map: {block, layer, head}.
function block_of(at)
{
    const { stage: of, w } = vector_of(state.shown.tape, at);
    return w ? { block: MATRIX_BLOCK[w.short], layer: w.layer, head: null }
             : { block: of.kind.block, layer: of.layer, head: of.head };
}

const order_of = (block) => ORDER.findIndex((names) => names.includes(block));

// What a block is to the chosen value: "on", "lit" (an ancestor), "used", or nothing.
function block_state(block, layer, head = null)
{
    const { at, block: on, used } = state.marks;
    if (!on) {
        return "";
    }
    const is_here = (place) => place.block === block && (place.layer === null || place.layer === layer)
        && (place.head === null || head === null || place.head === head);
    const last = on.layer ?? (order_of(on.block) > order_of("out") ? state.model.n_layer : -1);
    const is_before = order_of(block) < order_of(on.block) && (!IN_LAYER.has(block) || layer <= last);
    const is_lit = at >= state.model.num_params && (is_before || (IN_LAYER.has(block) && layer < last));
    return is_here(on) ? " on" : used.some(is_here) ? " used" : is_lit ? " lit" : "";
}

function draw_block(block, text, { layer = state.choice.layer, head = null, kind = "", label = `to ${text}`, ...more })
{
    return h("button", {
        class: `block${kind}${block_state(block, layer, head)}`, key: `${block} ${head}`, label,
        title: Object.values(KINDS).find((of) => of.block === block)?.says,
        onclick: () => scroll_to_block(block, layer, head), ...more,
    }, text);
}

function draw_head_blocks(layer)
{
    const { n_head } = state.model;
    const some = min(n_head, 8);
    return h("span.group", { key: "heads" }, each(some, (head) => draw_block("heads", String(head), {
        head, kind: ` head-block${is_silent(layer, head) ? " off" : ""}`, style: `--of: ${head_color(head)}`,
        label: `head ${head}${is_silent(layer, head) ? ", silent" : ""}`, ...hovering(head),
    })), some < n_head ? h("span.soft.small", "…") : "");
}

function draw_column(names, layer, is_phone)
{
    const [name] = names;
    const kind = name === "add" || name === "out" ? " add" : "";
    const text = BLOCK_TEXT[name] || name;
    if (is_phone) {
        const short_text = PHONE_TEXT[name] || name;
        return draw_block(name, short_text, { kind, label: `to ${kind ? "the sum: +" : `${short_text}: ${text}`}` });
    }
    return name === "heads" ? draw_head_blocks(layer) : names.length > 1
        ? h("span.group", { key: "qkv" }, names.map((each_name) => draw_block(each_name, each_name, {})))
        : draw_block(name, text, { kind, label: kind ? "to the sum: +" : `to ${text}` });
}

function draw_columns(columns, layer, is_phone)
{
    const { at } = state.marks;
    return columns.map((names) => {
        const is_lit = at >= state.model.num_params && names.some((name) => /on|lit/.test(block_state(name, layer)));
        return [names[0] === "embed" ? "" : h("i", { key: `wire ${names}`, class: is_lit ? "lit" : "" }),
            draw_column(names, layer, is_phone)];
    });
}

// The layers before or after the one that is open, a block each.
function draw_layer_blocks(from, to)
{
    return each(max(0, to - from), (k) => [h("i", { key: `wire ${from + k}` }), h("button.block", {
        key: `layer ${from + k}`, label: `layer ${from + k}`,
        onclick: () => update({ layer: from + k }, { replace: true }) }, `L${from + k}`)]);
}

function draw_map()
{
    const is_phone = !is_wide(48);
    const { choice: { layer }, model: { n_layer } } = state;
    return h(".flow", { id: "flow" }, draw_columns(EMBED, layer, is_phone),
        is_phone ? "" : draw_layer_blocks(0, layer),
        PARTS.map((columns, k) => h(".residual", { key: `part ${k}`, style: `--wires: ${columns.length}` },
            draw_columns(columns, layer, is_phone))),
        is_phone ? "" : draw_layer_blocks(layer + 1, n_layer),
        draw_columns(GUESS, layer, is_phone));
}

function scroll_to_block(block, layer, head)
{
    const wanted = state.shown.tape.stages[state.choice.pos].find((of) => of.kind.block === block
        && (of.layer === null || of.layer === layer) && (head === null || of.head === head));
    draw_all_above(by_id("numbers"));
    state.opened.add(`row ${wanted.name}`);
    draw("numbers");
    const row = by_id("numbers").querySelector(`[data-stage="${CSS.escape(wanted.name)}"]`);
    scroll_into_view(row, "start");
    row.querySelector(".cell").focus({ preventScroll: true });
}
