// What the model does on average over the page's documents: where each head looks, what the loss is without it, when
// units fire. Gathered while nothing else is to do, for the layer at hand.
"use strict";

// documents to read; averages are shown from the second number on
const MOST_SURVEYED = 1000;
const FEWEST = 199;

function new_survey(layer)
{
    const { n_head, n_embd, vocab_size } = state.model;
    const units = 4 * n_embd;
    return {
        layer, docs: 0, tokens: 0, loss: 0, is_done: false,
        heads: each(n_head, () => ({ self: 0, previous: 0, first: 0, elsewhere: 0, loss: 0 })),
        fires: new Uint32Array(units), on: each(units, () => new Uint16Array(vocab_size)), best: each(units, () => []),
    };
}

function* survey_pieces(of)
{
    const { tapes, file, model } = state;
    const tape = tapes.survey;
    const quiet = quiet_now();
    const started = clock();
    for (const [d, word] of file.documents.slice(0, MOST_SURVEYED).entries()) {
        const pass = yield* loss_pieces(tape, model, take_document(model, word, LONGEST), quiet);
        of.loss += tape.value[pass.loss] * pass.n;
        of.tokens += pass.n;
        for (let pos = 0; pos < pass.n; pos++) {
            note_looks(of, pass, pos);
            note_units(of, pass, pos, d);
        }
        for (const [k, head] of of.heads.entries()) {
            const heads = new Set(quiet.heads).add(of.layer * model.n_head + k);
            head.loss += pass.n * (yield* loss_of(tapes.without, pass.tokens, { heads, units: quiet.units }));
        }
        of.docs = d + 1;
        if (d === FEWEST || d % 200 === 199) {
            draw_soon("heads", "units");
        }
        // of a large model, fewer
        if (clock() - started > 20000) {
            break;
        }
        yield;
    }
    of.is_done = true;
    draw_soon("heads", "units");
}

// The loss of some tokens with other heads and units silent. Each job has a tape of its own, as they interrupt each
// other.
function* loss_of(tape, tokens, quiet)
{
    const pass = yield* loss_pieces(tape, state.model, tokens, quiet);
    return tape.value[pass.loss];
}

function note_looks(of, { tape, model }, pos)
{
    of.heads.forEach((head, k) => {
        const { at, n } = tape.by_name[pos].get(stage_name(model, KINDS.attn_weights, of.layer, k));
        for (let key = 0; key < n; key++) {
            const where = key === pos ? "self" : key + 1 === pos ? "previous" : key === 0 ? "first" : "elsewhere";
            head[where] += tape.value[at + key];
        }
    });
}

function note_units(of, { tape, model, tokens }, pos, d)
{
    const { at, n } = tape.by_name[pos].get(stage_name(model, KINDS.act, of.layer, null));
    for (let u = 0; u < n; u++) {
        const x = tape.value[at + u];
        if (x > 0) {
            of.fires[u]++;
            of.on[u][tokens[pos]]++;
            note_example(of.best[u], x, d, pos);
        }
    }
}

// The five places where a unit fires most, each in another document.
function note_example(best, x, d, pos)
{
    const same = best.find((b) => b.d === d);
    if (same) {
        if (x > same.x) {
            Object.assign(same, { x, pos });
        }
    } else if (best.length < 5 || x > best.at(-1).x) {
        best.push({ x, d, pos });
    }
    best.sort((a, b) => b.x - a.x);
    best.length = min(best.length, 5);
}

// How the loss of this word changes without each head.
function* worth_pieces()
{
    const { version, choice: { layer }, model, shown, tapes: { worth: tape } } = state;
    const quiet = quiet_now();
    const losses = [];
    for (let head = 0; head < model.n_head; head++) {
        const id = layer * model.n_head + head;
        const others = new Set(quiet.heads);
        others.delete(id);
        const loss = quiet.heads.has(id) ? yield* loss_of(tape, shown.tokens, { heads: others, units: quiet.units })
            : shown.tape.value[shown.loss];
        losses.push((yield* loss_of(tape, shown.tokens, { heads: others.add(id), units: quiet.units })) - loss);
        yield;
    }
    state.worth = { version, layer, losses };
    draw_soon("heads", "walk");
}

// The survey of the model and layer at hand, once it has read enough; begun if there is none.
function need_survey()
{
    const { layer } = state.choice;
    const is_of_now = () => state.survey && state.survey.version === model_version() && state.survey.layer === layer;
    if (can_run() && !state.run.playing && !is_of_now()) {
        state.survey = { ...new_survey(layer), version: model_version() };
        start_job("survey", survey_pieces(state.survey));
    }
    return is_of_now() && (state.survey.docs > FEWEST || state.survey.is_done) ? state.survey : null;
}

// What the loss is without a unit, over 200 documents.
function* unit_pieces(of, u)
{
    const { model, file, tapes: { unit: tape } } = state;
    const quiet = quiet_now();
    const units = [...quiet.units];
    let change = 0;
    let tokens = 0;
    units[of.layer] = new Set(units[of.layer] || []).add(u);
    for (const word of file.documents.slice(0, 200)) {
        const doc = take_document(model, word, LONGEST);
        const with_it = yield* loss_of(tape, doc, quiet);
        change += ((yield* loss_of(tape, doc, { heads: quiet.heads, units })) - with_it) * (doc.length - 1);
        tokens += doc.length - 1;
        yield;
    }
    of.without = { unit: u, change: change / tokens };
    draw_soon("units");
}
