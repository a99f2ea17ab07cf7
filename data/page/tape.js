// The tape: values in a row, and the lines that made them, in order. A line is one operation on a vector: what was
// done, to which values, giving which. A vector is known by the place of its first value, as by a pointer in C.
"use strict";

// atomic: every product is a value of its own, which can be looked at. Otherwise a row of a matrix times a vector is
// one value, which takes less time and room. named: the vectors have names, for people.
function new_tape(atomic, named)
{
    return {
        atomic, named, model: null, value: new Float64Array(1 << 14), grad: new Float64Array(1 << 14), size: 0,
        lines: [], n_lines: 0,
        // named: every vector; for each position its stages, and all names
        vectors: [], stages: [], by_name: [],
        // the first that has no stage yet
        unnamed: 0,
        // of every value, once somebody asks
        line_of: null, vector_of: null,
    };
}

// Empties the tape: the model's parameters are its first values.
function tape_reset(tape, model)
{
    tape.model = model;
    tape.size = tape.n_lines = 0;
    room_for(tape, model.num_params);
    tape.value.set(model.params);
    tape.vectors = tape.named ? model.matrices.map(vector_of_matrix) : [];
    tape.stages = [];
    tape.by_name = [];
    tape.line_of = tape.vector_of = null;
    tape.unnamed = tape.vectors.length;
}

const vector_of_matrix = (w) => ({ at: w.at, n: w.rows * w.cols, cols: w.cols, part: "", stage: null, w });

// Room for n more values, which begin at the place returned.
function room_for(tape, n)
{
    const at = tape.size;
    tape.size += n;
    if (tape.size > tape.value.length) {
        for (const column of ["value", "grad"]) {
            const larger = new Float64Array(2 * tape.size);
            larger.set(tape[column]);
            tape[column] = larger;
        }
    }
    return at;
}

// Operations. For each: its forward; how gradients flow back, by its operands unless it has a faster way; the operands
// of its element k with the local derivatives; and the elements that use value i. A line is {op, out, n, a, b, c,
// length, stride, by_column}.
const one_to_one = (l, i) => within(i, l.a, l.n) ? [i - l.a] : [];
const one_of_two = (l, i) => [...new Set([...one_to_one(l, i), ...(within(i, l.b, l.n) ? [i - l.b] : [])])];

function unary(name, sign, value_of, derivative)
{
    return {
        name, sign,
        forward(v, { out, n, a, c }) {
            for (let k = 0; k < n; k++) { v[out + k] = value_of(v[a + k], c); }
        },
        backward(v, g, { out, n, a, c }) {
            for (let k = 0; k < n; k++) { g[a + k] += g[out + k] * derivative(v[a + k], c, v[out + k]); }
        },
        operands: (v, l, k, visit) => visit(l.a + k, derivative(v[l.a + k], l.c, v[l.out + k])),
        elements: one_to_one,
    };
}

// Where the numbers of b that make element k begin, and how far apart they are: in a row of b, or in a column.
const start_in_b = (l, k) => l.b + k * (l.by_column ? 1 : l.stride);
const step_in_b = (l) => l.by_column ? l.stride : 1;

// Of the products a[j] * b[k][j], those that value i is in: [k, j].
function products_with(l, i)
{
    const row = floor((i - l.b) / l.stride);
    const col = (i - l.b) % l.stride;
    const [k, j] = l.by_column ? [col, row] : [row, col];
    const in_b = i >= l.b && k < l.n && j < l.length ? [[k, j]] : [];
    return within(i, l.a, l.length) ? [...each(l.n, (each_k) => [each_k, i - l.a]), ...in_b] : in_b;
}

const operations = {
    pow: unary("pow", "^", (x, c) => x ** c, (x, c) => c * x ** (c - 1)),
    log: unary("log", "ln", (x) => Math.log(x), (x) => 1 / x),
    exp: unary("exp", "e^", (x) => Math.exp(x), (x, c, y) => y),
    relu: unary("relu", "max", (x) => x > 0 ? x : 0, (x) => x > 0 ? 1 : 0),
    add_const: unary("add", "+", (x, c) => x + c, () => 1),
    mul_const: unary("mul", "×", (x, c) => x * c, (x, c) => c),
    copy: unary("copy", "=", (x) => x, () => 1),
    // less the largest of them, which counts as a constant
    shift: {
        ...unary("add", "+", (x, c) => x + c, () => 1),
        forward(v, l) {
            let most = v[l.a];
            for (let k = 1; k < l.n; k++) { most = max(most, v[l.a + k]); }
            l.c = -most;
            for (let k = 0; k < l.n; k++) { v[l.out + k] = v[l.a + k] - most; }
        },
    },
    // what is silent
    zero: {
        name: "constant", sign: "0",
        forward(v, { out, n }) { v.fill(0, out, out + n); },
        operands() {}, elements: () => [],
    },
    add: {
        name: "add", sign: "+",
        forward(v, { out, n, a, b }) { for (let k = 0; k < n; k++) { v[out + k] = v[a + k] + v[b + k]; } },
        operands(v, l, k, visit) { visit(l.a + k, 1); visit(l.b + k, 1); },
        elements: one_of_two,
    },
    // a[k] * b[k]; or, with a stride of 0, all of a times the one b
    mul: {
        name: "mul", sign: "×",
        forward(v, { out, n, a, b, stride }) {
            for (let k = 0; k < n; k++) { v[out + k] = v[a + k] * v[b + k * stride]; }
        },
        operands(v, l, k, visit) { visit(l.a + k, v[l.b + k * l.stride]); visit(l.b + k * l.stride, v[l.a + k]); },
        elements: (l, i) => l.stride ? one_of_two(l, i) : i === l.b ? each(l.n, (k) => k) : one_to_one(l, i),
    },
    // of each `length` neighbors
    sum: {
        name: "sum", sign: "Σ",
        forward(v, { out, n, a, length }) {
            for (let k = 0, i = a; k < n; k++) {
                let sum = 0;
                for (const end = i + length; i < end; i++) { sum += v[i]; }
                v[out + k] = sum;
            }
        },
        operands(v, l, k, visit) { for (let j = 0; j < l.length; j++) { visit(l.a + k * l.length + j, 1); } },
        elements: (l, i) => within(i, l.a, l.n * l.length) ? [floor((i - l.a) / l.length)] : [],
    },
    // a[j] * b[k][j], each a value of its own
    products: {
        name: "mul", sign: "×",
        forward(v, l) {
            const step = step_in_b(l);
            for (let k = 0, out = l.out; k < l.n; k++) {
                for (let j = 0, w = start_in_b(l, k); j < l.length; j++, w += step) { v[out++] = v[l.a + j] * v[w]; }
            }
        },
        operands(v, l, i, visit) {
            const x = l.a + i % l.length;
            const w = start_in_b(l, floor(i / l.length)) + i % l.length * step_in_b(l);
            visit(x, v[w]);
            visit(w, v[x]);
        },
        elements: (l, i) => products_with(l, i).map(([k, j]) => k * l.length + j),
    },
    // their sum for each k: a dot b[k]
    dots: {
        name: "dot", sign: "·",
        forward(v, l) {
            const { out, n, a, length } = l;
            const step = step_in_b(l);
            for (let k = 0; k < n; k++) {
                let sum = 0;
                for (let j = 0, w = start_in_b(l, k); j < length; j++, w += step) { sum += v[a + j] * v[w]; }
                v[out + k] = sum;
            }
        },
        backward(v, g, l) {
            const { out, n, a, length } = l;
            const step = step_in_b(l);
            for (let k = 0; k < n; k++) {
                const d = g[out + k];
                for (let j = 0, w = start_in_b(l, k); d !== 0 && j < length; j++, w += step) {
                    g[a + j] += d * v[w];
                    g[w] += d * v[a + j];
                }
            }
        },
        operands(v, l, k, visit) {
            for (let j = 0, w = start_in_b(l, k); j < l.length; j++, w += step_in_b(l)) {
                visit(l.a + j, v[w]);
                visit(w, v[l.a + j]);
            }
        },
        elements: (l, i) => products_with(l, i).map(([k]) => k),
    },
};

const size_of = (l) => l.op === operations.products ? l.n * l.length : l.n;

// Each element hands its gradient on to its operands, times the derivative.
function backward_by_operands(v, g, l)
{
    for (let k = 0; k < size_of(l); k++) {
        const d = g[l.out + k];
        l.op.operands(v, l, k, (at, derivative) => { g[at] += d * derivative; });
    }
}

for (const op of Object.values(operations)) {
    op.backward = op.backward || backward_by_operands;
}

// Writes a line and computes it. `out` is a place in another vector, or new. Lines of an earlier pass are used again.
function record(tape, op, n, a,
    { b = 0, c = 0, length = 0, stride = 1, by_column = false, out = -1, part = "" } = {})
{
    const l = tape.lines[tape.n_lines] || { op, out, n, a, b, c, length, stride, by_column };
    tape.lines[tape.n_lines++] = l;
    l.op = op;
    l.n = n;
    l.a = a;
    l.b = b;
    l.c = c;
    l.length = length;
    l.stride = stride;
    l.by_column = by_column;
    const made = size_of(l);
    l.out = out < 0 ? room_for(tape, made) : out;
    op.forward(tape.value, l);
    if (tape.named) {
        const cols = op === operations.products ? length : 0;
        tape.vectors.push({ at: l.out, n: made, cols, part, stage: null, w: null });
    }
    return l.out;
}

// From the result back to the parameters. In pieces, so that a page with a large model still answers.
function* backward_pieces(tape, result, seed = 1)
{
    tape.grad.fill(0, tape.model.num_params, tape.size);
    tape.grad[result] = seed;
    let work = 0;
    for (let i = tape.n_lines - 1; i >= 0; i--) {
        const l = tape.lines[i];
        l.op.backward(tape.value, tape.grad, l);
        work += l.n * (l.length || 1);
        if (work > 2e5) {
            work = 0;
            yield;
        }
    }
}

const clear_grads = (tape) => tape.grad.fill(0, 0, tape.model.num_params);
