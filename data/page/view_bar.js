// The bar: word, characters, the axis of time.
"use strict";

const SPEEDS = ["1×", "3×", "8×"];
// labels of the axis of time, after 0
const POWERS = [10, 100, 1000, 10000, 100000];

function draw_chips()
{
    return each(is_wide(48) ? state.shown.n : 0, (pos) => h("button", {
        pressed: pos === state.choice.pos, label: `position ${pos}: ${seen_text(pos)}`,
        onclick: () => update({ pos }),
    }, glyph(seen_text(pos))));
}

const ICONS = {
    play: "M5 2v14l11-7z", pause: "M4 2h4v14H4zM10 2h4v14h-4z", step: "M3 3v12l8-6zM12 3h3v12h-3z",
    again: "M9 1.5V0L5 3l4 3V4.3A5 5 0 1 1 4.1 9H2.3A6.8 6.8 0 1 0 9 1.5zM7.5 6.3v5.4L12 9z",
};
const icon = (name) => s("svg", { viewBox: "0 0 18 18", ...HIDDEN }, s("path", { d: ICONS[name] }));
const time_x = (step, width) => 8 + (width - 42) * share_of(step);

// The axis of time: what is learned, the moments that are kept for the film, now, and the file at the end.
function draw_track(width)
{
    const last = run_length();
    const y = 13;
    const x = (step) => time_x(step, width);
    const { run, model } = state;
    const now = run.playing ? run.playing.step : model.step;
    const is_at_file = at_file() && !run.playing;
    const labels = (width < 200 ? [100] : POWERS).filter((step) => x(step) > x(0) + 40 && x(step) < x(last) - 58);
    const end = width - 12;
    const line = { x: 2, y: y - 3.5, height: 7, rx: 3.5 };
    return s("svg", HIDDEN,
        s("rect", { ...line, width: max(1, x(last) - 2), fill: "var(--raised)", stroke: LINE }),
        s("rect", { ...line, width: max(1, x(learned_steps()) - 2), fill: "var(--learned)" }),
        is_at_file ? "" : s("rect", { key: "past", ...line, width: max(1, x(now) - 2), fill: ACCENT }),
        run.film.map((step) => s("circle", { key: `d${step}`, cx: x(step), cy: y, r: 2,
            fill: step <= learned_steps() ? INK : RULE })),
        repeat_step() < last ? s("path", { key: "repeat", d: `M${x(repeat_step())} ${y - 8}v16`, stroke: INK,
            "stroke-width": 1.5 }, s("title", repeats_text())) : "",
        is_at_file ? s("circle", { key: "on", cx: end, cy: y, r: 10, fill: ACCENT })
            : s("circle", { key: "at", cx: x(now), cy: y, r: 8, fill: ACCENT, stroke: PAPER, "stroke-width": 2 }),
        s("path", { d: `M${end} ${y - 6}l6 6-6 6-6-6z`, fill: is_at_file ? "var(--on-accent)" : INK }),
        s("text", { x: x(0) - 4, y: 38 }, "0"),
        labels.map((step) => s("text", { key: `t${step}`, x: x(step), y: 38, "text-anchor": "middle" }, count(step))),
        s("text", { key: "file", x: width, y: 38, "text-anchor": "end", style: "fill: var(--ink)" },
            s("tspan", { style: "fill: var(--soft)" }, `${count(last)} `), "file"));
}

const repeats_text = () => `from here ${noun(2)} repeat`;

// The first step that reads a document of the page a second time, though the program went on to others.
function repeat_step()
{
    const { file, stored } = state;
    const n = documents_in_turn(stored, file.documents, file.n_documents);
    return n ? floor(n / stored.training.batch) : Infinity;
}

function draw_time()
{
    const width = max(60, width_of("track", 200));
    const { run, model } = state;
    const label = run.playing ? "Pause" : at_file() ? "Watch it learn from the start" : "Play";
    const speed = `Speed ${SPEEDS[run.speed]}: the whole run in ${SECONDS[run.speed]} seconds`;
    return [
        h("button.play", { id: "play", label, title: label, disabled: !can_run(), style: can_run() ? "" : "opacity: .4",
                           class: run.playing && run.playing.waits ? " waits" : "",
                           onclick: play_or_pause },
            icon(run.playing ? "pause" : at_file() ? "again" : "play")),
        is_wide(48) ? h("button.step", { id: "one-step", label: "One step", onclick: one_step,
            title: at_file() ? "One step: learn from this word" : "One step" }, icon("step")) : "",
        is_wide(48) ? h("button.speed", { id: "speed", label: speed, title: speed, onclick: next_speed },
            SPEEDS[run.speed]) : "",
        h(".track", {
            id: "track", tabindex: 0, role: "slider", label: "moment of the training",
            "aria-valuemin": 0, "aria-valuemax": run_length(), "aria-valuenow": min(run_length(), model.step),
            "aria-valuetext": at_file() ? `the file, step ${count(model.step)}` : `step ${count(model.step)}`,
            onpointerdown: drag_time, onkeydown: time_key,
        }, draw_track(width)),
        draw_now(),
        is_wide(64) ? button("forget", "Forget everything", forget_everything, { disabled: !can_run(),
            title: "Back to random numbers. The file stays one click away." }) : "",
    ];
}

function draw_now()
{
    const loss = loss_so_far();
    const { playing } = state.run;
    return h(".now", { id: "now", role: playing ? null : "status" },
        state.edit ? [h(".soft", "changed"), link("undo", undo_edit)]
            : playing && playing.waits ? [h("", "learning …"), h("", h("span.soft", "step "), count(learned_steps()))]
            : [h("", h("span.soft", "step "), count(state.model.step)),
               loss === null ? "" : h("", h("span.soft", "loss "), loss.toFixed(2))]);
}

// The other speeds: the film goes on from the same moment.
function next_speed()
{
    const { run } = state;
    run.speed = (run.speed + 1) % SECONDS.length;
    if (run.playing) {
        Object.assign(run.playing, { from: share_of(run.playing.step), since: clock() });
    }
    redraw("time", "next");
}

const moment_now = () => at_file() ? "file" : state.model.step;

function drag_time(e)
{
    const box = box_of(e.currentTarget);
    const move = ({ clientX }) => {
        const distance = (step) => abs(box.left + time_x(step, box.width) - clientX);
        const nearest = clientX > box.right - 22 ? "file" : kept_steps().sort((a, b) => distance(a) - distance(b))[0];
        if (nearest !== undefined && nearest !== moment_now()) {
            seek(nearest);
        }
    };
    pause();
    follow_pointer(e, move);
    move(e);
}

function time_key(e)
{
    const now = moment_now();
    const earlier = kept_steps().filter((step) => now === "file" || step < now).at(-1);
    const later = now === "file" ? undefined : kept_steps().find((step) => step > now) ?? "file";
    const to = { ArrowLeft: earlier, ArrowDown: earlier, ArrowRight: later, ArrowUp: later, Home: kept_steps()[0],
                 End: "file" }[e.key];
    if (e.key === " ") {
        play_or_pause();
    } else if (to !== undefined) {
        pause();
        seek(to);
    } else if (!e.key.startsWith("Arrow")) {
        return;
    }
    e.preventDefault();
    e.stopPropagation();
}

const play_or_pause = () => state.run.playing ? pause() : play();
const forget_everything = () => {
    pause();
    forget();
};
