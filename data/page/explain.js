// Explain: what a value was made from, what it is used for, and what follows if it is another.
"use strict";

// Of every value the line that made it and the vector it is in.
function index_tape(tape)
{
    if (tape.line_of) {
        return;
    }
    tape.line_of = new Int32Array(tape.size).fill(-1);
    tape.vector_of = new Int32Array(tape.size);
    tape.lines.slice(0, tape.n_lines).forEach((l, i) => tape.line_of.fill(i, l.out, l.out + size_of(l)));
    tape.vectors.forEach((vector, i) => tape.vector_of.fill(i, vector.at, vector.at + vector.n));
}

// The number of the line that made value i; a parameter has none.
function line_number(tape, i)
{
    index_tape(tape);
    return i < tape.model.num_params ? -1 : tape.line_of[i];
}

const line_of = (tape, i) => tape.lines[line_number(tape, i)];

function vector_of(tape, i)
{
    index_tape(tape);
    return tape.vectors[tape.vector_of[i]];
}

// The address of a value: its vector's name, its place in it, and the position; that of a parameter is null.
function address_of(tape, i)
{
    const vector = vector_of(tape, i);
    const { stage: of, part, w } = vector;
    if (w) {
        return { name: w.name, i: i - w.at, pos: null };
    }
    const of_stage = !part && within(i, of.at, of.n);
    return { name: part ? `${of.name}.${part}` : of.name, i: i - (of_stage ? of.at : vector.at), pos: of.pos };
}

// Operands of value i: {at, value, derivative}; a plain number has no place.
function operands_of(tape, i, values = tape.value)
{
    const l = line_of(tape, i);
    const operands = [];
    l?.op.operands(values, l, i - l.out, (at, derivative) => operands.push({ at, value: values[at], derivative }));
    const { add_const, mul_const, shift } = operations;
    if (l && [add_const, mul_const, shift].includes(l.op)) {
        operands.push({ at: -1, value: l.c, derivative: l.op === mul_const ? operands[0].value : 1 });
    }
    return operands;
}

// The values that use value i, and what each adds to its gradient.
function users_of(tape, i, values = tape.value)
{
    const users = [];
    for (let k = line_number(tape, i) + 1; k < tape.n_lines; k++) {
        const l = tape.lines[k];
        for (const element of l.op.elements(l, i)) {
            let derivative = 0;
            l.op.operands(values, l, element, (at, d) => { derivative += at === i ? d : 0; });
            users.push({ at: l.out + element, adds: tape.grad[l.out + element] * derivative });
        }
    }
    return users;
}

function need_grads(pass)
{
    if (!pass.has_grads) {
        clear_grads(pass.tape);
        finish(backward_pieces(pass.tape, pass.loss));
        pass.has_grads = true;
    }
}

// The place of an element of a vector, or of a matrix.
function place_of(tape, name, i, pos)
{
    const found = find_vector(tape, name, pos);
    if (!found || !Number.isInteger(i) || !(i >= 0 && i < found.n)) {
        fail(`no value ${name} ${i} at position ${pos}`);
    }
    return found.at + i;
}

// The numbers of a pass as they were computed, whatever is changed now.
const computed = (pass) => pass.base || pass.tape.value;

// Puts a number in the place of another, and computes all that follows from it; null: everything is itself again.
function change_pass(pass, at, value)
{
    const { tape } = pass;
    need_grads(pass);
    if (pass.base) {
        tape.value.set(pass.base);
    }
    pass.base = value === null ? null : pass.base || tape.value.slice();
    if (value !== null) {
        replay(tape, at, value);
    }
}

// Computes every line again from the one that made this number on, with another number in its place.
function replay(tape, at, value)
{
    const made_by = line_number(tape, at);
    tape.value[at] = value;
    for (let i = max(0, made_by); i < tape.n_lines; i++) {
        const l = tape.lines[i];
        l.op.forward(tape.value, l);
        if (i === made_by) {
            tape.value[at] = value;
        }
    }
}
