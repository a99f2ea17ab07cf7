// Training: Adam and the run's documents, as in microgpt.c. Inference: a name, letter by letter.
"use strict";

// How the file was trained; `missing` gets what it does not say.
function read_training(meta, missing)
{
    const of_run = (name, otherwise) => {
        const text = meta[`train.${name}`];
        if (text === undefined) {
            missing.push(name);
        }
        return text ?? otherwise;
    };
    const positive = (text, otherwise) => Number(text) > 0 ? Number(text) : otherwise;
    const is_lesson = of_run("recipe", "microgpt") === "lesson";
    const seed = of_run("seed", "42");
    return {
        recipe: is_lesson ? "lesson" : "microgpt", seed: /^[0-9]+$/.test(seed) ? seed : "42",
        steps: positive(of_run("steps"), 1000), batch: positive(of_run("batch"), 1),
        holdout: Number(of_run("holdout", 0)), lr: positive(of_run("lr"), 0.01),
        beta1: Number(of_run("beta1", is_lesson ? 0.9 : 0.85)),
        beta2: Number(of_run("beta2", is_lesson ? 0.95 : 0.99)), eps: 1e-8,
        weight_decay: positive(meta["train.weight_decay"], 0),
        init_std: Number(of_run("init_std", is_lesson ? 0.02 : 0.08)),
        is_cosine: of_run("schedule", is_lesson ? "cosine" : "linear") === "cosine", zero_outputs: is_lesson,
    };
}

// Where the file's run is over, the page goes on as a run that is resumed with twice as many steps.
function learning_rate({ lr, steps, is_cosine }, step)
{
    while (steps <= step) {
        steps *= 2;
    }
    const done = step / steps;
    return is_cosine ? lr * 0.5 * (1 + Math.cos(Math.PI * done)) : lr * (1 - done);
}

// What Adam needs to know of a model's next step: the rate, and what corrects the means of the first steps.
function adam_now({ training, step })
{
    const { beta1, beta2 } = training;
    return { ...training, lr: learning_rate(training, step), correct1: 1 - beta1 ** (step + 1),
             correct2: 1 - beta2 ** (step + 1) };
}

// One step on these documents: forward, backward, and a small move of every parameter. Returns the loss before it.
function* step_pieces(tape, model, words, quiet)
{
    let loss = 0;
    tape.grad.fill(0, 0, model.num_params);
    for (const word of words) {
        const pass = yield* loss_pieces(tape, model, take_document(model, word), quiet);
        loss += tape.value[pass.loss] / words.length;
        yield* backward_pieces(tape, pass.loss, 1 / words.length);
    }
    adam_step(model, tape.grad);
    return loss;
}

// Moves every parameter against its gradient; m and v are the means of its gradients and of their squares. Weight decay
// takes a part of it as well.
function adam_step(model, g)
{
    const { m, v, params } = model;
    const { beta1, beta2, eps, weight_decay, lr, correct1, correct2 } = adam_now(model);
    for (let i = 0; i < params.length; i++) {
        m[i] = beta1 * m[i] + (1 - beta1) * g[i];
        v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
        params[i] -= lr * (m[i] / correct1) / (sqrt(v[i] / correct2) + eps) + lr * weight_decay * params[i];
    }
    model.step++;
}

// The model at step 0, drawn as the program draws it: seed, shuffle of all documents, then the matrices in order.
function fresh_model(model, n_documents)
{
    const { seed, init_std, zero_outputs } = model.training;
    const random = new_random(seed);
    const params = new Float64Array(model.num_params);
    for (let i = n_documents - 1; i > 0; i--) {
        random.below(i + 1);
    }
    for (const w of model.matrices) {
        const std = w.is_output && zero_outputs ? 0 : init_std;
        for (let i = w.at; i < w.at + w.rows * w.cols; i++) {
            params[i] = random.gauss(0, std);
        }
    }
    return { ...model, params, m: new Float64Array(model.num_params), v: new Float64Array(model.num_params), step: 0 };
}

// How many of the page's documents the run takes before it begins again; those held out come last.
const documents_in_turn = ({ training }, documents, n_documents) =>
    min(max(1, n_documents - training.holdout), documents.length);

function documents_of(model, documents, n_documents, step)
{
    const { batch } = model.training;
    const n = documents_in_turn(model, documents, n_documents);
    return each(batch, (k) => documents[(step * batch + k) % n]);
}

// A name, character by character, at most `longest` of them. At temperature 0 the likeliest one is taken.
function* sample_letters(tape, model, { temperature, prompt = "", random, quiet = NOTHING, longest = Infinity })
{
    const given = Array.from(prompt, (c) => model.token_of.get(c));
    const most = min(model.block_size, longest);
    let token = model.BOS;
    tape_reset(tape, model);
    const cache = new_cache(tape, model, most);
    for (let pos = 0; pos < most; pos++) {
        const logits = numbers_of(tape, gpt(tape, model, token, pos, cache, quiet), model.vocab_size);
        const probs = tempered(logits, temperature);
        const u = random();
        token = pos < given.length ? given[pos] : pick(probs, u);
        yield { token, probs, u, given: pos < given.length };
        if (token === model.BOS) {
            return;
        }
    }
}

function tempered(logits, temperature)
{
    const most = logits.reduce((a, b) => max(a, b));
    const weights = logits.map((x) => temperature === 0 ? Number(x === most) : Math.exp((x - most) / temperature));
    const total = sum_of(weights);
    return weights.map((w) => w / total);
}

// The token on which u, between 0 and 1, falls: the last one is BOS.
function pick(probs, u)
{
    let sum = 0;
    const chosen = probs.findIndex((p) => (sum += p) > u);
    return chosen < 0 ? probs.length - 1 : chosen;
}

function* sample_pieces(tape, model, how)
{
    let name = "";
    for (const { token } of sample_letters(tape, model, how)) {
        name += token === model.BOS ? "" : model.uchars[token];
        yield;
    }
    return name;
}

const sample = (tape, model, how) => finish(sample_pieces(tape, model, how));
