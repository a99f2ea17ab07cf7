// What it writes: letter by letter, then names.
"use strict";

function change_sampling(what)
{
    Object.assign(state.sampling, what, { letters: null, steps: [] });
    redraw("samples");
}

function draw_samples()
{
    const { temperature, seed } = state.sampling;
    const { word: prompt, out } = readable(state.model, state.sampling.prompt);
    return [
        h(".tools",
            h("label", { for: "temperature" }, "temperature"),
            h("input", { type: "range", id: "temperature", min: 0, max: 2, step: 0.05, ".value": String(temperature),
                         oninput: (e) => change_sampling({ temperature: Number(e.target.value) }) }),
            number(temperature.toFixed(2)),
            h("label", { for: "prompt" }, "begins with"),
            h("input", { type: "text", id: "prompt", size: 8, autocapitalize: "off", autocomplete: "off",
                         spellcheck: "false", oninput: (e) => change_sampling({ prompt: e.target.value }) })),
        out.length ? h("p.note", left_out(out)) : "",
        draw_letters(prompt),
        h(".tools", button("more-names", "Ten more names", () => change_sampling({ seed: seed + 1 }))),
        draw_names(prompt),
    ];
}

// Draws the next letter; after the end, the first one of another name.
function next_letter(prompt, is_over)
{
    const { sampling, model } = state;
    if (!sampling.letters || is_over) {
        const { random } = new_random(1000 + sampling.seed);
        sampling.seed += is_over ? 1 : 0;
        sampling.letters = sample_letters(tape_for("letters"), model,
            { temperature: sampling.temperature, prompt, random, quiet: quiet_now(), longest: LONGEST });
        sampling.steps = [];
    }
    const { value } = sampling.letters.next();
    if (value) {
        sampling.steps.push(value);
    }
    redraw("samples");
}

function draw_letters(prompt)
{
    const { sampling: { steps }, model: { BOS, uchars } } = state;
    const last = steps.at(-1);
    const is_over = last && last.token === BOS;
    const text = steps.map(({ token }) => token === BOS ? "" : uchars[token]).join("");
    return h("",
        h(".tools",
            button("next-letter", is_over ? "Another name" : "Next letter", () => next_letter(prompt, is_over),
                { class: " main-button" }),
            h("span.written", h("bdi", visible_word(text)),
                is_over ? h("span.soft.small", `  end · ${known_text(text)}`) : steps.length ? "▏" : "")),
        draw_sums(last));
}

// The guesses as one row of sums, from 0 to 1; the random number is a pin on it, and takes the letter it hits.
function draw_sums(last)
{
    const width = max(300, width_of("samples", 784) - 4);
    const view = { viewBox: `0 0 ${width} 96`, role: "img" };
    if (!last) {
        return s("svg.sums", { ...view, label: "nothing drawn yet" },
            s("text", { x: 0, y: 55 }, "Draw a letter: a random number falls on one of the model's guesses."));
    }
    let sum = 0;
    const parts = last.probs.map((p, id) => ({ id, p, from: (sum += p) - p }));
    return s("svg.sums", { ...view, label: `drawn: ${token_text(last.token)}` },
        parts.map(({ id, p, from }) => s("g", { key: id },
            s("rect", { x: from * width, y: 34, width: max(0, p * width - 1), height: 34, fill: SHARE,
                        opacity: id === last.token ? 1 : 0.35, rx: 2 }),
            p * width > 16 ? s("text.letter", { x: (from + p / 2) * width, y: 55 }, token_text(id)) : "")),
        last.given ? "" : [
            s("path", { key: "pin", d: `M${last.u * width} 20V72`, stroke: INK, "stroke-width": 2 }),
            s("circle", { key: "pin-head", cx: last.u * width, cy: 16, r: 5, fill: INK }),
            s("text", { key: "u", x: min(width - 60, last.u * width + 10), y: 20 }, last.u.toFixed(3))],
        s("text", { key: "zero", x: 0, y: 86 }, "0"),
        s("text", { key: "one", x: width, y: 86, "text-anchor": "end" }, "1"));
}

const known = kept(() => "", () => new Set(state.file.documents));

function known_text(name)
{
    const { documents, n_documents } = state.file;
    return !can_run() ? "" : known().has(name) ? "in the list"
        : documents.length < n_documents ? `not among the ${count(documents.length)} here` : "new";
}

const ten_names = kept((prompt, { seed, temperature }) => [seed, temperature, prompt, state.version_of_model].join(),
    (prompt, { seed, temperature }) => {
        const how = { temperature, prompt, random: new_random(seed).random, quiet: quiet_now(), longest: LONGEST };
        return each(10, () => sample(tape_for("work"), state.model, how));
    });

function draw_names(prompt)
{
    return h("ul.names", { "data-row": "button" }, ten_names(prompt, state.sampling).map((name) => h("li",
        link(h("bdi", visible_word(name) || "(nothing)"), () => { update({ word: name }); scroll_to_top(); }),
        h("span.soft.small", known().has(name) ? " in the list" : ""))));
}
