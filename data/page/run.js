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
    // {from, since, step, waits, shown_at}: from is a share of the axis of time; null: it stands
    playing: null, speed: 0,
    // the step of the address, until it is learned
    wanted: null,
    // milliseconds that learning took
    spent: 0,
});

const kept_steps = () => [...state.run.snapshots.keys()].sort((a, b) => a - b);
const run_length = () => state.stored.step || state.stored.training.steps;
const can_run = () => state.file.documents.length > 0 && !state.file.is_too_long;
const at_file = () => state.run.where === "file";
// where a step stands on the axis of time, from 0 to 1
const share_of = (step) => min(1, log1p(step) / log1p(run_length()));
const step_of_share = (share) => Math.expm1(min(1, share) * log1p(run_length()));
const learned_steps = () => state.run.learner ? state.run.learner.step : 0;

// Documents so long that a step would need more than 320 MB here.
function is_too_long({ n_layer, n_embd, n_head, block_size, vocab_size }, documents)
{
    const n = min(block_size, documents.reduce((most, word) => max(most, word.length + 1), 1));
    return n * (n_layer * (20 * n_embd + 2.5 * n_head * n) + 6 * vocab_size) > 2e7;
}

// About a hundred moments, spaced by the logarithm of the step, and seven more for the film.
function plan_run()
{
    const last = run_length();
    const n = max(8, min(100, floor(2e8 / (24 * state.model.num_params))));
    const rounded = (step, digits) => {
        const unit = 10 ** max(0, floor(Math.log10(step || 1)) + 1 - digits);
        return min(last, round(step / unit) * unit);
    };
    const film = [0, ...each(6, (k) => rounded(step_of_share(0.3 + 0.7 * k / 6), 1))];
    const keep = [...film, ...each(n, (k) => rounded(step_of_share(k / (n - 1)), 2)), last];
    state.run.film = [...new Set(film)].filter((step) => step < last);
    state.run.keep = new Set(keep);
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
    start_job("learn", learn_pieces(keep_moment(run.learner)));
}

function* learn_pieces(first)
{
    const { run, run: { learner }, file } = state;
    const quiet = quiet_now();
    let drawn = 0;
    first.samples = yield* samples_pieces(tape_for("moments"), first);
    while (learner.step < run_length()) {
        const words = documents_of(learner, file.documents, file.n_documents, learner.step);
        run.losses[learner.step] = yield* step_pieces(tape_for("learn"), learner, words, quiet);
        if (run.keep.has(learner.step)) {
            const moment = keep_moment(learner);
            moment.samples = yield* samples_pieces(tape_for("moments"), moment);
        }
        if (clock() > drawn + 400 || learner.step === run_length()) {
            drawn = clock();
            draw_soon("time", "learn");
        }
        seek_wanted();
        yield;
    }
}

// Keeps this moment. What the model writes at it is added in pieces.
function keep_moment(model)
{
    const moment = { ...copy_of(model), samples: [] };
    state.run.snapshots.set(model.step, moment);
    return moment;
}

function* samples_pieces(tape, model)
{
    const how = { temperature: 0.5, random: new_random(1).random, quiet: quiet_now(), longest: LONGEST };
    const samples = [];
    for (let i = 0; i < 12 && samples.length < 4; i++) {
        const name = yield* sample_pieces(tape, model, how);
        samples.push(...(name ? [name] : []));
    }
    return samples;
}

const some_samples = (model) => finish(samples_pieces(tape_for("work"), model));

// The mean of the last fifth of so many losses, at most 1,000 of them.
function recent_mean(losses, end, most = 1000)
{
    const n = max(1, min(most, floor(end / 5)));
    return mean_of(losses.slice(max(0, end - n), max(1, end)));
}

const loss_so_far = () => at_file() ? file_loss() : loss_at(state.model.step);

function loss_at(step)
{
    const { losses } = state.run;
    return losses.length ? recent_mean(losses, min(step, losses.length)) : null;
}

// Without a log nothing is known of the run's end.
function file_loss()
{
    const { log } = state.file;
    return log ? recent_mean(log.points, log.points.length, round(1000 * log.points.length / log.steps)) : null;
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

function seek_when_learned(step)
{
    learn();
    if (at_file() || state.model.step !== step) {
        state.run.wanted = step;
        seek_wanted();
    }
}

function seek_wanted()
{
    const { wanted } = state.run;
    if (wanted !== null && learned_steps() >= min(wanted, run_length())) {
        seek(wanted);
    }
}

// The page at step 0, with random numbers. The file's model is kept.
function forget()
{
    learn();
    if (state.run.learner) {
        seek(0);
    } else {
        state.run.where = "run";
        update({ model: fresh_model(state.stored, state.file.n_documents) });
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

// A step of the run, of the page's own model; returns the loss before it.
function step_of_run()
{
    const { model, file } = state;
    const words = documents_of(model, file.documents, file.n_documents, model.step);
    return finish(step_pieces(tape_for("work"), model, words, quiet_now()));
}

function step_on(word)
{
    const loss = finish(step_pieces(tape_for("work"), state.model, [word], quiet_now()));
    state.run.on_word.push({ word, loss });
    update({ model: state.model });
    return loss;
}

function step_on_word()
{
    pause();
    step_on(state.choice.word);
}

// One step of the run; at the file, on the word of the page.
function one_step()
{
    if (at_file() || !can_run()) {
        return step_on_word();
    }
    pause();
    step_of_run();
    return update({ model: state.model });
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
    const { run, run: { playing } } = state;
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
    playing.step = step_of_share(share);
    show_moment(kept_steps().filter((step) => step <= playing.step + 0.5).at(-1), now);
    if (share >= 1 && state.model.step === run_length()) {
        pause();
    } else {
        requestAnimationFrame(tick);
    }
}

// A kept moment of the film, if it is another than the one on the page; with less motion, one a second.
function show_moment(step, now)
{
    const { run } = state;
    if (!run.snapshots.has(step) || (!at_file() && step === state.model.step)
        || (is_calm() && now - run.playing.shown_at < 1000)) {
        return draw("time");
    }
    run.playing.shown_at = now;
    run.where = "run";
    state.model = run.snapshots.get(step);
    state.version_of_model++;
    follow("pass");
    return draw_frame();
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
    if (document.hidden || is_touched()) {
        return undefined;
    }
    do_jobs.turn = !do_jobs.turn;
    const order = ["compare", "worth", "unit", ...(do_jobs.turn ? ["survey", "learn"] : ["learn", "survey"])];
    return order.find((name) => jobs.has(name) && (!state.run.playing || name === "learn"));
}

function do_jobs()
{
    const start = clock();
    const name = next_job();
    const pieces = jobs.get(name);
    while (pieces && jobs.get(name) === pieces && clock() < start + 8) {
        if (pieces.next().done && jobs.get(name) === pieces) {
            jobs.delete(name);
        }
    }
    state.run.spent += name === "learn" ? clock() - start : 0;
    if (jobs.size) {
        clearTimeout(start_job.later);
        start_job.later = setTimeout(do_jobs, name ? 4 : 250);
    }
}

do_jobs.touched = -Infinity;
const is_touched = () => clock() < do_jobs.touched + 250;
