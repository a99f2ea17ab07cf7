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

function show_votes()
{
    scroll_into_view(by_id("votes").querySelector("h2"), "start");
}

function close_votes()
{
    const { choice: { pos, votes }, opener } = state;
    update({ votes: null });
    const bar = document.querySelector(`[data-votes="${pos}.${votes}"]`) || opener;
    if (bar && bar.isConnected) {
        bar.focus({ preventScroll: true });
        scroll_into_view(bar, "nearest");
    }
}

const for_whom = (id) => id === state.model.BOS ? "the end" : token_text(id);
const vote_text = (x) => abs(x) < LEAST ? "0.00" : signed(x, 2);
const vote_color = (x) => `var(--${x < 0 ? "negative" : "positive"})`;

// The votes for one character, as rows: the letter itself, all others by size. A row has a key, and its names when
// asked.
function rows_of_votes(id)
{
    const { shown, choice: { pos }, model } = state;
    const votes = votes_in(shown, pos, id, quiet_now());
    const name = (kind, layer, head) => stage_name(model, kind, layer, head);
    const self = { key: "self", vote: votes.self, value: "emb_norm.0", names: () => names_of_self(pos) };
    const heads = votes.heads.map((of) => ({
        ...of, key: `h${of.layer}.${of.head}.${of.position}`, names: () => names_of_head(of),
        value: `${name(KINDS.attn_weights, of.layer, of.head)}.${of.position}`,
    }));
    const units = votes.units.filter(({ vote }) => vote !== 0).map((of) => ({
        ...of, key: `u${of.layer}.${of.unit}`, names: () => names_of_unit(of),
        value: `${name(model.activation === "relu2" ? KINDS.act2 : KINDS.act, of.layer, null)}.${of.unit}`,
    }));
    const others = [...heads, ...units].sort((a, b) => abs(b.vote) - abs(a.vote));
    return { ...votes, id, self, heads, others };
}

// What a row is called: in full, on a phone, and for those who do not see it.
const named = (text) => ({ name: [text], brief: [text], says: text });
const of_layer = (layer) => state.model.n_layer > 1 ? `layer ${layer}, ` : "";

function names_of_self(pos)
{
    const letter = seen_text(pos);
    return { name: ["the letter ", mono(letter), " itself"], brief: [mono(letter), " itself"],
             says: `the letter ${letter} itself` };
}

function names_of_head({ layer, head, position })
{
    const who = `${of_layer(layer)}head ${head}`;
    return { name: [`${who}, looking at `, mono(letter_at(position))], brief: [`${who} at `, mono(seen_text(position))],
             says: `${who}, looking at ${letter_at(position)}` };
}

function names_of_unit({ layer, unit })
{
    const who = `${of_layer(layer)}unit ${unit}`;
    return { name: [`${who} of the MLP`], brief: [who], says: `${who} of the MLP` };
}

// The rows that are shown, with where each begins and ends in the running sum.
function running_sum({ self, others, total, logit, id })
{
    const largest_five = others.slice(0, MOST_ROWS);
    const rest = total - sum_of([self, ...largest_five].map(({ vote }) => vote));
    const silent = state.choice.silent.map(([layer, head]) => ({
        key: `s${layer}.${head}`, vote: 0, is_silent: true, value: null,
            names: () => named(`${of_layer(layer)}head ${head}`),
    }));
    const rows = [self, ...largest_five, ...silent, { key: "rest", vote: rest, value: null,
        names: () => ({ name: ["everything else"], brief: ["all others"], says: "everything else" }) }];
    if (abs(logit - total) > 1e-9) {
        rows.push({ key: "edit", vote: logit - total, value: state.choice.value,
            names: () => named("changed by hand") });
    }
    let at = 0;
    const placed = rows.map((row) => ({ ...row, from: at, to: at += row.vote }));
    const sum = { key: "sum", vote: logit, from: 0, to: logit, value: `logits.${id}`,
                  names: () => ({ name: [`votes for ${for_whom(id)}`], brief: ["sum"], says: "the sum of all" }) };
    return [...placed, sum];
}

// All tabs, kept while nothing changes: what they show stands on one scale.
const votes_kept = { key: "", tabs: [] };

function tabs_of_votes()
{
    const { version, choice: { pos, votes } } = state;
    const key = `${version} ${pos} ${votes} ${silent_text()}`;
    if (votes_kept.key !== key) {
        const ids = guesses_at(pos);
        const tabs = (ids.includes(votes) ? ids : [...ids, votes]).map(rows_of_votes);
        tabs.forEach((tab) => { tab.rows = running_sum(tab); });
        Object.assign(votes_kept, { key, tabs });
    }
    return votes_kept.tabs;
}

function draw_votes()
{
    const { choice: { votes: id, pos } } = state;
    if (id === null) {
        return [];
    }
    const tabs = tabs_of_votes();
    const tab = tabs.find((each_tab) => each_tab.id === id);
    const probs = probs_at(pos);
    return [
        h("h2", { tabindex: -1 }, "Why ", id === state.model.BOS ? "the end" : mono(for_whom(id)),
            `, at ${percent(probs[id])}?`),
        draw_sentence(tab),
        h(".tabs", row_of(".tab", "next character"), tabs.map((each_tab) => draw_tab(each_tab.id, probs))),
        draw_vote_arcs(tab, tabs),
        h(".votes", row_of(".vote", `votes for ${for_whom(id)}`), tab.rows.map((row) => draw_row(row, id, tabs))),
        h("p.soft.end", "e", h("sup", minus(tab.logit.toFixed(2))),
            ` over the sum of the same for all ${count(probs.length)} characters is ${percent_of(probs[id])}.`),
        draw_all_votes(tab),
    ];
}

const percent_of = (p) => p < 0.0005 ? "less than 0.1%" : `${(100 * p).toFixed(1)}%`;

function draw_tab(id, probs)
{
    const is_true = id === state.shown.tokens[state.choice.pos + 1];
    return h("button.tab", { key: id, pressed: id === state.choice.votes, class: is_true ? " true" : "",
        onclick: () => update({ votes: id }, { replace: true }),
        label: `${for_whom(id)} ${percent(probs[id])}${is_true ? ", what really comes" : ""}` },
    glyph(token_text(id)), ` ${percent(probs[id])}`);
}

function draw_sentence({ id, others, self })
{
    const most = others.find(({ vote }) => abs(vote) >= LEAST);
    const toggle = () => { state.tells_direct = !state.tells_direct; redraw("votes"); };
    const name = most && most.names().name.map((part, k) => k ? part : part[0].toUpperCase() + part.slice(1));
    return h("p.sentence",
        most ? [name, ` votes ${vote_text(most.vote)} for ${for_whom(id)}: `,
                abs(most.vote) > abs(self.vote)
                    ? "the most of all. " : "the most from anywhere but the letter itself. "]
            : "Nothing but the letter itself votes. ",
        h("button.link", { "aria-expanded": String(Boolean(state.tells_direct)), onclick: toggle }, "Direct votes"),
            ".",
        state.tells_direct ? " These are direct votes: what each part adds by itself. What a unit votes also " +
            "depends on the heads." : "",
        state.choice.silent.length ? " A silent head votes 0; the sum is still the page's own logit." : "");
}

// Arcs, one for each head at each position, and the letters below them with all heads' votes from there.
function draw_vote_arcs({ heads, self }, tabs)
{
    const { choice: { pos }, model: { n_layer } } = state;
    const is_phone = !is_wide(48);
    const width = width_of("next", 780);
    const gap = is_phone ? 5 : 10;
    const tile = max(40, (width - gap * pos) / (pos + 1));
    const wide = tile * (pos + 1) + gap * pos;
    const height = is_phone ? 96 : 140;
    const most = max(...tabs.flatMap((tab) => tab.heads.map(({ vote }) => abs(vote))), 1e-12);
    const large = heads.filter(({ vote }) => abs(vote) >= LEAST_ARC).sort((a, b) => b.position - a.position);
    const arcs = large.map((row) => ({ ...row, key: row.position, row,
                                       thick: max(1.5, (is_phone ? 11 : 16) * abs(row.vote) / most) }));
    place_arcs(arcs, pos, { tile, gap, height, space: 2 });
    const by_size = [...arcs].sort((a, b) => abs(b.vote) - abs(a.vote));
    const badges = place_badges(by_size.filter((a) => a.rx > 4), { height, wide: 46, tall: 20 });
    return [
        arcs.length ? "" : h("p.soft", "No head adds much here."),
        h(".vote-word", { "data-wide": wide > width + 1, style: `--tile: ${tile}px; --gap: ${gap}px` }, h("", {
            style: `width: ${wide}px` },
            arcs.length ? s("svg.arcs", { width: wide, height, viewBox: `0 0 ${wide} ${height}`, ...HIDDEN },
                arcs.map((a) => draw_vote_arc(a, n_layer)), badges.map(draw_vote_badge)) : "",
            h(".tiles", each(pos + 1, (position) => draw_vote_tile(position, heads, self, tile))))),
    ];
}

const is_faded = (key) => state.pointed !== null && state.pointed !== key;

function pointing(key)
{
    const point = (to) => () => { if (state.pointed !== to) { state.pointed = to; draw_soon("votes"); } };
    return { onpointerenter: point(key), onpointerleave: point(null) };
}

const choose_vote = (value) => () => {
    state.opener = document.activeElement;
    update({ value });
};

function draw_vote_arc({ row, path, stroke, layer }, n_layer)
{
    return s("path", { key: row.key, d: path, stroke: vote_color(row.vote), "stroke-width": stroke.toFixed(2),
        "stroke-dasharray": layer < n_layer - 1 ? "6 4" : null, class: `answers${is_faded(row.key) ? " faded" : ""}`,
        "data-vote": row.key, onclick: choose_vote(row.value), ...pointing(row.key) });
}

function draw_vote_badge({ row, badge: [x, y] })
{
    return s("g.badge", { key: `b${row.key}`, class: is_faded(row.key) ? " faded" : "", onclick: choose_vote(row.value),
                          ...pointing(row.key) },
        s("rect", { x: x - 23, y: y - 10, width: 46, height: 20, rx: 5, stroke: vote_color(row.vote) }),
        s("text", { x, y: y + 0.5 }, vote_text(row.vote)));
}

function draw_vote_tile(position, heads, self, tile)
{
    const { pos } = state.choice;
    const from_here = sum_of(heads.filter((row) => row.position === position).map(({ vote }) => vote));
    const vote = from_here + (position === pos ? self.vote : 0);
    const is_lit = state.pointed && heads.some((row) => row.key === state.pointed && row.position === position);
    return h(".vote-tile", { key: position, class: `${position === pos ? " here" : ""}${is_lit ? " lit" : ""}` },
        h("span.char", glyph(seen_text(position))),
        h("span.number", tile < 44 ? signed(vote, 1) : vote_text(vote)));
}

// A row of the running sum: its bar begins where the last one ended.
function draw_row({ key, vote, from, to, names, value, is_silent: off }, id, tabs)
{
    const { name, brief, says } = names();
    const points = tabs.flatMap(({ rows }) => rows.flatMap((row) => [row.from, row.to]));
    const low = min(0, ...points);
    const high = max(0, ...points);
    const x = (at) => 100 * (at - low) / (high - low || 1);
    const color = key === "sum" ? ACCENT : abs(vote) < LEAST ? "none" : vote_color(vote);
    const is_chosen = value && value === state.choice.value;
    const act = value ? choose_vote(value) : key === "rest" ? toggle_all_votes : null;
    return h("button.vote", {
        key, class: `${key === "sum" ? " sum" : ""}${off ? " silent" : ""}${is_chosen ? " chosen" : ""}`,
        label: `${says}, votes ${vote_text(vote)} for ${for_whom(id)}`, "data-vote": key, onclick: act,
            ...pointing(key),
        onfocus: pointing(key).onpointerenter, onblur: pointing(key).onpointerleave,
    }, h("span.name", is_wide(48) ? name : brief),
    h("span.sum-bar", h("i",
        { style: `left: ${x(min(from, to))}%; width: ${abs(x(to) - x(from))}%; background: ${color}` }),
        h("u", { style: `left: ${x(to)}%` })),
    number(off ? "silent" : vote_text(vote)));
}

function toggle_all_votes()
{
    state.all_votes = !state.all_votes;
    redraw("votes");
}

// Every vote, sorted; all digits on demand.
function draw_all_votes({ self, others, total })
{
    const { all_votes, with_all_digits } = state;
    const digits = () => { state.with_all_digits = !with_all_digits; redraw("votes"); };
    const figure = (x) => with_all_digits ? all_digits(x) : vote_text(x);
    const rows = [self, ...others].map(({ names, vote, value }) =>
        [h("button.link", { onclick: choose_vote(value) }, all_votes ? names().name : ""), figure(vote)]);
    return [
        h(".tools", h("button.button",
            { id: "all-votes", "aria-expanded": String(all_votes), onclick: toggle_all_votes },
            `All ${count(rows.length)} votes`),
        all_votes ? h("button.link", { onclick: digits }, with_all_digits ? "two digits" : "all digits") : "",
        h("button.button", { id: "close-votes", onclick: close_votes }, "Close")),
        all_votes ? h("table.all", h("thead", h("tr", h("th", "who"), h("th", "vote"))),
            h("tbody", rows.map(([who, vote]) => h("tr", h("td", who), h("td", vote))),
                h("tr.sum", h("td", "all"), h("td", figure(total))))) : "",
    ];
}
