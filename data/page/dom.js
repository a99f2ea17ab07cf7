// Elements: what should be there, as plain objects, and patch(), which changes what differs.
"use strict";

const by_id = (id) => document.getElementById(id);
const box_of = (e) => e.getBoundingClientRect();
const on = (e, name, action, how) => e.addEventListener(name, action, how);
const [RULE, INK, LINE, ACCENT, PAPER, POSITIVE, SHARE] =
    ["rule", "ink", "line", "accent", "paper", "positive", "share"].map((name) => `var(--${name})`);
const row_of = (items, label) => ({ "data-row": items, role: "group", label });
const HIDDEN = { "aria-hidden": "true" };
const SVG = "http://www.w3.org/2000/svg";

// What should be there: a "tag.class", div if there is no tag; attributes, on-events and .properties, if it has any;
// content. Text is always text. An element with a key stays the same one wherever it moves; `label` and `pressed` are
// for those who do not see it.
function h(what, ...content)
{
    const [tag, ...classes] = what.split(".");
    const first = content[0];
    const has_attributes = first && first.constructor === Object && !first.tag;
    const { label, pressed, ...attributes } = has_attributes ? content.shift() : {};
    if (classes.length) {
        attributes.class = classes.join(" ") + (attributes.class || "");
    }
    if (label !== undefined) {
        attributes["aria-label"] = label;
    }
    if (pressed !== undefined) {
        attributes["aria-pressed"] = String(pressed);
    }
    return { tag: tag || "div", attributes, key: attributes.key, ns: null, children: to_draw(content) };
}

const s = (...what) => ({ ...h(...what), ns: SVG });
const to_draw = (content) =>
    [content].flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false && c !== "");
const mono = (text) => h("bdi.mono", text);
const number = (text) => h("span.number", text);
const button = (id, text, onclick, more = {}) => h("button.button", { id, onclick, ...more }, text);
const link = (text, onclick, more = {}) => h("button.link", { onclick, ...more }, text);

// Changes the content of a box to what should be there: only what differs is touched, so that focus, scrolling and
// presses stay with their elements.
function patch(box, wanted)
{
    const keys = new Set(wanted.map((w) => w.key));
    const keyed = new Map([...box.childNodes].filter((e) => e.key !== undefined).map((e) => [e.key, e]));
    [...keyed].filter(([key]) => !keys.has(key)).forEach(([, e]) => e.remove());
    let next = box.firstChild;
    for (const w of wanted) {
        const e = w.tag === undefined ? text_node(next, w) : element_for(next, w, keyed);
        if (e === next) {
            next = next.nextSibling;
        } else {
            box.insertBefore(e, next);
        }
        if (w.tag !== undefined) {
            patch_element(e, w);
        }
    }
    while (next) {
        const after = next.nextSibling;
        next.remove();
        next = after;
    }
}

function text_node(next, text)
{
    const e = next && next.nodeType === Node.TEXT_NODE ? next : document.createTextNode("");
    if (e.data !== String(text)) {
        e.data = String(text);
    }
    return e;
}

function element_for(next, { tag, key, ns }, keyed)
{
    const there = key !== undefined ? keyed.get(key)
        : next && next.nodeType === Node.ELEMENT_NODE && next.key === undefined ? next : null;
    if (there && there.localName === tag) {
        return there;
    }
    const e = ns ? document.createElementNS(ns, tag) : document.createElement(tag);
    e.key = key;
    e.has = {};
    return e;
}

function patch_element(e, { attributes, children })
{
    const { has } = e;
    e.has = attributes;
    for (const name in has) {
        if (!(name in attributes)) {
            patch_attribute(e, name, null, has[name]);
        }
    }
    for (const name in attributes) {
        patch_attribute(e, name, attributes[name], has[name]);
    }
    // a canvas is drawn again when `painted` differs
    if (!attributes.paint) {
        patch(e, children);
    } else if (has.painted !== attributes.painted) {
        attributes.paint(e);
    }
}

function patch_attribute(e, name, value, had)
{
    if (name === "key" || name === "paint" || name === "painted") {
        return;
    }
    if (name.startsWith("on")) {
        e[name] ||= (event) => e.has[name]?.(event);
    } else if (name.startsWith(".")) {
        e[name.slice(1)] = value;
    } else if (had !== value && (value === null || value === undefined || value === false)) {
        e.removeAttribute(name);
    } else if (had !== value) {
        e.setAttribute(name, value === true ? "" : value);
    }
}
