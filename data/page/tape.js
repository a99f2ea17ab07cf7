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
        // the first that have no stage yet
        unnamed_vectors: 0, unnamed_lines: 0,
        // of every value, once somebody asks
        line_of: null, vector_of: null,
    };
}

// Empties the tape: the model's parameters are its first values.
function tape_reset(tape, model)
{
    tape.model = model;
    tape.size = tape.n_lines = tape.unnamed_lines = 0;
    room_for(tape, model.num_params);
    tape.value.set(model.params);
    tape.vectors = tape.named ? model.matrices.map(vector_of_matrix) : [];
    tape.stages = [];
    tape.by_name = [];
    tape.line_of = tape.vector_of = null;
    tape.unnamed_vectors = tape.vectors.length;
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

// Operations. For each: its value, how gradients flow back, the operands of its element k with the local derivatives,
// and the elements that use value i. A line is {op, out, n, a, b, c, length, stride}.
const one_to_one = (l, i) => within(i, l.a, l.n) ? [i - l.a] : [];

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

// Products of two values each, whose places these functions give.
function products_of(x, w, elements)
{
    return {
        name: "mul", sign: "×", elements,
        forward(v, l) {
            for (let k = 0; k < l.n * l.length; k++) { v[l.out + k] = v[x(l, k)] * v[w(l, k)]; }
        },
        backward(v, g, l) {
            for (let k = 0; k < l.n * l.length; k++) {
                g[x(l, k)] += g[l.out + k] * v[w(l, k)];
                g[w(l, k)] += g[l.out + k] * v[x(l, k)];
            }
        },
        operands(v, l, k, visit) {
            visit(x(l, k), v[w(l, k)]);
            visit(w(l, k), v[x(l, k)]);
        },
    };
}

const operations = {
    add: {
        name: "add", sign: "+",
        forward(v, { out, n, a, b }) { for (let k = 0; k < n; k++) { v[out + k] = v[a + k] + v[b + k]; } },
        backward(v, g, { out, n, a, b }) {
            for (let k = 0; k < n; k++) { g[a + k] += g[out + k]; g[b + k] += g[out + k]; }
        },
        operands(v, l, k, visit) { visit(l.a + k, 1); visit(l.b + k, 1); },
        elements: (l, i) => within(i, l.b, l.n) ? [...one_to_one(l, i), i - l.b] : one_to_one(l, i),
    },
    mul: {
        name: "mul", sign: "×",
        forward(v, { out, n, a, b }) { for (let k = 0; k < n; k++) { v[out + k] = v[a + k] * v[b + k]; } },
        backward(v, g, { out, n, a, b }) {
            for (let k = 0; k < n; k++) {
                g[a + k] += g[out + k] * v[b + k];
                g[b + k] += g[out + k] * v[a + k];
            }
        },
        operands(v, l, k, visit) { visit(l.a + k, v[l.b + k]); visit(l.b + k, v[l.a + k]); },
        elements: (l, i) => l.a !== l.b && within(i, l.b, l.n) ? [...one_to_one(l, i), i - l.b] : one_to_one(l, i),
    },
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
    // what a silent head gives
    zero: {
        name: "constant", sign: "0",
        forward(v, { out, n }) { v.fill(0, out, out + n); },
        backward() {}, operands() {}, elements: () => [],
    },
    // some of them set to zero: units that are off
    mask: {
        name: "copy", sign: "=",
        forward(v, { out, n, a, off }) { for (let k = 0; k < n; k++) { v[out + k] = off.has(k) ? 0 : v[a + k]; } },
        backward(v, g, { out, n, a, off }) { for (let k = 0; k < n; k++) { g[a + k] += off.has(k) ? 0 : g[out + k]; } },
        operands: (v, l, k, visit) => visit(l.a + k, l.off.has(k) ? 0 : 1),
        elements: one_to_one,
    },
    // a[k] * b, which is one value
    mul_scalar: {
        name: "mul", sign: "×",
        forward(v, { out, n, a, b }) { for (let k = 0; k < n; k++) { v[out + k] = v[a + k] * v[b]; } },
        backward(v, g, { out, n, a, b }) {
            let sum = 0;
            for (let k = 0; k < n; k++) {
                g[a + k] += g[out + k] * v[b];
                sum += g[out + k] * v[a + k];
            }
            g[b] += sum;
        },
        operands(v, l, k, visit) { visit(l.a + k, v[l.b]); visit(l.b, v[l.a + k]); },
        elements: (l, i) => i === l.b ? each(l.n, (k) => k) : one_to_one(l, i),
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
        backward(v, g, { out, n, a, length }) {
            for (let k = 0, i = a; k < n; k++) {
                for (const end = i + length; i < end; i++) { g[i] += g[out + k]; }
            }
        },
        operands(v, l, k, visit) { for (let j = 0; j < l.length; j++) { visit(l.a + k * l.length + j, 1); } },
        elements: (l, i) => within(i, l.a, l.n * l.length) ? [floor((i - l.a) / l.length)] : [],
    },
    // a[j] * b[k][j], row after row
    products: products_of((l, k) => l.a + k % l.length, (l, k) => l.b + floor(k / l.length) * l.stride + k % l.length,
        (l, i) => [...(within(i, l.a, l.length) ? each(l.n, (k) => k * l.length + i - l.a) : []),
            ...in_rows(l, i, (k, j) => k * l.length + j)]),
    // a dot b[k]
    dots: {
        name: "dot", sign: "·",
        forward(v, { out, n, a, b, length, stride }) {
            for (let k = 0; k < n; k++) {
                let sum = 0;
                for (let j = 0, w = b + k * stride; j < length; j++) { sum += v[a + j] * v[w + j]; }
                v[out + k] = sum;
            }
        },
        backward(v, g, { out, n, a, b, length, stride }) {
            for (let k = 0; k < n; k++) {
                const d = g[out + k];
                if (d !== 0) {
                    for (let j = 0, w = b + k * stride; j < length; j++) {
                        g[a + j] += d * v[w + j];
                        g[w + j] += d * v[a + j];
                    }
                }
            }
        },
        operands(v, l, k, visit) {
            for (let j = 0, w = l.b + k * l.stride; j < l.length; j++) {
                visit(l.a + j, v[w + j]);
                visit(w + j, v[l.a + j]);
            }
        },
        elements: (l, i) => within(i, l.a, l.length) ? each(l.n, (k) => k) : in_rows(l, i, (k) => k),
    },
    // a[t] * b[t][j], for each j all t
    shares: products_of((l, k) => l.a + k % l.n, (l, k) => l.b + k % l.n * l.stride + floor(k / l.n),
        (l, i) => [...(within(i, l.a, l.n) ? each(l.length, (j) => j * l.n + i - l.a) : []),
            ...in_rows(l, i, (t, j) => j * l.n + t)]),
    // the sum over t of a[t] * b[t][j]
    mix: {
        name: "dot", sign: "·",
        forward(v, { out, n, a, b, length, stride }) {
            for (let j = 0; j < length; j++) {
                let sum = 0;
                for (let t = 0; t < n; t++) { sum += v[a + t] * v[b + t * stride + j]; }
                v[out + j] = sum;
            }
        },
        backward(v, g, { out, n, a, b, length, stride }) {
            for (let t = 0; t < n; t++) {
                for (let j = 0, w = b + t * stride; j < length; j++) {
                    g[a + t] += g[out + j] * v[w + j];
                    g[w + j] += g[out + j] * v[a + t];
                }
            }
        },
        operands(v, l, j, visit) {
            for (let t = 0, w = l.b + j; t < l.n; t++, w += l.stride) {
                visit(l.a + t, v[w]);
                visit(w, v[l.a + t]);
            }
        },
        elements: (l, i) => within(i, l.a, l.n) ? each(l.length, (j) => j) : in_rows(l, i, (t, j) => j),
    },
};

// The element that uses value i as b[row][col], if it does.
function in_rows(l, i, element)
{
    const row = floor((i - l.b) / l.stride), col = (i - l.b) % l.stride;
    return i >= l.b && row < l.n && col < l.length ? [element(row, col)] : [];
}

const values_made = { products: (l) => l.n * l.length, shares: (l) => l.n * l.length, mix: (l) => l.length };
for (const [name, op] of Object.entries(operations)) {
    op.makes = values_made[name] || ((l) => l.n);
}

// Writes a line and computes it. `out` is a place in another vector, or new.
function record(tape, op, n, a, { b = 0, c = 0, length = 0, stride = 0, out = -1, off = null, part = "" } = {})
{
    let l = tape.lines[tape.n_lines];
    if (!l) {
        l = { op, out: 0, n: 0, a: 0, b: 0, c: 0, length: 0, stride: 0, off: null, stage: null };
        tape.lines[tape.n_lines] = l;
    }
    tape.n_lines++;
    l.op = op;
    l.n = n;
    l.a = a;
    l.b = b;
    l.c = c;
    l.length = length;
    l.stride = stride;
    l.off = off;
    const made = op.makes(l);
    l.out = out < 0 ? room_for(tape, made) : out;
    op.forward(tape.value, l);
    if (tape.named) {
        const cols = op === operations.products ? length : op === operations.shares ? n : 0;
        tape.vectors.push({ at: l.out, n: made, cols, part, stage: null, w: null });
    }
    return l.out;
}

// From the result back to the parameters: each line hands its gradient on to its operands, times the derivative. In
// pieces, so that a page with a large model still answers.
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
