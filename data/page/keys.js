// Typing, keys and the pointer.
"use strict";

// Typing: what the model cannot read is folded or left out, with a word about it. The position follows the caret.
function typed()
{
    const { word, is_folded, out } = readable(state.model, by_id("word").value);
    state.notes = [
        ...(is_folded ? [`Read as ${isolated(visible_word(word))}: the model knows no capitals.`] : []),
        ...(out.length ? [left_out(out)] : []),
    ];
    update({ word, pos: caret_position() }, { replace: true });
}

function caret_position()
{
    const { value, selectionEnd } = by_id("word");
    return Array.from(readable(state.model, value.slice(0, selectionEnd ?? value.length)).word).length;
}

function caret_moved()
{
    const input = by_id("word");
    if (document.activeElement === input && input.selectionStart === input.selectionEnd
        && readable(state.model, input.value).word === state.choice.word) {
        const pos = min(caret_position(), state.shown.n - 1);
        if (pos !== state.choice.pos) {
            update({ pos }, { replace: true });
        }
    }
}

function left_out(out)
{
    const some = [...new Set(out)];
    const text = some.map((c) => isolated(visible(c))).join(" ");
    return `Left out: ${text}. The model does not know ${some.length === 1 ? "it" : "them"}.`;
}

function show_word()
{
    const input = by_id("word");
    if (document.activeElement !== input) {
        input.value = state.choice.word;
        state.notes = [];
    }
    const { choice: { word }, shown: { n }, model: { block_size } } = state;
    const cut = Array.from(word).length < n ? []
        : block_size <= LONGEST ? [`The model's block holds ${block_size} positions: the word is cut, as in training.`]
        : [`The page shows the first ${LONGEST} positions.`];
    patch(by_id("notes"), [...state.notes, ...cut].map((text) => h(".note", text)));
}

// Keys: one tab stop per row; arrows, Home and End move within it.
function prepare_rows(box)
{
    for (const row of [box, ...box.querySelectorAll("[data-row]")]) {
        const items = row.dataset.row ? [...row.querySelectorAll(row.dataset.row)] : [];
        stop_at(items, items.find((e) => e === document.activeElement)
            || items.find((e) => e.matches('[aria-pressed="true"], .chosen')) || items[0]);
    }
}

const stop_at = (items, current) => items.forEach((e) => { e.tabIndex = e === current ? 0 : -1; });

// The nearest item in the direction of a key: of the line above or below, or of the column beside.
function beside(items, from, key)
{
    const here = box_of(from);
    const is_vertical = key === "ArrowUp" || key === "ArrowDown";
    const [wide, tall] = is_vertical ? [1, 1000] : [1000, 1];
    const off = (r) => tall * abs(r.top - here.top) + wide * abs(r.left - here.left);
    const is_beyond = { ArrowDown: (r) => r.top >= here.bottom - 1, ArrowUp: (r) => r.bottom <= here.top + 1,
                        ArrowRight: (r) => r.left >= here.right - 1, ArrowLeft: (r) => r.right <= here.left + 1 }[key];
    const others = items.map((item) => ({ item, rect: box_of(item) })).filter(({ rect }) => is_beyond(rect));
    return others.sort((a, b) => off(a.rect) - off(b.rect))[0]?.item;
}

// The item to which a key leads, if it leads anywhere; from an open row of numbers on to the next one.
function item_at(key, items, from, row)
{
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (key === "Home" || key === "End") {
        return items.at(key === "Home" ? 0 : -1);
    }
    if (!key.startsWith("Arrow") || !from) {
        return undefined;
    }
    if (step && !row.classList.contains("graph")) {
        return items[items.indexOf(from) + step];
    }
    const is_cell = from.matches(".cell");
    return beside(items, from, key) || (is_cell && !step
        ? beside([...by_id("numbers").querySelectorAll(".cell")], from, key) : undefined);
}

function move_in_row(e, row)
{
    const items = [...row.querySelectorAll(row.dataset.row)];
    const item = item_at(e.key, items, e.target.closest(row.dataset.row), row);
    if (!item) {
        return;
    }
    e.preventDefault();
    stop_at([...item.closest("[data-row]").querySelectorAll(row.dataset.row)], item);
    item.focus();
    if (item.matches(".char, .chips button")) {
        // the position follows the arrow keys
        update({ pos: items.indexOf(item) });
    } else if (item.matches(".tab")) {
        item.click();
    }
}

function pressed_key(e)
{
    const { choice } = state;
    const row = e.target.closest("[data-row]");
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (e.altKey || e.ctrlKey || e.metaKey) {
        return;
    }
    if (e.key === "Escape" && choice.value) {
        close_inspector();
    } else if (e.key === "Escape" && choice.votes !== null) {
        close_votes();
    } else if (e.key === "Escape" && choice.head !== null) {
        keep_head(choice.head);
    } else if (e.key === "Enter" && e.target.matches(".cell.chosen, .look.chosen")) {
        // a second time: into the inspector
        e.preventDefault();
        by_id("hand").focus();
    } else if (row) {
        move_in_row(e, row);
    } else if (sideways && e.target === document.body) {
        update({ pos: choice.pos + sideways });
    }
}
