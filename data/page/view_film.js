// The film: the maps of all heads at eight moments side by side, what the model writes below; also as a picture.
"use strict";

// milliseconds for maps that are not there yet, in one drawing
const FOR_MAPS = 20;

const file_moment = kept(silent_text, () => ({ ...state.stored, samples: some_samples(state.stored) }));

function moments()
{
    const steps = state.run.film.map((step) => ({ step, moment: state.run.snapshots.get(step) }));
    return [...steps, { step: "file", moment: file_moment() }];
}

const maps_key = () => `${state.choice.word} ${silent_text()}`;

// The maps of a moment for the word of the page, by layer and head.
function maps_of(moment)
{
    const key = maps_key();
    if (moment.maps_key !== key) {
        moment.maps_key = key;
        const tape = tape_for("named", true);
        moment.maps = all_weights(finish(loss_pieces(tape, moment, state.shown.tokens, quiet_now())));
    }
    return moment.maps;
}

function moment_loss(step)
{
    const loss = step === "file" ? file_loss() : loss_at(step);
    return loss === null ? " " : `loss ${loss.toFixed(2)}`;
}

// Maps that take long are drawn in later frames.
function draw_moment({ step, moment }, until)
{
    const { choice: { layer }, model: { n_head }, is_small } = state;
    const is_now = step === moment_now();
    const is_ready = moment && (moment.maps_key === maps_key() || is_small || clock() < until);
    const maps = is_ready ? maps_of(moment)[layer] : null;
    const title = step === "file" ? `◆ ${count(state.stored.step)} · file` : count(step) + (is_now ? " · now" : "");
    if (moment && !is_ready) {
        draw_soon("learn");
    }
    return h(moment ? "button" : "div", { class: `moment${is_now ? " at" : ""}`, key: step, "data-step": step,
                                          onclick: moment ? () => seek(step) : null },
        h("span", h("b", title), h("span.soft", moment ? moment_loss(step) : "to come")),
        each(min(n_head, 8), (head) => maps ? map_picture(maps[head], `${step} ${moment.maps_key} ${layer}`, HIDDEN)
            : h("span.coming")),
        h("ul", moment ? moment.samples.slice(0, 3).map((name) => h("li", h("bdi", visible_word(name)))) : ""));
}

function draw_film()
{
    const all = moments();
    const heads = min(state.model.n_head, 8);
    const until = clock() + FOR_MAPS;
    return h("",
        h(".tools.film-head",
            h("h3", "Eight moments"),
            h("span.soft", "One row per head, reading ", mono(visible_word(state.choice.word)),
                "; below, what the model writes. Choose one to go back to it."),
            link("Save as a picture", save_film, { id: "save-film" })),
        h(".film", { tabindex: 0, role: "group", label: "film" }, h("", { style: `--frames: ${all.length}` },
            h(".tags", each(heads, (head) => h("span", head_tag(head)))), all.map((one) => draw_moment(one, until)))));
}

// The film as a picture file, at twice its size: every map and every text, drawn where it stands.
function save_film()
{
    const film = document.querySelector(".film > div");
    const from = box_of(film);
    const canvas = document.createElement("canvas");
    const c = canvas.getContext("2d");
    canvas.width = 2 * (from.width + 40);
    canvas.height = 2 * (from.height + 80);
    c.scale(2, 2);
    c.imageSmoothingEnabled = false;
    c.fillStyle = css_color(state.theme.paper);
    c.fillRect(0, 0, canvas.width, canvas.height);
    c.fillStyle = css_color(state.theme.ink);
    c.font = "600 20px system-ui, sans-serif";
    c.fillText(`A model of ${count(state.model.num_params)} numbers learns`, 20, 40);
    for (const e of film.querySelectorAll("canvas, b, span, bdi")) {
        const { left, bottom, width, height } = box_of(e);
        const [x, y] = [left - from.left + 20, bottom - from.top + 60];
        const { color, font } = getComputedStyle(e);
        if (e.localName === "canvas") {
            c.drawImage(e, x, y - height, width, height);
        } else if (!e.firstElementChild) {
            Object.assign(c, { fillStyle: color, font });
            c.fillText(e.textContent, x, y - height / 4, max(width, 100));
        }
    }
    canvas.toBlob((blob) => {
        const href = URL.createObjectURL(blob);
        Object.assign(document.createElement("a"), { href, download: "microgpt-film.png" }).click();
        setTimeout(() => URL.revokeObjectURL(href), 10000);
    });
}
