// Arcs over letters, from the one at hand back to others: of what heads look at, and of what they vote.
"use strict";

// Where arcs begin and end. No two cross: near ones leave on the left, far ones on the right, and they land in the
// reverse order.
function place_arcs(arcs, pos, { tile, gap, space, height })
{
    const selves = arcs.filter((a) => a.key === pos);
    const total = sum_of([...arcs, ...selves].map((a) => a.thick + space)) + (selves.length ? tile * 0.12 : 0);
    const scale = min(1, tile * 0.94 / total);
    const center = (key) => key * (tile + gap) + tile / 2;
    const spread = (some, from, end) => some.reduce((x, a) => {
        a[end] = x + a.thick * scale / 2;
        return x + (a.thick + space) * scale;
    }, from);
    const x = spread([...selves].reverse(), center(pos) - total * scale / 2, "from");
    spread(arcs, x + (selves.length ? tile * 0.12 * scale : 0), "to");
    for (let key = 0; key < pos; key++) {
        const group = arcs.filter((a) => a.key === key).reverse();
        spread(group, center(key) - (sum_of(group.map((a) => a.thick + space)) - space) * scale / 2, "from");
    }
    const widest = max(1, ...arcs.map((a) => (a.to - a.from) / 2));
    const reach = min(height - 22, widest * 1.15);
    for (const a of arcs) {
        a.rx = (a.to - a.from) / 2;
        a.ry = reach * (a.rx / widest) ** 0.8;
        a.middle = (a.from + a.to) / 2;
        a.stroke = a.thick * scale;
        const [from, to, rx, ry] = [a.from, a.to, a.rx, a.ry].map((x) => x.toFixed(1));
        a.path = `M${from} ${height}A${rx} ${ry} 0 0 1 ${to} ${height}`;
    }
    return arcs;
}

// Badges on the arcs, the largest first: each moves along its arc to where no other is, else it is dropped.
function place_badges(arcs, { height, wide, tall })
{
    const taken = [];
    return arcs.filter((a) => {
        const spots = [90, 102, 78, 114, 66, 126, 54, 138].map((angle) => [
            a.middle - a.rx * Math.cos(angle * Math.PI / 180), height - a.ry * Math.sin(angle * Math.PI / 180)]);
        const is_free = ([x, y]) => y < height - tall / 2
            && taken.every(([tx, ty]) => abs(tx - x) > wide + 2 || abs(ty - y) > tall + 2);
        a.badge = spots.find(is_free);
        if (a.badge) {
            taken.push(a.badge);
        }
        return a.badge;
    });
}

function draw_badge({ badge: [x, y] }, text, width, height, stroke, attributes)
{
    return s("g.badge", attributes, s("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 5, stroke }),
        s("text", { x, y: y + 0.5 }, text));
}
