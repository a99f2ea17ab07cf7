// window.microgpt: what the page knows, for scripts and tests.
"use strict";

function all_weights(pass)
{
    const { n_layer, n_head } = pass.model;
    return each(n_layer, (layer) => each(n_head, (head) => each(pass.n, (pos) => weights_at(pass, layer, head, pos))));
}

const api = {
    get config()
    {
        const { n_layer, n_embd, n_head, block_size, activation, meta, step } = state.stored;
        return { n_layer, n_embd, n_head, block_size, activation, vocab: meta.vocab, step };
    },
    get documents() { return state.file.documents; },
    get n_documents() { return state.file.n_documents; },
    get snapshots() { return kept_steps(); },
    get agrees()
    {
        if (state.agrees === null) {
            finish(compare_pieces());
        }
        return state.agrees;
    },

    forward(word, { silent = [] } = {})
    {
        const { model } = state;
        const tape = tape_for("named", true);
        const pass = finish(loss_pieces(tape, model, take_document(model, word), of_heads(silent)));
        return {
            tokens: pass.tokens,
            logits: pass.logits.map((at) => numbers_of(tape, at, model.vocab_size)),
            probs: pass.probs.map((at) => numbers_of(tape, at, model.vocab_size)),
            losses: pass.losses.map((at) => tape.value[at]),
            loss: tape.value[pass.loss],
            weights: all_weights(pass),
        };
    },

    backward(word)
    {
        const { model } = state;
        const tape = tape_for("work");
        const pass = finish(loss_pieces(tape, model, take_document(model, word)));
        const grads = {};
        clear_grads(tape);
        finish(backward_pieces(tape, pass.loss));
        for (const { name, rows, cols, at } of model.matrices) {
            grads[name] = each(rows, (row) => Array.from(tape.grad.subarray(at + row * cols, at + (row + 1) * cols)));
        }
        return { loss: tape.value[pass.loss], grads };
    },

    reset() { seek("file"); },
    step: step_on,
    forget,
    train,
    seek,

    edit(name, i, pos, value)
    {
        const at = place_of(state.shown.tape, name, i, pos);
        update({ edit: value === null ? null : { name, i, pos, value, at } });
        return state.shown.tape.value[state.shown.loss];
    },

    votes(word, pos, id)
    {
        const { model, shown, choice } = state;
        const pass = word === choice.word ? shown
            : finish(loss_pieces(tape_for("named", true), model, take_document(model, word), quiet_now()));
        return votes_in(pass, pos, id, quiet_now());
    },

    explain(name, i, pos)
    {
        const pass = state.shown;
        need_grads(pass);
        const { tape } = pass;
        const at = place_of(tape, name, i, pos);
        const values = computed(pass);
        const named = ({ at: place, ...more }) => {
            const a = place < 0 ? null : address_of(tape, place);
            return a ? { name: `${a.name}.${a.i}`, pos: a.pos, ...more } : { name: "constant", pos: null, ...more };
        };
        const from_backward = at === pass.loss ? [{ name: "backward", pos: null, adds: 1 }] : [];
        return {
            value: values[at], grad: tape.grad[at], op: line_of(tape, at)?.op.name || "parameter",
            operands: operands_of(tape, at, values).map(named),
            users: [...users_of(tape, at, values).map(named), ...from_backward],
        };
    },
};
