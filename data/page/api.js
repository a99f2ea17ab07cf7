// window.microgpt: what the page knows, for scripts and tests.
"use strict";

const of_heads = (silent) => ({ heads: new Set(silent.map(([l, k]) => l * state.model.n_head + k)), units: [] });

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
        const { model, tapes: { named: tape } } = state;
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
        const { model, tapes: { work: tape } } = state;
        const pass = finish(loss_pieces(tape, model, take_document(model, word)));
        const grads = {};
        clear_grads(tape);
        finish(backward_pieces(tape, pass.loss));
        for (const { name, rows, cols, at } of model.matrices) {
            grads[name] = each(rows, (row) => Array.from(tape.grad.subarray(at + row * cols, at + (row + 1) * cols)));
        }
        return { loss: tape.value[pass.loss], grads };
    },

    step(word)
    {
        const loss = finish(step_pieces(state.tapes.work, state.model, [word], quiet_now()));
        state.run.on_word.push({ word, loss });
        update({ model: state.model });
        return loss;
    },

    reset() { seek("file"); },
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
        const { model, tapes: { named: tape }, shown, choice } = state;
        if (word === choice.word) {
            return votes_in(shown, pos, id, quiet_now());
        }
        return votes_in(finish(loss_pieces(tape, model, take_document(model, word), quiet_now())), pos, id,
            quiet_now());
    },

    explain(name, i, pos)
    {
        const pass = state.shown;
        need_grads(pass);
        const { tape } = pass;
        const at = place_of(tape, name, i, pos);
        const values = computed(pass);
        const named = (place) => {
            const a = place < 0 ? null : address_of(tape, place);
            return a ? { name: `${a.name}.${a.i}`, pos: a.pos } : { name: "constant", pos: null };
        };
        const users = users_of(tape, at, values).map((u) => ({ ...named(u.at), adds: u.adds }));
        if (at === pass.loss) {
            users.push({ name: "backward", pos: null, adds: 1 });
        }
        const operands = operands_of(tape, at, values).map((o) =>
            ({ ...named(o.at), value: o.value, derivative: o.derivative }));
        const l = line_of(tape, at);
        return { value: values[at], grad: tape.grad[at], op: l ? l.op.name : "parameter", operands, users };
    },
};
