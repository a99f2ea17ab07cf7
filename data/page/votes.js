// Who voted for a character: nothing but lm_head follows the last sum, so a logit is a sum of what each part put in.
// With u = a row of lm_head less the mean of its rows, a part that added the vector x to the sum voted u · x.
"use strict";

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

// The row of lm_head for this character, less the mean of all rows.
function vote_direction(values, { state_dict, vocab_size, n_embd }, id)
{
    const { at } = state_dict.lm_head;
    return each(n_embd, (j) => {
        let mean = 0;
        for (let row = 0; row < vocab_size; row++) {
            mean += values[at + row * n_embd + j] / vocab_size;
        }
        return values[at + id * n_embd + j] - mean;
    });
}

// u times a matrix: what a change of each of the matrix's inputs votes.
const votes_of_inputs = (values, u, { at, cols }) =>
    each(cols, (k) => u.reduce((sum, x, row) => sum + x * values[at + row * cols + k], 0));

// A head's votes, one for each position that it looks at; none while it is silent.
function head_votes(pass, values, u, layer, head, pos, is_silent)
{
    const { model, tape } = pass;
    const { head_dim, state_dict } = model;
    const by_input = votes_of_inputs(values, u, state_dict[`layer${layer}.attn_wo`]);
    const through = by_input.slice(head * head_dim, (head + 1) * head_dim);
    const weights = tape.by_name[pos].get(stage_name(model, KINDS.attn_weights, layer, head));
    return each(pos + 1, (position) => {
        const v = tape.by_name[position].get(stage_name(model, KINDS.v, layer, null)).at + head * head_dim;
        const tells = through.reduce((sum, x, j) => sum + x * values[v + j], 0);
        return { layer, head, position, vote: is_silent ? 0 : values[weights.at + position] * tells };
    });
}

// The direct votes for character `id` at a position of a pass: the letter read itself, every head for every position,
// every unit. `total` is their sum; `logit` what the model made of them, less the mean logit.
function votes_in(pass, pos, id, quiet = NOTHING)
{
    const { model, tape } = pass;
    const values = tape.value;
    const u = vote_direction(values, model, id);
    const vector = (kind, layer) => {
        const { at, n } = tape.by_name[pos].get(stage_name(model, kind, layer, null));
        return numbers_of(tape, at, n);
    };
    const self = dot(u, vector(KINDS.emb_norm, null));
    const heads = each(model.n_layer * model.n_head, (k) =>
        head_votes(pass, values, u, floor(k / model.n_head), k % model.n_head, pos, quiet.heads.has(k))).flat();
    const units = each(model.n_layer, (layer) => {
        const by_input = votes_of_inputs(values, u, model.state_dict[`layer${layer}.mlp_fc2`]);
        return vector(KINDS.act, layer).map((x, unit) => ({ layer, unit, vote: by_input[unit] * x }));
    }).flat();
    const logits = numbers_of(tape, pass.logits[pos], model.vocab_size);
    const total = self + sum_of(heads.map(({ vote }) => vote)) + sum_of(units.map(({ vote }) => vote));
    return { logit: logits[id] - mean_of(logits), total, self, heads, units };
}
