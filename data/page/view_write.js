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
        h(".tools", h("button.button", { id: "more-names", onclick: () => change_sampling({ seed: seed + 1 }) },
            "Ten more names")),
        draw_names(prompt),
    ];
}

// Draws the next letter; after the end, the first one of another name.
function next_letter(prompt, is_over)
{
    const { sampling, tapes, model } = state;
    if (!sampling.letters || is_over) {
        const { random } = new_random(1000 + sampling.seed);
        sampling.seed += is_over ? 1 : 0;
        sampling.letters = sample_letters(tapes.letters, model,
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
            h("button.button.main-button", { id: "next-letter", onclick: () => next_letter(prompt, is_over) },
                is_over ? "Another name" : "Next letter"),
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

const known = { documents: null, set: new Set() };

function known_text(name)
{
    if (known.documents !== state.file.documents) {
        Object.assign(known, { documents: state.file.documents, set: new Set(state.file.documents) });
    }
    return !can_run() ? "" : known.set.has(name) ? "in the list" : state.file.documents.length < state.file.n_documents
        ? `not among the ${count(state.file.documents.length)} here` : "new";
}

function draw_names(prompt)
{
    const { random } = new_random(state.sampling.seed);
    const key = `${state.sampling.seed} ${state.sampling.temperature} ${prompt} ${state.version_of_model}`;
    if (draw_names.key !== key) {
        const how = { temperature: state.sampling.temperature, prompt, random, quiet: quiet_now(), longest: LONGEST };
        Object.assign(draw_names, { key, names: each(10, () => sample(state.tapes.work, state.model, how)) });
    }
    return h("ul.names", { "data-row": "button" }, draw_names.names.map((name) => h("li",
        h("button.link", { onclick: () => { update({ word: name }); scroll_to_top(); } },
            h("bdi", visible_word(name) || "(nothing)")),
        h("span.soft.small", ` ${known_text(name) === "in the list" ? "in the list" : ""}`))));
}
