// The start: what the program put in becomes the page, or a file that is dropped on it.
"use strict";

const VIEWS = {
    time: draw_time, chips: draw_chips, map: draw_map, next: draw_next, votes: draw_votes, learn: draw_learn,
    heads: draw_heads, units: draw_units, numbers: draw_numbers, samples: draw_samples, points: draw_points,
    file: draw_file, inspector: draw_inspector, made: draw_made, walk: draw_walk,
};

function listen()
{
    const numbers = by_id("numbers");
    on(document, "keydown", pressed_key);
    on(document, "selectionchange", caret_moved);
    on(numbers, "click", choose_cell);
    on(numbers, "pointerdown", drag_cell);
    for (const name of ["pointerover", "focusin", "pointerleave"]) {
        on(numbers, name, read_out);
    }
    on(by_id("word"), "input", typed);
    on(by_id("word"), "blur", () => { by_id("word").value = state.choice.word; });
    on(by_id("take-walk"), "click", () => walk_to(1));
    on(by_id("walk-button"), "click", () => walk_to(1));
    on(by_id("skip"), "click", skip_to_inspector);
    on(window, "popstate", follow_address);
    for (const name of ["pointerdown", "keydown", "wheel", "touchmove", "scroll"]) {
        on(document, name, () => { do_jobs.touched = clock(); }, { passive: true, capture: true });
    }
    on(matchMedia("(prefers-color-scheme: dark)"), "change", () => {
        read_theme();
        draw_soon(...VIEW_NAMES);
    });
    watch_window();
}

function watch_window()
{
    let width = innerWidth;
    on(window, "resize", () => {
        if (innerWidth !== width) {
            width = innerWidth;
            fit_layout();
            draw_soon(...VIEW_NAMES);
        }
    });
    on(window, "scroll", () => {
        const box = by_id("tiles-box");
        const is_past = Boolean(box) && box_of(box).bottom < top_height();
        if (document.body.classList.contains("scrolled") !== is_past) {
            document.body.classList.toggle("scrolled", is_past);
            forget_widths();
            draw_soon("time");
        }
    }, { passive: true });
}

function choose_cell(e)
{
    const cell = e.target.closest("[data-go]");
    if (cell && !state.was_drag) {
        state.opener = cell;
        cell.focus({ preventScroll: true });
        update({ value: cell.dataset.go });
    }
    state.was_drag = false;
}

function skip_to_inspector()
{
    if (!state.choice.value) {
        update({ value: `logits.${best_at(state.choice.pos).id}` });
    }
    by_id("hand").focus();
}

// At the start: the word of the program, or a document that the model reads well, or one that it makes up.
function first_word()
{
    const { file, tapes: { work, is_small }, stored } = state;
    if (typeof file.word === "string") {
        return file.word;
    }
    const some = file.documents.slice(0, is_small ? 120 : 12).filter((word) => within(Array.from(word).length, 4, 4));
    const losses = some.map((word) => {
        const pass = finish(loss_pieces(work, stored, take_document(stored, word)));
        return work.value[pass.loss];
    });
    if (some.length) {
        return some[losses.indexOf(min(...losses))];
    }
    const { random } = new_random(7);
    let word = "";
    for (let i = 0; i < 8 && (word.length < 4 || word.length > 7); i++) {
        word = sample(work, stored, { temperature: 0.5, random, longest: LONGEST });
    }
    return word || file.documents[0] || "";
}

// Does the page compute the losses that the program computed? As far as they are given: [[word, loss], ...].
function* compare_pieces()
{
    const { file, stored, tapes: { compare: tape } } = state;
    let off = null;
    for (const [word, loss] of file.losses || []) {
        const pass = yield* loss_pieces(tape, stored, take_document(stored, word));
        const here = tape.value[pass.loss];
        off = off || (abs(here - loss) <= 1e-9 * max(1, abs(loss)) ? null : { word, loss, here });
        yield;
    }
    state.agrees = !off;
    by_id("disagrees").hidden = state.agrees;
    patch(by_id("disagrees"), off ? ["This page computes another model than the program: the loss of ",
        visible_word(off.word), ` is ${off.here.toPrecision(8)} here and ${off.loss.toPrecision(8)} there.`] : []);
}

// A tape for each job, and those of the page: of the word, of the film, of scripts, of all that is done at once.
function new_tapes(is_small)
{
    const plain = () => new_tape(false, false);
    const named = () => new_tape(false, true);
    return {
        is_small, shown: new_tape(is_small, true), playing: named(), named: named(), work: plain(), letters: plain(),
        train: plain(), compare: plain(), mean: plain(), survey: named(), without: plain(), worth: plain(),
        unit: plain(), names: plain(),
    };
}

// What the program put in, and the model of the file.
function take_file(source, bytes)
{
    const documents = source.documents ? source.documents.split("\n") : [];
    const stored = read_model(bytes);
    const is_small = stored.num_params * min(stored.block_size, 16) <= 4e6;
    const knows = (word) => Array.from(word).every((c) => stored.token_of.has(c));
    state.file = { file: "model", ...source, documents,
                   n_documents: max(documents.length, Number(source.n_documents) || 0) };
    state.stored = stored;
    state.model = copy_of(stored);
    state.run = new_run();
    state.tapes = new_tapes(is_small);
    // others than its own: those that it can read
    if (!documents.every(knows)) {
        state.file.documents = documents.filter(knows);
        state.file.own = false;
    }
    plan_run();
}

function draw_title()
{
    const { file, stored } = state;
    const steps = stored.step ? ` in ${plural(stored.step, "step")}` : "";
    const is_own = file.n_documents && file.own !== false;
    document.title = `${visible_word(String(file.file))} · microgpt`;
    patch(by_id("title"), [`A whole GPT: ${count(stored.num_params)} numbers, all of them on this page`]);
    patch(by_id("lead"), to_draw([
        is_own ? [`It guesses ${noun(2)}, letter by letter.`,
                  h("span.more", ` It learned from ${count(file.n_documents)} of them${steps}.`)]
            : steps ? `It learned${steps}.` : "It is not trained yet.",
        stored.missing.length > 6 ? " The file does not say how it was trained." : "", " ",
        h("span.mono", visible_word(String(file.file)))]));
}

function open_page(source, bytes)
{
    take_file(source, bytes);
    by_id("door").hidden = true;
    by_id("app").hidden = false;
    draw_title();
    read_theme();
    fit_layout();
    const wanted = read_address();
    const { word } = readable(state.model, wanted.word ?? first_word());
    Object.assign(state.choice, { word, silent: wanted.silent, units: wanted.units, pos: wanted.pos ?? Infinity });
    follow("pass");
    state.choice.pos = wanted.pos ?? max(0, state.shown.n - 2);
    by_id("word").value = state.choice.word;
    // the arcs grow once, before anything is pressed
    document.body.classList.add("fresh");
    setTimeout(() => document.body.classList.remove("fresh"), 1200);
    draw("time");
    redraw(...VIEW_NAMES);
    window.microgpt = Object.freeze(api);
    listen();
    watch_sections();
    if (wanted.value || wanted.votes !== null || wanted.step !== null || wanted.walk) {
        follow_address();
    }
    show_word();
    if (state.tapes.is_small) {
        finish(compare_pieces());
    } else {
        start_job("compare", compare_pieces());
    }
    if (can_run() && !state.file.log) {
        start_job("mean", mean_pieces());
    }
    learn();
}

// Opened alone: a place to drop a model file.
function open_door(problem)
{
    const door = by_id("door");
    const take_chosen = async (chosen) => {
        try {
            open_page({ file: chosen.name }, new Uint8Array(await chosen.arrayBuffer()));
        } catch (e) {
            open_door(`${visible_word(chosen.name)}: ${e.message}.`);
        }
    };
    const over = (is_over) => (e) => {
        e.preventDefault();
        e.currentTarget.classList.toggle("over", is_over);
    };
    const drop = (e) => {
        e.preventDefault();
        return e.dataTransfer.files[0] && take_chosen(e.dataTransfer.files[0]);
    };
    by_id("app").hidden = true;
    door.hidden = false;
    patch(door, [h("main.drop", { ondragover: over(true), ondragleave: over(false), ondrop: drop },
        h("h1", "A whole GPT on one page"),
        h("p", { style: "margin: 16px auto" },
            "Drop a model file here, or choose one: what microgpt train --save writes."),
        h("label.soft", "model file ", h("input", { type: "file", id: "choose-file", accept: ".safetensors",
            onchange: (e) => e.target.files[0] && take_chosen(e.target.files[0]) })),
        problem ? h("p.note", { role: "alert", style: "margin: 16px auto; text-align: left" }, problem) : "")]);
}

function start()
{
    if (typeof FROM_PROGRAM === "undefined") {
        open_door("");
        return;
    }
    try {
        open_page(FROM_PROGRAM, decode(FROM_PROGRAM.model));
    } catch (e) {
        by_id("app").hidden = true;
        by_id("door").hidden = false;
        patch(by_id("door"), [h("p.wide.note", { role: "alert", style: "margin-top: 40px" },
            `This page cannot show ${visible_word(String(FROM_PROGRAM.file || "the model"))}: ${e.message}.`)]);
    }
}

start();
