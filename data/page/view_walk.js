// The walk: nine stops. Each sets its scene, outlines one target, says what to do, and ends in a sentence with the
// figures just made.
"use strict";

const middle_of = () => min(max(1, state.shown.n - 3), state.shown.n - 1);
const some_head = () => min(2, state.model.n_head - 1);
const end_or = (id) => id === state.model.BOS ? "the end" : isolated(token_text(id));
const to_top = (change) =>
    () => { update({ value: null, votes: null, ...change() }, { replace: true }); scroll_to_top(); };
const to_section = (id) => () => {
    update({ value: null, votes: null }, { replace: true });
    scroll_into_view(by_id(id), "start");
};

const STOPS = [
    {
        title: "Guess", says: () => "After every character the model guesses the next one.",
        todo: () => "choose another letter and see what it expects",
        scene: to_top(() => ({ pos: middle_of() })), target: () => `.tile:nth-child(${state.choice.pos + 1})`,
        ends: () => {
            const { id, share } = best_at(state.choice.pos);
            const where = state.choice.pos ? `After ${isolated(before_text(state.choice.pos))}` : "At the start";
            return `${where} it expects ${end_or(id)}, at ${percent(share)}.`;
        },
    },
    {
        title: "Surprise", says: () => "The loss is small when the guess was right and large when it was not.",
        todo: () => `add ${state.model.token_of.has("x") ? "an x" : `a ${isolated(token_text(0))}`} at the end`,
        scene: to_top(() => ({})), target: () => "#word-loss",
        ends: () => {
            const { tape, losses, loss, n } = state.shown;
            const all = losses.map((at) => tape.value[at]);
            const pos = all.indexOf(max(...all));
            const next = pos + 1 < n ? isolated(seen_text(pos + 1)) : end_or(state.shown.tokens[n]);
            const mean = tape.value[loss].toFixed(2);
            return `The mean is ${mean}; ${next} surprises it most, with ${all[pos].toFixed(2)}.`;
        },
    },
    {
        title: "Who looks where", says: () => "Each head looks back at some of the characters before.",
        todo: () => "choose another head in the list",
        scene: to_top(() => ({ head: some_head() })), target: () => "#tiles-box",
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
        scene: () => {
            const name = stage_name(state.model, KINDS.attn_logits, state.choice.layer, some_head());
            const scores = numbers_of(state.shown.tape, place_of(state.shown.tape, name, 0, state.choice.pos),
                state.choice.pos + 1);
            update({ votes: null, value: `${name}.${scores.indexOf(max(...scores))}` }, { replace: true, show: true });
        },
        target: () => ".stage .cell.chosen",
        ends: () => {
            const name = stage_name(state.model, KINDS.attn_logits, state.choice.layer, some_head());
            const [chosen, i] = split_value(state.choice.value || `${name}.0`);
            const key = chosen === name ? min(i, state.choice.pos) : 0;
            const at = place_of(state.shown.tape, name, key, state.choice.pos);
            const share = rows_of_weights(state.choice.layer, some_head())[key];
            const score = short(state.shown.tape.value[at]);
            return `The score for ${letter_at(key)} is ${score}: ${percent(share)} of its attention.`;
        },
    },
    {
        title: "Values mixed", says: () => "What a head finds there is mixed, each value by its share.",
        todo: () => "silence head 0 with its switch and watch the figures",
        scene: to_section("heads"), target: () => ".head-card",
        ends: () => {
            const { losses, version } = state.worth;
            const change = version === state.version && losses.length ? losses[0] : null;
            return change === null ? "…" : `Without head 0 the loss of this word changes by ${signed(change)}.`;
        },
    },
    {
        title: "Votes", says: () => "All that follows is a sum: each head and unit votes for the next letter.",
        todo: () => "choose another guess",
        scene: () => open_votes(state.choice.pos, best_at(state.choice.pos).id), target: () => ".votes",
        ends: () => {
            const id = state.choice.votes ?? best_at(state.choice.pos).id;
            const { others, logit } = rows_of_votes(id);
            const [most] = others;
            return `${most.names().says}, votes ${vote_text(most.vote)} for ${end_or(id)}; ` +
                `the sum is ${vote_text(logit)}.`;
        },
    },
    {
        title: "The MLP", says: () =>
            `${count(4 * state.model.n_embd)} units look for patterns, and most of them are silent.`,
        todo: () => "type another word and see which ones fire",
        scene: to_section("units"), target: () => ".unit-grid",
        ends: () => {
            const { at, n } = find_vector(state.shown.tape,
                stage_name(state.model, KINDS.act, state.choice.layer, null),
                state.choice.pos);
            const some = numbers_of(state.shown.tape, at, n).filter((x) => x > 0).length;
            return `At ${letter_at(state.choice.pos)}, ${some} of ${n} fire.`;
        },
    },
    {
        title: "A gradient", says: () => "It says how the loss moves when this number moves a little.",
        todo: () => "drag the number until the dash and the bar part",
        scene: () => update({ votes: null, value: `${stage_name(state.model, KINDS.q, state.choice.layer, null)}.0` },
            { replace: true, show: true }),
        target: () => "#hand",
        ends: () => {
            const { shown: { tape, loss }, edit } = state;
            const values = computed(state.shown);
            const at = edit ? edit.at : max(0, chosen_place());
            return edit ? `Really ${signed(tape.value[loss] - values[loss])}; its gradient said ` +
                `${signed(tape.grad[at] * (tape.value[at] - values[at]))}.`
                : `Its gradient is ${short(tape.grad[at])}: 0.1 more should change the loss by a tenth of that.`;
        },
    },
    {
        title: "One step of Adam", says: () => "Every number moves a little, against its gradient.",
        todo: () => "take one step and see the loss of the word",
        scene: () => {
            update({ value: null, votes: null }, { replace: true });
            draw_all_above(by_id("heads"));
            scroll_into_view(by_id("step-on-word"), "nearest");
        },
        target: () => "#step-on-word",
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
            walk === last ? h("button.button", { onclick: step_on_word }, "One step") : "",
            h("button.button", { id: "walk-back", disabled: walk === 1, onclick: () => walk_to(walk - 1) }, "Back"),
            h("button.button.main-button", { id: "walk-next", onclick: () => walk_to(walk === last ? 0 : walk + 1) },
                walk === last ? "Done" : "Next"),
            h("button.link", { id: "walk-leave", onclick: () => walk_to(0) }, "Leave")))];
}

// The target of the stop, outlined.
function mark_target()
{
    const stop = STOPS[state.choice.walk - 1];
    const target = stop && document.querySelector(stop.target());
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
