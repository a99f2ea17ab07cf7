// Numbers: what all other scripts share, and Python's random numbers, so that a seed gives what it gives there.
"use strict";

const { abs, ceil, floor, log1p, max, min, round, sqrt } = Math;
const clock = () => performance.now();
const each = (n, f) => Array.from({ length: n }, (_, k) => f(k));
const within = (i, at, n) => i >= at && i < at + n;
const sum_of = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
const mean_of = (numbers) => sum_of(numbers) / numbers.length;

const fail = (text) => { throw new Error(text); };

// Runs something that comes in pieces to its end.
function finish(pieces)
{
    let next = pieces.next();
    while (!next.done) {
        next = pieces.next();
    }
    return next.value;
}

// The state of the Mersenne Twister after Python's seed(): the words of the seed, mixed in twice.
function seeded(seed)
{
    const state = new Uint32Array(624);
    const words = [];
    for (let left = BigInt(seed); left > 0n || !words.length; left >>= 32n) {
        words.push(Number(left & 0xffffffffn));
    }
    const mixed_with = (i, factor) => Math.imul(state[i - 1] ^ (state[i - 1] >>> 30), factor);
    state[0] = 19650218;
    for (let i = 1; i < 624; i++) {
        state[i] = mixed_with(i, 1812433253) + i;
    }
    let i = 1;
    const next = () => {
        if (++i >= 624) {
            state[0] = state[623];
            i = 1;
        }
    };
    for (let k = 0; k < max(624, words.length); k++) {
        state[i] = (state[i] ^ mixed_with(i, 1664525)) + words[k % words.length] + k % words.length;
        next();
    }
    for (let k = 0; k < 623; k++) {
        state[i] = (state[i] ^ mixed_with(i, 1566083941)) - i;
        next();
    }
    state[0] = 0x80000000;
    return state;
}

function twist(state)
{
    for (let k = 0; k < 624; k++) {
        const y = (state[k] & 0x80000000) | (state[(k + 1) % 624] & 0x7fffffff);
        state[k] = state[(k + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
}

// Python's generator: random(), gauss(mean, std), below(n).
function new_random(seed)
{
    const state = seeded(seed);
    let at = 624;
    let spare = null;
    const word = () => {
        if (at === 624) {
            twist(state);
            at = 0;
        }
        let y = state[at++];
        y ^= y >>> 11;
        y ^= (y << 7) & 0x9d2c5680;
        y ^= (y << 15) & 0xefc60000;
        return (y ^ (y >>> 18)) >>> 0;
    };
    const random = () => ((word() >>> 5) * 67108864 + (word() >>> 6)) / 9007199254740992;
    const gauss = (mean, std) => {
        let z = spare;
        spare = null;
        if (z === null) {
            const angle = random() * 2 * Math.PI;
            const radius = sqrt(-2 * Math.log(1 - random()));
            z = Math.cos(angle) * radius;
            spare = Math.sin(angle) * radius;
        }
        return mean + z * std;
    };
    const below = (n) => {
        const bits = 32 - Math.clz32(n);
        let r = n;
        while (r >= n) {
            r = word() >>> (32 - bits);
        }
        return r;
    };
    return { random, gauss, below };
}
