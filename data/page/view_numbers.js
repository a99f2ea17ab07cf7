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
    state.marks.block = block_of(at);
    state.marks.used = users.map(block_of);
}

// Opens the row of a value, or of the nearest one that has a row.
function open_row_of(at)
{
    const places = [at, ...state.marks.cells.keys()].filter((place) => place >= state.model.num_params);
    const row = places.map((place) => vector_of(state.shown.tape, place)).find((vector) => !vector.part);
    if (row) {
        state.opened.add(`row ${row.stage.name}`);
    }
}

function draw_numbers()
{
    const groups = new Map();
    const stages = state.shown.tape.stages[state.choice.pos];
    need_grads(state.shown);
    for (const of of stages) {
        const key = `${of.kind.group} ${of.layer} ${of.head}`;
        groups.set(key, [...(groups.get(key) || []), of]);
    }
    const rows = stages.map(({ name }) => `row ${name}`);
    const all_open = rows.every(is_opened);
    const toggle_all = () => {
        rows.forEach((row) => state.opened[all_open ? "delete" : "add"](row));
        redraw("numbers");
    };
    return [
        h("p.soft", "One position, ", mono(seen_text(state.choice.pos)), ", on its way through the model: " +
            `${stages.length} rows. Open one, and choose a number to drag it and to see what it was made from.`),
        h(".tools", button("open-all", all_open ? "Close all rows" : "Open all rows", toggle_all,
            { "aria-expanded": String(all_open) })),
        rows.some(is_opened) ? h(".legend",
            h("span", h("i.of-values"), "value, and below it the gradient"),
            h("span", h("i.of-share"), "a share"),
            h("span", h("i.box.thick"), "chosen"), h("span", h("i.box"), "made from"),
            h("span", h("i.box.dotted"), "used by")) : "",
        [...groups].map(([key, some]) => draw_group(key, some)),
    ];
}

function draw_group(key, stages)
{
    const [{ kind: { group }, layer, head }] = stages;
    const where = state.model.n_layer > 1 && layer !== null ? `Layer ${layer}: ` : "";
    const text = where && group !== "MLP" ? group.toLowerCase() : group;
    const title = head === null ? where + text : `${where}${text} ${head}${is_silent(layer, head) ? ", silent" : ""}`;
    return h("", head === null ? { key } : { key, class: "of-head", style: `--of: ${head_color(head)}` },
        h("h3", head === null ? "" : head_tag(head), title), stages.map(draw_stage));
}

// A row: closed, it is a strip of colors; open, it has a cell per number.
function draw_stage({ name, kind, at, n, w })
{
    const row = `row ${name}`;
    const is_shown = is_opened(row);
    const some = is_opened(`all of ${name}`) ? n : min(n, CELLS);
    return h(".stage", { key: name, "data-stage": name },
        h(".stage-head",
            h("button.opens", { "aria-expanded": String(is_shown), onclick: toggle(row, "numbers"), "data-open": name },
                h("b", name), h("span.soft", kind.says), is_shown ? "" : draw_strip(name, kind, at, n)),
            w && is_shown ? link(`${w.own} ${w.rows} × ${w.cols}`, () => update({ value: `${w.name}.0` })) : ""),
        is_shown ? draw_cells(name, kind, at, some, n) : "",
        is_shown && some < n ? link(`${count(n - some)} more`, toggle(`all of ${name}`, "numbers")) : "");
}

function strength_of(kind, values)
{
    const most = kind.share ? 1 : largest(values);
    return (i) => values[i] / most;
}

function draw_strip(name, kind, at, n)
{
    const strength = strength_of(kind, state.shown.tape.value.subarray(at, at + n));
    const mark = [...state.marks.cells].find(([place]) => within(place, at, n))?.[1] || "";
    return picture(1, min(n, CELLS), (row, col) => strength(col), kind.share ? "share" : "positive",
        `${state.version} ${state.choice.pos} ${name}`, { class: `strip-of ${mark}`, ...HIDDEN });
}

// The cells of a vector: the value, and in a strip below it the gradient.
function draw_cells(name, kind, at, some, n)
{
    const { tape } = state.shown;
    const values = tape.value.subarray(at, at + n);
    const grads = tape.grad.subarray(at, at + n);
    const steepest = largest(grads);
    const strength = strength_of(kind, values);
    const about = { tokens: token_text, positions: seen_text }[kind.labels];
    return h(".cells", row_of(".cell", name), each(some, (i) => {
        const mark = state.marks.cells.get(at + i) || "";
        const figures = `${short(values[i])}, gradient ${short(grads[i])}`;
        return h("button", {
            class: `cell${about ? " two" : ""} ${mark}`, "data-go": `${name}.${i}`, key: i,
            "data-text": `${about ? `${about(i)}\n` : ""}${tiny(values[i])}`, title: figures,
            style: `background: ${css_color(mixed(strength(i), kind.share ? "share" : "positive"))}; ` +
                `--g: ${css_color(mixed(grads[i] / steepest))}`,
            label: `${name} ${i}${about ? `, ${about(i)}` : ""}: ${figures}`,
        });
    }));
}
