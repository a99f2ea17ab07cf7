// The model, as in microgpt.c, by definition. First a table of its stages: the block of the map that a stage is in, its
// statement in C, what it is. `labels` says what its elements are about, `share` that they are parts of one whole.
"use strict";

const KINDS = {
    tok_emb: { block: "embed", says: "what the character is: a row of wte",
               code: "double *tok_emb = model->wte->data + token_id * n_embd;" },
    pos_emb: { block: "embed", says: "where it stands: a row of wpe",
               code: "double *pos_emb = model->wpe->data + pos_id * n_embd;" },
    emb: { block: "embed", says: "their sum",
           code: "double *x = ag_add(tape, tok_emb, pos_emb, n_embd);" },
    emb_norm: { block: "embed", says: "scaled", code: "x = rmsnorm(tape, x, n_embd);" },
    x: { block: "norm", says: "what enters the layer", code: "double *x_residual = x;" },
    x_norm: { block: "norm", says: "scaled: attention reads it",
              code: "x = rmsnorm(tape, x, n_embd);" },
    q: { block: "q", says: "the query: what it looks for", by_head: true,
         code: "double *q = linear(tape, x, layer->attn_wq);" },
    k: { block: "k", says: "the key: what it can be found by", by_head: true,
         code: "double *k = linear(tape, x, layer->attn_wk);" },
    v: { block: "v", says: "the value: what it tells", by_head: true,
         code: "double *v = linear(tape, x, layer->attn_wv);" },
    attn_logits: { block: "heads", says: "how well its query fits each key", labels: "positions",
                   code: "double *attn_logits = ag_row_dots(tape, q_h, k_h, seen, n_embd, head_dim, " +
                         "1 / sqrt((double)head_dim));" },
    attn_weights: { block: "heads", says: "as shares of its attention", labels: "positions", share: true,
                    code: "double *attn_weights = softmax(tape, attn_logits, seen);" },
    head_out: { block: "heads", says: "the values, weighted with them",
                code: "double *head_out = ag_weighted_sum(tape, attn_weights, v_h, seen, n_embd, head_dim);" },
    x_attn: { block: "wo", says: "the outputs of all heads in a row", by_head: true,
              code: "ag_copy(tape, x_attn + hs, head_out, head_dim);" },
    x_wo: { block: "wo", says: "mixed", code: "x = linear(tape, x_attn, layer->attn_wo);" },
    x_mid: { block: "add", says: "added to what was there: the residual connection",
             code: "x = ag_add(tape, x, x_residual, n_embd);" },
    mid_norm: { block: "mid", says: "scaled: the MLP reads it", code: "x = rmsnorm(tape, x, n_embd);" },
    fc1: { block: "mlp", says: "four times wider: one number per unit",
           code: "x = linear(tape, x, layer->mlp_fc1);" },
    relu: { block: "mlp", says: "negatives become 0", code: "x = ag_relu(tape, x, n_mlp);" },
    act: { block: "mlp", says: "the units that fire", code: "x = ag_relu(tape, x, n_mlp);" },
    act2: { block: "mlp", says: "squared", name: "act", code: "x = ag_pow(tape, x, 2, n_mlp);" },
    fc2: { block: "mlp", says: "n_embd wide again", code: "x = linear(tape, x, layer->mlp_fc2);" },
    x_out: { block: "out", says: "added to what was there: it leaves the layer",
             code: "x = ag_add(tape, x, x_residual, n_embd);" },
    logits: { block: "logits", says: "a score for every character that may come next", labels: "tokens",
              code: "return linear(tape, x, model->lm_head);" },
    probs: { block: "probs", says: "as probabilities", labels: "tokens", share: true,
             code: "double *probs = softmax(tape, logits, model->vocab_size);" },
    logprob: { block: "loss", says: "of the character that really comes",
               code: "double *logprob = ag_log(tape, probs + target_id, 1);" },
    loss_t: { block: "loss", says: "how surprised it is",
              code: "double *loss_t = ag_neg(tape, logprob, 1);" },
    losses: { block: "loss", says: "of all positions", labels: "positions", of_word: true,
              code: "ag_copy(tape, losses + pos_id, loss_t, 1);" },
    loss: { block: "loss", says: "their mean: the loss of the word", of_word: true,
            code: "return ag_mul_const(tape, ag_sum(tape, losses, n), 1 / (double)n, 1);" },
};
// The heading above the stages of a block.
const GROUPS = { embed: "Embedding", heads: "Head", wo: "After the heads", add: "After the heads", mid: "MLP",
                 mlp: "MLP", out: "MLP", logits: "Guess", probs: "Guess", loss: "Loss" };
for (const [name, kind] of Object.entries(KINDS)) {
    kind.name = kind.name || name;
    kind.group = GROUPS[kind.block] || "Attention";
}

// The name of a stage of this kind: layer1.head0.attn_logits. A model of one layer leaves the layer out.
const stage_name = (model, kind, layer, head) =>
    (layer !== null && model.n_layer > 1 ? `layer${layer}.` : "") + (head !== null ? `head${head}.` : "") + kind.name;

// Gives the vector just made its place in the table. What was made on the way is a part of it.
function stage(tape, kind, pos, at, n, { layer = null, head = null, w = null } = {})
{
    if (!tape.named) {
        return at;
    }
    const name = stage_name(tape.model, kind, layer, head);
    const made = { kind, pos, at, n, layer, head, w, name };
    const names = tape.by_name[pos] = tape.by_name[pos] || new Map();
    for (; tape.unnamed < tape.vectors.length; tape.unnamed++) {
        const vector = tape.vectors[tape.unnamed];
        vector.stage = made;
        if (vector.part && !names.has(`${name}.${vector.part}`)) {
            names.set(`${name}.${vector.part}`, vector);
        }
    }
    names.set(name, made);
    (tape.stages[pos] = tape.stages[pos] || []).push(made);
    return at;
}

// x dot each of n rows of b, or of n columns.
function dots_of(tape, x, b, n, length, { stride = length, by_column = false, out = -1, part = "" } = {})
{
    const { products, sum, dots } = operations;
    if (!tape.atomic) {
        return record(tape, dots, n, x, { b, length, stride, by_column, out, part });
    }
    const each_product = record(tape, products, n, x, { b, length, stride, by_column, part: "products" });
    return record(tape, sum, n, each_product, { length, out, part });
}

const linear = (tape, x, w, out = -1) => dots_of(tape, x, w.at, w.rows, w.cols, { out });

function softmax(tape, logits, n)
{
    const { shift, exp, sum, pow, mul } = operations;
    const shifted = record(tape, shift, n, logits, { part: "shifted" });
    const exps = record(tape, exp, n, shifted, { part: "exps" });
    const total = record(tape, sum, 1, exps, { length: n, part: "total" });
    const inverse = record(tape, pow, 1, total, { c: -1, part: "inverse" });
    return record(tape, mul, n, exps, { b: inverse, stride: 0 });
}

function rmsnorm(tape, x, n)
{
    const { mul, sum, mul_const, add_const, pow } = operations;
    const squares = record(tape, mul, n, x, { b: x, part: "squares" });
    const sum_of_squares = record(tape, sum, 1, squares, { length: n, part: "sum" });
    const ms = record(tape, mul_const, 1, sum_of_squares, { c: 1 / n, part: "ms" });
    const ms_eps = record(tape, add_const, 1, ms, { c: 1e-5, part: "ms_eps" });
    const scale = record(tape, pow, 1, ms_eps, { c: -0.5, part: "scale" });
    return record(tape, mul, n, x, { b: scale, stride: 0 });
}

// What is silent: heads as layer * n_head + head, and for each layer a set of units.
const NOTHING = { heads: new Set(), units: [] };

// Parts side by side, as a vector of their own; those that are silent give zeros.
function side_by_side(tape, parts, size, is_silent)
{
    const { copy, zero } = operations;
    const at = room_for(tape, parts.length * size);
    parts.forEach((part, k) => record(tape, is_silent(k) ? zero : copy, size, part, { out: at + k * size }));
    return at;
}

// The cache of keys and values: room for so many positions.
function new_cache(tape, model, positions)
{
    const rooms = () => each(model.n_layer, () => room_for(tape, positions * model.n_embd));
    return { keys: rooms(), values: rooms() };
}

// One position: scores for every token that may come next.
function gpt(tape, model, token_id, pos_id, cache, quiet)
{
    const { n_layer, n_embd } = model;
    const { wte, wpe, lm_head } = model.state_dict;
    const { add } = operations;
    const made = (kind, at, n, where) => stage(tape, kind, pos_id, at, n, where);
    const tok_emb = made(KINDS.tok_emb, wte.at + token_id * n_embd, n_embd, { w: wte });
    const pos_emb = made(KINDS.pos_emb, wpe.at + pos_id * n_embd, n_embd, { w: wpe });
    let x = made(KINDS.emb, record(tape, add, n_embd, tok_emb, { b: pos_emb }), n_embd);
    x = made(KINDS.emb_norm, rmsnorm(tape, x, n_embd), n_embd);

    for (let layer = 0; layer < n_layer; layer++) {
        // 1) Multi-head attention
        const x_enters = made(KINDS.x, x, n_embd, { layer });
        x = made(KINDS.x_norm, rmsnorm(tape, x, n_embd), n_embd, { layer });
        x = attention(tape, model, x, layer, pos_id, cache, quiet);
        const x_mid = made(KINDS.x_mid, record(tape, add, n_embd, x, { b: x_enters }), n_embd, { layer });

        // 2) MLP
        x = made(KINDS.mid_norm, rmsnorm(tape, x_mid, n_embd), n_embd, { layer });
        x = mlp(tape, model, x, layer, pos_id, quiet);
        x = made(KINDS.x_out, record(tape, add, n_embd, x, { b: x_mid }), n_embd, { layer });
    }
    return made(KINDS.logits, linear(tape, x, lm_head), model.vocab_size, { w: lm_head });
}

// The heads of a layer: each looks at every position so far, itself included. A silent one gives zeros.
function attention(tape, model, x, layer, pos_id, { keys, values }, quiet)
{
    const { n_embd, n_head, head_dim, state_dict } = model;
    const w = (name) => state_dict[`layer${layer}.${name}`];
    const made = (kind, at, n, where) => stage(tape, kind, pos_id, at, n, { layer, ...where });
    const seen = pos_id + 1;
    const here = pos_id * n_embd;
    const q = made(KINDS.q, linear(tape, x, w("attn_wq")), n_embd, { w: w("attn_wq") });
    made(KINDS.k, linear(tape, x, w("attn_wk"), keys[layer] + here), n_embd, { w: w("attn_wk") });
    made(KINDS.v, linear(tape, x, w("attn_wv"), values[layer] + here), n_embd, { w: w("attn_wv") });
    const head_outs = [];
    for (let head = 0; head < n_head; head++) {
        const hs = head * head_dim;
        const fits = dots_of(tape, q + hs, keys[layer] + hs, seen, head_dim, { stride: n_embd, part: "dots" });
        const scaled = record(tape, operations.mul_const, seen, fits, { c: 1 / sqrt(head_dim) });
        const attn_logits = made(KINDS.attn_logits, scaled, seen, { head });
        const attn_weights = made(KINDS.attn_weights, softmax(tape, attn_logits, seen), seen, { head });
        const mixed_values = dots_of(tape, attn_weights, values[layer] + hs, head_dim, seen,
            { stride: n_embd, by_column: true });
        head_outs.push(made(KINDS.head_out, mixed_values, head_dim, { head }));
    }
    const x_attn = side_by_side(tape, head_outs, head_dim, (head) => quiet.heads.has(layer * n_head + head));
    made(KINDS.x_attn, x_attn, n_embd);
    return made(KINDS.x_wo, linear(tape, x_attn, w("attn_wo")), n_embd, { w: w("attn_wo") });
}

// The MLP of a layer. Units that are off give zero.
function mlp(tape, model, x, layer, pos_id, quiet)
{
    const n_hidden = 4 * model.n_embd;
    const { relu, pow } = operations;
    const w = (name) => model.state_dict[`layer${layer}.${name}`];
    const made = (kind, at, n, where) => stage(tape, kind, pos_id, at, n, { layer, ...where });
    const off = quiet.units[layer];
    const is_masked = off !== undefined;
    const is_squared = model.activation === "relu2";
    x = made(KINDS.fc1, linear(tape, x, w("mlp_fc1")), n_hidden, { w: w("mlp_fc1") });
    x = record(tape, relu, n_hidden, x, { part: is_masked && !is_squared ? "relu" : "" });
    if (is_squared) {
        x = made(KINDS.relu, x, n_hidden);
        x = record(tape, pow, n_hidden, x, { c: 2, part: is_masked ? "squares" : "" });
    }
    x = is_masked ? side_by_side(tape, each(n_hidden, (k) => x + k), 1, (k) => off.has(k)) : x;
    made(is_squared ? KINDS.act2 : KINDS.act, x, n_hidden);
    return made(KINDS.fc2, linear(tape, x, w("mlp_fc2")), model.n_embd, { w: w("mlp_fc2") });
}

// The mean loss of the tokens, a position per piece. What it returns says where everything is.
function* loss_pieces(tape, model, tokens, quiet = NOTHING)
{
    const n = tokens.length - 1;
    const { log, mul_const } = operations;
    const pass = { tape, model, tokens, n, logits: [], probs: [], losses: [], loss: 0, has_grads: false };
    tape_reset(tape, model);
    const cache = new_cache(tape, model, n);
    for (let pos = 0; pos < n; pos++) {
        const logits = gpt(tape, model, tokens[pos], pos, cache, quiet);
        const probs = stage(tape, KINDS.probs, pos, softmax(tape, logits, model.vocab_size), model.vocab_size);
        const logprob = stage(tape, KINDS.logprob, pos, record(tape, log, 1, probs + tokens[pos + 1]), 1);
        const loss_t = stage(tape, KINDS.loss_t, pos, record(tape, mul_const, 1, logprob, { c: -1 }), 1);
        pass.logits.push(logits);
        pass.probs.push(probs);
        pass.losses.push(loss_t);
        yield;
    }
    pass.loss = mean_loss(tape, pass.losses);
    return pass;
}

// The mean of the positions' losses; in the table it is the same at all positions.
function mean_loss(tape, places)
{
    const n = places.length;
    const { copy, sum, mul_const } = operations;
    const losses = room_for(tape, n);
    places.forEach((loss_t, pos) => record(tape, copy, 1, loss_t, { out: losses + pos }));
    stage(tape, KINDS.losses, n - 1, losses, n);
    const total = record(tape, sum, 1, losses, { length: n, part: "sum" });
    const loss = stage(tape, KINDS.loss, n - 1, record(tape, mul_const, 1, total, { c: 1 / n }), 1);
    for (let pos = 0; tape.named && pos < n - 1; pos++) {
        const last = tape.by_name[n - 1];
        tape.stages[pos].push(...tape.stages[n - 1].slice(-2));
        tape.by_name[pos].set("losses", last.get("losses")).set("loss", last.get("loss"));
    }
    return loss;
}

const numbers_of = (tape, at, n) => Array.from(tape.value.subarray(at, at + n));

// The vector of this name at a position: {at, n}, or nothing. Matrices are the same at all of them. Without a layer in
// the name, it is in the first.
function find_vector(tape, name, pos)
{
    const w = tape.model.state_dict[name];
    const names = tape.by_name[pos];
    if (w) {
        return { at: w.at, n: w.rows * w.cols, w };
    }
    const in_first = tape.model.n_layer > 1 ? `layer0.${name}` : name.replace("layer0.", "");
    return names && (names.get(name) || names.get(in_first));
}

function weights_at({ tape, model }, layer, head, pos)
{
    const { at, n } = tape.by_name[pos].get(stage_name(model, KINDS.attn_weights, layer, head));
    return numbers_of(tape, at, n);
}
