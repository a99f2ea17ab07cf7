// Every number: a row per stage of the model, closed until it is asked for.
"use strict";

// of a vector, at first
const CELLS = 256;

// The cells and blocks that the chosen value concerns. Where the tape has a step without a row, the nearest row counts.
function follow_marks()
{
    const at = chosen_place();
    const { tape } = state.shown;
    const cells = new Map();
    state.marks = { at, cells, block: null, used: [] };
    if (at < 0) {
        return;
    }
    need_grads(state.shown);
    const spread = (places, next, mark, depth) => places.slice(0, 300).forEach((place) => {
        if (!vector_of(tape, place).part) {
            cells.set(place, cells.get(place) || mark);
        } else if (depth) {
            spread(next(place), next, mark, depth - 1);
        }
    });
    const down = (place) => operands_of(tape, place).map((o) => o.at).filter((o) => o >= 0);
    const up = (place) => users_of(tape, place).map((u) => u.at);
    const users = up(at);
    cells.set(at, "chosen");
    spread(down(at), down, "from", 4);
    spread(users.slice(0, 32), up, "used", 3);
    const block = block_of(at);
    const used = new Map(users.map(block_of).map((b) => [`${b.block} ${b.layer} ${b.head}`, b]));
    state.marks.block = block;
    state.marks.used = [...used.values()].filter((b) => b.block !== block.block || b.layer !== block.layer);
}

// Opens the row of a value, or of the nearest one that has a row.
function open_row_of(at)
{
    const places = [at, ...state.marks.cells.keys()].filter((place) => place >= state.model.num_params);
    const row = places.map((place) => vector_of(state.shown.tape, place)).find((vector) => !vector.part);
    if (row) {
        state.open_rows.add(row.stage.name);
    }
}

function draw_numbers()
{
    const groups = [];
    const stages = state.shown.tape.stages[state.choice.pos];
    need_grads(state.shown);
    for (const of of stages) {
        const last = groups.at(-1);
        if (!last || last.group !== of.kind.group || last.layer !== of.layer || last.head !== of.head) {
            groups.push({ group: of.kind.group, layer: of.layer, head: of.head, stages: [] });
        }
        groups.at(-1).stages.push(of);
    }
    const all_open = stages.every(({ name }) => state.open_rows.has(name));
    const toggle_all = () => {
        state.open_rows = new Set(all_open ? [] : stages.map(({ name }) => name));
        redraw("numbers");
    };
    return [
        h("p.soft", "One position, ", mono(seen_text(state.choice.pos)), ", on its way through the model: " +
            `${stages.length} rows. Open one, and choose a number to drag it and to see what it was made from.`),
        h(".tools", h("button.button", { id: "open-all", "aria-expanded": String(all_open), onclick: toggle_all },
            all_open ? "Close all rows" : "Open all rows")),
        state.open_rows.size ? draw_legend() : "",
        h("", { class: state.in_full ? "in-full" : "" }, groups.map(draw_group)),
    ];
}

function draw_group({ group, layer, head, stages })
{
    const where = state.model.n_layer > 1 && layer !== null ? `Layer ${layer}: ` : "";
    const text = where && group !== "MLP" ? group[0].toLowerCase() + group.slice(1) : group;
    const title = head === null ? where + text : `${where}${text} ${head}${is_silent(layer, head) ? ", silent" : ""}`;
    return h("", { class: head === null ? "" : "of-head", key: `${group} ${layer} ${head}`,
        style: head === null ? null : `--of: ${head_color(head)}` },
        h("h3", head === null ? "" : head_tag(head), title), stages.map(draw_stage));
}

function draw_legend()
{
    const toggle = () => { state.in_full = !state.in_full; redraw("numbers"); };
    return h(".legend",
        h("span", h("i.of-values"), "value, and below it the gradient"),
        h("span", h("i.of-share"), "a share"),
        h("span", h("i.box.thick"), "chosen"), h("span", h("i.box"), "made from"),
        h("span", h("i.box.dotted"), "used by"),
        h("label", h("input", { type: "checkbox", ".checked": state.in_full, onchange: toggle }), " all in figures"));
}

// A row: closed, it is a strip of colors; open, it has a cell per number.
function draw_stage({ name, kind, at, n, w })
{
    const is_shown = state.open_rows.has(name);
    const folds = n > CELLS && !state.unfolded.has(name);
    const toggle = () => {
        state.open_rows[is_shown ? "delete" : "add"](name);
        redraw("numbers");
    };
    return h(".stage", { key: name, "data-stage": name },
        h(".stage-head",
            h("button.opens", { "aria-expanded": String(is_shown), onclick: toggle, "data-open": name },
                h("b", name), h("span.soft", kind.says), is_shown ? "" : draw_strip(name, kind, at, n)),
            w && is_shown ? h("button.link", { onclick: () => update({ value: `${w.name}.0` }) },
                `${w.own} ${w.rows} × ${w.cols}`) : "",
            is_shown ? h("output", HIDDEN, state.read && state.read.name === name ? state.read.text : "") : ""),
        is_shown ? draw_cells(name, kind, at, folds ? CELLS : n, n) : "",
        is_shown && folds ? h("button.link.small", { onclick: () => { state.unfolded.add(name); redraw("numbers"); } },
            `${count(n - CELLS)} more`) : "");
}

const strength_of = (kind, values) => {
    const most = kind.share ? 1 : largest(values);
    return (i) => values[i] / most;
};

function draw_strip(name, kind, at, n)
{
    const strength = strength_of(kind, state.shown.tape.value.subarray(at, at + n));
    const marks = [...state.marks.cells].filter(([place]) => within(place, at, n)).map(([, mark]) => mark);
    return picture(1, min(n, 256), (row, col) => strength(col), kind.share ? "share" : "positive",
        `${state.version} ${state.choice.pos} ${name}`, { class: `strip-of ${marks[0] || ""}`, ...HIDDEN });
}

// The cells of a vector: the value, and in a strip below it the gradient.
function draw_cells(name, kind, at, some, n)
{
    const { tape } = state.shown;
    const values = tape.value.subarray(at, at + n);
    const grads = tape.grad.subarray(at, at + n);
    const steepest = largest(grads);
    const strength = strength_of(kind, values);
    const label = labels_of(kind);
    return h(".cells", row_of(".cell", name), each(some, (i) => {
        const mark = state.marks.cells.get(at + i);
        const figures = state.in_full ? `${short(values[i])}\n${short(grads[i])}` : tiny(values[i]);
        return h("button", {
            class: `cell${label ? " two" : ""}${mark ? ` ${mark}` : ""}`, "data-go": `${name}.${i}`, key: i,
            "data-text": label ? `${label(i)}\n${figures}` : figures,
            style: `background: ${css_color(mixed(strength(i), kind.share ? "share" : "positive"))}; ` +
                `--g: ${css_color(mixed(grads[i] / steepest))}`,
            label: `${name} ${i}${label ? `, ${label(i)}` : ""}: ${short(values[i])}, gradient ${short(grads[i])}`,
        });
    }));
}

const labels_of = (kind) => kind.labels === "tokens" ? token_text : kind.labels === "positions" ? seen_text : null;
