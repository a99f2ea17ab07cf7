// When views are drawn, and where the page stands: what is near the screen first, the rest when it comes near.
"use strict";

const VIEW_NAMES = ["time", "chips", "map", "next", "votes", "inspector", "made", "learn", "heads", "units", "numbers",
                    "samples", "points", "file", "walk"];
const SECTIONS = ["next", "votes", "learn", "heads", "units", "numbers", "samples", "points", "file"];
// these wait while the run plays
const WAIT = new Set(["units", "numbers", "samples", "points", "file", "inspector", "made"]);
// these answer at once, the others in the next frames
const AT_ONCE = new Set(["time", "chips", "next", "votes", "inspector", "walk"]);
// to draw; drawn at least once; on the screen or almost; on the screen
const stale = new Set(VIEW_NAMES);
const drawn = new Set();
const near = new Set(["time", "chips", "map", "inspector", "made", "walk", "next", "votes"]);
const in_view = new Set(["time", "chips", "map", "inspector", "walk", "next"]);

// Draws a view: only what differs is touched.
function draw(id)
{
    const box = SECTIONS.includes(id) ? by_id(id).lastElementChild : by_id(id);
    stale.delete(id);
    drawn.add(id);
    patch(box, to_draw(VIEWS[id]()));
    prepare_rows(box);
    if (id === "map") {
        draw_residuals();
    } else if (id === "next") {
        show_tile();
    } else if (id === "votes") {
        by_id("votes").hidden = state.choice.votes === null;
        show_end_of_votes(box.querySelector(".vote-word"));
    } else if (id === "walk") {
        mark_target();
    }
}

// Of a long word, the letter read, which is the last one, is in view.
function show_end_of_votes(box)
{
    const key = `${state.choice.word} ${state.choice.pos}`;
    if (box && "wide" in box.dataset && box.at !== key) {
        box.at = key;
        box.scrollLeft = box.scrollWidth;
    }
}

// What is near and answers at once is drawn now, all else in the next frames.
function redraw(...ids)
{
    ids.forEach((id) => stale.add(id));
    VIEW_NAMES.filter((id) => stale.has(id) && AT_ONCE.has(id) && near.has(id)).forEach(draw);
    draw_soon();
}

// After the next frame, so that what answers at once is seen first; 12 ms at a time. What was never drawn is drawn when
// nothing else is to do.
function draw_soon(...ids)
{
    ids.forEach((id) => stale.add(id));
    if (!draw_soon.asked && stale.size) {
        draw_soon.asked = true;
        requestAnimationFrame(() => setTimeout(draw_some));
    }
}

function draw_some()
{
    const until = clock() + 12;
    const ready = VIEW_NAMES.filter((id) => stale.has(id) && near.has(id) && !(state.run.playing && WAIT.has(id)));
    draw_soon.asked = false;
    for (const [k, id] of ready.entries()) {
        draw(id);
        if (clock() > until && k < ready.length - 1) {
            draw_soon();
            return;
        }
    }
    clearTimeout(draw_some.later);
    if (!state.run.playing && state.tapes.is_small && drawn.size < VIEW_NAMES.length) {
        draw_some.later = setTimeout(draw_rest, 200);
    }
}

function draw_rest()
{
    const id = VIEW_NAMES.find((each_id) => !drawn.has(each_id));
    if (id && !state.run.playing) {
        draw(id);
        draw_some.later = setTimeout(draw_rest, 30);
    }
}

// A frame of the run: what is in view, and of that the first that fits into 12 ms; the rest has its turn in the next
// one.
function draw_frame()
{
    const until = clock() + 12;
    VIEW_NAMES.forEach((id) => stale.add(id));
    const ready = VIEW_NAMES.filter((id) => in_view.has(id) && !WAIT.has(id));
    const order = [...ready.slice(draw_frame.next), ...ready.slice(0, draw_frame.next)];
    draw("time");
    for (const id of order.filter((each_id) => each_id !== "time")) {
        draw(id);
        if (clock() > until) {
            draw_frame.next = ready.indexOf(id) + 1;
            return;
        }
    }
}

draw_frame.next = 0;

function watch_sections()
{
    const watch = (set, rootMargin) => {
        const observer = new IntersectionObserver((entries) => {
            for (const { target, isIntersecting } of entries) {
                set[isIntersecting ? "add" : "delete"](target.id);
            }
            draw_soon();
        }, { rootMargin });
        SECTIONS.filter((id) => set === in_view || id !== "votes").forEach((id) => observer.observe(by_id(id)));
    };
    watch(near, "200px 0px 200px 0px");
    watch(in_view, "0px");
}

// The width of an element, measured once until the layout changes: to ask after every change would be slow.
let widths = {};

function width_of(id, otherwise)
{
    widths[id] = widths[id] || (by_id(id) ? by_id(id).clientWidth : 0);
    return widths[id] || otherwise;
}

const forget_widths = () => { widths = {}; };
const is_open = () => document.body.classList.contains("open");
const is_wide = (rem) => matchMedia(`(min-width: ${rem}rem)`).matches;
const is_calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function fit_layout()
{
    forget_widths();
    const bar = by_id("bar");
    const time = by_id("time");
    const is_one_row = is_wide(64);
    if (is_one_row !== (time.parentElement !== bar.parentElement)) {
        is_one_row ? bar.firstElementChild.append(time) : bar.after(time);
    }
    document.body.classList.toggle("few", !is_wide(48));
    by_id("strip").style.top = `${bar.offsetHeight}px`;
    document.documentElement.style.setProperty("--top", `${bar.offsetHeight + by_id("strip").offsetHeight}px`);
}

const top_height = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--top")) || 98;

function clear_bottom()
{
    const is_sheet = is_open() && !is_wide(64);
    return is_sheet ? box_of(by_id("panel")).top : innerHeight - (state.choice.walk ? by_id("walk").offsetHeight : 0);
}

// The chosen value's row comes into view, unless it is there already or one is at work elsewhere in the page.
function show_chosen(always, anchor)
{
    if (!always && anchor && !by_id("panel").contains(document.activeElement)) {
        return keep_clear(anchor);
    }
    open_row_of(chosen_place());
    draw("numbers");
    const cell = by_id("numbers").querySelector(".cell.chosen")
        || by_id("numbers").querySelector(".cell.from, .cell.used");
    return cell && scroll_into_view(cell.closest(".stage"), "nearest");
}

// What was pressed is not hidden by the sheet.
function keep_clear(e)
{
    const { top, bottom } = box_of(e);
    const edge = clear_bottom();
    if (bottom > edge - 4) {
        scrollBy({ top: min(bottom - edge + 24, top - top_height() - 24), behavior: "instant" });
    }
}

// What stands above and is not drawn yet would push it away later.
function draw_all_above(e)
{
    for (const id of state.tapes.is_small && !state.run.playing ? SECTIONS : []) {
        if (stale.has(id)) {
            draw(id);
        }
        if (by_id(id).contains(e)) {
            return;
        }
    }
}

function scroll_into_view(e, where)
{
    draw_all_above(e);
    const box = box_of(e);
    const top = top_height() + 12;
    const bottom = clear_bottom() - 12;
    const behavior = is_calm() ? "instant" : "smooth";
    if (where === "start") {
        scrollBy({ top: box.top - top_height() - 16, behavior });
    } else if (box.top < top || box.bottom > bottom) {
        scrollBy({ top: box.top - max(top, (top + bottom - box.height) / 2), behavior });
    }
}

const scroll_to_top = () => scrollTo({ top: 0, behavior: is_calm() ? "instant" : "smooth" });

// Of a word wider than the screen, the chosen character is in view.
function show_tile()
{
    const box = by_id("tiles-box");
    const tile = box && box.querySelector(`.tile:nth-child(${state.choice.pos + 1})`);
    if (tile && "wide" in box.dataset) {
        const left = tile.offsetLeft - box.offsetLeft;
        if (left < box.scrollLeft || left + tile.offsetWidth > box.scrollLeft + box.clientWidth) {
            box.scrollLeft = left - box.clientWidth / 2;
        }
    }
}
