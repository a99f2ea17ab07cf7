/* predictions.c: what the model says comes next, and what is drawn of it. */
#define _XOPEN_SOURCE 700
#include "views.h"
#include "../run/job.h"

#include <math.h>
#include <stdlib.h>

// Finds which of n sizes are the largest, in order. Returns how many: `most`, or all n.
size_t rank(const double *size, size_t n, size_t best[], size_t most)
{
    size_t n_best = 0;
    for (size_t k = 0; k < n; k++) {
        size_t i = n_best < most ? n_best++ : most;
        for (; i > 0 && size[k] > size[best[i - 1]]; i--) {
            if (i < most) best[i] = best[i - 1];
        }
        if (i < most) best[i] = k;
    }
    return n_best;
}

// The probabilities after a position. Where softmax has not run yet, as it would compute them: in a
// sample, with the temperature.
void find_probs(const Place *logits, const Place *probs, double *p)
{
    double total = 0, max = logits->at[0], temperature = watched.run->config->temperature;
    if (!sampling() || temperature <= 0) temperature = 1;
    for (size_t i = 1; i < logits->n; i++) max = fmax(max, logits->at[i]);
    for (size_t i = 0; i < logits->n; i++) {
        p[i] = exp((logits->at[i] - max) / temperature);
        total += p[i];
    }
    for (size_t i = 0; i < logits->n; i++) p[i] = probs ? probs->at[i] : p[i] / total;
}

// The five likeliest tokens, and the true one: its place in the order, and a number from each
// column.
void show_ranking(const double *p, const Place *logits, int n_columns, const double *const column[])
{
    size_t best[6], n = rank(p, logits->n, best, 5);
    size_t truth = sampling() ? SIZE_MAX : watched.model->tokens[logits->position + 1];
    bool among = sampling();
    for (size_t i = 0; i < n; i++) among = among || best[i] == truth;
    if (!among) best[n] = truth;
    for (size_t i = 0; i < n + !among; i++) {
        size_t token = best[i];
        if (i < n) print("  %zu. ", i + 1);
        print(i < n ? " %-4s   " : "  -   %-4s   ", token_text(token));
        for (int c = 0; c < n_columns; c++) number(column[c][token]);
        if (token == truth) print("  true: loss %.*g", watched.digits, -log(p[token]));
        print("\n");
    }
}

// The likeliest next tokens, and the true one.
void show_top(const Question *q)
{
    const Place *logits = need_place("logits", q->number[0]);
    if (!logits) return;
    const Place *probs = find_place("probs", logits->position);
    const Place *scores = probs ? operand_of(probs) : NULL;
    double *p = malloc(logits->n * sizeof *p);
    if (!p) abort();
    find_probs(logits, probs, p);
    bool sample = scores && scores != logits;  // the logits over the temperature
    const double *const columns[] = {logits->at, sample ? scores->at : p, p};
    print("after position %d (%s), the likeliest next\n", logits->position,
          text_at(logits->position));
    head_of("           ", "logit", sample ? scores->name : "probability",
            sample ? "probability" : NULL, NULL);
    show_ranking(p, logits, sample ? 3 : 2, columns);
    free(p);
}

// A uniform number against the running sums of the probabilities.
static void show_drawing(const Place *probs)
{
    Random random = notes.random;
    double total = 0, sum = 0, uniform = random_uniform(&random);
    for (size_t i = 0; i < probs->n; i++) total += probs->at[i];
    print("  the number drawn, uniform between 0 and 1: %.*g\n", watched.digits, uniform);
    print("  the first token whose running sum is above it is the next\n");
    head_of("       ", "probability", "running sum", NULL);
    size_t chosen = 0;
    double so_far = probs->at[0];
    while (so_far <= uniform * total && chosen + 1 < probs->n) so_far += probs->at[++chosen];
    for (size_t i = 0; i < probs->n; i++) {
        sum += probs->at[i];
        if (i + 3 < chosen || i > chosen + 2) continue;  // its neighbors
        print("  %3zu %-4s", i, token_text(i));
        number(probs->at[i]);
        number(sum);
        print("%s\n", i == chosen ? "  <- drawn" : "");
    }
}

// While sampling: how the next token is chosen.
void show_draw(const Question *q)
{
    (void)q;
    const Job *job = watched.run->job;
    const Place *probs = find_place("probs", LATEST);
    if (!sampling() || !probs || probs->position != latest_position()) {
        print("There is nothing to draw from here: stop where a sample chooses, `tbreak "
              "choose_token`.\n");
        return;
    }
    size_t position = (size_t)probs->position;
    print("after position %zu (%s)\n", position, text_at((int)position));
    if (position < job->samples.prompt.length)
        print("  The prompt decides: %s\n", token_text(job->samples.prompt.tokens[position]));
    else if (job->o.greedy)
        print("  Temperature 0: the likeliest, %s\n", token_text(argmax(probs->at, probs->n)));
    else
        show_drawing(probs);
}
