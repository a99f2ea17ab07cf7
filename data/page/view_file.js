// The characters as points, and what is in the file.
"use strict";

// The characters as points: the rows of wte, seen from the two directions in which they differ most.
// For each direction, where the rows are along it; and the share of all difference that these directions hold.
function principal_components(rows, n)
{
    const mean = rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);
    const spread = (some) => some.reduce((sum, row) => sum + dot(row, row), 0);
    let left = rows.map((row) => row.map((x, k) => x - mean[k]));
    const whole = spread(left) || 1;
    const axes = each(n, (d) => {
        let axis = mean.map((_, k) => 1 + (k + d) % 3);
        // power iteration: the strongest survives
        for (let round = 0; round < 40; round++) {
            const along = left.map((row) => dot(row, axis));
            const next = axis.map((_, k) => left.reduce((sum, row, i) => sum + row[k] * along[i], 0));
            const size = sqrt(dot(next, next)) || 1;
            axis = next.map((x) => x / size);
        }
        const at = left.map((row) => dot(row, axis));
        left = left.map((row, i) => row.map((x, k) => x - at[i] * axis[k]));
        return at;
    });
    return { axes, share: 1 - spread(left) / whole };
}

const is_vowel = (id) => id !== state.model.BOS
    && "aeiouy".includes(state.model.uchars[id].toLowerCase().normalize("NFD")[0]);

function draw_points()
{
    const { wte } = state.model.state_dict;
    const n = min(state.model.vocab_size, 200);
    const half = width_of("points", 640) / 2;
    const ids = each(n, (i) => i < n - 1 ? i : state.model.BOS);
    const reach = min(320, half);
    const rows = ids.map((id) =>
        Array.from(state.model.params.subarray(wte.at + id * wte.cols, wte.at + (id + 1) * wte.cols)));
    const { axes: [x, y], share } = principal_components(rows, 2);
    const wide = largest(x);
    const high = largest(y);
    return [
        h("p.soft", `Each character is ${state.model.n_embd} numbers, a row of wte. Here they are seen from the two ` +
            `directions in which they differ most, which hold ${percent(share)} of the difference. `,
            ids.some(is_vowel) ? "Vowels are round, all others square." : ""),
        s("svg", { viewBox: `${-reach} -215 ${2 * reach} 430`, class: "points", ...row_of("g", "the characters") },
            ids.map((id, i) => {
                const place = [(reach - 15) * x[i] / wide, -200 * y[i] / high].map((z) => z.toFixed(1));
                const text = id === state.model.BOS ? "start" : token_text(id);
                const choose = () => update({ value: `wte.${id * wte.cols}` });
                return s("g", { key: id, transform: `translate(${place.join(" ")})`, role: "button", onclick: choose,
                                onkeydown: (e) => e.key === "Enter" && choose() },
                is_vowel(id) ? s("circle", { r: 14 }) : s("rect", { x: -13, y: -13, width: 26, height: 26, rx: 4 }),
                s("text", { style: text.length > 2 ? "font-size: 9px" : null }, text));
            })),
    ];
}

function draw_file()
{
    const { model, stored, file } = state;
    const { n_layer, n_embd, n_head, block_size, activation, training, meta, uchars, BOS } = model;
    const of_run = (name) => meta[`train.${name}`] ?? "?";
    const vocabulary = uchars.slice(0, 500).map(visible).join(" ") + (BOS > 500 ? " …" : "");
    const facts = [
        ["parameters", count(model.num_params)],
        ["sizes", `n_layer ${n_layer}, n_embd ${n_embd}, n_head ${n_head}, block_size ${block_size}`],
        ["activation", activation],
        ["vocabulary", `${count(BOS)} characters and one for start and end: `, h("bdi.number", vocabulary)],
        ["training", meta["train.step"] === undefined ? "the file does not say"
            : `recipe ${of_run("recipe")}, ${count(stored.step)} of ${count(training.steps)} steps, batch ` +
                `${of_run("batch")}, lr ${of_run("lr")}, ${of_run("schedule")} schedule, betas ${of_run("beta1")} ` +
                `and ${of_run("beta2")}, weight decay ${short(training.weight_decay)}, seed ${of_run("seed")}`],
        ["program", `microgpt ${file.version || "?"}`],
    ];
    return [
        h("dl", facts.map(([name, ...content]) => [h("dt", name), h("dd", content)])),
        h("h3", "Every parameter"),
        h("p.soft", "A matrix is a picture, a dot per number. Choose one, or move with the arrow keys."),
        h(".matrices", model.matrices.slice(0, 63).map((w) => h("", { key: w.name },
            h(".small", h("b.number", w.name), ` ${w.rows} × ${w.cols}`), draw_matrix(w, 5, null)))),
    ];
}

// A matrix, a dot per number, with one element marked, or none. A click or an arrow key chooses another.
function draw_matrix(w, size, marked)
{
    const { name, rows, cols } = w;
    const numbers = state.model.params.subarray(w.at, w.at + rows * cols);
    const most = largest(numbers);
    const dot_size = max(0.25, min(size, 340 / cols, 480 / rows));
    const [chosen, i] = split_value(state.choice.value || "");
    const at = chosen === name ? i : 0;
    return choosable(`${name}, ${rows} by ${cols}`, rows, cols, [floor(at / cols), at % cols],
        (row, col) => update({ value: `${name}.${row * cols + col}` }),
        { key: `${size} ${name}`, style: `width: ${cols * dot_size}px; aspect-ratio: ${cols} / ${rows}` },
        picture(rows, cols, (row, col) => numbers[row * cols + col] / most, "positive",
            `${state.version_of_model} ${name}`, HIDDEN),
        marked === null ? "" : h("i", { style: `left: ${100 * (marked % cols) / cols}%; width: ${100 / cols}%; ` +
        `top: ${100 * floor(marked / cols) / rows}%; height: ${100 / rows}%` }));
}
