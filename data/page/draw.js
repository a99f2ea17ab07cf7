// When views are drawn, and where the page stands: what is in view first, the rest when it comes there.
"use strict";

// to draw; in view; when each was drawn last
const stale = new Set();
const in_view = new Set(["time", "chips", "map", "inspector", "made", "walk", "next", "votes"]);
const drawn_at = new Map();
// of a frame, in milliseconds
const FRAME = 12;

function draw(id)
{
    const { draw: content, is_section, then } = VIEWS[id];
    const box = is_section ? by_id(id).lastElementChild : by_id(id);
    stale.delete(id);
    drawn_at.set(id, clock());
    patch(box, to_draw(content()));
    prepare_rows(box);
    if (then) {
        then(id);
    }
}

// What is in view and answers at once is drawn now, all else in the next frames.
function redraw(...ids)
{
    ids.forEach((id) => stale.add(id));
    Object.keys(VIEWS).filter((id) => stale.has(id) && VIEWS[id].is_quick && in_view.has(id)).forEach(draw);
    draw_soon();
}

// While the pointer or the focus is at an element, state[name] is its key. The view follows not at once: an element may
// be blurred because it is being drawn.
function pointed_at(name, key, view)
{
    const to = (now) => () => { if (state[name] !== now) { state[name] = now; draw_soon(view); } };
    return { onpointerenter: to(key), onpointerleave: to(null), onfocus: to(key), onblur: to(null) };
}

// After the next frame, so that what answers at once is seen first.
function draw_soon(...ids)
{
    ids.forEach((id) => stale.add(id));
    if (!draw_soon.asked && stale.size) {
        draw_soon.asked = true;
        requestAnimationFrame(() => setTimeout(draw_some));
    }
}

// What is stale and in view, as far as a frame goes; what was drawn longest ago comes first. Is something left?
function draw_in_view()
{
    const until = clock() + FRAME;
    const age = (id) => drawn_at.get(id) || 0;
    const ready = Object.keys(VIEWS).filter((id) => stale.has(id) && in_view.has(id)
        && !(state.run.playing && VIEWS[id].waits)).sort((a, b) => age(a) - age(b));
    for (const id of ready) {
        draw(id);
        if (clock() > until) {
            break;
        }
    }
    return ready.some((id) => stale.has(id));
}

function draw_some()
{
    draw_soon.asked = false;
    clearTimeout(draw_some.later);
    if (draw_in_view()) {
        draw_soon();
    } else {
        draw_some.later = setTimeout(draw_rest, 200);
    }
}

// What is not in view is drawn when nothing else is to do, so that nothing moves when it comes there. What one reads
// stays in its place.
function draw_rest()
{
    const id = sections().find((each_id) => stale.has(each_id));
    if (!id || state.run.playing || !state.is_small) {
        return;
    }
    const box = by_id(id);
    const { bottom, height } = box_of(box);
    if (!is_touched()) {
        draw(id);
        if (bottom < top_height()) {
            scrollBy({ top: box_of(box).height - height, behavior: "instant" });
        }
    }
    draw_some.later = setTimeout(draw_rest, 30);
}

// A frame of the run: every view follows it, and the time first.
function draw_frame()
{
    Object.keys(VIEWS).forEach((id) => stale.add(id));
    draw("time");
    draw_in_view();
}

function watch_sections()
{
    const observer = new IntersectionObserver((entries) => {
        for (const { target, isIntersecting } of entries) {
            in_view[isIntersecting ? "add" : "delete"](target.id);
        }
        draw_soon();
    });
    sections().filter((id) => id !== "votes").forEach((id) => observer.observe(by_id(id)));
}

const sections = () => Object.keys(VIEWS).filter((id) => VIEWS[id].is_section);

// The width of an element, measured once until the layout changes: to ask after every change would be slow.
let widths = {};

function width_of(id, otherwise)
{
    widths[id] ||= by_id(id) ? by_id(id).clientWidth : 0;
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
    if (is_wide(64)) {
        bar.firstElementChild.append(time);
    } else {
        bar.after(time);
    }
    by_id("strip").style.top = `${bar.offsetHeight}px`;
    document.documentElement.style.setProperty("--top", `${bar.offsetHeight + by_id("strip").offsetHeight}px`);
}

const top_height = () => parseFloat(document.documentElement.style.getPropertyValue("--top"));

function clear_bottom()
{
    const is_sheet = is_open() && !is_wide(64);
    return is_sheet ? box_of(by_id("panel")).top : innerHeight - (state.choice.walk ? by_id("walk").offsetHeight : 0);
}

// The chosen value's row comes into view, unless it is there already or one is at work elsewhere in the page.
function show_chosen(always, anchor)
{
    if (!always && anchor) {
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
    const of = sections().findIndex((id) => by_id(id).contains(e));
    const above = state.is_small && !state.run.playing ? sections().slice(0, of + 1) : [];
    above.filter((id) => stale.has(id)).forEach(draw);
}

function scroll_into_view(e, where)
{
    draw_all_above(e);
    const box = box_of(e);
    const top = top_height() + 12;
    const bottom = clear_bottom() - 12;
    const behavior = is_calm() ? "instant" : "smooth";
    if (where === "start") {
        scrollBy({ top: box.top - top - 4, behavior });
    } else if (box.top < top || box.bottom > bottom) {
        scrollBy({ top: box.top - max(top, (top + bottom - box.height) / 2), behavior });
    }
}

const scroll_to_top = () => scrollTo({ top: 0, behavior: is_calm() ? "instant" : "smooth" });

// Of a word wider than its box, the letter at hand comes into view when it is another.
function show_letter(id)
{
    const { word, pos } = state.choice;
    const box = by_id(id).querySelector("[data-wide]");
    const letter = box && box.querySelector(".here");
    if (!letter || box.shows === `${pos} ${word}`) {
        return;
    }
    const left = letter.offsetLeft - box.offsetLeft;
    box.shows = `${pos} ${word}`;
    if (left < box.scrollLeft || left + letter.offsetWidth > box.scrollLeft + box.clientWidth) {
        box.scrollLeft = left - box.clientWidth / 2;
    }
}
