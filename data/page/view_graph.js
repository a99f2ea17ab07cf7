// The graph around a value: operands on the left, some of them with theirs, users on the right.
"use strict";

const TALL = 38;
const graph_width = () =>
    max(280, min(440, width_of("panel", 385) - (is_wide(64) ? 28 : 2 * (is_wide(48) ? 24 : 16))));

// Places in four columns: what the operands are made from, operands, the value, users. Lines are [x1, y1, x2, y2,
// width].
function place_operands(operands, values, cols, wide)
{
    const { tape } = state.shown;
    const by_size = (some) => some.filter((o) => o.at >= 0)
        .sort((a, b) => abs(b.value * b.derivative) - abs(a.value * a.derivative));
    const order = by_size(operands);
    const left = order.slice(0, order.length <= 3 ? 3 : 2);
    const rest = order.slice(left.length);
    const placed = { nodes: [], lines: [], under: [], y: 20 };
    for (const { at } of left) {
        const own = by_size(operands_of(tape, at, values)).slice(0, 2);
        const middle = placed.y + max(0, own.length - 1) * TALL / 2;
        own.forEach((p, k) => {
            placed.nodes.push({ at: p.at, x: cols[0], y: placed.y + k * TALL, w: wide[0] });
            placed.lines.push([cols[0] + wide[0], placed.y + k * TALL + 17, cols[1], middle + 17, 1]);
        });
        placed.nodes.push({ at, x: cols[1], y: middle, w: wide[1] });
        placed.under.push(middle + 17);
        placed.y += max(1, own.length) * TALL + 6;
    }
    if (rest.length) {
        const is_sum = rest.every((o) => o.derivative === 1);
        const text = is_sum ? short(sum_of(rest.map((o) => o.value))) : "…";
        placed.nodes.push({ at: -1, x: cols[1], y: placed.y, w: wide[1], label: `${rest.length} more`, text,
            list: "made" });
        placed.under.push(placed.y + 17);
        placed.y += TALL;
    }
    return placed;
}

function place_users(users, center, cols, wide)
{
    const some = [...users].sort((a, b) => abs(b.adds) - abs(a.adds)).slice(0, 5);
    const more = users.length - some.length;
    const n = some.length + (more ? 1 : 0);
    const start = max(20, center + 17 - n * TALL / 2);
    const most = max(1e-300, ...some.map((u) => abs(u.adds)));
    const nodes = some.map((u, k) => ({ at: u.at, x: cols[3], y: start + k * TALL, w: wide[3], is_user: true }));
    const lines = some.map((u, k) =>
        [cols[2] + wide[2], center + 17, cols[3], start + k * TALL + 17, 0.75 + 2.5 * abs(u.adds) / most]);
    if (more) {
        nodes.push({ at: -1, x: cols[3], y: start + some.length * TALL, w: wide[3], is_user: true,
                     label: `${more} more`, text: "…", list: "uses" });
    }
    return { nodes, lines };
}

// A user that is a product is named by what it multiplies with.
function node_label(place, is_user, center, values)
{
    const { tape } = state.shown;
    const other = is_user && vector_of(tape, place).cols
        ? operands_of(tape, place, values).map((o) => o.at).find((o) => o !== center) : undefined;
    if (other === undefined) {
        return name_for_people(place, true);
    }
    const { stage: of, part } = vector_of(tape, other);
    return of && !part ? `× ${of.kind.name} ${isolated(seen_text(of.pos))}` : `× ${name_for_people(other, true)}`;
}

function draw_node({ at, x, y, w, is_user, label, text, list }, key, center, values)
{
    const { tape } = state.shown;
    const more = toggle(`table ${list} ${state.choice.value}`, "made");
    const sign = at < 0 || vector_of(tape, at).cols ? "" : (line_of(tape, at)?.op.sign ?? "");
    return h("button", {
        class: `node${is_user ? " user" : ""}`, key,
        style: `left: ${x.toFixed(1)}px; top: ${y}px; width: ${w.toFixed(1)}px`,
        title: at < 0 ? label : name_for_people(at), onclick: () => at < 0 ? more() : go_to_place(at),
    }, h("span", h("span",
        at < 0 ? label : node_label(at, is_user, center, values)),
        sign ? h("span", sign) : ""), at < 0 ? text : short(tape.value[at]));
}

function draw_graph(at, operands, users, values)
{
    const { tape } = state.shown;
    const width = graph_width();
    const cols = [0, 0.265, 0.53, 0.765].map((share) => share * width);
    const wide = [0.235, 0.215, 0.2, 0.235].map((share) => share * width);
    const left = place_operands(operands, values, cols, wide);
    const height = max(left.y, 20 + min(6, users.length) * TALL, 62);
    const center = max(20, (height + 20 - TALL) / 2);
    const right = place_users(users, center, cols, wide);
    const lines = [...left.lines, ...left.under.map((y) => [cols[1] + wide[1], y, cols[2], center + 17, 1]),
        ...right.lines];
    const was = state.edit && state.edit.at === at
        ? h("span.caption", { style: `left: ${cols[2]}px; top: ${center - 16}px` }, `was ${short(values[at])}`) : "";
    return h(".graph", { key: "graph", ...row_of(".node", "what it is made from and used by"),
                         style: `height: ${height + 4}px` },
        h("span.caption", { style: "left: 0" }, left.nodes.length ? "made from" : ""),
        h("span.caption", { style: `left: ${cols[3]}px` }, users.length ? "used by" : ""),
        s("svg", HIDDEN, lines.map(([x1, y1, x2, y2, w]) => {
            const bend = (x1 + x2) / 2;
            return s("path", { d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`,
                "stroke-width": w.toFixed(2) });
        })),
        left.nodes.map((node, k) => draw_node(node, `n${k}`, at, values)),
        h("button.node.center.chosen",
            { key: "center", style: `left: ${cols[2]}px; top: ${center}px; width: ${wide[2]}px` },
            h("span", h("span", name_for_people(at, true)), h("span", line_of(tape, at)?.op.sign ?? "")),
            short(tape.value[at])), was,
        right.nodes.map((node, k) => draw_node(node, `u${k}`, at, values)));
}
