// The state of the page, in one object, and the one way to change it: update(). Views are functions of it. Word,
// position, value, votes, silent heads and step are in the address.
"use strict";

// positions that a page shows
const LONGEST = 96;

const state = {
    // what the program put in: {version, file, model, word, log, documents, ...}
    file: null,
    // the file's model, and the one on the page: the file's, a moment of the run, or either after steps on a word
    stored: null, model: null, is_small: true,
    // does the page compute what the program computes? null: not known yet
    agrees: null,
    // for each job, as they interrupt each other
    tapes: {},
    // the pass of the word, with what is silent and what is changed
    shown: null,
    // of what is shown, and of the model with what is silent: every pass, every model and every change has its own
    version: 0, version_of_model: 0,
    choice: { word: "", pos: 0, value: null, votes: null, silent: [], units: [], layer: 0, head: null, unit: null,
              walk: 0 },
    // a number that is changed: {name, i, pos, value, at}
    edit: null,
    // the head, and the vote, under the pointer
    hovered: null, pointed: null,
    run: null,
    // what the chosen value concerns: its place, cells and blocks
    marks: { at: -1, cells: new Map(), block: null, used: [] },
    // what became of the typed text
    notes: [],
    // what had the focus before the inspector, or the votes, opened
    opener: null,
    theme: null,
    // what was asked for: rows of numbers, long tables, all votes, all digits, how a number was made
    opened: new Set(),
    // the number in the hand: was one dragged once, just now; what it says; is all that follows finite?
    has_dragged: false, was_drag: false, hand_says: "", is_finite: true,
    // gathered while nothing else is to do
    survey: null, worth: { version: -1, layer: -1, losses: [] },
    sampling: { temperature: 0.5, prompt: "", seed: 1, letters: null, steps: [] },
};

const tape_for = (job, is_named = false) => state.tapes[job] ||= new_tape(job === "shown" && state.is_small, is_named);
const is_opened = (what) => state.opened.has(what);
const toggle = (what, ...views) => () => {
    state.opened[is_opened(what) ? "delete" : "add"](what);
    redraw(...views);
};

// A function whose result is kept until the key of its arguments is another.
function kept(key_of, make)
{
    let key = null;
    let made = null;
    return (...of) => {
        const now = key_of(...of);
        if (key !== now) {
            made = make(...of);
            key = now;
        }
        return made;
    };
}

// Changes what is chosen (a word, a position, a value, ...), the model or the edited number, and all that follows from
// it. The element that was pressed stays where it is on the screen; `show` scrolls to the chosen value instead.
function update(change, { replace = false, show = false } = {})
{
    const { value, pos } = state.choice;
    const anchor = pressed_in_main();
    const top = anchor && box_of(anchor).top;
    const scrolled = scrollY;
    follow(take(change));
    write_address(replace || "model" in change || "edit" in change);
    show_word();
    redraw(...Object.keys(VIEWS));
    if (anchor && anchor.isConnected && !show) {
        scrollBy({ top: box_of(anchor).top - top, behavior: "instant" });
    } else if ("model" in change && scrollY !== scrolled) {
        scrollTo({ top: scrolled, behavior: "instant" });
    }
    if (state.choice.value && (state.choice.value !== value || state.choice.pos !== pos)) {
        by_id("panel").scrollTop = 0;
        show_chosen(show, anchor);
    }
}

function pressed_in_main()
{
    const focus = document.activeElement;
    return focus && focus.closest("main") ? focus : null;
}

// Puts the change where it belongs. Returns what is to be computed again: "pass", "edit" or nothing.
function take(change)
{
    const { choice } = state;
    const was_silent = silent_text();
    const was_word = choice.word;
    for (const [name, value] of Object.entries(change)) {
        if (name === "model" || name === "edit") {
            state[name] = value;
        } else {
            choice[name] = name === "word" ? readable(state.model, value).word : value;
        }
    }
    state.is_finite = state.is_finite || "value" in change;
    const is_other_model = "model" in change || was_silent !== silent_text();
    if (is_other_model || was_word !== choice.word) {
        state.version_of_model += is_other_model ? 1 : 0;
        Object.assign(state.sampling, { letters: null, steps: [] });
        return "pass";
    }
    return "edit" in change ? "edit" : "";
}

function follow(what)
{
    if (what === "pass") {
        follow_word();
    } else if (what === "edit") {
        state.version++;
        change_pass(state.shown, state.edit ? state.edit.at : 0, state.edit ? state.edit.value : null);
    }
    follow_choice();
}

// The pass of the word, with what is silent and what is changed. While the run plays, products are no values of their
// own.
function follow_word()
{
    const { model, choice } = state;
    const tape = tape_for(state.run.playing ? "playing" : "shown", true);
    state.shown = finish(loss_pieces(tape, model, take_document(model, choice.word, LONGEST), quiet_now()));
    state.version++;
    choice.pos = max(0, min(choice.pos, state.shown.n - 1));
    if (!state.edit) {
        return;
    }
    const { name, i, pos, value } = state.edit;
    try {
        state.edit.at = place_of(tape, name, i, pos);
        change_pass(state.shown, state.edit.at, value);
    } catch {
        state.edit = null;
    }
}

function follow_choice()
{
    const { choice, shown } = state;
    choice.pos = max(0, min(choice.pos, shown.n - 1));
    if (choice.value && chosen_place() < 0) {
        choice.value = null;
    }
    if (choice.votes !== null && !within(choice.votes, 0, state.model.vocab_size)) {
        choice.votes = null;
    }
    follow_marks();
    const at = chosen_place();
    if (at >= 0) {
        const { layer, head } = block_of(at);
        choice.layer = layer ?? choice.layer;
        choice.head = head === null ? choice.head : null;
    }
    if (is_open() !== at >= 0) {
        document.body.classList.toggle("open", at >= 0);
        forget_widths();
    }
}

function split_value(value)
{
    const dot_at = value.lastIndexOf(".");
    return [value.slice(0, dot_at), Number(value.slice(dot_at + 1))];
}

// The place of the chosen value on the tape, or -1.
function chosen_place()
{
    if (!state.choice.value) {
        return -1;
    }
    const [name, i] = split_value(state.choice.value);
    const found = find_vector(state.shown.tape, name, state.choice.pos);
    return found && Number.isInteger(i) && within(i, 0, found.n) ? found.at + i : -1;
}

// What is silent: for the address, and for the model.
function silent_text()
{
    const { silent, units } = state.choice;
    const parts = [silent.map((pair) => pair.join(".")), units.map((pair) => `u${pair.join(".")}`)];
    return parts.flatMap((part) => part.sort()).join(" ");
}

const of_heads = (silent) => ({ heads: new Set(silent.map(([l, k]) => l * state.model.n_head + k)), units: [] });

const quiet_now = kept(() => silent_text(), () => {
    const quiet = of_heads(state.choice.silent);
    state.choice.units.forEach(([l, u]) => { (quiet.units[l] ||= new Set()).add(u); });
    return quiet;
});

const has_pair = (pairs, layer, k) => pairs.some(([l, i]) => l === layer && i === k);
const is_silent = (layer, head) => has_pair(state.choice.silent, layer, head);

// Switches a head (of choice.silent) or a unit (of choice.units) off or on.
function switch_one(list, layer, k)
{
    const others = state.choice[list].filter(([l, i]) => l !== layer || i !== k);
    update({ [list]: others.length < state.choice[list].length ? others : [...others, [layer, k]] }, { replace: true });
}

function write_address(replace)
{
    const is_playing = Boolean(state.run.playing);
    const { word, pos, value, votes, walk } = state.choice;
    const all = new URLSearchParams({ word, pos });
    const parts = { value, votes: votes === null ? "" : votes === state.model.BOS ? "end" : state.model.uchars[votes],
                    silent: silent_text(), step: at_file() || is_playing ? "" : state.model.step, walk: walk || "" };
    for (const [name, part] of Object.entries(parts)) {
        if (part !== "" && part !== null) {
            all.set(name, part);
        }
    }
    if (`#${all}` !== location.hash) {
        history[replace || is_playing ? "replaceState" : "pushState"](null, "", `#${all}`);
    }
}

const whole = (text) => /^\d{1,15}$/.test(text || "") ? Number(text) : null;

function read_address()
{
    const address = new URLSearchParams(location.hash.slice(1));
    const { token_of, BOS, n_layer, n_embd, n_head } = state.model;
    const parts = (address.get("silent") || "").split(" ").slice(0, 5000);
    const pairs = (some, n) => some.map((part) => part.split(".").map(whole))
        .filter(([l, k, more]) => more === undefined && (l ?? n_layer) < n_layer && (k ?? n) < n);
    const votes = address.get("votes");
    return {
        word: address.get("word"), pos: whole(address.get("pos")), value: address.get("value"),
        silent: pairs(parts, n_head),
        units: pairs(parts.filter((part) => part.startsWith("u")).map((part) => part.slice(1)), 4 * n_embd),
        votes: votes === "end" ? BOS : token_of.get(votes) ?? null,
        step: whole(address.get("step")), walk: min(STOPS.length, whole(address.get("walk")) || 0),
    };
}

// The address leads: back and forth in the history, and links from others.
function follow_address()
{
    const { word, pos, value, votes, walk, silent, units, step } = read_address();
    if (step !== null && can_run()) {
        seek_when_learned(step);
    } else if (step === null && !at_file()) {
        pause();
        seek("file");
    }
    update({ word: word ?? state.choice.word, pos: pos ?? max(0, state.shown.n - 2), value, votes, walk, silent,
             units }, { replace: true, show: value !== null });
    by_id("word").value = state.choice.word;
    if (walk) {
        follow_walk();
    } else if (votes !== null) {
        show_votes();
    }
}
