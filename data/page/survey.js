// What the model does on average over the page's documents: where each head looks, what the loss is without it, when
// units fire. Gathered while nothing else is to do, for the layer at hand.
"use strict";

// documents to read, and those for a unit; averages are shown from the last number on
const MOST_SURVEYED = 1000;
const OF_A_UNIT = 200;
const FEWEST = 200;

function new_survey(version, layer)
{
    const { n_head, n_embd, vocab_size } = state.model;
    return {
        version, layer, docs: 0, tokens: 0, loss: 0, is_done: false, without: null,
        heads: each(n_head, () => ({ self: 0, previous: 0, first: 0, elsewhere: 0, loss: 0 })),
        units: each(4 * n_embd, () => ({ fires: 0, on: new Uint16Array(vocab_size), best: [] })),
    };
}

function* survey_pieces(of)
{
    const { file, model } = state;
    const quiet = quiet_now();
    const started = clock();
    // of a large model, fewer
    const some = file.documents.slice(0, MOST_SURVEYED);
    for (let d = 0; d < some.length && clock() - started < 20000; d++) {
        const pass = yield* loss_pieces(tape_for("survey", true), model, take_document(model, some[d], LONGEST), quiet);
        of.loss += pass.tape.value[pass.loss] * pass.n;
        of.tokens += pass.n;
        for (let pos = 0; pos < pass.n; pos++) {
            note_looks(of, pass, pos);
            note_units(of, pass, pos, d);
        }
        for (const [k, head] of of.heads.entries()) {
            head.loss += pass.n * (yield* loss_of("without", pass.tokens, without_head(quiet, of.layer, k)));
        }
        of.docs = d + 1;
        if (of.docs % 200 === 0) {
            draw_soon("heads", "units");
        }
        yield;
    }
    of.is_done = true;
    draw_soon("heads", "units");
}

const without_head = ({ heads, units }, layer, head) =>
    ({ heads: new Set(heads).add(layer * state.model.n_head + head), units });

// The loss of some tokens with other heads and units silent.
function* loss_of(job, tokens, quiet)
{
    const pass = yield* loss_pieces(tape_for(job), state.model, tokens, quiet);
    return pass.tape.value[pass.loss];
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
    const { at } = tape.by_name[pos].get(stage_name(model, KINDS.act, of.layer, null));
    of.units.forEach((unit, u) => {
        const x = tape.value[at + u];
        if (x > 0) {
            unit.fires++;
            unit.on[tokens[pos]]++;
            note_example(unit.best, { x, d, pos });
        }
    });
}

// The five places where a unit fires most, each in another document.
function note_example(best, example)
{
    const same = best.findIndex(({ d }) => d === example.d);
    if (same < 0 || example.x > best[same].x) {
        best.splice(same < 0 ? best.length : same, 1, example);
        best.sort((a, b) => b.x - a.x).length = min(best.length, 5);
    }
}

function* worth_pieces()
{
    const { version, choice: { layer }, model, shown: { tokens } } = state;
    const quiet = quiet_now();
    const losses = [];
    for (let head = 0; head < model.n_head; head++) {
        const silent = without_head(quiet, layer, head);
        const others = new Set(silent.heads);
        others.delete(layer * model.n_head + head);
        const loss = yield* loss_of("worth", tokens, { heads: others, units: quiet.units });
        losses.push((yield* loss_of("worth", tokens, silent)) - loss);
        yield;
    }
    state.worth = { version, layer, losses };
    draw_soon("heads", "walk");
}

// The survey of the model and layer at hand, once it has read enough; begun if there is none.
function need_survey()
{
    const { choice: { layer }, version_of_model: version } = state;
    const is_of_now = () => state.survey?.version === version && state.survey.layer === layer;
    if (can_run() && !state.run.playing && !is_of_now()) {
        state.survey = new_survey(version, layer);
        start_job("survey", survey_pieces(state.survey));
    }
    return is_of_now() && (state.survey.docs >= FEWEST || state.survey.is_done) ? state.survey : null;
}

function* unit_pieces(of, u)
{
    const { model, file } = state;
    const quiet = quiet_now();
    const units = [...quiet.units];
    let change = 0;
    let tokens = 0;
    units[of.layer] = new Set(units[of.layer]).add(u);
    for (const word of file.documents.slice(0, OF_A_UNIT)) {
        const doc = take_document(model, word, LONGEST);
        const with_it = yield* loss_of("unit", doc, quiet);
        change += ((yield* loss_of("unit", doc, { heads: quiet.heads, units })) - with_it) * (doc.length - 1);
        tokens += doc.length - 1;
        yield;
    }
    of.without = { unit: u, change: change / tokens };
    draw_soon("units");
}
