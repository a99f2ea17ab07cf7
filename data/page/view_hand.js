// The number in the hand: the chosen value is dragged, and below it the guesses and the loss move.
"use strict";

// of the loss meter
const REACH = 0.5;
// how far 60 px go; a weight moves less
const UNIT_OF_VALUE = 1;
const UNIT_OF_WEIGHT = 0.25;
const NOT_FINITE = "Beyond this, its numbers are not finite.";

const can_hold = (at) => at >= 0 && !["loss", "probs"].includes(block_of(at).block);

function draw_hand(at)
{
    const { shown: { tape }, edit } = state;
    const value = tape.value[at];
    const is_changed_here = edit && edit.at === at;
    const undo = is_changed_here ? h("button.link.undo", { id: "undo", onclick: undo_edit }, "undo") : "";
    if (!can_hold(at)) {
        return h("", { key: "hand-box" }, h(".hand.fixed", { id: "hand", tabindex: -1 }, short(value)));
    }
    return h("", { key: "hand-box" },
        h(".line.small.soft",
            !state.is_finite ? NOT_FINITE : state.has_dragged ? "" : "Drag the number.", is_changed_here
            ? h("span", "it was ", number(short(computed(state.shown)[at])), " ", undo) : ""),
        h(".hand", {
            id: "hand", role: "slider", tabindex: 0, label: name_for_people(at).replace("[", " ").replace("]", ""),
            "aria-valuenow": Number.isFinite(value) ? Number(value.toPrecision(6)) : 0, "aria-valuetext": short(value),
            onpointerdown: (e) => start_drag(e, at), onkeydown: (e) => hand_key(e, at),
        }, h("span", HIDDEN, "◀"), number(in_hand(value)), h("span", HIDDEN, "▶")),
        draw_guesses(),
        draw_meter(at));
}

const in_hand = (x) => minus(abs(x) < 100 ? x.toFixed(abs(x) < 0.1 ? 3 : 2) : short(x));

// The guesses at the chosen position, in their order before the change; a mark stays where each was.
function draw_guesses()
{
    const { shown, choice: { pos }, model, edit } = state;
    const before = Array.from(computed(shown).subarray(shown.probs[pos], shown.probs[pos] + model.vocab_size));
    const now = probs_at(pos);
    const target = shown.tokens[pos + 1];
    const figure = (p) => (100 * p).toFixed(0);
    return [
        h("h3", pos ? ["After ", mono(before_text(pos).slice(-12)), " it expects"] : "At the start it expects"),
        h(".guesses", guesses_at(pos, before).map((id) => h("", {
            class: `guess${id === target ? " true" : ""}`, key: id },
            h("bdi.mono", token_text(id)),
            h("span.share", h("i", { style: `width: ${(100 * now[id]).toFixed(2)}%` }),
                h("u", { style: `left: ${(100 * before[id]).toFixed(2)}%` })),
            number(edit ? `${figure(before[id])} → ${figure(now[id])}%` : `${figure(before[id])}%`)))),
    ];
}

// How the loss of the word changes: really, and by the word of the gradient.
function draw_meter(at)
{
    const { shown: { tape, loss }, edit } = state;
    const values = computed(state.shown);
    const really = tape.value[loss] - values[loss];
    const said = edit ? tape.grad[edit.at] * (tape.value[edit.at] - values[edit.at]) : 0;
    const x = (change) => 50 + 50 * max(-1, min(1, change / REACH));
    const from = min(50, x(really));
    const beyond = abs(really) > REACH ? (really < 0 ? " under" : " over") : "";
    const text = !edit ? `${tape.value[loss].toFixed(3)} now; gradient ${short(tape.grad[at])}`
        : abs(really) < 0.0005 && abs(said) < 0.0005 ? "No change one could see."
        : `${signed(really)}; its gradient said ${signed(said)} (dashed)`;
    return [
        h("h3", "The loss of the word"),
        h("", { class: `meter${beyond}`, role: "img", label: text },
            h("i", { style: `left: ${from}%; width: ${abs(x(really) - 50)}%; ` +
                `background: var(--${really < 0 ? "negative" : "positive"})` }), h("u"),
            h("s", { style: `left: ${x(said)}%` })),
        h(".line.small.soft", number(`−${REACH}`), h("span.said", text), number(`+${REACH}`)),
        h(".unseen", { role: "status", id: "hand-says" }, state.hand_says),
    ];
}

// Changes the chosen number. What is not finite is not taken.
function hold(at, value)
{
    const { name, i, pos } = address_of(state.shown.tape, at);
    const last = state.edit;
    update({ edit: { name, i, pos: pos ?? state.choice.pos, value, at } });
    state.is_finite = Number.isFinite(state.shown.tape.value[state.shown.loss]);
    if (!state.is_finite) {
        update({ edit: last });
    }
    clearTimeout(hold.later);
    hold.later = setTimeout(say_guess, 500);
}

// After a rest: what became of the likeliest guess.
function say_guess()
{
    const { shown, choice: { pos }, model, edit } = state;
    if (edit) {
        const before = Array.from(computed(shown).subarray(shown.probs[pos], shown.probs[pos] + model.vocab_size));
        const [id] = guesses_at(pos, before);
        const percents = [before[id], probs_at(pos)[id]].map((p) => (100 * p).toFixed(0));
        state.hand_says = `${id === model.BOS ? "the end" : token_text(id)}, ${percents[0]} to ${percents[1]} percent`;
        redraw("inspector");
    }
}

const unit_of = (at) => at < state.model.num_params ? UNIT_OF_WEIGHT : UNIT_OF_VALUE;

// Dragging: 60 px are one unit, with Shift a tenth of it.
function start_drag(e, at)
{
    const hand = e.currentTarget;
    const drag = { at, x: e.clientX, value: state.shown.tape.value[at] };
    e.preventDefault();
    hand.focus({ preventScroll: true });
    hand.setPointerCapture(e.pointerId);
    hand.onpointermove = (move) => drag_to(drag, move);
    hand.onpointerup = hand.onpointercancel = () => { hand.onpointermove = null; };
}

function drag_to(drag, { clientX, shiftKey })
{
    state.has_dragged = true;
    drag.value += (clientX - drag.x) / 60 * unit_of(drag.at) * (shiftKey ? 0.1 : 1);
    drag.x = clientX;
    hold(drag.at, drag.value);
}

function hand_key(e, at)
{
    const by = e.key.startsWith("Page") ? 1 : e.shiftKey ? 0.01 : 0.1;
    const way = { ArrowRight: 1, ArrowUp: 1, PageUp: 1, ArrowLeft: -1, ArrowDown: -1, PageDown: -1 }[e.key];
    if (!way && e.key !== "Delete") {
        return;
    }
    e.preventDefault();
    e.stopPropagation();
    if (way) {
        state.has_dragged = true;
        hold(at, state.shown.tape.value[at] + way * by * unit_of(at));
    } else {
        undo_edit();
    }
}

// A cell is dragged by the mouse, after 4 px; a click stays a click.
function drag_cell(e)
{
    const cell = e.target.closest("[data-go]");
    if (!cell || e.pointerType !== "mouse" || e.button !== 0) {
        return;
    }
    const start = e.clientX;
    let drag = null;
    const move = (event) => {
        if (!drag && abs(event.clientX - start) > 4) {
            update({ value: cell.dataset.go });
            const at = chosen_place();
            drag = can_hold(at) ? { at, x: start, value: state.shown.tape.value[at] } : null;
        }
        if (drag) {
            drag_to(drag, event);
        }
    };
    const end = () => {
        document.removeEventListener("pointermove", move);
        state.was_drag = Boolean(drag);
    };
    document.addEventListener("pointermove", move);
    document.addEventListener("pointerup", end, { once: true });
}

// The number goes back to what was computed: in 150 ms, or at once for those who asked for less motion.
function undo_edit()
{
    const { edit } = state;
    if (!edit) {
        return;
    }
    const from = edit.value;
    const to = computed(state.shown)[edit.at];
    const began = clock();
    state.hand_says = "";
    const ease = () => {
        const share = is_calm() ? 1 : min(1, (clock() - began) / 150);
        if (share === 1) {
            update({ edit: null });
        } else if (state.edit && state.edit.at === edit.at) {
            update({ edit: { ...edit, value: from + (to - from) * share } });
            requestAnimationFrame(ease);
        }
    };
    ease();
}
