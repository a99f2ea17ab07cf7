// The map of the model: where the chosen value is, what leads to it, what uses it.
"use strict";

const BLOCKS = [["embed"], ["norm"], ["q", "k", "v"], ["heads"], ["wo"], ["add"], ["mid"], ["mlp"], ["out"], ["logits"],
                ["probs"], ["loss"]];
const BLOCK_TEXT = { mid: "norm", mlp: "MLP", add: "+", out: "+" };
const MATRIX_BLOCK = { wte: "embed", wpe: "embed", lm_head: "logits", wq: "q", wk: "k", wv: "v", wo: "wo", fc1: "mlp",
                       fc2: "mlp" };
// on a phone
const PHONE_TEXT = { embed: "emb", q: "qkv", heads: "head", add: "+", mid: "norm", mlp: "mlp", out: "+",
    logits: "logit",
                     probs: "prob" };
const IN_LAYER = new Set(BLOCKS.slice(1, 9).flat());

// Where a value is on the map: {block, layer, head}.
function block_of(at)
{
    const { stage: of, w } = vector_of(state.shown.tape, at);
    return w ? { block: MATRIX_BLOCK[w.short], layer: w.layer, head: null }
             : { block: of.kind.block, layer: of.layer, head: of.head };
}

const order_of = (block) => BLOCKS.findIndex((names) => names.includes(block));

// What a block is to the chosen value: "on", "lit" (an ancestor), "used", or nothing.
function block_state(block, layer, head)
{
    if (!state.marks.block) {
        return "";
    }
    const { at, block: on, used } = state.marks;
    const first = on.layer ?? (order_of(on.block) > 8 ? state.model.n_layer : -1);
    if (on.block === block && (on.layer === null || on.layer === layer) && (on.head === null || head === on.head)) {
        return " on";
    }
    if (used.some((u) => u.block === block && (u.layer === null || u.layer === layer)
        && (u.head === null || u.head === head))) {
        return " used";
    }
    const before = order_of(block) < order_of(on.block) && (!IN_LAYER.has(block) || layer <= first);
    const earlier = IN_LAYER.has(block) && layer < first;
    return at >= state.model.num_params && (before || earlier) ? " lit" : "";
}

// A block as a button that leads to its row.
function draw_block(block, text, marked, { layer = state.choice.layer, head = null, ...more } = {})
{
    return h("button", {
        class: `block${more.class || ""}${marked}`, style: more.style, label: more.label || `to ${text}`,
        title: Object.values(KINDS).find((kind) => kind.block === block)?.says,
        key: more.key || block, onclick: () => scroll_to_block(block, layer, head),
        onpointerenter: more.enter, onpointerleave: more.enter && (() => hover_head(null)),
    }, text);
}

function draw_head_blocks(layer)
{
    const { n_head } = state.model;
    const some = min(n_head, 8);
    return h("span.group", { key: "heads" }, each(some, (head) => {
        const off = is_silent(layer, head);
        return draw_block("heads", String(head), block_state("heads", layer, head) + (off ? " off" : ""), {
            key: `head ${head}`, head, class: " head-block", style: `--of: ${head_color(head)}`,
            label: `head ${head}${off ? ", silent" : ""}`, enter: () => hover_head(head),
        });
    }), some < n_head ? h("span.soft.small", "…") : "");
}

// The layers before or after the one that is open, a block each.
function draw_layer_blocks(layers, wire_first, block)
{
    const wire = (l) => h("i", { key: `wl${l}`, class: block_state(block, l, null) });
    return layers.map((l) => {
        const button = draw_block("layer", `L${l}`, block_state(block, l, null), { key: `L${l}`, layer: l,
            label: `layer ${l}` });
        return wire_first ? [wire(l), button] : [button, wire(l)];
    });
}

function draw_column(names, layer, few)
{
    const states = names.map((name) => block_state(name, layer, null));
    const [name] = names;
    const is_sum = name === "add" || name === "out";
    if (name === "heads" && !few) {
        return draw_head_blocks(layer);
    }
    if (names.length > 1 && !few) {
        return h("span.group", { key: "qkv" },
            names.map((each_name, j) => draw_block(each_name, each_name, states[j])));
    }
    const text = few ? PHONE_TEXT[name] || name : BLOCK_TEXT[name] || name;
    const is_head = name === "heads" && state.marks.block && state.marks.block.block === "heads";
    const marked = is_head ? " on" : states.find((one) => one === " on") || states.find((one) => one) || "";
    return draw_block(name, text, marked, { class: is_sum ? " add" : "",
        label: is_sum ? "to the sum: +" : `to ${few ? `${text}: ` : ""}${BLOCK_TEXT[name] || names.join(", ")}` });
}

function draw_map()
{
    const few = !is_wide(48);
    const { choice: { layer }, model: { n_layer, num_params }, marks } = state;
    const has_layers = n_layer > 1 && !few;
    const is_lit = (name) => block_state(name, layer, null).replace(" used", "")
        || (name === "heads" && marks.block && marks.block.block === "heads");
    const items = BLOCKS.map((names, k) => [
        k ? h("i", { key: `wire ${k}`, class: (few ? "" : "arrow") +
            (names.some(is_lit) && marks.at >= num_params ? " lit" : "") }) : "",
        has_layers && names[0] === "norm" ? draw_layer_blocks(each(layer, (l) => l), false, "out") : "",
        draw_column(names, layer, few),
        has_layers && names[0] === "out"
            ? draw_layer_blocks(each(n_layer - 1 - layer, (l) => layer + 1 + l), true, "x") : "",
    ]);
    return h(".flow", { id: "flow" }, items,
        few ? "" : s("svg", { key: "residuals", ...HIDDEN, id: "residuals", paint: () => {} }));
}

// The residual connections, from behind a block to the sum after it: drawn where the blocks are.
function draw_residuals()
{
    const svg = by_id("residuals");
    const key = `${width_of("flow", 0)} ${state.choice.layer}`;
    if (!svg || svg.drawn === key) {
        return;
    }
    svg.drawn = key;
    const flow = by_id("flow");
    const left = box_of(flow).left;
    const blocks = [...flow.querySelectorAll(".block")];
    const sums = blocks.filter((e) => e.classList.contains("add")).map(box_of);
    const wires = [...flow.children].filter((e) => e.localName === "i").map(box_of);
    patch(svg, sums.map((box) => {
        const before = blocks.find((e) => (e.key === "norm") === (box === sums[0])
            && (e.key === "norm" || e.key === "mid"));
        const wire = wires.filter((each_wire) => each_wire.right <= box_of(before).left).at(-1);
        const from = wire.left - left + wire.width * 0.45;
        const to = box.left - left + box.width / 2;
        return s("path", { d: `M${from} 18.5V31a3 3 0 0 0 3 3H${to - 3}a3 3 0 0 0 3-3V30.5` });
    }));
}

function scroll_to_block(block, layer, head)
{
    if (block === "layer") {
        update({ layer }, { replace: true });
        return;
    }
    const wanted = state.shown.tape.stages[state.choice.pos].find((of) => of.kind.block === block &&
        (of.layer === null || of.layer === layer) && (head === null || of.head === head));
    const row = wanted && stage_row(wanted.name);
    if (row) {
        scroll_into_view(row, "start");
        row.querySelector(".cell").focus({ preventScroll: true });
    }
}

// The row of a stage, drawn if it was not.
function stage_row(name)
{
    draw_all_above(by_id("numbers"));
    state.open_rows.add(name);
    draw("numbers");
    return by_id("numbers").querySelector(`[data-stage="${CSS.escape(name)}"]`);
}
