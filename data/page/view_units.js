// The units of the MLP: when they fire, and on what.
"use strict";

function draw_units()
{
    const { choice: { layer, word }, model, shown } = state;
    const n = 4 * model.n_embd;
    const of = need_survey();
    const some = min(n, 512);
    const acts = shown.tape.by_name.map((names) => names.get(stage_name(model, KINDS.act, layer, null)));
    const fires_here = (u) => acts.some(({ at }) => shown.tape.value[at + u] > 0);
    const never = of ? count(each(n, (u) => of.fires[u]).filter((x) => x === 0).length) : "…";
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
    const often = of ? of.fires[u] / of.tokens : 0;
    const letters = of ? letters_of(of, u) : "";
    const off = is_off(layer, u);
    const says = !of ? "" : often ? `fires on ${percent(often)}, ${letters}` : "never fires";
    return h("button", {
        key: u, class: `unit${of && !often ? " never" : ""}${is_here ? " here" : ""}${off ? " off" : ""}`,
        style: often ? `background: ${css_color(mixed(sqrt(often), "share"))}` : of ? "" : "background: var(--raised)",
        pressed: state.choice.unit === u, onclick: () => choose_unit(u),
        label: `unit ${u}: ${says}${is_here ? ", fires in this word" : ""}${off ? ", off" : ""}`,
    }, letters.length > 5 || (letters.length > 3 && !letters.includes(" ")) ? h("small", letters) : letters);
}

// Up to three letters that make a fifth of its firings each; "many" if the first three make less than half.
function letters_of(of, u)
{
    const on = of.on[u];
    const all = of.fires[u];
    const order = each(state.model.vocab_size, (id) => id).sort((a, b) => on[b] - on[a]).slice(0, 3);
    if (!all) {
        return "";
    }
    const text = (id) => id === state.model.BOS ? "start" : visible(state.model.uchars[id]);
    return order.reduce((sum, id) => sum + on[id], 0) < all / 2 ? "many"
        : order.filter((id, k) => !k || on[id] >= all / 5).map(text).join(" ");
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
    const often = of ? of.fires[u] / of.tokens : 0;
    const value = `${stage_name(state.model, KINDS.act, layer, null)}.${u}`;
    const without = of && of.without && of.without.unit === u
        ? h("span.soft", " Without it, on average ", number(signed(of.without.change)), ".") : "";
    return h(".unit-card",
        h(".head-title", h("h3", { style: "margin: 0" }, `Unit ${u}`), draw_switch("units", layer, u, `unit ${u}`, {})),
        h("p", !of ? "…" : often
            ? ["Fires on ", number(percent(often)), " of characters: ", h("b", letters_of(of, u)), "."]
            : `Never fires on ${plural_noun(of.docs)}.`, without),
        h("button.link", { onclick: () => update({ value }) }, "Its number, here"),
        draw_examples(of ? of.best[u] : []));
}

function draw_examples(examples)
{
    const { documents } = state.file;
    return !examples.length ? "" : [h("p.soft", { style: "margin: 8px 0 0" }, "It fires most here:"),
        h("ul.examples", { "data-row": "button" }, examples.map(({ x, d, pos }) => {
            const chars = Array.from(documents[d], visible);
            return h("li", h("button", { onclick: () => update({ word: documents[d], pos }) },
                h("bdi", chars.slice(0, max(0, pos - 1)).join(""), h("mark", pos ? chars[pos - 1] : "start"),
                    pos ? "" : " ", h("span.soft", chars.slice(pos).join(""))), h("span", x.toFixed(2))));
        }))];
}
