// The start: what the program put in becomes the page, or a file that is dropped on it.
"use strict";

// Views, in the order of the page. is_quick: drawn at once, the others in the next frames; waits: while the run plays;
// then: what follows when it is drawn.
const VIEWS = {
    time: { draw: draw_time, is_quick: true },
    chips: { draw: draw_chips, is_quick: true },
    map: { draw: draw_map },
    next: { draw: draw_next, is_quick: true, is_section: true, then: show_letter },
    votes: { draw: draw_votes, is_quick: true, is_section: true, then: show_votes_or_not },
    inspector: { draw: draw_inspector, is_quick: true, waits: true },
    made: { draw: draw_made, waits: true },
    learn: { draw: draw_learn, is_section: true },
    heads: { draw: draw_heads, is_section: true },
    units: { draw: draw_units, is_section: true, waits: true },
    numbers: { draw: draw_numbers, is_section: true, waits: true },
    samples: { draw: draw_samples, is_section: true, waits: true },
    file: { draw: draw_file, is_section: true, waits: true },
    walk: { draw: draw_walk, is_quick: true, then: mark_target },
};
const draw_all = () => draw_soon(...Object.keys(VIEWS));

function listen()
{
    const word = by_id("word");
    on(document, "keydown", pressed_key);
    on(document, "selectionchange", caret_moved);
    on(by_id("numbers"), "click", choose_cell);
    on(by_id("numbers"), "pointerdown", drag_cell);
    on(word, "input", typed);
    on(word, "blur", () => { word.value = state.choice.word; });
    on(by_id("take-walk"), "click", () => walk_to(1));
    on(by_id("walk-button"), "click", () => walk_to(1));
    on(by_id("skip"), "click", skip_to_inspector);
    on(window, "popstate", follow_address);
    for (const name of ["pointerdown", "keydown", "wheel", "touchmove", "scroll"]) {
        on(document, name, () => { do_jobs.touched = clock(); }, { passive: true, capture: true });
    }
    on(matchMedia("(prefers-color-scheme: dark)"), "change", () => {
        read_theme();
        draw_all();
    });
    let width = innerWidth;
    on(window, "resize", () => {
        if (innerWidth !== width) {
            width = innerWidth;
            fit_layout();
            draw_all();
        }
    });
    on(window, "scroll", show_chips, { passive: true });
}

// The letters stand in the bar once the tiles are above the screen.
function show_chips()
{
    const is_past = box_of(by_id("tiles-box")).bottom < top_height();
    if (document.body.classList.contains("scrolled") !== is_past) {
        document.body.classList.toggle("scrolled", is_past);
        forget_widths();
        draw_soon("time");
    }
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
    const { file, stored, is_small } = state;
    const tape = tape_for("work");
    if (typeof file.word === "string") {
        return file.word;
    }
    const some = file.documents.slice(0, is_small ? 120 : 12).filter((word) => within(Array.from(word).length, 4, 4));
    const losses = some.map((word) => tape.value[finish(loss_pieces(tape, stored, take_document(stored, word))).loss]);
    if (some.length) {
        return some[losses.indexOf(min(...losses))];
    }
    const { random } = new_random(7);
    const made = each(8, () => sample(tape, stored, { temperature: 0.5, random, longest: LONGEST }));
    return made.find((word) => within(word.length, 4, 4)) || made.at(-1) || file.documents[0] || "";
}

// Does the page compute the losses that the program computed? As far as they are given: [[word, loss], ...].
function* compare_pieces()
{
    const { file, stored } = state;
    let off = null;
    for (const [word, loss] of file.losses || []) {
        const pass = yield* loss_pieces(tape_for("compare"), stored, take_document(stored, word));
        const here = pass.tape.value[pass.loss];
        off ||= abs(here - loss) <= 1e-9 * max(1, abs(loss)) ? null : { word, loss, here };
        yield;
    }
    state.agrees = !off;
    by_id("disagrees").hidden = state.agrees;
    patch(by_id("disagrees"), off ? ["This page computes another model than the program: the loss of ",
        visible_word(off.word), ` is ${off.here.toPrecision(8)} here and ${off.loss.toPrecision(8)} there.`] : []);
}

// What the program put in, and the model of the file. Of other documents than the model's own, those that it can read.
function take_file(source, bytes)
{
    const stored = read_model(bytes);
    const all = String(source.documents || "").split("\n").filter((word) => word);
    const documents = all.filter((word) => Array.from(word).every((c) => stored.token_of.has(c)));
    Object.assign(state, {
        file: { file: "model", ...source, documents, n_documents: max(all.length, Number(source.n_documents) || 0),
                own: source.own !== false && documents.length === all.length,
                is_too_long: is_too_long(stored, documents) },
        stored, model: copy_of(stored), run: new_run(),
        is_small: stored.num_params * min(stored.block_size, 16) <= 4e6,
        opened: new Set(is_wide(64) ? ["made"] : []),
    });
    plan_run();
}

function draw_title()
{
    const { file, stored } = state;
    const steps = stored.step ? ` in ${plural(stored.step, "step")}` : "";
    const name = visible_word(String(file.file));
    document.title = `${name} · microgpt`;
    patch(by_id("title"), [`A whole GPT: ${count(stored.num_params)} numbers, all of them on this page`]);
    patch(by_id("lead"), to_draw([
        file.n_documents && file.own ? [`It guesses ${noun(2)}, letter by letter.`,
            h("span.more", ` It learned from ${count(file.n_documents)} of them${steps}.`)]
            : steps ? `It learned${steps}.` : "It is not trained yet.",
        stored.missing.length > 6 ? " The file does not say how it was trained." : "", " ", h("span.mono", name)]));
}

function open_page(source, bytes)
{
    const { choice } = state;
    take_file(source, bytes);
    by_id("door").hidden = true;
    by_id("app").hidden = false;
    draw_title();
    read_theme();
    fit_layout();
    const { word, pos, silent, units, value, votes, step, walk } = read_address();
    Object.assign(choice, { word: readable(state.model, word ?? first_word()).word, silent, units });
    follow("pass");
    choice.pos = min(pos ?? Infinity, max(0, state.shown.n - (pos === null ? 2 : 1)));
    // the arcs grow once, before anything is pressed
    document.body.classList.add("fresh");
    setTimeout(() => document.body.classList.remove("fresh"), 1200);
    draw("time");
    redraw(...Object.keys(VIEWS));
    window.microgpt = Object.freeze(api);
    listen();
    watch_sections();
    if (value || votes !== null || step !== null || walk) {
        follow_address();
    }
    show_word();
    begin_jobs();
}

function begin_jobs()
{
    if (state.is_small) {
        finish(compare_pieces());
    } else {
        start_job("compare", compare_pieces());
    }
    learn();
}

// Opened alone: a place to drop a model file.
function open_door(problem)
{
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
    show_door(h("main.drop", { ondragover: over(true), ondragleave: over(false), ondrop: drop },
        h("h1", "A whole GPT on one page"),
        h("p", "Drop a model file here, or choose one: what microgpt train --save writes."),
        h("label.soft", "model file ", h("input", { type: "file", id: "choose-file", accept: ".safetensors",
            onchange: (e) => e.target.files[0] && take_chosen(e.target.files[0]) })),
        problem ? h("p.note", { role: "alert" }, problem) : ""));
}

function show_door(content)
{
    by_id("app").hidden = true;
    by_id("door").hidden = false;
    patch(by_id("door"), [content]);
}

function start()
{
    if (typeof FROM_PROGRAM === "undefined") {
        return open_door("");
    }
    try {
        return open_page(FROM_PROGRAM, decode(FROM_PROGRAM.model));
    } catch (e) {
        return show_door(h("p.wide.note", { role: "alert" },
            `This page cannot show ${visible_word(String(FROM_PROGRAM.file || "the model"))}: ${e.message}.`));
    }
}

start();
