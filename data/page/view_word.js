// The word: arcs, tiles, what they say; three invitations.
"use strict";

const head_in_focus = () => state.hovered ?? state.choice.head;

// A head under the pointer, or with the focus: the arcs of the others fade.
const hovering = (head) => pointed_at("hovered", head, "next");

const keep_head = (head) => update({ head: state.choice.head === head ? null : head }, { replace: true });

// How wide tiles are, from the width of their column; before there is one, as the style makes it.
function tile_size()
{
    const all = width_of("next", 1200);
    const area = width_of("tiles-box", is_open() || !is_wide(64) ? all : floor(all * 0.65));
    const { n } = state.shown;
    const gap = area < 500 || n > 8 ? 6 : 12;
    const fits = floor((area - gap * (n - 1)) / n);
    const least = area < 500 ? 41 : 54;
    // one that is half in view invites to swipe
    const swipes = area < 500 ? floor(area / 6.5) - gap : least;
    return { tile: min(120, fits >= least ? fits : max(least, swipes)), gap, area, is_phone: area < 500 };
}

function draw_next()
{
    const { tile, gap, area, is_phone } = tile_size();
    const { n } = state.shown;
    const wide = n * (tile + gap) - gap;
    return [
        h(".first",
            h(".word", { id: "tiles-box", "data-wide": wide > area }, h("", { class: tile < 80 ? "narrow" : "",
                style: `--tile: ${tile}px; --gap: ${gap}px; width: ${wide}px` },
                draw_arcs(tile, gap, is_phone),
                h(".tiles", row_of(".char", "the word"),
                    each(n, (pos) => draw_tile(pos, tile < 80))))),
            draw_reading(is_phone)),
        draw_invitations(is_phone || !is_wide(48)),
        is_phone ? draw_total() : "",
    ];
}

// The arcs from the chosen character to those that heads look at, with the width of each.
function arcs_now(full)
{
    const { layer, pos } = state.choice;
    const arcs = [];
    for (let key = pos; key >= 0; key--) {
        for (let head = 0; head < state.model.n_head; head++) {
            const weight = is_silent(layer, head) ? 0 : rows_of_weights(layer, head)[key];
            if (weight >= 0.05) {
                arcs.push({ key, head, weight, thick: max(1, full * weight) });
            }
        }
    }
    return arcs;
}

// Arcs from the chosen character back to those that each head looks at. Their badges answer as the list of heads does.
function draw_arcs(tile, gap, is_phone)
{
    const height = is_phone ? 92 : 158;
    const width = state.shown.n * (tile + gap) - gap;
    const arcs = place_arcs(arcs_now(is_phone ? 6 : 13), state.choice.pos,
        { tile, gap, height, space: is_phone ? 1.5 : 2 });
    const focus = head_in_focus();
    const fades = (a) => focus !== null && a.head !== focus ? " faded" : "";
    const large = arcs.filter((a) => a.key !== state.choice.pos && a.weight >= (is_phone ? 0.3 : 0.2) && a.rx > 9);
    const badges = place_badges(large.sort((a, b) => b.weight - a.weight), { height, wide: 18, tall: 18 });
    return s("svg.arcs", { width, height, viewBox: `0 0 ${width} ${height}`, ...HIDDEN },
        arcs.map((a) => s("path", { key: `${a.head} ${a.key}`, d: a.path, stroke: head_color(a.head), pathLength: 1,
                                    "stroke-width": a.stroke.toFixed(2), class: fades(a) })),
        badges.map((a) => draw_badge(a, String(a.head), 18, 18, head_color(a.head), { key: `b${a.head} ${a.key}`,
            class: fades(a), "data-head": a.head, onclick: () => keep_head(a.head), ...hovering(a.head) })));
}

const rows_here = kept(() => `${state.version} ${state.choice.pos}`, () => new Map());

function rows_of_weights(layer, head)
{
    const rows = rows_here();
    const name = `${layer}.${head}`;
    if (!rows.has(name)) {
        rows.set(name, weights_at(state.shown, layer, head, state.choice.pos));
    }
    return rows.get(name);
}

const probs_at = (pos) => numbers_of(state.shown.tape, state.shown.probs[pos], state.model.vocab_size);

// The five likeliest characters after a position; the true one is among them.
function guesses_at(pos, probs = probs_at(pos))
{
    const target = state.shown.tokens[pos + 1];
    const order = probs.map((_, id) => id).sort((a, b) => probs[b] - probs[a] || a - b);
    const top = order.slice(0, 5);
    return top.includes(target) ? top : [...top.slice(0, 4), target];
}

// A bar opens the votes for its character.
function draw_bar(pos, id, rank, { probs, is_narrow })
{
    const is_true = id === state.shown.tokens[pos + 1];
    const is_chosen = state.choice.votes === id && state.choice.pos === pos;
    const share = is_narrow ? (100 * probs[id]).toFixed(0) : percent(probs[id]);
    return h("button", {
        class: `bar-of${is_true ? " true" : ""}${is_chosen ? " chosen" : ""}`,
        style: `--p: ${probs[id].toFixed(4)}`, key: rank, "data-votes": `${pos}.${id}`,
        label: `${token_text(id)} ${share}${is_true ? ", what really comes" : ""}: why?`,
        onclick: () => open_votes(pos, id),
    }, glyph(token_text(id)), " ", h("span", share));
}

function draw_tile(pos, is_narrow)
{
    const probs = probs_at(pos);
    const loss = state.shown.tape.value[state.shown.losses[pos]].toFixed(2);
    return h(".tile", { key: pos, class: pos === state.choice.pos ? " here" : "" },
        h("button.char", { pressed: pos === state.choice.pos, label: `position ${pos}: ${seen_text(pos)}`,
            onclick: () => update({ pos }), title: seen_text(pos) }, glyph(seen_text(pos))),
        h(".bars", row_of(".bar-of", `after ${seen_text(pos)}`),
            guesses_at(pos, probs).map((id, rank) => draw_bar(pos, id, rank, { probs, is_narrow }))),
        h("button.loss", { onclick: () => update({ pos, value: "loss_t.0" }),
            label: `loss ${loss} at position ${pos}` },
            `${is_narrow ? "" : "loss "}${loss}`));
}

function best_at(pos)
{
    const probs = probs_at(pos);
    const share = max(...probs);
    return { id: probs.indexOf(share), share };
}

// Where a head looks from the chosen position, in a few words.
function look_of(head, some, is_phone)
{
    const { layer, pos } = state.choice;
    const row = rows_of_weights(layer, head);
    const order = row.map((_, key) => key).sort((a, b) => row[b] - row[a]);
    const text = (key) =>
        `${key === pos ? "itself" : isolated(seen_text(key))}${is_phone ? "" : ` ${share_text(row[key])}`}`;
    return order.filter((key) => row[key] >= (is_phone ? 0.33 : 0.08)).slice(0, some).map(text).join(", ") || "all";
}

function draw_looks(heads, is_phone)
{
    const { layer } = state.choice;
    const some = heads > 6 ? 1 : is_phone ? 2 : 3;
    return h("ul", { class: `looks${heads > 6 ? " many" : ""}`, "data-row": "button" }, each(heads, (head) => {
        const off = is_silent(layer, head);
        return h("li", h("button", {
            pressed: state.choice.head === head, class: off ? "silent" : "", onclick: () => keep_head(head),
            ...hovering(head),
        }, head_tag(head), h("span", off ? "silent" : look_of(head, some, is_phone))));
    }));
}

function draw_reading(is_phone)
{
    const { pos } = state.choice;
    const { id, share } = best_at(pos);
    const heads = min(state.model.n_head, 16);
    const how_many = heads === 1 ? "one head looks" : `${["two", "three", "four"][heads - 2] || heads} heads look`;
    return h(".reading",
        h("h2", pos ? ["After ", mono(before_text(pos)), " it expects "] : "At the start it expects ",
            id === state.model.BOS ? "the end" : mono(token_text(id)), `, at ${percent(share)}`),
        h("p.soft", is_phone ? "Figures are percent; the frame marks what really comes. Choose a bar: why?"
            : "Below each character is what it expects next. The frame marks what really comes. Choose a bar: why?"),
        state.model.n_layer > 1 ? draw_layers() : "",
        h("p.looks-head", "From ", mono(seen_text(pos)), `, ${how_many} back`),
        draw_looks(heads, is_phone),
        h("p.soft.hint.small", "The wider the arc, the more it looks there."),
        is_phone ? "" : draw_total());
}

function draw_total()
{
    const { shown, run } = state;
    const loss = shown.tape.value[shown.loss];
    const said = (...what) => h("span.said-now", what);
    const steps = run.on_word.length;
    return h(".total",
        link(loss.toFixed(3), () => update({ value: "loss.0" }), { id: "word-loss" }),
        h("span", "is the loss of the word: how much it surprises the model, on average.",
            steps ? said(` ${plural(steps, "step")} on it: ${run.on_word[0].loss.toFixed(3)} → ${loss.toFixed(3)}. `,
                link("Back to the file", () => seek("file"))) : "",
            silent_text() ? said(` ${silent_words()} `, link("Hear all", hear_all)) : ""));
}

const share_text = (p) => p > 0.99 && p < 0.9995 ? `${(100 * p).toFixed(1)}%` : `${(100 * p).toFixed(0)}%`;

function silent_words()
{
    const { silent, units } = state.choice;
    const parts = [silent.length ? plural(silent.length, "head") : "",
        units.length ? plural(units.length, "unit") : ""];
    return `${parts.filter((x) => x).join(" and ")} silent, here and in learning and writing.`;
}

const hear_all = () => update({ silent: [], units: [] }, { replace: true });

function draw_layers()
{
    return h(".layers", { role: "group", label: "layer" }, h("span.soft", "Layer"),
        each(state.model.n_layer, (layer) => h("button.button", { pressed: layer === state.choice.layer,
            onclick: () => update({ layer }, { replace: true }) }, String(layer))));
}

// The three invitations, and their small drawings.
const DRAWINGS = {
    type: () => [s("rect", { x: 2, y: 10, width: 38, height: 21, rx: 4, fill: "none", stroke: RULE }),
        s("text", { x: 8, y: 25, style: "font: 13px var(--mono); fill: var(--ink)" }, "ada"),
        s("path", { d: "M34 14v13", stroke: ACCENT, "stroke-width": 2 })],
    learn: () => [s("path", { d: "M3 4v33h38", stroke: RULE, fill: "none" }),
        s("path", { d: "M5 6c4 16 6 22 13 25 6 2 12 2 21 2.5", stroke: ACCENT, "stroke-width": 2.5, fill: "none" }),
        s("circle", { cx: 15, cy: 28, r: 4.5, fill: ACCENT })],
    follow: () => [s("path", { d: "M4 9h14M4 20h24M4 31h8", stroke: RULE, "stroke-width": 1 }),
        s("rect", { x: 4, y: 4, width: 16, height: 9, fill: POSITIVE }),
        s("rect", { x: 20, y: 16, width: 14, height: 9, fill: POSITIVE }),
        s("rect", { x: 26, y: 28, width: 8, height: 9, fill: "var(--negative)" })],
};

const draw_invitation = (key, title, text, action) => h("button.invitation", { id: `invite-${key}`, onclick: action },
    s("svg", { viewBox: "0 0 44 40", ...HIDDEN }, DRAWINGS[key]()), h("b", title), h("span", text));

function draw_invitations(is_phone)
{
    const last = run_length();
    const { id, share } = best_at(state.choice.pos);
    const figure = percent(share);
    const learning = !can_run() ? "This page has no documents to learn from; one step on the word works."
        : `${is_phone ? "" : `From random numbers to ${noun(2)}: `}${plural(last, "step")} in ` +
            `${SECONDS[state.run.speed]} seconds.`;
    return h(".invitations",
        draw_invitation("type", `Type a ${noun(1)}`,
            `${is_phone ? "" : "Yours, or one that never was. "}Everything on the page follows.`,
            type_a_name),
        draw_invitation("learn", "Watch it learn", learning, watch_it_learn),
        draw_invitation("follow", "Follow one number", is_phone ? `Who voted for this ${figure}?`
            : `Which heads, letters and units voted for this ${figure}?`, () => open_votes(state.choice.pos, id)));
}

function type_a_name()
{
    scroll_to_top();
    by_id("word").focus({ preventScroll: true });
    by_id("word").select();
}

function watch_it_learn()
{
    const action = can_run() ? play : step_on_word;
    action();
    scroll_into_view(by_id("learn"), "start");
}
