// The inspector: one value, first in the hand, then how it was made and what it does.
"use strict";

// of a table, at first and at most
const ROWS = 12;
const MOST_ROWS_OF_TABLE = 600;

// What the chosen value is called, where, and what it is about.
function title_of_chosen(at)
{
    const { shown: { tape }, choice: { value, pos }, model } = state;
    const { w, part, stage: of } = vector_of(tape, at);
    const [name, index] = split_value(value);
    const alias = tape.by_name[pos].get(name);
    // tok_emb is a row of wte
    if (alias?.kind && alias.at !== of?.at) {
        return { title: `${name}[${index}]`, about: `${alias.kind.says}: ${name_for_people(at)}` };
    }
    if (w) {
        return { title: name_for_people(at), about: "a parameter" };
    }
    const title = name_for_people(at).split(" at ")[0];
    if (of.kind.of_word) {
        return { title, about: `of the whole word · ${of.kind.says}` };
    }
    const head = of.kind.by_head && !part ? ` of head ${floor((at - of.at) / model.head_dim)}`
        : of.head !== null ? ` · head ${of.head}` : "";
    const says = part ? `on the way to ${of.kind.name}` : of.kind.says.split(":")[0];
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
    return [
        h("button.close", { label: "close the inspector", onclick: close_inspector }, "×"),
        h("h2", { tabindex: -1, id: "inspected" }, h("bdi.mono", title), where ? ` at ${where}` : ""),
        h(".about.soft.small", about),
        draw_hand(at),
        h("button.opens.how", { id: "how", "aria-expanded": String(is_opened("made")),
                                onclick: toggle("made", "inspector", "made") }, h("b", "How it was made")),
    ];
}

// Formula, graph and tables: they may come a frame later.
function draw_made()
{
    const { tape } = state.shown;
    const at = chosen_place();
    if (at < 0 || !is_opened("made")) {
        return [];
    }
    const values = computed(state.shown);
    const { w, stage: of } = vector_of(tape, at);
    const operands = operands_of(tape, at, values);
    const users = users_of(tape, at, values);
    const is_long = is_opened("digits");
    return [
        h("", { class: `figures${is_long ? " long" : ""}` },
            h("", h(".soft.small", "computed"), number(figure(values[at]))),
            h("", h(".soft.small", "gradient"), number(figure(tape.grad[at]))),
            link(is_long ? "four digits" : "all digits", toggle("digits", "made", "votes"))),
        of ? h(".formula", operands.length ? [h("span", short(values[at])), " = ", ...formula(tape, at, values)] : "",
            h("code", of.kind.code)) : "",
        operands.length || users.length ? draw_graph(at, operands, users, values) : "",
        w ? draw_parameter(at, w) : "",
        draw_tables(at, operands, users),
    ];
}

const figure = (x) => is_opened("digits") ? all_digits(x) : short(x);

function draw_tables(at, operands, users)
{
    const { tape, loss } = state.shown;
    const made = operands.map((o) => [o.at < 0 ? "constant" : link_to(o.at), figure(o.value), figure(o.derivative)]);
    const uses = users.map((u) => [link_to(u.at), figure(u.adds)]);
    return [
        made.length ? [h("h3", `Made by ${line_of(tape, at).op.name} from ${made.length}`),
            draw_table("made", ["operand", "value", "derivative"], made)] : "",
        uses.length ? [h("h3", `Used by ${uses.length}`),
            draw_table("uses", ["user", "adds to the gradient"], uses, ["the gradient", figure(tape.grad[at])])]
            : h("p.soft.small", at === loss ? "Backward starts here: the loss changes as itself." : "Nothing uses it."),
    ];
}

// The formula with its numbers put in; of a sum, its largest terms.
function formula(tape, at, values)
{
    const { op, c, length } = line_of(tape, at);
    const all = operands_of(tape, at, values).filter((o) => o.at >= 0);
    const [a, b = a] = all.map((o) => link_to(o.at, short(o.value)));
    const { pow, log, exp, relu, zero, copy, add_const, shift, mul_const, sum, dots } = operations;
    const work = new Map([
        [pow, () => [a, h("sup", short(c))]],
        [log, () => ["ln ", a]],
        [exp, () => ["e", h("sup", a)]],
        [relu, () => ["max(0, ", a, ")"]],
        [zero, () => ["0: this is silent"]],
        [copy, () => [a]],
        [add_const, () => [a, ` ${c < 0 ? "−" : "+"} ${short(abs(c))}`]],
        [mul_const, () => [a, ` × ${short(c)}`]],
        [sum, () => largest_terms(length, (i) => term_of_sum(tape, values, all[i].at), "terms")],
        [dots, () => largest_terms(length, (i) => {
            const [x, y] = all.slice(2 * i);
            return { size: x.value * y.value, content: `${short(x.value)} × ${short(y.value)}` };
        }, "products")],
    ]);
    work.set(shift, work.get(add_const));
    return (work.get(op) || (() => [a, ` ${op.sign} `, b]))();
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
    const is_product = line_of(tape, place)?.op === operations.products;
    const [x, y] = is_product ? operands_of(tape, place, values) : [];
    const text = is_product ? `${short(x.value)} × ${short(y.value)}` : short(values[place]);
    return { size: values[place], content: link_to(place, text) };
}

// A table of which the first rows are shown, and the others on demand.
function draw_table(name, heading, rows, total = null)
{
    const key = `table ${name} ${state.choice.value}`;
    const some = rows.slice(0, is_opened(key) ? MOST_ROWS_OF_TABLE : ROWS);
    const row = (cells, tag, attributes) => h("tr", attributes, cells.map((cell) => h(tag, {}, cell)));
    return h("table", { key }, h("thead", row(heading, "th")),
        h("tbody", some.map((cells) => row(cells, "td")),
            rows.length > some.length ? h("tr", h("td", { colspan: heading.length },
                link(`${rows.length - some.length} more`, toggle(key, "made")))) : "",
            total && rows.length > 1 ? row(total, "td", { class: "sum" }) : ""));
}

// A parameter: its matrix, and what Adam would do to it now.
function draw_parameter(at, w)
{
    const { model, shown: { tape } } = state;
    const { lr, correct1, correct2, weight_decay } = adam_now(model);
    const before = model.params[at];
    const one = { ...model, params: [before], m: [model.m[at]], v: [model.v[at]] };
    adam_step(one, [tape.grad[at]]);
    const { params: [after], m: [m], v: [v] } = one;
    const rows = [["m, the mean of its gradients", m], ["v, of their squares", v], ["m, corrected", m / correct1],
                  ["v, corrected", v / correct2], ["learning rate", lr],
                  ["it moves by −rate · m / (√v + ε)", after - before],
                  ...(weight_decay ? [["of that, weight decay", -lr * weight_decay * before]] : []),
                  ["and becomes", after]];
    return [
        h("p.small.soft", `${w.name}, ${w.rows} × ${w.cols}`),
        draw_matrix(w, 8, at - w.at),
        h("h3", "What Adam would do"),
        h("table", { key: "adam" }, h("tbody", rows.map(([name, x]) => h("tr", h("td", name), h("td", figure(x)))))),
    ];
}

function close_inspector()
{
    const cell = by_id("numbers").querySelector(".cell.chosen") || document.querySelector(".look.chosen")
        || state.opener;
    const was_inside = by_id("panel").contains(document.activeElement) || document.activeElement === document.body;
    update({ value: null });
    focus_again(was_inside && cell);
}

// What had the focus has it again.
function focus_again(e)
{
    if (e && e.isConnected) {
        e.focus({ preventScroll: true });
        scroll_into_view(e, "nearest");
    }
}
