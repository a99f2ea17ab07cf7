// Typing, keys and the pointer.
"use strict";

// Typing: what the model cannot read is folded or left out, with a word about it. The position follows the caret.
function typed()
{
    const input = by_id("word");
    const { word, is_folded, out } = readable(state.model, input.value);
    state.notes = [
        ...(is_folded ? [`Read as ${isolated(visible_word(word))}: the model knows no capitals.`] : []),
        ...(out.length ? [left_out(out)] : []),
    ];
    update({ word, pos: caret_position() }, { replace: true });
}

function caret_position()
{
    const input = by_id("word");
    const end = input.selectionEnd ?? input.value.length;
    return Array.from(readable(state.model, input.value.slice(0, end)).word).length;
}

function caret_moved()
{
    if (document.activeElement === by_id("word")
        && readable(state.model, by_id("word").value).word === state.choice.word) {
        const pos = min(caret_position(), state.shown.n - 1);
        const input = by_id("word");
        if (pos !== state.choice.pos && input.selectionStart === input.selectionEnd) {
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

// The word field and the notes below it.
function show_word()
{
    if (document.activeElement !== by_id("word")) {
        by_id("word").value = state.choice.word;
        state.notes = [];
    }
    const { choice: { word }, shown: { n }, model: { block_size } } = state;
    const limit = min(block_size, LONGEST);
    const cut = Array.from(word).length < n ? []
        : block_size <= LONGEST ? [`The model's block holds ${limit} positions: the word is cut, as in training.`]
        : [`The page shows the first ${limit} positions.`];
    patch(by_id("notes"), [...state.notes, ...cut].map((text) => h(".note", text)));
}

// Keys: one tab stop per row; arrows, Home and End move within it.
function prepare_rows(box)
{
    for (const row of [box, ...box.querySelectorAll("[data-row]")]) {
        const items = row.dataset.row ? [...row.querySelectorAll(row.dataset.row)] : [];
        const current = items.find((e) => e === document.activeElement)
            || items.find((e) => e.matches('[aria-pressed="true"], .chosen')) || items[0];
        items.forEach((e) => { e.tabIndex = e === current ? 0 : -1; });
    }
}

// The nearest item of the line above or below, or of the column beside.
function beside(items, from, key)
{
    const here = box_of(from);
    const is_vertical = key === "ArrowUp" || key === "ArrowDown";
    const off = (r) => is_vertical ? 1000 * abs(r.top - here.top) + abs(r.left - here.left)
                                   : 1000 * abs(r.left - here.left) + abs(r.top - here.top);
    const beyond = { ArrowDown: (r) => r.top >= here.bottom - 1, ArrowUp: (r) => r.bottom <= here.top + 1,
                     ArrowRight: (r) => r.left >= here.right - 1, ArrowLeft: (r) => r.right <= here.left + 1 }[key];
    const others = items.map((item) => ({ item, rect: box_of(item) })).filter(({ rect }) => beyond(rect));
    return others.sort((a, b) => off(a.rect) - off(b.rect)).map(({ item }) => item)[0];
}

// The item to which a key leads, if it leads anywhere.
function item_at(key, items, from, is_graph)
{
    const at = items.indexOf(from);
    const step = (by) => items[at + by];
    const ways = {
        ArrowLeft: () => is_graph ? beside(items, from, key) : step(-1),
        ArrowRight: () => is_graph ? beside(items, from, key) : step(1),
        Home: () => items[0], End: () => items.at(-1),
        ArrowUp: () => beside(items, from, key), ArrowDown: () => beside(items, from, key),
    };
    return at >= 0 && ways[key] ? ways[key]() : undefined;
}

function focus_in(items, item)
{
    items.forEach((other) => { other.tabIndex = other === item ? 0 : -1; });
    item.focus({ preventScroll: false });
}

function move_in_row(e, row)
{
    const items = [...row.querySelectorAll(row.dataset.row)];
    const from = e.target.closest(row.dataset.row);
    const item = item_at(e.key, items, from, row.classList.contains("graph"));
    if (item) {
        e.preventDefault();
        focus_in(items, item);
        if (item.matches(".char, .chips button")) {
            // the position follows the arrow keys
            update({ pos: items.indexOf(item) });
        } else if (item.matches(".tab")) {
            item.click();
        }
    } else if (from && from.matches(".cell") && (e.key === "ArrowUp" || e.key === "ArrowDown")) {
        // on to the open row of the next stage
        const rows = [...by_id("numbers").querySelectorAll(".cells")];
        const next = rows[rows.indexOf(row) + (e.key === "ArrowDown" ? 1 : -1)];
        const cells = next ? [...next.querySelectorAll(".cell")] : [];
        if (next) {
            e.preventDefault();
            focus_in(cells, cells[min(items.indexOf(from) % 16, cells.length - 1)]);
        }
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

// What is under the pointer, or has the focus, is read out in its row, in a place that is always there.
function read_out(e)
{
    const cell = e.target.closest && e.target.closest("[data-go]");
    const name = cell && split_value(cell.dataset.go)[0];
    const next = cell ? { name, text: cell.getAttribute("aria-label").slice(name.length) } : null;
    if (JSON.stringify(state.read) === JSON.stringify(next)) {
        return;
    }
    const put = (of, text) => {
        const row = of && by_id("numbers").querySelector(`[data-stage="${CSS.escape(of.name)}"] output`);
        if (row) {
            patch(row, text ? [text] : []);
        }
    };
    put(state.read, "");
    put(next, next && next.text);
    state.read = next;
}
