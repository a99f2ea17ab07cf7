// Watch it learn: the curve, the maps of now, the film.
"use strict";

function draw_learn()
{
    const { file, run, model } = state;
    const per = model.training.batch === 1 ? `one ${noun(1)}` : `${count(model.training.batch)} ${noun(2)}`;
    const slow = run.cost > 8 && run.losses.length > 50 ? ` A step takes ${run.cost.toFixed(0)} ms here.` : "";
    const is_learning = can_run() && run.learner && learned_steps() < run_length();
    return [
        h("p.soft", `It began with random numbers. Each step reads ${per} and moves all ${count(model.num_params)} ` +
            `numbers a little. ${source_of_documents(file)}${slow}${silent_text() ? ` ${silent_words()}` : ""}`,
        is_learning ? h("span", { id: "learned" }, ` Learned so far: ${count(learned_steps())} of ` +
            `${plural(run_length(), "step")}.`) : ""),
        h(".learn", draw_curve(), h("", draw_nows())),
        can_run() ? draw_film() : "",
        draw_step_tools(),
    ];
}

function source_of_documents(file)
{
    const n = file.documents.length;
    const all = file.n_documents;
    if (!n) {
        return "There are no documents in this page, so it cannot run again from the start; a step on the word " +
            "works. microgpt page MODEL --data FILE puts some in.";
    }
    if (!can_run()) {
        return `Its ${noun(2)} are too long to learn from in a page.`;
    }
    const some = n < all ? `${count(n)} of the ${plural_noun(all)} are` : `All ${plural_noun(all)} are`;
    return `${some} in this page.` +
        (file.own === false ? " The model was trained on other ones, so this run is not the file's own." : "");
}

function draw_step_tools()
{
    const { shown, run, model, choice } = state;
    const loss = shown.tape.value[shown.loss];
    const { missing } = state.stored;
    const lacks = missing.length && at_file()
        ? ` The file does not have ${missing.join(", ")}: defaults are used.` : "";
    return h(".tools",
        h("button.button", { id: "step-on-word", onclick: step_on_word }, "One step on ",
            h("bdi", `“${visible_word(choice.word)}”`)),
        can_run() && !at_file() ? h("button.button", { onclick: one_step }, `Step ${count(model.step + 1)} of the run`)
            : "",
        !at_file() || run.on_word.length ? h("button.button", { id: "to-file", onclick: () => seek("file") },
            "Back to the file's model") : "",
        can_run() && !is_wide(64) ? h("button.button", { onclick: forget_everything }, "Forget everything") : "",
        h("span.soft", { role: "status", id: "step-result" }, run.on_word.length
            ? `Loss of the word: ${run.on_word.at(-1).loss.toFixed(3)} → ${loss.toFixed(3)}.`
            : `The next step has a rate of ${short(learning_rate(model.training, model.step))}.${lacks}`));
}

const path_of = (points, x, y) =>
    points.map(([a, b], k) => `${k ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");

// The frame of the curve: where steps and losses stand in it.
function curve_frame(means, own, held)
{
    const whole_width = width_of("learn", 1200);
    const width = is_wide(64) && !is_open() ? (whole_width - 48) / 2 : whole_width;
    const height = 190;
    const left = 34;
    const right = width - 8;
    const bottom = height - 24;
    const last = max(run_length(), 2);
    const now = at_file() ? [file_loss()] : [];
    const ys = [...now, ...[means, own, held].flat().map((p) => p[1])].filter(Number.isFinite);
    const high = ys.length ? max(...ys) + 0.15 : Math.log(state.model.vocab_size) + 0.3;
    const low = ys.length ? min(...ys) - 0.3 : 1.8;
    return { width, height, left, right, bottom, last, high, low,
             x: (step) => left + (right - left - 6) * log1p(step) / log1p(last),
             y: (loss) => 8 + (bottom - 16) * (high - loss) / (high - low) };
}

// The loss over the logarithm of the step: dots are steps, the line their running mean, the file's own run behind it,
// and its losses on what was held out.
function draw_curve()
{
    const means = running_means();
    const own = state.file.log ? log_means() : [];
    const held = state.file.log && state.file.log.held || [];
    const frame = curve_frame(means, own, held);
    const { width, height, left, bottom, low, high, x, y } = frame;
    const loss = loss_so_far();
    const steps = steps_to_show();
    const dots = steps.map((step) => [step, state.run.losses[step]]).filter(([, v]) => v >= low && v <= high);
    const path = (points) => path_of(points, x, y);
    const beyond = at_file() ? own : own.filter((p) => p[0] >= state.model.step);
    return s("svg.curve", { id: "curve", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
                            label: `the loss, step by step${loss === null ? "" : `; now ${loss.toFixed(2)}`}` },
        draw_curve_grid(frame),
        s("path", { key: "dots", d: dots.map(([step, v]) => `M${x(step + 1).toFixed(1)} ${y(v).toFixed(1)}h0`).join(""),
            stroke: SHARE, "stroke-width": 2.5, "stroke-linecap": "round", opacity: 0.5 }),
        s("path", { key: "own", d: path(beyond), fill: "none", stroke: at_file() ? ACCENT : RULE,
            "stroke-width": at_file() ? 2 : 1.5, "stroke-dasharray": at_file() ? "none" : "3 2" }),
        s("path", { key: "held", d: path(held), fill: "none", stroke: "var(--positive)", "stroke-width": 2 }),
        s("path", { key: "mean", d: path(means), fill: "none", stroke: ACCENT, "stroke-width": 2.5,
            "stroke-linejoin": "round", opacity: at_file() ? 0.35 : 1 }),
        draw_curve_now(frame, own, means),
        draw_curve_texts(frame, own, held),
        dots.length > 8 ? s("text", { key: "dot", x: left + 8, y: bottom - 4 }, "A dot is one step") : "");
}

function draw_curve_grid({ width, height, left, right, bottom, last, high, low, x, y })
{
    const grid = high - low > 1.3 ? 0.5 : high - low > 0.5 ? 0.2 : 0.1;
    const lines = each(floor(high / grid) - ceil(low / grid) + 1, (k) => (ceil(low / grid) + k) * grid).slice(0, 12);
    const labels = [0, 10, 100, 1000, 10000, 100000].filter((step) => step === 0
        || (step < last && x(step) < x(last) - 60));
    const repeat = repeat_step();
    const is_right = x(min(repeat, last)) > width - 170;
    return [
        lines.map((v) => s("g", { key: `l${v.toFixed(2)}` },
            s("path", { d: `M${left} ${y(v)}H${right}`, stroke: LINE }),
            s("text", { x: 0, y: y(v) + 4 }, v.toFixed(1)))),
        labels.map((step) => s("text", { key: `x${step}`, x: x(step), y: height - 4,
            "text-anchor": step ? "middle" : "start" }, count(step))),
        s("text", { key: "last", x: right, y: height - 4, "text-anchor": "end" }, count(last)),
        repeat < last && can_run() ? s("g", { key: "repeat" },
            s("path", { d: `M${x(repeat)} ${bottom - 8}v8`, stroke: INK, "stroke-width": 1.5 }),
            x(repeat) > left + 160 ? s("text", { x: x(repeat) + (is_right ? -5 : 5), y: bottom - 2,
                "text-anchor": is_right ? "end" : "start" }, repeats_text()) : "") : "",
    ];
}

function draw_curve_now({ width, bottom, last, x, y }, own, means)
{
    const step = at_file() ? last : state.model.step;
    const value = at_file() ? own.at(-1)?.[1] ?? file_loss() : means.filter((p) => p[0] <= step).at(-1)?.[1];
    if (!Number.isFinite(value)) {
        return "";
    }
    const nx = x(step);
    const ny = y(value);
    const text = nx > width - 150 ? { x: nx - 10, "text-anchor": "end" } : { x: nx + 10, "text-anchor": "start" };
    const loss = loss_so_far();
    return s("g", { key: "now" }, s("path", { d: `M${nx} 4V${bottom}`, stroke: ACCENT }),
        at_file() ? s("path", { d: `M${nx} ${ny - 6}l6 6-6 6-6-6z`, fill: INK })
            : s("circle", { cx: nx, cy: ny, r: 5, fill: ACCENT, stroke: PAPER, "stroke-width": 1.5 }),
        s("text.strong", { ...text, y: 14 },
            at_file() ? `the file, step ${count(state.model.step)}` : `step ${count(step)}`),
        s("text", { ...text, y: 30, style: "fill: var(--ink)" }, loss === null ? "" : `loss ${loss.toFixed(2)}`));
}

// The names of the curves, where no other text stands.
function draw_curve_texts({ width, last, x, y }, own, held)
{
    const nx = x(at_file() ? last : state.model.step);
    return [
        !at_file() && own.length && nx < width - 280
            ? s("text", { key: "own-run", x: x(last) - 90, y: y(own.at(-1)[1]) - 22 }, "the file’s own run") : "",
        held.length ? s("text", { key: "held-out", x: min(x(held.at(-1)[0]), x(last) - 8), y: y(held.at(-1)[1]) - 8,
            "text-anchor": "end" }, "held out") : "",
    ];
}

// Some of the steps: all of the first forty, then fewer and fewer.
function steps_to_show()
{
    const { losses } = state.run;
    const end = at_file() ? 0 : min(losses.length, state.model.step);
    const steps = [];
    for (let step = 0; step < end; step += step < 40 ? 1 : ceil(step / 110)) {
        steps.push(step);
    }
    return steps;
}

// At steps spaced by their logarithm, the mean of the last fifth of the steps so far.
let means_kept = { losses: null, sums: [0] };

function running_means()
{
    const { losses } = state.run;
    const end = at_file() ? 0 : min(losses.length, state.model.step);
    const points = [];
    if (means_kept.losses !== losses) {
        means_kept = { losses, sums: [0] };
    }
    const { sums } = means_kept;
    while (sums.length <= losses.length) {
        sums.push(sums.at(-1) + losses[sums.length - 1]);
    }
    for (let k = 1; k <= end; k = k < 12 ? k + 1 : max(k + 1, min(end, ceil(k * 1.05)))) {
        const some = max(1, min(1000, floor(k / 5)));
        points.push([k, (sums[k] - sums[k - some]) / some]);
    }
    return points.length ? [[0, losses[0]], ...points] : [];
}

function log_means()
{
    const { points, first, steps } = state.file.log;
    const each_point = steps / points.length;
    const result = [];
    let sum = 0;
    const sums = [0, ...points.map((loss) => (sum += loss))];
    for (let k = 1; k <= points.length; k = max(k + 1, min(points.length, floor(k * 1.05)))) {
        const some = max(1, min(round(1000 / each_point), floor(k / 5)));
        result.push([first - 1 + k * each_point, (sums[k] - sums[k - some]) / some]);
    }
    return result;
}

// The maps and the samples of now.
function draw_nows()
{
    const { choice: { layer }, model: { n_head }, shown, version } = state;
    return [h(".nows", each(min(n_head, 8), (head) => h("", { key: head }, head_tag(head),
        map_picture(each(shown.n, (pos) => weights_at(shown, layer, head, pos)), `${version} ${layer} ${head}`,
            { label: `what head ${head} looks at` })))),
    h(".soft", { style: "margin-top: 8px" }, "It writes:"),
    h(".nows.writes", samples_now().map((name) => h("bdi", visible_word(name))))];
}

const written = { key: "", names: [] };

function samples_now()
{
    const { run, model } = state;
    const kept = !at_file() && !run.on_word.length && run.silent === silent_text() && run.snapshots.get(model.step);
    const key = `${run.where} ${state.version_of_model}`;
    if (kept && kept.samples.length) {
        return kept.samples;
    }
    if (written.key !== key) {
        Object.assign(written, { key, names: some_samples(model) });
    }
    return written.names;
}
