// The walk: nine stops. Each sets its scene, outlines one target, says what to do, and ends in a sentence with the
// figures just made.
"use strict";

const middle_of = () => min(max(1, state.shown.n - 3), state.shown.n - 1);
const some_head = () => min(2, state.model.n_head - 1);
const name_here = (kind, head = null) => stage_name(state.model, kind, state.choice.layer, head);

// Scenes: the first screen, a section, or a value, with these choices.
const at_top = (change) => () => {
    update({ value: null, votes: null, ...change() }, { replace: true });
    scroll_to_top();
};
const at_section = (id) => () => {
    update({ value: null, votes: null }, { replace: true });
    scroll_into_view(by_id(id), "start");
};
const at_value = (value) => () => update({ votes: null, value: value() }, { replace: true, show: true });

// The score of the head at hand that is chosen; at first its largest.
function score_here()
{
    const { shown: { tape }, choice: { pos, value } } = state;
    const name = name_here(KINDS.attn_logits, some_head());
    const scores = numbers_of(tape, place_of(tape, name, 0, pos), pos + 1);
    const [chosen, i] = split_value(value || "");
    const key = chosen === name ? min(i, pos) : scores.indexOf(max(...scores));
    return { name, key, score: scores[key] };
}

const STOPS = [
    {
        title: "Guess", says: () => "After every character the model guesses the next one.",
        todo: () => "choose another letter and see what it expects",
        scene: at_top(() => ({ pos: middle_of() })), target: ".tile.here",
        ends: () => {
            const { id, share } = best_at(state.choice.pos);
            const where = state.choice.pos ? `After ${isolated(before_text(state.choice.pos))}` : "At the start";
            return `${where} it expects ${for_whom(id)}, at ${percent(share)}.`;
        },
    },
    {
        title: "Surprise", says: () => "The loss is small when the guess was right and large when it was not.",
        todo: () => `add ${state.model.token_of.has("x") ? "an x" : `a ${isolated(token_text(0))}`} at the end`,
        scene: at_top(() => ({})), target: "#word-loss",
        ends: () => {
            const { tape, losses, loss, tokens } = state.shown;
            const all = losses.map((at) => tape.value[at]);
            const pos = all.indexOf(max(...all));
            return `The mean is ${tape.value[loss].toFixed(2)}; ${for_whom(tokens[pos + 1])} surprises it most, ` +
                `with ${all[pos].toFixed(2)}.`;
        },
    },
    {
        title: "Who looks where", says: () => "Each head looks back at some of the characters before.",
        todo: () => "choose another head in the list",
        scene: at_top(() => ({ head: some_head() })), target: "#tiles-box",
        ends: () => {
            const { layer, pos, head } = state.choice;
            const row = rows_of_weights(layer, head ?? some_head());
            const most = max(...row);
            return `From ${letter_at(pos)}, head ${head ?? some_head()} looks at ${letter_at(row.indexOf(most))}, ` +
                `with ${percent(most)}.`;
        },
    },
    {
        title: "Query times key",
        says: () => `A head looks where its query fits a key: ${plural(state.model.head_dim, "product")} and a sum.`,
        todo: () => "choose another score",
        scene: at_value(() => `${score_here().name}.${score_here().key}`), target: ".stage .cell.chosen",
        ends: () => {
            const { key, score } = score_here();
            const share = rows_of_weights(state.choice.layer, some_head())[key];
            return `The score for ${letter_at(key)} is ${short(score)}: ${percent(share)} of its attention.`;
        },
    },
    {
        title: "Values mixed", says: () => "What a head finds there is mixed, each value by its share.",
        todo: () => "silence head 0 with its switch and watch the figures",
        scene: at_section("heads"), target: ".head-card",
        ends: () => {
            const { losses, version } = state.worth;
            return version === state.version && losses.length
                ? `Without head 0 the loss of this word changes by ${signed(losses[0])}.` : "…";
        },
    },
    {
        title: "Votes", says: () => "All that follows is a sum: each head and unit votes for the next letter.",
        todo: () => "choose another guess",
        scene: () => open_votes(state.choice.pos, best_at(state.choice.pos).id), target: ".votes",
        ends: () => {
            const id = state.choice.votes ?? best_at(state.choice.pos).id;
            const { others: [most], logit } = rows_of_votes(id);
            return `${says_of(most)}, votes ${vote_text(most.vote)} for ${for_whom(id)}; ` +
                `the sum is ${vote_text(logit)}.`;
        },
    },
    {
        title: "The MLP",
        says: () => `${count(4 * state.model.n_embd)} units look for patterns, and most of them are silent.`,
        todo: () => "type another word and see which ones fire",
        scene: at_section("units"), target: ".unit-grid",
        ends: () => {
            const { at, n } = find_vector(state.shown.tape, name_here(KINDS.act), state.choice.pos);
            const some = numbers_of(state.shown.tape, at, n).filter((x) => x > 0).length;
            return `At ${letter_at(state.choice.pos)}, ${some} of ${n} fire.`;
        },
    },
    {
        title: "A gradient", says: () => "It says how the loss moves when this number moves a little.",
        todo: () => "drag the number until the dash and the bar part",
        scene: at_value(() => `${name_here(KINDS.q)}.0`), target: "#hand",
        ends: () => {
            const { really, said } = loss_moved();
            const gradient = short(state.shown.tape.grad[max(0, chosen_place())]);
            return state.edit ? `Really ${signed(really)}; its gradient said ${signed(said)}.`
                : `Its gradient is ${gradient}: 0.1 more should change the loss by a tenth of that.`;
        },
    },
    {
        title: "One step of Adam", says: () => "Every number moves a little, against its gradient.",
        todo: () => "take one step and see the loss of the word",
        scene: at_section("learn"), target: "#step-on-word",
        ends: () => {
            const { run: { on_word }, shown: { tape, loss } } = state;
            const now = tape.value[loss].toFixed(3);
            return on_word.length ? `The loss of the word went from ${on_word[0].loss.toFixed(3)} to ${now}.`
                : `The loss of the word is ${now} now.`;
        },
    },
];

function draw_walk()
{
    const { walk } = state.choice;
    const stop = STOPS[walk - 1];
    if (!stop || state.run.playing) {
        return [];
    }
    const last = STOPS.length;
    return [h(".wide",
        h("p", { role: "status" }, h("span.soft.number.small", `${walk} of ${last}  `), h("b", `${stop.title}. `),
            stop.says(), " ", h("span.do", `Do: ${stop.todo()}.`), " ", h("span.ends", stop.ends())),
        h(".tools",
            walk === last ? button("walk-step", "One step", step_on_word, { key: "step" }) : "",
            button("walk-back", "Back", () => walk_to(walk - 1), { disabled: walk === 1 }),
            button("walk-next", walk === last ? "Done" : "Next", () => walk_to(walk === last ? 0 : walk + 1),
                { class: " main-button" }),
            link("Leave", () => walk_to(0), { id: "walk-leave" })))];
}

function mark_target()
{
    const stop = STOPS[state.choice.walk - 1];
    const target = stop && document.querySelector(stop.target);
    document.querySelectorAll("[data-walk]").forEach((e) => e !== target && e.removeAttribute("data-walk"));
    if (target) {
        target.setAttribute("data-walk", "");
    }
    return target;
}

function walk_to(n)
{
    pause();
    update({ walk: n });
    follow_walk();
}

// The scene of the stop, with its target clear of both bars and of the card.
function follow_walk()
{
    const { walk } = state.choice;
    by_id("walk").hidden = !walk;
    draw("walk");
    document.documentElement.style.setProperty("--walk", walk ? `${by_id("walk").offsetHeight}px` : "0px");
    if (!walk) {
        return;
    }
    STOPS[walk - 1].scene();
    draw("walk");
    const target = mark_target();
    if (target && !target.closest("#panel")) {
        scroll_into_view(target, "nearest");
    }
}
