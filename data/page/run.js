// The run: from fresh random parameters on, document after document, learned while nothing else is to do. Its moments
// are kept; playing shows them by the clock.
"use strict";

// of one press of play, by speed
const SECONDS = [12, 4, 1.5];

const new_run = () => ({
    // what the page shows; the losses of the page's own steps on its word, beyond that
    where: "file", on_word: [],
    // the model that learns; the losses of its steps; step -> model, of those that are kept; what is silent in it
    learner: null, losses: [], snapshots: new Map(), silent: "",
    // the steps to keep; those of the film
    keep: [], film: [],
    // {from, since, step, waits}: shares of the axis of time; null: it stands
    playing: null, speed: 0,
    // the step of the address, until it is learned
    wanted: null,
    // milliseconds of a step
    cost: 0,
});

const kept_steps = () => [...state.run.snapshots.keys()].sort((a, b) => a - b);
const run_length = () => state.stored.step || state.stored.training.steps;
const can_run = () => state.file.documents.length > 0 && !is_too_long();
const at_file = () => state.run.where === "file";
// where a step stands on the axis of time, from 0 to 1
const share_of = (step) => min(1, log1p(step) / log1p(run_length()));
const learned_steps = () => state.run.learner ? state.run.learner.step : 0;

// Documents so long that a step would need more than 320 MB here.
function is_too_long()
{
    const { file, model: { n_layer, n_embd, n_head, block_size, vocab_size } } = state;
    if (file.positions === undefined) {
        file.positions = min(block_size, file.documents.reduce((most, word) => max(most, word.length + 1), 1));
    }
    const n = file.positions;
    return n * (n_layer * (20 * n_embd + 2.5 * n_head * n) + 6 * vocab_size) > 2e7;
}

// About a hundred moments, spaced by the logarithm of the step, rounded to two digits; eight of them are the film.
function plan_run()
{
    const last = run_length();
    const n = max(8, min(100, floor(2e8 / (24 * state.model.num_params))));
    const moment = (share) => {
        const step = Math.expm1(share * log1p(last));
        const digits = max(0, floor(Math.log10(step || 1)) - 1);
        return min(last, round(step / 10 ** digits) * 10 ** digits);
    };
    const round_one = (step) => {
        const power = 10 ** floor(Math.log10(max(1, step)));
        return step / power < 6.25 || step / power > 6.4 ? round(step / power) * power : step;
    };
    const film = [0, ...each(6, (k) => round_one(moment(0.3 + 0.7 * k / 6)))].filter((step) => step < last);
    const keep = [...each(n, (k) => moment(k / (n - 1))), ...film, 0, last];
    state.run.film = [...new Set(film)];
    state.run.keep = [...new Set(keep)].sort((a, b) => a - b);
}

// Begins to learn: from step 0 on; or, with other heads silent, from the moment on the page.
function learn()
{
    const { run } = state;
    const is_other = run.silent !== silent_text();
    if (!can_run() || (run.learner && !is_other)) {
        return;
    }
    const goes_on = run.learner && !at_file() && !run.on_word.length;
    run.silent = silent_text();
    run.learner = goes_on ? copy_of(state.model) : fresh_model(state.stored, state.file.n_documents);
    run.losses = run.losses.slice(0, run.learner.step);
    kept_steps().filter((step) => !goes_on || step > run.learner.step).forEach((step) => run.snapshots.delete(step));
    keep_moment(run.learner);
    start_job("learn", learn_pieces());
}

function* learn_pieces()
{
    const { run, file, tapes } = state;
    const { learner } = run;
    const quiet = quiet_now();
    const first = run.snapshots.get(learner.step);
    let drawn_at = 0;
    first.samples = yield* samples_pieces(tapes.names, first);
    while (learner.step < run_length()) {
        const { step } = learner;
        const spent = { time: 0 };
        const words = documents_of(learner, file.documents, file.n_documents, step);
        run.losses[step] = yield* timed(step_pieces(tapes.train, learner, words, quiet), spent);
        run.cost = run.cost ? 0.98 * run.cost + 0.02 * min(spent.time, 3 * run.cost) : spent.time;
        if (run.keep.includes(learner.step)) {
            const kept = keep_moment(learner);
            kept.samples = yield* samples_pieces(tapes.names, kept);
        }
        if (clock() > drawn_at + 400 || learner.step === run_length()) {
            drawn_at = clock();
            draw_soon("time", "learn");
        }
        yield;
    }
}

// Keeps this moment. What the model writes at it is added in pieces.
function keep_moment(model)
{
    const kept = { ...copy_of(model), samples: [] };
    state.run.snapshots.set(model.step, kept);
    return kept;
}

// Four names that a model writes, a letter per piece.
function* samples_pieces(tape, model)
{
    const how = { temperature: 0.5, random: new_random(1).random, quiet: quiet_now(), longest: LONGEST };
    const samples = [];
    for (let i = 0; i < 12 && samples.length < 4; i++) {
        let name = "";
        for (const { token } of sample_letters(tape, model, how)) {
            name += token === model.BOS ? "" : model.uchars[token];
            yield;
        }
        samples.push(...(name ? [name] : []));
    }
    return samples;
}

const some_samples = (model) => finish(samples_pieces(state.tapes.work, model));

// The mean loss of the last fifth of the steps so far, at most 1,000 of them.
const loss_so_far = () => at_file() ? file_loss() : loss_at(state.model.step);

function loss_at(step)
{
    const { losses } = state.run;
    const end = min(step, losses.length);
    const n = max(1, min(1000, floor(end / 5)));
    const some = losses.slice(max(0, end - n), max(1, end));
    return some.length ? mean_of(some) : null;
}

function file_loss()
{
    if (!state.file.log) {
        return state.mean;
    }
    const { points, steps } = state.file.log;
    const part = min(1000, steps / 5) / steps;
    return mean_of(points.slice(-max(1, round(points.length * part))));
}

// Without a log: the mean loss of the file's model over some documents.
function* mean_pieces()
{
    const { tapes: { mean: tape }, stored, file } = state;
    let loss = 0;
    let tokens = 0;
    for (const word of file.documents.slice(0, 60)) {
        const pass = yield* loss_pieces(tape, stored, take_document(stored, word));
        loss += tape.value[pass.loss] * pass.n;
        tokens += pass.n;
    }
    state.mean = loss / tokens;
    draw_soon("time", "learn");
}

// To a moment that was kept: the nearest one at or before the step; "file" is the file's model. Returns its step.
function seek(step)
{
    const { run } = state;
    const at = kept_steps().filter((each_step) => each_step <= step).at(-1);
    run.playing = run.wanted = null;
    run.on_word = [];
    const is_file = step === "file" || at === undefined || (step === state.stored.step && !run.snapshots.has(step));
    run.where = is_file ? "file" : "run";
    update({ model: copy_of(at_file() ? state.stored : run.snapshots.get(at)) });
    return state.model.step;
}

// Once the run has been learned so far.
function seek_when_learned(step)
{
    const { run } = state;
    learn();
    const wait = () => {
        if (run.wanted === step) {
            learned_steps() >= min(step, run_length()) ? seek(step) : setTimeout(wait, 100);
        }
    };
    if (at_file() || state.model.step !== step) {
        run.wanted = step;
        wait();
    }
}

// The page at step 0, with random numbers. The file's model is kept.
function forget()
{
    learn();
    if (!state.run.learner) {
        state.run.where = "run";
        update({ model: fresh_model(state.stored, state.file.n_documents) });
    } else {
        seek(0);
    }
}

// The next n steps of the run, on the page's model: a promise of their losses.
async function train(n)
{
    const losses = [];
    if (!can_run()) {
        fail("there are no documents in this page");
    }
    state.run.playing = null;
    state.run.where = "run";
    for (let until = clock() + 10; losses.length < n;) {
        losses.push(step_of_run());
        if (clock() > until) {
            await new Promise((go_on) => setTimeout(go_on));
            until = clock() + 10;
        }
    }
    update({ model: state.model });
    return losses;
}

// A step of the page's own model. Where the learner has not been yet, its loss is kept.
function step_of_run()
{
    const { model, file, run, tapes } = state;
    const { step } = model;
    const words = documents_of(model, file.documents, file.n_documents, step);
    const loss = finish(step_pieces(tapes.work, model, words, quiet_now()));
    if (run.silent === silent_text() && step === run.losses.length && !run.on_word.length) {
        run.losses.push(loss);
    }
    if (run.keep.includes(model.step) && !run.snapshots.has(model.step) && !run.on_word.length) {
        keep_moment(model).samples = some_samples(model);
    }
    return loss;
}

function step_on_word()
{
    pause();
    api.step(state.choice.word);
}

// One step of the run; at the file, on the word of the page. What it did is in view: at the tiles, or at the curve.
function one_step()
{
    pause();
    if (at_file() || !can_run()) {
        step_on_word();
    } else {
        step_of_run();
        update({ model: state.model });
    }
}

// Plays from here on; at the end, from step 0 on.
function play()
{
    const { run } = state;
    if (!can_run()) {
        return;
    }
    learn();
    const from = at_file() || state.model.step >= run_length() ? 0 : share_of(state.model.step);
    run.on_word = [];
    run.wanted = null;
    run.playing = { from, since: clock(), step: 0, waits: false, shown_at: 0 };
    requestAnimationFrame(tick);
    redraw("time");
}

// It stands at the moment that is shown, with a model of its own.
function pause()
{
    if (state.run.playing) {
        state.run.playing = null;
        update({ model: copy_of(state.model) });
    }
}

// A frame of the film: which moment it is, the clock says. Where nothing is learned yet, the film waits.
function tick()
{
    const { run } = state;
    const { playing } = run;
    if (!playing) {
        return;
    }
    const now = clock();
    const most = share_of(learned_steps());
    let share = playing.from + (now - playing.since) / 1000 / SECONDS[run.speed];
    playing.waits = share > most && learned_steps() < run_length();
    if (playing.waits) {
        share = most;
        Object.assign(playing, { from: share, since: now });
    }
    playing.step = Math.expm1(min(1, share) * log1p(run_length()));
    const at = kept_steps().filter((step) => step <= playing.step + 0.5).at(-1);
    const is_next = at_file() || at !== state.model.step;
    if (is_next && (!is_calm() || now - playing.shown_at > 1000)) {
        playing.shown_at = now;
        run.where = "run";
        state.model = run.snapshots.get(at);
        state.version_of_model++;
        follow_word();
        follow_choice();
        draw_frame();
    } else {
        draw("time");
    }
    if (share >= 1 && state.model.step === run_length()) {
        pause();
    } else {
        requestAnimationFrame(tick);
    }
}

// Work for when nothing else is to do, in slices of 8 ms; not while the page is touched or hidden. While the run plays,
// only what it plays is learned; otherwise the two long jobs take turns.
const jobs = new Map();

function start_job(name, pieces)
{
    jobs.set(name, pieces);
    clearTimeout(start_job.later);
    start_job.later = setTimeout(do_jobs, 100);
}

function next_job()
{
    if (document.hidden || clock() < do_jobs.touched + 250) {
        return undefined;
    }
    do_jobs.turn = !do_jobs.turn;
    const order = ["compare", "worth", "unit", "mean", ...(do_jobs.turn ? ["survey", "learn"] : ["learn", "survey"])];
    return order.find((name) => jobs.has(name) && (!state.run.playing || name === "learn"));
}

function do_jobs()
{
    const until = clock() + 8;
    const name = next_job();
    const pieces = jobs.get(name);
    while (pieces && jobs.get(name) === pieces && clock() < until) {
        if (pieces.next().done && jobs.get(name) === pieces) {
            jobs.delete(name);
        }
    }
    if (jobs.size) {
        clearTimeout(start_job.later);
        start_job.later = setTimeout(do_jobs, name ? 4 : 250);
    }
}

do_jobs.touched = -Infinity;
