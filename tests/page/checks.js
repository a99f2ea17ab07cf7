// The checks of the tests in node: a line each, as in the tests in sh.
"use strict";
let about = "";

function check(what, good, wanted, seen)
{
    console.log(good ? `ok - ${about}${what}` : `not ok - ${about}${what}: expected ${wanted}, saw ${seen}`);
}

function same(what, wanted, seen)
{
    const [expected, found] = [wanted, seen].map((x) => JSON.stringify(x));
    check(what, expected === found, expected, found);
}

// Two lists of numbers; one line for all of them, which tells the first that is off.
function same_numbers(what, wanted, seen, tolerance = 1e-12)
{
    const off = wanted.findIndex((x, i) => !(Math.abs(seen[i] - x) <= tolerance * Math.max(1, Math.abs(x))));
    check(`${what} (${wanted.length} figures, to ${tolerance})`,
        wanted.length === seen.length && wanted.length > 0 && off < 0,
        `${wanted.length} figures, number ${off} ${wanted[off]}`, `${seen.length}, and ${seen[off]}`);
}

module.exports = { check, same, same_numbers, begin: (name) => { about = `${name}: `; } };
