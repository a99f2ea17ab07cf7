// The units of the MLP: when they fire, and on what.
"use strict";

// of a layer that are shown
const MOST_UNITS = 512;

function draw_units()
{
    const { choice: { layer, word }, model, shown } = state;
    const n = 4 * model.n_embd;
    const of = need_survey();
    const some = min(n, MOST_UNITS);
    const acts = shown.tape.by_name.map((names) => names.get(stage_name(model, KINDS.act, layer, null)));
    const fires_here = (u) => acts.some(({ at }) => shown.tape.value[at + u] > 0);
    const never = of ? count(of.units.filter(({ fires }) => fires === 0).length) : "…";
    const lead = !can_run() ? "Without documents in the page there is nothing to count. "
        : "The darker, the more often it fires, on these letters. " +
            `${never} of ${count(n)} never fire on ${of ? count(of.docs) : "…"} ${noun(2)}. `;
    return [
        h("p.soft", lead, "A dot: it fires in ", mono(visible_word(word)), "."),
        model.n_layer > 1 ? draw_layers() : "",
        h(".units",
            h(".unit-grid", row_of(".unit", "units"), each(some, (u) => draw_unit_cell(of, u, layer, fires_here(u)))),
            draw_unit(of)),
        some < n ? h("p.soft.small", `The first ${some} of ${count(n)}.`) : ""];
}

function draw_unit_cell(of, u, layer, is_here)
{
    const often = of ? of.units[u].fires / of.tokens : 0;
    const letters = of ? letters_of(of.units[u]) : "";
    const off = has_pair(state.choice.units, layer, u);
    const says = !of ? "" : often ? `fires on ${percent(often)}, ${letters}` : "never fires";
    return h("button", {
        key: u, class: `unit${of && !often ? " never" : ""}${is_here ? " here" : ""}${off ? " off" : ""}`,
        style: often ? `background: ${css_color(mixed(sqrt(often), "share"))}` : of ? "" : "background: var(--raised)",
        pressed: state.choice.unit === u, onclick: () => choose_unit(u),
        label: `unit ${u}: ${says}${is_here ? ", fires in this word" : ""}${off ? ", off" : ""}`,
    }, letters.length > 3 && (letters.length > 5 || !letters.includes(" ")) ? h("small", letters) : letters);
}

// Up to three letters that make a fifth of its firings each; "many" if the first three make less than half.
function letters_of({ fires, on: times })
{
    const order = [...times.keys()].sort((a, b) => times[b] - times[a]).slice(0, 3);
    const some = order.filter((id, k) => !k || times[id] >= fires / 5);
    return !fires ? "" : sum_of(order.map((id) => times[id])) < fires / 2 ? "many"
        : some.map((id) => id === state.model.BOS ? "start" : token_text(id)).join(" ");
}

function choose_unit(u)
{
    update({ unit: u }, { replace: true });
    const of = need_survey();
    if (of && of.without?.unit !== u) {
        start_job("unit", unit_pieces(of, u));
    }
}

function draw_unit(of)
{
    const { layer, unit: u } = state.choice;
    if (u === null || u >= 4 * state.model.n_embd) {
        return h(".unit-card.soft", "Choose a unit to see where it fires most, and to switch it off.");
    }
    const unit = of && of.units[u];
    const value = `${stage_name(state.model, KINDS.act, layer, null)}.${u}`;
    return h(".unit-card",
        h(".head-title", h("h3", `Unit ${u}`), draw_switch("units", layer, u, `unit ${u}`)),
        h("p", !of ? "…" : unit.fires
            ? ["Fires on ", number(percent(unit.fires / of.tokens)), " of characters: ", h("b", letters_of(unit)), "."]
            : `Never fires on ${plural_noun(of.docs)}.`,
        of?.without?.unit === u
            ? h("span.soft", " Without it, on average ", number(signed(of.without.change)), ".") : ""),
        link("Its number, here", () => update({ value })),
        draw_examples(unit ? unit.best : []));
}

function draw_examples(examples)
{
    const { documents } = state.file;
    return !examples.length ? "" : [h("p.soft", "It fires most here:"),
        h("ul.examples", { "data-row": "button" }, examples.map(({ x, d, pos }) => {
            const chars = Array.from(documents[d], visible);
            return h("li", h("button", { onclick: () => update({ word: documents[d], pos }) },
                h("bdi", chars.slice(0, max(0, pos - 1)).join(""), h("mark", pos ? chars[pos - 1] : "start"),
                    pos ? "" : " ", h("span.soft", chars.slice(pos).join(""))), h("span", x.toFixed(2))));
        }))];
}
