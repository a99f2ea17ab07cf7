// The graph around a value: operands on the left, some of them with theirs, users on the right.
"use strict";

// Four columns: what the operands are made from, operands, the value, users. Where each begins and how wide it is, in
// percent; how tall a node is, with the space below it. Lines are [x1, y1, x2, y2, width].
const COLUMNS = [0, 26.5, 53, 76.5];
const WIDE = [23.5, 21.5, 20, 23.5];
const ENDS = COLUMNS.map((x, k) => x + WIDE[k]);
const TALL = 38;
// characters of a name; of a longer one its end, which tells it from others
const MOST = 12;

function place_operands(operands, values)
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
            placed.nodes.push({ at: p.at, column: 0, y: placed.y + k * TALL });
            placed.lines.push([ENDS[0], placed.y + k * TALL + 17, COLUMNS[1], middle + 17, 1]);
        });
        placed.nodes.push({ at, column: 1, y: middle });
        placed.under.push(middle + 17);
        placed.y += max(1, own.length) * TALL + 6;
    }
    if (rest.length) {
        const is_sum = rest.every((o) => o.derivative === 1);
        const text = is_sum ? short(sum_of(rest.map((o) => o.value))) : "…";
        placed.nodes.push({ at: -1, column: 1, y: placed.y, label: `${rest.length} more`, text, list: "made" });
        placed.under.push(placed.y + 17);
        placed.y += TALL;
    }
    return placed;
}

function place_users(users, center)
{
    const some = [...users].sort((a, b) => abs(b.adds) - abs(a.adds)).slice(0, 5);
    const more = users.length - some.length;
    const n = some.length + (more ? 1 : 0);
    const start = max(20, center + 17 - n * TALL / 2);
    const most = max(1e-300, ...some.map((u) => abs(u.adds)));
    const nodes = some.map((u, k) => ({ at: u.at, column: 3, y: start + k * TALL }));
    const lines = some.map((u, k) =>
        [ENDS[2], center + 17, COLUMNS[3], start + k * TALL + 17, 0.75 + 2.5 * abs(u.adds) / most]);
    if (more) {
        const y = start + some.length * TALL;
        nodes.push({ at: -1, column: 3, y, label: `${more} more`, text: "…", list: "uses" });
    }
    return { nodes, lines };
}

// A user that is a product is named by what it multiplies with.
function node_label(place, column, center, values)
{
    const { tape } = state.shown;
    const other = column === 3 && vector_of(tape, place).cols
        ? operands_of(tape, place, values).map((o) => o.at).find((o) => o !== center) : undefined;
    if (other === undefined) {
        return name_for_people(place, true);
    }
    const { stage: of, part } = vector_of(tape, other);
    return of && !part ? `× ${of.kind.name} ${isolated(seen_text(of.pos))}` : `× ${name_for_people(other, true)}`;
}

function draw_node({ at, column, y, label, text, list }, key, center, values)
{
    const { tape } = state.shown;
    const name = at < 0 ? label : node_label(at, column, center, values);
    const sign = at < 0 || vector_of(tape, at).cols ? "" : line_of(tape, at)?.op.sign;
    return h("button", {
        class: `node${column === 3 ? " user" : column === 2 ? " center chosen" : ""}`, key,
        style: `left: ${COLUMNS[column]}%; top: ${y}px; width: ${WIDE[column]}%`,
        title: at < 0 ? label : name_for_people(at),
        onclick: at < 0 ? toggle(`table ${list} ${state.choice.value}`, "made") : () => go_to_place(at),
    }, h("span.small", h("span", name.length > MOST ? `…${name.slice(1 - MOST)}` : name), h("span", sign)),
    at < 0 ? text : short(tape.value[at]));
}

function draw_wire([x1, y1, x2, y2, wide])
{
    const bend = (x1 + x2) / 2;
    return s("path", { d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`, "stroke-width": wide.toFixed(2),
                       "vector-effect": "non-scaling-stroke" });
}

function draw_graph(at, operands, users, values)
{
    const left = place_operands(operands, values);
    const height = max(left.y, 20 + min(6, users.length) * TALL, 62) + 4;
    const center = max(20, (height + 16 - TALL) / 2);
    const right = place_users(users, center);
    const lines = [...left.lines, ...left.under.map((y) => [ENDS[1], y, COLUMNS[2], center + 17, 1]), ...right.lines];
    const caption = (column, text, top = 0) =>
        h("span.caption", { style: `left: ${COLUMNS[column]}%; top: ${top}px` }, text);
    return h(".graph", { key: "graph", ...row_of(".node", "what it is made from and used by"),
                         style: `height: ${height}px` },
        caption(0, left.nodes.length ? "made from" : ""),
        caption(3, users.length ? "used by" : ""),
        caption(2, state.edit?.at === at ? `was ${short(values[at])}` : "", center - 16),
        s("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", ...HIDDEN }, lines.map(draw_wire)),
        left.nodes.map((node, k) => draw_node(node, `n${k}`, at, values)),
        draw_node({ at, column: 2, y: center }, "center", at, values),
        right.nodes.map((node, k) => draw_node(node, `u${k}`, at, values)));
}
