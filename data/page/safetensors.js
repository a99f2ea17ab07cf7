// The model file: safetensors, as any tool reads it, and the model in it. A model is one object, an argument of all
// that computes with it: sizes and vocabulary under the names of microgpt.c, the place of each matrix, and the numbers.
"use strict";

// parameters that a page can hold
const LARGEST = 1e6;

function decode(base64)
{
    const characters = atob(base64);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) {
        bytes[i] = characters.charCodeAt(i);
    }
    return bytes;
}

// A safetensors file: a length, a header in JSON, then the numbers. Returns {meta, numbers(name, rows, cols)}.
function read_safetensors(bytes)
{
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const length = bytes.length < 8 ? Infinity : Number(view.getBigUint64(0, true));
    if (length > bytes.length - 8) {
        fail("this is no model file: its header is cut off");
    }
    let header = null;
    try {
        header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    } catch {
        fail("this is no model file: its header is no JSON");
    }
    const about = new Map(Object.entries(header || {}));
    const numbers = (name, rows, cols) => {
        const tensor = about.get(name);
        if (!tensor) {
            return null;
        }
        const [from, to] = tensor.data_offsets || [];
        if (tensor.dtype !== "F64" || String(tensor.shape) !== `${rows},${cols}`) {
            fail(`the tensor ${name} is not ${rows} × ${cols} of F64`);
        }
        if (to - from !== 8 * rows * cols || !(from >= 0) || 8 + length + to > bytes.length) {
            fail(`the tensor ${name} is not whole`);
        }
        return new Float64Array(bytes.slice(8 + length + from, 8 + length + to).buffer);
    };
    return { meta: about.get("__metadata__") || {}, numbers };
}

// The model of a file: throws what is wrong with it.
function read_model(bytes)
{
    const { meta, numbers } = read_safetensors(bytes);
    const model = read_sizes(meta);
    lay_out_parameters(model);
    if (model.num_params > LARGEST) {
        fail(`it is too large for a page: ${model.num_params} parameters, and the limit is ${LARGEST}`);
    }
    const all_of = (prefix) => {
        const all = new Float64Array(model.num_params);
        for (const w of model.matrices) {
            const some = numbers(prefix + w.name, w.rows, w.cols);
            if (!some && !prefix) {
                fail(`the tensor ${w.name} is missing`);
            }
            if (!some) {
                return null;
            }
            all.set(some, w.at);
        }
        return all;
    };
    model.params = all_of("");
    const [m, v] = [all_of("train.m."), all_of("train.v.")];
    if (!m || !v) {
        model.missing.push("Adam's means");
    }
    model.m = m || new Float64Array(model.num_params);
    model.v = v || new Float64Array(model.num_params);
    model.training = read_training(meta, model.missing);
    return model;
}

// The sizes of a model and its characters. `missing` lists what the file does not say of its training.
function read_sizes(meta)
{
    const whole = (name) => {
        const n = Number(meta[name]);
        if (!(Number.isInteger(n) && n >= 1)) {
            fail(`the file does not say its ${name}`);
        }
        return n;
    };
    if (typeof meta.vocab !== "string") {
        fail("the file does not say its vocab");
    }
    const activation = meta.activation ?? "relu";
    if (activation !== "relu" && activation !== "relu2") {
        fail(`this page does not know the activation ${activation}`);
    }
    const n_embd = whole("n_embd");
    const n_head = whole("n_head");
    if (n_embd % n_head) {
        fail("its n_embd is not divisible by its n_head");
    }
    const uchars = Array.from(meta.vocab);
    return {
        meta, missing: [], activation, uchars,
        n_layer: whole("n_layer"), n_embd, n_head, block_size: whole("block_size"), head_dim: n_embd / n_head,
        BOS: uchars.length, vocab_size: uchars.length + 1, token_of: new Map(uchars.map((c, i) => [c, i])),
        step: Number(meta["train.step"]) || 0,
    };
}

// The matrices of a layer, as in the state dict: a short name, rows and columns in units of n_embd.
const LAYER = [["attn_wq", "wq", 1, 1], ["attn_wk", "wk", 1, 1], ["attn_wv", "wv", 1, 1], ["attn_wo", "wo", 1, 1],
               ["mlp_fc1", "fc1", 4, 1], ["mlp_fc2", "fc2", 1, 4]];

// All numbers are in one row, first on every tape: `at` is where a matrix begins.
function lay_out_parameters(model)
{
    const { n_layer, n_embd, block_size, vocab_size } = model;
    const state_dict = Object.create(null);
    model.num_params = 0;
    const matrix = (own, short_name, rows, cols, layer = null) => {
        const name = layer === null ? own : `layer${layer}.${own}`;
        const is_output = own === "attn_wo" || own === "mlp_fc2";
        state_dict[name] = { name, own, short: short_name, rows, cols, at: model.num_params, layer, is_output };
        model.num_params += rows * cols;
    };
    matrix("wte", "wte", vocab_size, n_embd);
    matrix("wpe", "wpe", block_size, n_embd);
    matrix("lm_head", "lm_head", vocab_size, n_embd);
    for (let li = 0; li < n_layer; li++) {
        for (const [name, short_name, rows, cols] of LAYER) {
            matrix(name, short_name, rows * n_embd, cols * n_embd, li);
        }
    }
    model.state_dict = state_dict;
    model.matrices = Object.values(state_dict);
}

const copy_of = (model) =>
    ({ ...model, params: model.params.slice(), m: model.m.slice(), v: model.v.slice() });

// BOS, the word, BOS, cut to what fits the block: all tokens that are predicted, and BOS before them.
function take_document(model, word, longest = model.block_size)
{
    const chars = Array.from(word);
    const n = min(chars.length + 1, model.block_size, longest);
    const tokens = [model.BOS];
    for (let i = 0; i < n; i++) {
        const token = i < chars.length ? model.token_of.get(chars[i]) : model.BOS;
        if (token === undefined) {
            fail(`the model does not know the character ${chars[i]}`);
        }
        tokens.push(token);
    }
    return tokens;
}

// What the model can read of a text: capitals become small where that helps, the rest is left out.
function readable(model, text)
{
    const out = [];
    let word = "";
    let is_folded = false;
    for (const c of text) {
        const small = c.toLowerCase();
        if (model.token_of.has(c)) {
            word += c;
        } else if (model.token_of.has(small)) {
            word += small;
            is_folded = true;
        } else {
            out.push(c);
        }
    }
    return { word, is_folded, out };
}
