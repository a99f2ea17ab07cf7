// The number in the hand: the chosen value is dragged, and below it the guesses and the loss move.
"use strict";

// of the loss meter
const REACH = 0.5;
// how far 60 px go; a weight moves less
const UNIT_OF_VALUE = 1;
const UNIT_OF_WEIGHT = 0.25;

const can_hold = (at) => at >= 0 && !["loss", "probs"].includes(block_of(at).block);
const unit_of = (at) => at < state.model.num_params ? UNIT_OF_WEIGHT : UNIT_OF_VALUE;
const in_hand = (x) => minus(abs(x) < 100 ? x.toFixed(abs(x) < 0.1 ? 3 : 2) : short(x));

function draw_hand(at)
{
    const { shown, edit } = state;
    const value = shown.tape.value[at];
    if (!can_hold(at)) {
        return h("", { key: "fixed" }, h(".hand.fixed", { id: "hand", tabindex: -1 }, short(value)));
    }
    return h("", { key: "hand-box" },
        h(".line.small.soft", !state.is_finite ? "Beyond this, its numbers are not finite."
            : state.has_dragged ? "" : "Drag the number.", edit?.at !== at ? ""
            : h("span", "it was ", number(short(computed(shown)[at])), " ", link("undo", undo_edit, { id: "undo" }))),
        h(".hand", {
            id: "hand", role: "slider", tabindex: 0, label: name_for_people(at).replace("[", " ").replace("]", ""),
            "aria-valuenow": Number.isFinite(value) ? Number(value.toPrecision(6)) : 0, "aria-valuetext": short(value),
            onpointerdown: (e) => start_drag(e, at), onkeydown: (e) => hand_key(e, at),
        }, h("span", HIDDEN, "◀"), number(in_hand(value)), h("span", HIDDEN, "▶")),
        draw_guesses(),
        draw_meter(at));
}

function probs_before()
{
    const { shown, choice: { pos }, model } = state;
    return Array.from(computed(shown).subarray(shown.probs[pos], shown.probs[pos] + model.vocab_size));
}

// The guesses at the chosen position, in their order before the change; a mark stays where each was.
function draw_guesses()
{
    const { shown, choice: { pos }, edit } = state;
    const before = probs_before();
    const now = probs_at(pos);
    const share = (p) => (100 * p).toFixed(0);
    return [
        h("h3", pos ? ["After ", mono(before_text(pos).slice(-12)), " it expects"] : "At the start it expects"),
        h(".guesses", guesses_at(pos, before).map((id) => h("", {
            class: `guess${id === shown.tokens[pos + 1] ? " true" : ""}`, key: id },
            h("bdi.mono", token_text(id)),
            h("span.share", h("i", { style: `width: ${(100 * now[id]).toFixed(2)}%` }),
                h("u", { style: `left: ${(100 * before[id]).toFixed(2)}%` })),
            number(`${share(before[id])}${edit ? ` → ${share(now[id])}` : ""}%`)))),
    ];
}

// How the loss of the word has changed: really, and by the word of the gradient.
function loss_moved()
{
    const { shown: { tape, loss }, edit } = state;
    const values = computed(state.shown);
    return { really: tape.value[loss] - values[loss],
             said: edit ? tape.grad[edit.at] * (tape.value[edit.at] - values[edit.at]) : 0 };
}

function draw_meter(at)
{
    const { shown: { tape, loss }, edit } = state;
    const { really, said } = loss_moved();
    const x = (change) => 50 + 50 * max(-1, min(1, change / REACH));
    const beyond = abs(really) > REACH ? (really < 0 ? " under" : " over") : "";
    const text = !edit ? `${tape.value[loss].toFixed(3)} now; gradient ${short(tape.grad[at])}`
        : abs(really) < 0.0005 && abs(said) < 0.0005 ? "No change one could see."
        : `${signed(really)}; its gradient said ${signed(said)} (dashed)`;
    return [
        h("h3", "The loss of the word"),
        h("", { class: `meter${beyond}`, role: "img", label: text },
            h("i", { style: `left: ${min(50, x(really))}%; width: ${abs(x(really) - 50)}%; ` +
                `background: ${signed_color(really)}` }), h("u"),
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
    state.has_dragged = true;
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
    if (state.edit) {
        const before = probs_before();
        const [id] = guesses_at(state.choice.pos, before);
        const [from, to] = [before[id], probs_at(state.choice.pos)[id]].map((p) => (100 * p).toFixed(0));
        state.hand_says = `${for_whom(id)}, ${from} to ${to} percent`;
        redraw("inspector");
    }
}

// Dragging: 60 px are one unit, with Shift a tenth of it.
function drag_to(drag, { clientX, shiftKey })
{
    drag.value += (clientX - drag.x) / 60 * unit_of(drag.at) * (shiftKey ? 0.1 : 1);
    drag.x = clientX;
    hold(drag.at, drag.value);
}

function start_drag(e, at)
{
    const hand = e.currentTarget;
    const drag = { at, x: e.clientX, value: state.shown.tape.value[at] };
    e.preventDefault();
    hand.focus({ preventScroll: true });
    follow_pointer(e, (move) => drag_to(drag, move));
}

// The pointer that was pressed on an element moves it until it is released.
function follow_pointer({ currentTarget: e, pointerId }, move)
{
    e.setPointerCapture(pointerId);
    e.onpointermove = move;
    e.onpointerup = e.onpointercancel = () => { e.onpointermove = null; };
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
    on(document, "pointermove", move);
    on(document, "pointerup", () => {
        document.removeEventListener("pointermove", move);
        state.was_drag = Boolean(drag);
    }, { once: true });
}

// The number goes back to what was computed: in 150 ms, or at once for those who asked for less motion.
function undo_edit()
{
    const { edit } = state;
    const to = edit && computed(state.shown)[edit.at];
    const began = clock();
    state.hand_says = "";
    const ease = () => {
        const share = is_calm() ? 1 : min(1, (clock() - began) / 150);
        if (share === 1) {
            update({ edit: null });
        } else if (state.edit?.at === edit.at) {
            update({ edit: { ...edit, value: edit.value + (to - edit.value) * share } });
            requestAnimationFrame(ease);
        }
    };
    if (edit) {
        ease();
    }
}
