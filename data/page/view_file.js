// What is in the file: its facts, and every parameter.
"use strict";

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
