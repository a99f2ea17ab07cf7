// The film: the maps of all heads at eight moments side by side, what the model writes below; also as a picture.
"use strict";

function moments()
{
    const steps = state.run.film.map((step) => ({ step, kept: state.run.snapshots.get(step) }));
    return [...steps, { step: "file", kept: file_moment() }];
}

const filed = { key: "", moment: null };

function file_moment()
{
    const key = silent_text();
    if (!filed.moment || filed.key !== key) {
        Object.assign(filed, { key, moment: { ...state.stored, samples: some_samples(state.stored) } });
    }
    return filed.moment;
}

const maps_key = () => `${state.choice.word} ${silent_text()}`;

// The maps of a moment for the word of the page, by layer and head.
function maps_of(kept)
{
    const key = maps_key();
    if (!kept.maps || kept.maps_key !== key) {
        kept.maps_key = key;
        kept.maps = all_weights(finish(loss_pieces(state.tapes.named, kept, state.shown.tokens, quiet_now())));
    }
    return kept.maps;
}

const moment_loss = (step) => step === "file" ? file_loss() : loss_at(step);

function moment_title(step, is_now)
{
    return step === "file" ? `◆ ${count(state.stored.step)} · file` : `${count(step)}${is_now ? " · now" : ""}`;
}

// Maps that take long are drawn in later frames.
function draw_moment({ step, kept }, until)
{
    const { choice: { layer }, model: { n_head }, tapes } = state;
    const is_now = step === (at_file() ? "file" : state.model.step);
    const loss = kept ? moment_loss(step) : null;
    const is_ready = kept && (kept.maps_key === maps_key() || tapes.is_small || clock() < until);
    const maps = is_ready ? maps_of(kept)[layer] : null;
    if (kept && !is_ready) {
        draw_soon("learn");
    }
    return h(kept ? "button" : "div", { class: `moment${is_now ? " at" : ""}`, key: step, "data-step": step,
                                        onclick: kept ? () => seek(step) : null },
        h("span", h("b", moment_title(step, is_now)),
            h("span.soft", kept ? loss === null ? " " : `loss ${loss.toFixed(2)}` : "to come")),
        each(min(n_head, 8), (head) => maps ? map_picture(maps[head], `${step} ${kept.maps_key} ${layer}`, HIDDEN)
            : h("span.coming")),
        h("ul", kept ? kept.samples.slice(0, 3).map((name) => h("li", h("bdi", visible_word(name)))) : ""));
}

function draw_film()
{
    const all = moments();
    const heads = min(state.model.n_head, 8);
    const until = clock() + 20;
    return h("",
        h(".tools.film-head",
            h("h3", "Eight moments"),
            h("span.soft", "One row per head, reading ", mono(visible_word(state.choice.word)),
                "; below, what the model writes. Choose one to go back to it."),
            h("button.link", { id: "save-film", onclick: save_film }, "Save as a picture")),
        h(".film", { tabindex: 0, role: "group", label: "film" }, h("", { style: `--frames: ${all.length}` },
            h(".tags", each(heads, (head) => h("span", head_tag(head)))), all.map((one) => draw_moment(one, until)))));
}

// One moment of the picture, from its left edge.
function paint_moment(c, { step, kept }, left, { heads, cell, layer, text })
{
    const loss = kept ? moment_loss(step) : null;
    text(moment_title(step, false), left, 80, "600 14px system-ui, sans-serif", state.theme.ink);
    text(loss === null ? "" : `loss ${loss.toFixed(2)}`, left, 98, "12px monospace", state.theme.soft);
    for (let head = 0; head < heads; head++) {
        const top = 112 + head * (cell + 8);
        const rows = kept ? maps_of(kept)[layer][head] : [];
        const size = cell / max(1, rows.length);
        c.fillStyle = css_color(state.theme.raised);
        c.fillRect(left, top, cell, cell);
        rows.forEach((row, query) => row.forEach((weight, key) => {
            c.fillStyle = css_color(mixed(weight, "share"));
            c.fillRect(left + key * size, top + query * size, size + 0.5, size + 0.5);
        }));
    }
    (kept ? kept.samples.slice(0, 3) : []).forEach((name, i) =>
        text(visible_word(name), left, 136 + heads * (cell + 8) + 18 * i, "13px monospace", state.theme.ink));
}

// The film as a picture file, drawn again at twice the size.
function save_film()
{
    const { theme, model, choice: { layer } } = state;
    const all = moments();
    const heads = min(model.n_head, 8);
    const wide = 140;
    const cell = 88;
    const canvas = document.createElement("canvas");
    canvas.width = 2 * (60 + all.length * wide);
    canvas.height = 2 * (210 + heads * (cell + 8));
    const c = canvas.getContext("2d");
    const text = (what, x, y, font, color, most = wide - 12) => {
        c.font = font;
        c.fillStyle = css_color(color);
        c.fillText(what, x, y, most);
    };
    c.scale(2, 2);
    c.fillStyle = css_color(theme.paper);
    c.fillRect(0, 0, canvas.width, canvas.height);
    text(`A model of ${count(model.num_params)} numbers learns`, 24, 40, "600 20px system-ui, sans-serif", theme.ink,
        900);
    each(heads, (head) => text(String(head), 24, 112 + head * (cell + 8) + cell / 2, "700 13px monospace",
        theme[`head${head % 4}`]));
    all.forEach((one, k) => paint_moment(c, one, 60 + k * wide, { heads, cell, layer, text }));
    canvas.toBlob((blob) => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(blob);
        link.download = "microgpt-film.png";
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
}
