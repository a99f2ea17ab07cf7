// The inspector: one value, first in the hand, then how it was made and what it does.
"use strict";

// of a table, at first
const ROWS = 12;

// What the chosen value is called, and what it is about.
function title_of_chosen(at)
{
    const { shown: { tape }, choice: { value, pos }, model } = state;
    const vector = vector_of(tape, at);
    const of = vector.stage;
    const [name, index] = split_value(value);
    const alias = tape.by_name[pos].get(name);
    // tok_emb is a row of wte
    const row = alias && alias.kind && alias.at !== (of ? of.at : -1) ? alias : null;
    if (row) {
        return { title: `${name}[${index}]`, about: `${row.kind.says}: ${name_for_people(at)}` };
    }
    if (vector.w) {
        return { title: name_for_people(at), about: "a parameter" };
    }
    const title = name_for_people(at).split(" at ")[0];
    if (of.kind.of_word) {
        return { title, about: `of the whole word · ${of.kind.says}` };
    }
    const head = of.kind.by_head && !vector.part ? ` of head ${floor((at - of.at) / model.head_dim)}`
        : of.head !== null ? ` · head ${of.head}` : "";
    const says = vector.part ? `on the way to ${of.kind.name}` : of.kind.says.split(":")[0];
    return { title, where: letter_at(of.pos), about: `${says}${head}` };
}

function draw_inspector()
{
    const at = chosen_place();
    if (at < 0) {
        return [];
    }
    need_grads(state.shown);
    const { title, where, about } = title_of_chosen(at);
    const toggle = () => { state.made_open = !is_made_open(); redraw("inspector", "made"); };
    return [
        h("button.close", { key: "close", label: "close the inspector", onclick: close_inspector }, "×"),
        h("h2", { tabindex: -1, key: "title", id: "inspected" }, h("bdi.mono", title), where ? ` at ${where}` : ""),
        h(".about.soft.small", { key: "about" }, about),
        draw_hand(at),
        h("button.opens.how", { key: "how", id: "how", "aria-expanded": String(is_made_open()), onclick: toggle },
            h("b", "How it was made")),
    ];
}

const is_made_open = () => state.made_open ?? is_wide(64);

// Formula, graph and tables: they may come a frame later.
function draw_made()
{
    const { shown: { tape }, with_all_digits, trail } = state;
    const at = chosen_place();
    if (at < 0 || !is_made_open()) {
        return [];
    }
    const values = computed(state.shown);
    const grad = tape.grad[at];
    const { w, stage: of } = vector_of(tape, at);
    const figure = (x) => with_all_digits ? all_digits(x) : short(x);
    const operands = operands_of(tape, at, values);
    const users = users_of(tape, at, values);
    const toggle = () => { state.with_all_digits = !with_all_digits; redraw("made"); };
    return [
        trail.length > 1 ? h("nav.trail", { key: "trail", label: "where you have been" },
            trail.slice(-5, -1).map(({ pos, value, text }) => h("span", { key: `${value} ${pos}` },
                h("button.link", { onclick: () => update({ pos, value }) }, text)))) : "",
        h("", { class: `figures${with_all_digits ? " long" : ""}`, key: "figures" },
            h("", h(".soft.small", "computed"), h(".number", figure(values[at]))),
            h("", h(".soft.small", "gradient"), h(".number", figure(grad))),
            h("button.link.small", { onclick: toggle }, with_all_digits ? "four digits" : "all digits")),
        operands.length || of ? h(".formula", { key: "formula" },
            operands.length ? [h("span", short(values[at])), " = ", ...formula(tape, at, values)] : "",
            of ? h("code", of.kind.code) : "") : "",
        operands.length || users.length ? draw_graph(at, operands, users, values) : "",
        w ? draw_parameter(at, grad, figure) : "",
        draw_tables(at, operands, users, figure),
    ];
}

function draw_tables(at, operands, users, figure)
{
    const { tape, loss } = state.shown;
    const made = operands.map((o) => [o.at < 0 ? "constant" : link_to(o.at), figure(o.value), figure(o.derivative)]);
    const uses = users.map((u) => [link_to(u.at), figure(u.adds)]);
    const unused = at === loss ? "Backward starts here: the loss changes as itself." : "Nothing uses it.";
    return [
        made.length ? [h("h3", { key: "made" }, `Made by ${line_of(tape, at).op.name} from ${made.length}`),
            draw_table("made", ["operand", "value", "derivative"], made)] : "",
        uses.length ? [h("h3", { key: "uses" }, `Used by ${uses.length}`),
            draw_table("uses", ["user", "adds to the gradient"], uses, ["the gradient", figure(tape.grad[at])])]
            : h("p.soft.small", { key: "unused" }, unused),
    ];
}

// The formula with its numbers put in; of a sum, its largest terms.
function formula(tape, at, values)
{
    const l = line_of(tape, at);
    const v = (i) => short(values[i]);
    const link = (i) => link_to(i, v(i));
    const { add, mul, pow, log, exp, relu, add_const, shift, mul_const, mul_scalar, sum, products, shares, dots, mix,
            zero } = operations;
    const operands = operands_of(tape, at, values).filter((o) => o.at >= 0);
    const [a, b] = operands.map((o) => o.at);
    const work = new Map([
        [add, () => [link(a), " + ", link(b)]],
        ...[mul, mul_scalar, products, shares].map((op) => [op, () => [link(a), " × ", link(b ?? a)]]),
        ...[add_const, shift].map((op) => [op, () => [link(a), ` ${l.c < 0 ? "−" : "+"} ${short(abs(l.c))}`]]),
        [mul_const, () => [link(a), ` × ${short(l.c)}`]],
        [pow, () => [link(a), h("sup", short(l.c))]],
        [log, () => ["ln ", link(a)]],
        [exp, () => ["e", h("sup", link(a))]],
        [relu, () => ["max(0, ", link(a), ")"]],
        [zero, () => ["0: this head is silent"]],
        [sum, () => largest_terms(l.length, (i) => term_of_sum(tape, values, operands[i].at), "terms")],
        ...[dots, mix].map((op) => [op, () => largest_terms(operands.length / 2, (i) => {
            const [x, y] = [values[operands[2 * i].at], values[operands[2 * i + 1].at]];
            return { size: x * y, content: `${short(x)} × ${short(y)}` };
        }, "products")]),
    ]);
    return (work.get(l.op) || (() => [link(a)]))();
}

function largest_terms(n, term, what)
{
    const all = each(n, term).sort((x, y) => abs(y.size) - abs(x.size));
    const some = all.slice(0, n <= 3 ? 3 : 1);
    return [...some.flatMap(({ content }, rank) => [rank ? " + " : "", content]),
            n > some.length ? ` + … ${n} ${what}` : ""];
}

function term_of_sum(tape, values, place)
{
    const made = line_of(tape, place);
    const is_product = made && (made.op === operations.products || made.op === operations.shares);
    const [x, y] = is_product ? operands_of(tape, place, values) : [];
    const text = is_product ? `${short(x.value)} × ${short(y.value)}` : short(values[place]);
    return { size: values[place], content: link_to(place, text) };
}

// A table of which the first rows are shown, and the others on demand.
function draw_table(key, heading, rows, total = null)
{
    const some = rows.slice(0, state.tables_open.has(key) ? 600 : ROWS);
    const row = (cells, tag, attributes) => h("tr", attributes, cells.map((cell) => h(tag, {}, cell)));
    const more = () => { state.tables_open.add(key); redraw("made"); };
    return h("table", { key: `table ${key}` }, h("thead", row(heading, "th")),
        h("tbody", some.map((cells) => row(cells, "td")),
            rows.length > some.length ? h("tr", { key: "more" }, h("td", { colspan: heading.length },
                h("button.link", { onclick: more }, `${rows.length - some.length} more`))) : "",
            total && rows.length > 1 ? row(total, "td", { class: "sum", key: "sum" }) : ""));
}

// A parameter: its matrix, and what Adam would do to it now.
function draw_parameter(at, grad, figure)
{
    const { w } = vector_of(state.shown.tape, at);
    const a = adam(state.model, at, grad);
    const decay = state.model.training.weight_decay ? [["of that, weight decay", a.decay]] : [];
    const rows = [["m, the mean of its gradients", a.m], ["v, of their squares", a.v], ["m, corrected", a.m_hat],
                  ["v, corrected", a.v_hat], ["learning rate", a.lr],
                      ["it moves by −rate · m / (√v + ε)", a.move],
                  ...decay, ["and becomes", state.model.params[at] + a.move]];
    return [
        h("p.small.soft", { key: "matrix", style: "margin: 16px 0 4px" }, `${w.name}, ${w.rows} × ${w.cols}`),
        draw_matrix(w, 8, at - w.at),
        h("h3", { key: "adam-title" }, "What Adam would do"),
        h("table", { key: "adam" }, h("tbody", rows.map(([name, x]) => h("tr", h("td", name), h("td", figure(x)))))),
    ];
}

function close_inspector()
{
    const cell = by_id("numbers").querySelector(".cell.chosen") || document.querySelector(".look.chosen")
        || state.opener;
    const was_inside = by_id("panel").contains(document.activeElement) || document.activeElement === document.body;
    update({ value: null });
    if (was_inside && cell && cell.isConnected) {
        cell.focus({ preventScroll: true });
        scroll_into_view(cell, "nearest");
    }
}
