// Who voted for this letter: the terms of a logit, as arcs and as a running sum. All figures come from votes_in().
"use strict";

// of heads: smaller ones have no arc; of all: smaller ones are 0.00
const LEAST_ARC = 0.05;
const LEAST = 0.005;
const MOST_ROWS = 5;

function open_votes(pos, id)
{
    state.opener = document.activeElement;
    update({ pos, votes: id, value: null });
    show_votes();
}

const show_votes = () => scroll_into_view(by_id("votes").querySelector("h2"), "start");

// The section is there while it has something to say.
function show_votes_or_not(id)
{
    by_id(id).hidden = state.choice.votes === null;
    show_letter(id);
}

function close_votes()
{
    const { choice: { pos, votes }, opener } = state;
    update({ votes: null });
    focus_again(document.querySelector(`[data-votes="${pos}.${votes}"]`) || opener);
}

const for_whom = (id) => id === state.model.BOS ? "the end" : isolated(token_text(id));
const vote_text = (x) => abs(x) < LEAST ? "0.00" : signed(x, 2);

// A row: who voted, in full and on a phone, how much, and the value that this leads to. A letter in the names stands by
// itself.
const row_of_vote = (key, vote, value, name, brief = name, more = {}) => ({ key, vote, value, name, brief, ...more });

// What is said of a row by those who read it aloud.
const says_of = ({ name }) => name.map((part) => part.tag ? part.children[0] : part).join("");

// The votes for one character, as rows: the letter itself, all others by size.
function rows_of_votes(id)
{
    const { shown, choice: { pos }, model } = state;
    const votes = votes_in(shown, pos, id, quiet_now());
    const name_of = (kind, layer, head) => stage_name(model, kind, layer, head);
    const letter = mono(seen_text(pos));
    const self = row_of_vote("self", votes.self, "emb_norm.0", ["the letter ", letter, " itself"], [letter, " itself"]);
    const heads = votes.heads.map(({ layer, head, position, vote }) => {
        const who = `${of_layer(layer)}head ${head}`;
        const value = `${name_of(KINDS.attn_weights, layer, head)}.${position}`;
        return row_of_vote(`h${layer}.${head}.${position}`, vote, value,
            [`${who}, looking at `, ...letter_parts(position)], [`${who} at `, mono(seen_text(position))],
            { layer, position });
    });
    const act = model.activation === "relu2" ? KINDS.act2 : KINDS.act;
    const units = votes.units.filter(({ vote }) => vote !== 0).map(({ layer, unit, vote }) => {
        const who = `${of_layer(layer)}unit ${unit}`;
        const value = `${name_of(act, layer, null)}.${unit}`;
        return row_of_vote(`u${layer}.${unit}`, vote, value, [`${who} of the MLP`], [who]);
    });
    return { ...votes, id, self, heads, others: [...heads, ...units].sort((a, b) => abs(b.vote) - abs(a.vote)) };
}

const of_layer = (layer) => state.model.n_layer > 1 ? `layer ${layer}, ` : "";

// "the second a", with the letter by itself.
function letter_parts(pos)
{
    const words = letter_at(pos).split(" ");
    return pos === 0 ? [letter_at(0)] : [words.slice(0, -1).map((word) => `${word} `).join(""), mono(words.at(-1))];
}

// The rows that are shown, with where each begins and ends in the running sum.
function running_sum({ self, others, total, logit, id })
{
    const largest_ones = others.slice(0, MOST_ROWS);
    const rest = total - sum_of([self, ...largest_ones].map(({ vote }) => vote));
    const silent = state.choice.silent.map(([layer, head]) =>
        row_of_vote(`s${layer}.${head}`, 0, null, [`${of_layer(layer)}head ${head}`], undefined, { is_silent: true }));
    const by_hand = abs(logit - total) > 1e-9
        ? [row_of_vote("edit", logit - total, state.choice.value, ["changed by hand"])] : [];
    let at = 0;
    return [
        ...[self, ...largest_ones, ...silent, row_of_vote("rest", rest, null, ["everything else"], ["all others"]),
            ...by_hand].map((row) => ({ ...row, from: at, to: at += row.vote })),
        row_of_vote("sum", logit, `logits.${id}`, [`votes for ${for_whom(id)}`], ["sum"], { from: 0, to: logit }),
    ];
}

// All tabs, kept while nothing changes: what they show stands on one scale.
const tabs_of_votes = kept(() => `${state.version} ${state.choice.pos} ${state.choice.votes} ${silent_text()}`, () => {
    const { pos, votes } = state.choice;
    const tabs = [...new Set([...guesses_at(pos), votes])].map(rows_of_votes);
    tabs.forEach((tab) => { tab.rows = running_sum(tab); });
    return tabs;
});

function draw_votes()
{
    const { choice: { votes: id, pos } } = state;
    if (id === null) {
        return [];
    }
    const tabs = tabs_of_votes();
    const tab = tabs.find((each_tab) => each_tab.id === id);
    const probs = probs_at(pos);
    const points = tabs.flatMap(({ rows }) => rows.flatMap(({ from, to }) => [from, to]));
    const low = min(0, ...points);
    const reach = max(0, ...points) - low || 1;
    const x = (at) => 100 * (at - low) / reach;
    const share = probs[id] < 0.0005 ? "less than 0.1%" : `${(100 * probs[id]).toFixed(1)}%`;
    return [
        h("h2", { tabindex: -1 }, "Why ", id === state.model.BOS ? "the end" : mono(for_whom(id)),
            `, at ${percent(probs[id])}?`),
        draw_sentence(tab),
        h(".tabs", row_of(".tab", "next character"), tabs.map((each_tab) => draw_tab(each_tab.id, probs))),
        draw_vote_arcs(tab, tabs),
        h(".votes", row_of(".vote", `votes for ${for_whom(id)}`), tab.rows.map((row) => draw_row(row, id, x))),
        h("p.soft.end", "e", h("sup", minus(tab.logit.toFixed(2))),
            ` over the sum of the same for all ${count(probs.length)} characters is ${share}.`),
        draw_all_votes(tab),
    ];
}

function draw_tab(id, probs)
{
    const is_true = id === state.shown.tokens[state.choice.pos + 1];
    const share = is_wide(48) ? percent(probs[id]) : `${(100 * probs[id]).toFixed(0)}%`;
    return h("button.tab", { key: id, pressed: id === state.choice.votes, class: is_true ? " true" : "",
                             onclick: () => update({ votes: id }, { replace: true }),
                             label: `${for_whom(id)} ${share}${is_true ? ", what really comes" : ""}` },
    glyph(token_text(id)), ` ${share}`);
}

function draw_sentence({ id, others, self })
{
    const most = others.find(({ vote }) => abs(vote) >= LEAST);
    const [first, ...rest] = most ? most.name : [""];
    return h("p.sentence",
        most ? [first[0].toUpperCase() + first.slice(1), rest, rest.length ? "," : "",
                ` votes ${vote_text(most.vote)} for ${for_whom(id)}: the most `,
                abs(most.vote) > abs(self.vote) ? "of all. " : "from anywhere but the letter itself. "]
            : "Nothing but the letter itself votes. ",
        link("Direct votes", toggle("direct", "votes"), { "aria-expanded": String(is_opened("direct")) }), ".",
        is_opened("direct") ? " These are direct votes: what each part adds by itself. What a unit votes also " +
            "depends on the heads." : "",
        state.choice.silent.length ? " A silent head votes 0; the sum is still the page's own logit." : "");
}

// Arcs, one for each head at each position, and the letters below them with all heads' votes from there.
function draw_vote_arcs({ heads, self }, tabs)
{
    const { pos } = state.choice;
    const is_phone = !is_wide(48);
    const width = width_of("next", 780);
    const gap = is_phone ? 5 : 10;
    const tile = max(40, (width - gap * pos) / (pos + 1));
    const wide = tile * (pos + 1) + gap * pos;
    const height = is_phone ? 96 : 140;
    const most = max(...tabs.flatMap((tab) => tab.heads.map(({ vote }) => abs(vote))), 1e-12);
    const large = heads.filter(({ vote }) => abs(vote) >= LEAST_ARC).sort((a, b) => b.position - a.position);
    const arcs = place_arcs(large.map((row) => ({ row, key: row.position,
        thick: max(1.5, (is_phone ? 11 : 16) * abs(row.vote) / most) })), pos, { tile, gap, height, space: 2 });
    const by_size = [...arcs].sort((a, b) => abs(b.row.vote) - abs(a.row.vote));
    const badges = place_badges(by_size.filter((a) => a.rx > 4), { height, wide: 46, tall: 20 });
    return [
        arcs.length ? "" : h("p.soft", "No head adds much here."),
        h(".vote-word", { "data-wide": wide > width + 1, style: `--tile: ${tile}px; --gap: ${gap}px` }, h("", {
            style: `width: ${wide}px` },
            arcs.length ? s("svg.arcs", { width: wide, height, viewBox: `0 0 ${wide} ${height}`, ...HIDDEN },
                arcs.map(draw_vote_arc),
                badges.map(({ row, ...a }) => draw_badge(a, vote_text(row.vote), 46, 20, signed_color(row.vote), {
                    key: `b${row.key}`, class: faded(row.key), onclick: choose_vote(row.value),
                    ...pointing(row.key) }))) : "",
            h(".tiles", each(pos + 1, (position) => draw_vote_tile(position, heads, self, tile))))),
    ];
}

const faded = (key) => state.pointed !== null && state.pointed !== key ? " faded" : "";

// The arc and the row of a vote light up together.
const pointing = (key) => pointed_at("pointed", key, "votes");

const choose_vote = (value) => () => {
    state.opener = document.activeElement;
    update({ value });
};

function draw_vote_arc({ row, path, stroke })
{
    return s("path", { key: row.key, d: path, stroke: signed_color(row.vote), "stroke-width": stroke.toFixed(2),
        "stroke-dasharray": row.layer < state.model.n_layer - 1 ? "6 4" : null, class: `answers${faded(row.key)}`,
        "data-vote": row.key, onclick: choose_vote(row.value), ...pointing(row.key) });
}

function draw_vote_tile(position, heads, self, tile)
{
    const { pos } = state.choice;
    const here = heads.filter((row) => row.position === position);
    const vote = sum_of(here.map((row) => row.vote)) + (position === pos ? self.vote : 0);
    const is_lit = here.some((row) => row.key === state.pointed);
    return h(".vote-tile", { key: position, class: `${position === pos ? " here" : ""}${is_lit ? " lit" : ""}` },
        h("span.char", glyph(seen_text(position))),
        number(tile < 44 ? signed(vote, 1) : vote_text(vote)));
}

// A row of the running sum: its bar begins where the last one ended.
function draw_row(row, id, x)
{
    const { key, vote, from, to, value } = row;
    const color = key === "sum" ? ACCENT : abs(vote) < LEAST ? "none" : signed_color(vote);
    const is_chosen = value && value === state.choice.value;
    return h("button.vote", {
        key, class: `${key === "sum" ? " sum" : ""}${row.is_silent ? " silent" : ""}${is_chosen ? " chosen" : ""}`,
        label: `${key === "sum" ? "the sum of all" : says_of(row)}, votes ${vote_text(vote)} for ${for_whom(id)}`,
        "data-vote": key, ...pointing(key),
        onclick: value ? choose_vote(value) : key === "rest" ? toggle("all votes", "votes") : null,
    }, h("span.name", is_wide(48) ? row.name : row.brief),
    h("span.sum-bar", h("i",
        { style: `left: ${x(min(from, to))}%; width: ${abs(x(to) - x(from))}%; background: ${color}` }),
        h("u", { style: `left: ${x(to)}%` })),
    number(row.is_silent ? "silent" : vote_text(vote)));
}

// Every vote, sorted; all digits on demand.
function draw_all_votes({ self, others, total })
{
    const is_shown = is_opened("all votes");
    const is_long = is_opened("digits");
    const rows = [self, ...others];
    const digits = (x) => is_long ? all_digits(x) : vote_text(x);
    return [
        h(".tools",
            button("all-votes", `All ${count(rows.length)} votes`, toggle("all votes", "votes"),
                { "aria-expanded": String(is_shown) }),
            is_shown ? link(is_long ? "two digits" : "all digits", toggle("digits", "votes", "made")) : "",
            button("close-votes", "Close", close_votes)),
        is_shown ? h("table.all", h("thead", h("tr", h("th", "who"), h("th", "vote"))),
            h("tbody", rows.map(({ name, vote, value }) =>
                h("tr", h("td", link(name, choose_vote(value))), h("td", digits(vote)))),
            h("tr.sum", h("td", "all"), h("td", digits(total))))) : "",
    ];
}
