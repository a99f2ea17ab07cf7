// Watch it learn: the curve, the maps of now, the film.
"use strict";

function draw_learn()
{
    const { file, run, model } = state;
    const per = model.training.batch === 1 ? `one ${noun(1)}` : `${count(model.training.batch)} ${noun(2)}`;
    const cost = run.spent / max(50, learned_steps());
    const slow = cost > 8 ? ` A step takes ${cost.toFixed(0)} ms here.` : "";
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
        (file.own ? "" : " The model was trained on other ones, so this run is not the file's own.");
}

function draw_step_tools()
{
    const { shown, run, model, choice, stored: { missing } } = state;
    const loss = shown.tape.value[shown.loss];
    const lacks = missing.length && at_file()
        ? ` The file does not have ${missing.join(", ")}: defaults are used.` : "";
    return h(".tools",
        button("step-on-word", ["One step on ", h("bdi", `“${visible_word(choice.word)}”`)], step_on_word),
        !at_file() || run.on_word.length ? button("to-file", "Back to the file's model", () => seek("file")) : "",
        can_run() && !is_wide(64) ? button("forget-here", "Forget everything", forget_everything) : "",
        h("span.soft", { role: "status", id: "step-result" }, run.on_word.length
            ? `Loss of the word: ${run.on_word.at(-1).loss.toFixed(3)} → ${loss.toFixed(3)}.`
            : `The next step has a rate of ${short(learning_rate(model.training, model.step))}.${lacks}`));
}

function curve_frame(losses)
{
    const whole_width = width_of("learn", 1200);
    const width = is_wide(64) && !is_open() ? (whole_width - 48) / 2 : whole_width;
    const height = 190;
    const left = 34;
    const right = width - 8;
    const bottom = height - 24;
    const last = max(run_length(), 2);
    const high = losses.length ? max(...losses) + 0.15 : Math.log(state.model.vocab_size) + 0.3;
    const low = losses.length ? min(...losses) - 0.3 : 1.8;
    return { width, height, left, right, bottom, last, high, low,
             x: (step) => left + (right - left - 6) * log1p(step) / log1p(last),
             y: (loss) => 8 + (bottom - 16) * (high - loss) / (high - low) };
}

// The loss over the logarithm of the step: dots are steps, the line their running mean, the file's own run behind it,
// and its losses on what was held out.
function draw_curve()
{
    const { file: { log }, run: { losses }, model } = state;
    const is_file = at_file();
    const end = is_file ? 0 : min(losses.length, model.step);
    const means = end ? [[0, losses[0]], ...means_of(losses, end, (k) => k)] : [];
    const own = log ? log_means(log) : [];
    const held = log?.held || [];
    const loss = loss_so_far();
    const frame = curve_frame([...(is_file ? [loss] : []), ...[means, own, held].flat().map(([, y]) => y)]
        .filter(Number.isFinite));
    const { width, height, left, bottom, low, high, x, y } = frame;
    const dots = steps_to_show(end).map((step) => [step + 1, losses[step]]).filter(([, v]) => v >= low && v <= high);
    const at = (point) => `${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`;
    const line = (key, points, stroke, wide, more) => s("path", { key, fill: "none", stroke, "stroke-width": wide,
        "stroke-linejoin": "round", d: points.length ? `M${points.map(at).join("L")}` : "", ...more });
    return s("svg.curve", { id: "curve", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
                            label: `the loss, step by step${loss === null ? "" : `; now ${loss.toFixed(2)}`}` },
        draw_curve_grid(frame),
        s("path", { key: "dots", d: dots.map((point) => `M${at(point)}h0`).join(""), stroke: SHARE, "stroke-width": 2.5,
                    "stroke-linecap": "round", opacity: 0.5 }),
        is_file ? line("own", own, ACCENT, 2)
            : line("own", own.filter(([step]) => step >= model.step), RULE, 1.5, { "stroke-dasharray": "3 2" }),
        line("held", held, POSITIVE, 2),
        line("mean", means, ACCENT, 2.5),
        draw_curve_now(frame, is_file ? own.at(-1)?.[1] ?? loss : means.filter(([k]) => k <= model.step).at(-1)?.[1]),
        draw_curve_texts(frame, own, held),
        dots.length > 8 ? s("text", { key: "dot", x: left + 8, y: bottom - 4 }, "A dot is one step") : "");
}

function draw_curve_grid({ width, height, left, right, bottom, last, high, low, x, y })
{
    const grid = high - low > 1.3 ? 0.5 : high - low > 0.5 ? 0.2 : 0.1;
    const lines = each(floor(high / grid) - ceil(low / grid) + 1, (k) => (ceil(low / grid) + k) * grid).slice(0, 12);
    const repeat = repeat_step();
    const is_right = x(min(repeat, last)) > width - 170;
    return [
        lines.map((v) => s("g", { key: `l${v.toFixed(2)}` },
            s("path", { d: `M${left} ${y(v)}H${right}`, stroke: LINE }),
            s("text", { x: 0, y: y(v) + 4 }, v.toFixed(1)))),
        s("text", { x: x(0), y: height - 4 }, "0"),
        POWERS.filter((step) => step < last && x(step) < x(last) - 60).map((step) =>
            s("text", { key: `x${step}`, x: x(step), y: height - 4, "text-anchor": "middle" }, count(step))),
        s("text", { key: "last", x: right, y: height - 4, "text-anchor": "end" }, count(last)),
        repeat < last && can_run() ? s("g", { key: "repeat" },
            s("path", { d: `M${x(repeat)} ${bottom - 8}v8`, stroke: INK, "stroke-width": 1.5 }),
            x(repeat) > left + 160 ? s("text", { x: x(repeat) + (is_right ? -5 : 5), y: bottom - 2,
                "text-anchor": is_right ? "end" : "start" }, repeats_text()) : "") : "",
    ];
}

function draw_curve_now({ width, bottom, last, x, y }, loss)
{
    if (!Number.isFinite(loss)) {
        return "";
    }
    const { step } = state.model;
    const nx = x(at_file() ? last : step);
    const ny = y(loss);
    const text = nx > width - 150 ? { x: nx - 10, "text-anchor": "end" } : { x: nx + 10, "text-anchor": "start" };
    return s("g", { key: "now" }, s("path", { d: `M${nx} 4V${bottom}`, stroke: ACCENT }),
        at_file() ? s("path", { d: `M${nx} ${ny - 6}l6 6-6 6-6-6z`, fill: INK })
            : s("circle", { cx: nx, cy: ny, r: 5, fill: ACCENT, stroke: PAPER, "stroke-width": 1.5 }),
        s("text.strong", { ...text, y: 14 }, `${at_file() ? "the file, " : ""}step ${count(step)}`),
        s("text", { ...text, y: 30, style: "fill: var(--ink)" }, `loss ${loss_so_far().toFixed(2)}`));
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
function steps_to_show(end)
{
    const steps = [];
    for (let step = 0; step < end; step += step < 40 ? 1 : ceil(step / 110)) {
        steps.push(step);
    }
    return steps;
}

// Points of a curve, at steps spaced by their logarithm: the mean of the last fifth of the losses so far.
function means_of(losses, end, step_of, most = 1000)
{
    const points = [];
    for (let k = 1; k <= end; k = max(k + 1, min(end, floor(k * 1.05)))) {
        points.push([step_of(k), recent_mean(losses, k, most)]);
    }
    return points;
}

const log_means = kept(() => "", ({ points, first, steps }) => means_of(points, points.length,
    (k) => first - 1 + k * steps / points.length, round(1000 * points.length / steps)));

function draw_nows()
{
    const { choice: { layer }, model: { n_head }, shown, version } = state;
    return [h(".nows", each(min(n_head, 8), (head) => h("", { key: head }, head_tag(head),
        map_picture(each(shown.n, (pos) => weights_at(shown, layer, head, pos)), `${version} ${layer} ${head}`,
            { label: `what head ${head} looks at` })))),
    h(".soft", "It writes:"),
    h(".nows.writes", samples_now().map((name) => h("bdi", visible_word(name))))];
}

const written = kept(() => `${state.run.where} ${state.version_of_model}`, () => some_samples(state.model));

function samples_now()
{
    const { run, model } = state;
    const moment = !at_file() && !run.on_word.length && run.silent === silent_text() && run.snapshots.get(model.step);
    return moment && moment.samples.length ? moment.samples : written();
}
