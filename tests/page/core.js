// The page's model, tape, training and votes in node, without a browser: they take the model as an argument and touch
// nothing of a page. Usage: node core.js PLAN.json; the plan says which models to load and what the program says of them.
"use strict";
const fs = require("fs");
const vm = require("vm");
const { check, same_numbers } = require("./checks.js");
const plan = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const page = vm.createContext({ performance, atob, TextDecoder });
for (const name of ["random", "safetensors", "tape", "gpt", "train", "votes"]) {
    vm.runInContext(fs.readFileSync(`data/page/${name}.js`, "utf8"), page, { filename: `${name}.js` });
}
const { read_model, take_document, fresh_model, documents_of, step_pieces, loss_pieces, new_tape, finish, votes_in,
        backward_pieces, tape_reset } = page;

const pass_of = (model, word, atomic) => finish(loss_pieces(new_tape(atomic, true), model, take_document(model, word)));
const likeliest = (values, n) => [...values.keys()].sort((a, b) => values[b] - values[a] || a - b).slice(0, n);

// The votes of every position of a word for the five likeliest characters and the true one: they add up to the logit.
function check_votes(name, model, word)
{
    const pass = pass_of(model, word, true);
    const logits = [];
    const totals = [];
    const rows = [];
    for (let pos = 0; pos < pass.n; pos++) {
        const row = [...pass.tape.value.subarray(pass.logits[pos], pass.logits[pos] + model.vocab_size)];
        const mean = row.reduce((a, b) => a + b) / row.length;
        for (const id of new Set([...likeliest(row, 5), pass.tokens[pos + 1]])) {
            const votes = votes_in(pass, pos, id);
            logits.push(row[id] - mean, votes.logit);
            totals.push(votes.total, votes.self + [...votes.heads, ...votes.units].reduce((sum, { vote }) => sum + vote, 0));
            rows.push({ pos, id, votes });
        }
    }
    same_numbers(`${name}, ${word}: the votes add up to the logit less the mean`, logits, totals, 1e-12);
    check(`${name}, ${word}: a vote of each head for each position, and of each unit`, rows.every(({ pos, votes }) =>
        votes.heads.length === model.n_layer * model.n_head * (pos + 1) && votes.units.length === 4 * model.n_layer * model.n_embd),
    "all", "another number");
    return rows;
}

// The rows of heads --votes --tsv are those of the page.
function compare_votes(name, word, rows, tsv)
{
    const of = new Map();
    for (const { pos, id, votes } of rows) {
        of.set(`${pos} ${id} self   `, votes.self);
        votes.heads.forEach(({ layer, head, position, vote }) => of.set(`${pos} ${id} head ${layer} ${head} ${position}`, vote));
        votes.units.forEach(({ layer, unit, vote }) => of.set(`${pos} ${id} unit ${layer} ${unit} `, vote));
    }
    const said = tsv.trim().split("\n").slice(1).map((line) => line.split("\t"));
    same_numbers(`${name}, ${word}: the votes of heads --votes`, said.map((row) => Number(row[6])),
        said.map((row) => of.get(row.slice(0, 6).join(" "))), 1e-9);
    check(`${name}, ${word}: all of them`, said.length === of.size, of.size, said.length);
}

// The run from step 0 on, as the program's log has it.
function check_run(name, model, { documents, n_documents, losses })
{
    const fresh = fresh_model(model, n_documents);
    const tape = new_tape(false, false);
    const quiet = { heads: new Set(), units: [] };
    const seen = losses.map((_, step) => finish(step_pieces(tape, fresh, documents_of(fresh, documents, n_documents, step), quiet)));
    same_numbers(`${name}: the losses of the program's own run`, losses, seen, 1e-9);
}

function check_gradients(name, model, { word, grads })
{
    const pass = pass_of(model, word, false);
    finish(backward_pieces(pass.tape, pass.loss));
    same_numbers(`${name}, ${word}: the reference gradients`, grads, [...pass.tape.grad.subarray(0, model.num_params)], 1e-12);
}

for (const { name, file, words = [], votes = {}, run, gradients } of plan.models) {
    const model = read_model(new Uint8Array(fs.readFileSync(file)));
    for (const { word, loss } of words) {
        const seen = [true, false].map((atomic) => { const pass = pass_of(model, word, atomic); return pass.tape.value[pass.loss]; });
        same_numbers(`${name}, ${word}: loss as in eval, with and without products`, [loss, loss], seen, 1e-12);
        const rows = check_votes(name, model, word);
        if (votes[word]) {
            compare_votes(name, word, rows, votes[word]);
        }
    }
    if (run) {
        check_run(name, model, run);
    }
    if (gradients) {
        check_gradients(name, model, gradients);
    }
}
// Two models at once, on one tape: nothing of the first is left.
const [one, two] = plan.models.map(({ file }) => read_model(new Uint8Array(fs.readFileSync(file))));
const shared = new_tape(false, true);
const loss_on = (model, tape) => { const pass = finish(loss_pieces(tape, model, take_document(model, "maria"))); return tape.value[pass.loss]; };
const alone = [one, two, one].map((model) => loss_on(model, new_tape(false, true)));
check("two models take turns on one tape", JSON.stringify(alone) === JSON.stringify([one, two, one].map((model) => loss_on(model, shared))),
    "the same losses", "others");
tape_reset(shared, two);
check("an emptied tape holds the parameters", shared.size === two.num_params && shared.n_lines === 0, two.num_params, shared.size);
