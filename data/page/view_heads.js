// The heads: maps, habits, what each is worth.
"use strict";

// cells of maps that are buttons; of more, a picture
const MOST_BUTTONS = 1400;

const draw_switch = (list, layer, k, label) => h("input.switch", {
    type: "checkbox", role: "switch", ".checked": !has_pair(state.choice[list], layer, k), label,
    title: "Silent, or heard", "data-switch": `${layer}.${k}`, onchange: () => switch_one(list, layer, k),
});

// Where a head looks in words, where the figures support it.
function habit(head, tokens)
{
    const names = { self: "at itself", previous: "one back", first: "at the start", elsewhere: "elsewhere" };
    const shares = Object.keys(names).map((name) => ({ name, share: head[name] / tokens }));
    const [most, next] = shares.sort((a, b) => b.share - a.share);
    const text = ({ name, share }) => `${names[name].replace(/at (the )?/, "")} ${percent(share)}`;
    return most.share >= 0.4 && most.share >= 1.4 * next.share && most.name !== "elsewhere"
        ? { says: `looks ${names[most.name]}`, share: percent(most.share), rest: `else ${text(next)}` }
        : { says: "no fixed place", rest: `${text(most)}, ${text(next)}` };
}

function draw_heads()
{
    const { choice: { layer }, model: { n_head, n_layer }, shown: { n }, version } = state;
    const of = need_survey();
    const is_of_now = state.worth.version === version && state.worth.layer === layer;
    if (!is_of_now && !state.run.playing) {
        start_job("worth", worth_pieces());
    }
    const here = is_of_now ? state.worth.losses : null;
    const average = of ? of.heads.map((head) => (head.loss - of.loss) / of.tokens) : null;
    const scale = max(0.01, ...(average || []).map(abs), ...(here || []).map((x) => min(abs(x), 0.15)));
    const as_buttons = n * (n + 1) / 2 * n_head <= MOST_BUTTONS && n <= 20 && !state.run.playing;
    const worth = (text, x) => [h("span", text), draw_signed(x, scale), number(x === null ? "…" : signed(x))];
    return [n_layer > 1 ? draw_layers() : "",
        h(".heads", each(n_head, (head) => h("", {
            class: `head-card${is_silent(layer, head) ? " silent" : ""}`, key: head },
            draw_head_title(layer, head, of),
            as_buttons ? draw_large_map(layer, head) : draw_map_picture(layer, head),
            h(".worth", worth("this word", here && here[head]),
                can_run() ? worth("on average", average && average[head]) : "")))),
        can_run() ? h("p.soft.small", `On average: over ${of ? count(of.docs) : "…"} ${noun(2)} of this page.`) : ""];
}

function draw_head_title(layer, head, of)
{
    const { says, share, rest } = is_silent(layer, head) ? { says: "silent" } : of ? habit(of.heads[head], of.tokens)
        : { says: can_run() ? "…" : `head ${head}` };
    return h(".head-title",
        h("button.alone", { label: `head ${head}: show its arcs alone`, pressed: state.choice.head === head,
                            onclick: () => keep_head(head) }, head_tag(head)),
        h("", h("", h("b", says), " ", h("span.number.small", share)), h(".soft", rest || "\u00a0")),
        draw_switch("silent", layer, head, `head ${head}`));
}

// A signed bar: zero is a quarter from the left, or where it must be; outside the scale it ends in a notch.
function draw_signed(x, scale)
{
    const zero = 30;
    const part = x === null || x === undefined ? 0 : x / scale;
    const width = min(abs(part) * 66, part < 0 ? zero : 100 - zero);
    return h("span.signed", h("i", { style: `left: ${part < 0 ? zero - width : zero}%; width: ${width}%; ` +
        `background: ${signed_color(part)}` }), h("u", { style: `left: ${zero}%` }));
}

function draw_large_map(layer, head)
{
    const { n, tape } = state.shown;
    const name = stage_name(state.model, KINDS.attn_weights, layer, head);
    const cell = min(29, max(n <= 9 || (n <= 12 && !is_wide(48)) ? 24 : 11, floor(190 / n)));
    const label = (query) => h("button.label", {
        style: "grid-column: 1", key: `q${query}`, pressed: query === state.choice.pos,
        label: `position ${query}: ${seen_text(query)}`, onclick: () => update({ pos: query }),
    }, n <= 20 ? seen_text(query) : "");
    return h(".map", { style: `--n: ${n}; --cell: ${cell}px`,
                       ...row_of(".look, .label", `head ${head}: rows look at columns`) },
        h("span.top", { style: "grid-column: 1" }),
        each(n, (key) => h("span.top", n > 12 || (n > 7 && !key) ? "" : seen_text(key))),
        each(n, (query) => {
            const { at } = tape.by_name[query].get(name);
            return [label(query), each(query + 1, (key) => draw_look(query, key, name, at + key))];
        }));
}

function draw_look(query, key, name, at)
{
    const weight = state.shown.tape.value[at];
    const text = `${seen_text(query)} looks at ${seen_text(key)}: ${percent(weight)}`;
    const row = query !== state.choice.pos ? "" : key === query ? " row end" : " row";
    return h("button", {
        key: `${query} ${key}`, class: `look${row}${at === state.marks.at ? " chosen" : ""}`,
        style: `background: ${css_color(mixed(weight, "share"))}`, label: text, title: text,
        onclick: () => update({ pos: query, value: `${name}.${key}` }),
    });
}

function draw_map_picture(layer, head)
{
    const { shown, choice: { pos, value }, model, version } = state;
    const { n } = shown;
    const name = stage_name(model, KINDS.attn_weights, layer, head);
    const [chosen, i] = split_value(value || "");
    const go_there = (query, key) => update({ pos: query, value: `${name}.${min(key, query)}` });
    return choosable(`head ${head}: rows look at columns`, n, n, [pos, chosen === name ? i : pos], go_there,
        { style: "max-width: 220px" },
        map_picture(each(n, (query) => weights_at(shown, layer, head, query)), `${version} ${layer} ${head}`, HIDDEN),
        h("i", { style: `left: 0; width: 100%; top: ${100 * pos / n}%; height: ${100 / n}%` }));
}

// A picture in which a click chooses a row and a column, and the arrow keys those beside the chosen ones.
function choosable(label, rows, cols, [row, col], choose, attributes, ...content)
{
    const clipped = (x, n) => min(n - 1, max(0, x));
    const pick_at = (y, x) => choose(clipped(y, rows), clipped(x, cols));
    return h(".picture", {
        tabindex: 0, role: "application", label: `${label}; arrow keys choose`, ...attributes,
        onclick: (e) => {
            const { left, top, width, height } = box_of(e.currentTarget);
            pick_at(floor((e.clientY - top) / height * rows), floor((e.clientX - left) / width * cols));
        },
        onkeydown: (e) => {
            const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[e.key];
            if (moves) {
                e.preventDefault();
                pick_at(row + moves[0], col + moves[1]);
            }
        },
    }, content);
}
