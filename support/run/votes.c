/* votes.c: who votes for a character. A logit is a row of lm_head times a sum: what the position
 * reads, each value that a head takes over, each hidden unit of an MLP. So the logit is a sum of
 * products, one for each of them. A vote is such a product, less what the same voter gives the
 * average character: at each position the votes for a character add up to its logit less the mean.
 */
#define _XOPEN_SOURCE 700
#include "job.h"

typedef enum { SELF, HEAD, UNIT, OTHERS } Voter;
typedef struct {
    Voter kind;
    size_t layer, index;  // of a head, or of a hidden unit
    size_t looks_at;      // the position that a head takes a value from
    double weight;        // how much of it
    double vote;
} Vote;

// The votes at one position for one character.
typedef struct {
    const Model *model;
    size_t n;         // positions of the word
    size_t from, to;  // entries of this position; entry `to` applies lm_head
    double *mean;     // [n_embd] the mean row of lm_head
    double *u;        // [n_embd] the character's row, less the mean
    double *through;  // [4 * n_embd] u, read through a matrix
    Vote *list;       // [n_votes] SELF first; room for max_votes, and one more
    size_t n_votes, max_votes;
} Votes;

static void free_votes(Votes *v)
{
    free(v->mean);
    free(v->list);
}

static bool new_votes(Votes *v, const Model *model, size_t n)
{
    size_t n_mlp = 4 * model->n_embd, n_embd = model->n_embd;
    *v = (Votes){.model = model, .n = n};
    v->max_votes = 1 + model->n_layer * (model->n_head * n + n_mlp);
    v->mean = calloc(2 * n_embd + n_mlp, sizeof *v->mean);
    v->list = calloc(v->max_votes + 1, sizeof *v->list);
    if (!v->mean || !v->list) {
        free_votes(v);
        return no_memory();
    }
    v->u = v->mean + n_embd;
    v->through = v->u + n_embd;
    for (size_t i = 0; i < model->vocab_size * n_embd; i++) {
        v->mean[i % n_embd] += model->lm_head->data[i] / (double)model->vocab_size;
    }
    return true;
}

static void add_vote(Votes *v, Vote vote)
{
    if (v->n_votes < v->max_votes) v->list[v->n_votes++] = vote;
}

// through[c] = sum_r u[r] * w[r][first + c]: what the input of w does for the character.
static void read_through(Votes *v, const Matrix *w, size_t first, size_t n)
{
    memset(v->through, 0, n * sizeof *v->through);
    for (size_t r = 0; r < w->rows; r++) {
        for (size_t c = 0; c < n; c++) v->through[c] += v->u[r] * w->data[r * w->cols + first + c];
    }
}

static void add_head(Votes *v, const Attention *head)
{
    const Entry *sum = head->sum;
    size_t head_dim = v->model->head_dim;
    read_through(v, v->model->layers[head->layer].attn_wo, head->head * head_dim, head_dim);
    for (size_t i = 0; i < sum->n; i++) {
        double vote = 0;
        for (size_t j = 0; j < head_dim; j++) vote += v->through[j] * sum->b[i * sum->stride + j];
        add_vote(
            v, (Vote){HEAD, head->layer, head->head, head->first + i, sum->a[i], sum->a[i] * vote});
    }
}

static void add_units(Votes *v, size_t layer, const double *act)
{
    const Matrix *fc2 = v->model->layers[layer].mlp_fc2;
    read_through(v, fc2, 0, fc2->cols);
    for (size_t k = 0; k < fc2->cols; k++) {
        add_vote(v, (Vote){UNIT, layer, k, 0, 1, v->through[k] * act[k]});
    }
}

// SELF is the sum that the output of the first layer's heads is added to.
static void add_self(Votes *v, const double *emb_norm)
{
    for (size_t j = 0; j < v->model->n_embd; j++) v->list[0].vote += v->u[j] * emb_norm[j];
}

// Counts the votes for a character. False: they do not add up to its logit, because gpt() adds
// something else, too, or because something is not finite.
static bool count_votes(Votes *v, size_t id)
{
    const Model *model = v->model;
    const Entry *entries = model->tape.entries;
    const double *logits = entries[v->to].out, *mixed = NULL;  // mixed: by the first attn_wo
    Attention head = {0};
    for (size_t j = 0; j < model->n_embd; j++) {
        v->u[j] = model->lm_head->data[id * model->n_embd + j] - v->mean[j];
    }
    v->list[0] = (Vote){.kind = SELF, .weight = 1};
    v->n_votes = 1;
    for (size_t at = v->from; at < v->to; at++) {
        const Entry *e = &entries[at];
        if (read_attention(model, v->n, at, &head)) add_head(v, &head);
        if (e->op == OP_ADD && mixed && e->a == mixed) add_self(v, e->b);
        if (e->op == OP_ADD && mixed && e->b == mixed) add_self(v, e->a);
        if (e->op != OP_LINEAR) continue;
        if (e->b == model->layers[0].attn_wo->data) mixed = e->out;
        for (size_t li = 0; li < model->n_layer; li++) {
            if (e->b == model->layers[li].mlp_fc2->data) add_units(v, li, e->a);
        }
    }
    double sum = 0, size = 1, mean = 0;
    for (size_t i = 0; i < v->n_votes; i++) sum += v->list[i].vote;
    for (size_t i = 0; i < v->n_votes; i++) size += fabs(v->list[i].vote);
    for (size_t k = 0; k < model->vocab_size; k++) mean += logits[k] / (double)model->vocab_size;
    return fabs(sum - (logits[id] - mean)) <= 1e-9 * size;
}

/* ------------------------------------------------------------------------------------------------
 * As values.
 */
// The likeliest character after `last` in the order of likelihood; n is before the first.
static size_t next_likeliest(const double *logits, size_t n, size_t last)
{
    size_t best = n;
    for (size_t k = 0; k < n; k++) {
        bool after =
            last >= n || logits[k] < logits[last] || (k > last && logits[k] <= logits[last]);
        if (after && (best == n || logits[k] > logits[best])) best = k;
    }
    return best;
}

static void say_vote_values(const Votes *v, size_t query, size_t id)
{
    static const char *const kinds[] = {[SELF] = "self", [HEAD] = "head", [UNIT] = "unit"};
    for (const Vote *vote = v->list; vote < v->list + v->n_votes; vote++) {
        say("%zu\t%zu\t%s\t", query, id, kinds[vote->kind]);
        if (vote->kind == SELF) say("\t\t\t");
        if (vote->kind == HEAD) say("%zu\t%zu\t%zu\t", vote->layer, vote->index, vote->looks_at);
        if (vote->kind == UNIT) say("%zu\t%zu\t\t", vote->layer, vote->index);
        say("%.17g\n", vote->vote + 0.0);  // not -0
    }
}

// The votes for the five likeliest characters, and for the one that comes.
static bool say_all_values(Votes *v, size_t query)
{
    static const char heading[] = "position\tid\tkind\tlayer\tindex\tlooks_at\tvote\n";
    const Model *model = v->model;
    const double *logits = model->tape.entries[v->to].out;
    size_t n = model->vocab_size, last = n, target = model->tokens[query + 1];
    bool seen = false;
    for (size_t i = 0; i < 6; i++) {
        size_t id = i < 5 ? next_likeliest(logits, n, last) : target;
        if (id == n || (i == 5 && seen)) continue;
        if (!count_votes(v, id)) return false;
        say("%s", query + i ? "" : heading);
        say_vote_values(v, query, id);
        seen = seen || id == target;
        last = id;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------
 * For people.
 */
// Shortens the list to a line each: a head with the position it looks at most, the two strongest
// units of a layer, all others together.
static void sum_up(Votes *v)
{
    Vote others = {.kind = OTHERS};
    Vote *end = v->list + 1;  // of the lines so far
    Vote *units = end;        // those of a layer, strongest first
    for (const Vote *vote = v->list + 1; vote < v->list + v->n_votes; vote++) {
        Vote *last = end - 1, next = *vote;
        bool same = last->kind == next.kind && last->layer == next.layer;
        if (next.kind == UNIT && fabs(next.vote) <= 0) continue;  // it is off
        if (same && next.kind == HEAD && last->index == next.index) {
            last->vote += next.vote;
            if (next.weight > last->weight) last->looks_at = next.looks_at;
            last->weight = fmax(last->weight, next.weight);
            continue;
        }
        if (next.kind != UNIT || !same) units = end;
        Vote *at = end++;
        for (; at > units && fabs(at[-1].vote) < fabs(next.vote); at--) *at = at[-1];
        *at = next;
        if (end - units > 2) others.vote += (*--end).vote;
    }
    *end++ = others;
    v->n_votes = (size_t)(end - v->list);
}

enum { LONGEST = 24 };  // blocks, of the longest bar of a position

static void say_vote(const Run *run, Terminal screen, const Vote *vote, size_t query, double most)
{
    char who[48];
    const char *what = vote->kind == HEAD ? "head" : "unit";
    snprintf(who, sizeof who, "layer %zu %s %zu", vote->layer, what, vote->index);
    if (vote->kind == SELF) snprintf(who, sizeof who, "the letter itself");
    if (vote->kind == OTHERS) snprintf(who, sizeof who, "everything else");
    size_t room = screen.columns > 32 ? screen.columns - 32 : 0, at = vote->looks_at;
    if (room > LONGEST) room = LONGEST;
    size_t n = most > 0 ? (size_t)((double)room * fabs(vote->vote) / most + 0.5) : 0;
    const char *block = vote->vote < 0 ? "░" : "█";
    if (!screen.unicode) block = vote->vote < 0 ? "-" : "#";
    say("%-18s", who);
    if (vote->kind == SELF) at = query;
    say_label(vote->kind <= HEAD ? position_label(run, screen, at) : (Label){"", 0}, 4);
    say("%+8.2f%s", vote->vote, n ? " " : "");
    while (n-- > 0) say("%s", block);
    say("\n");
}

// The probability of a character, in percent.
static double percent(const double *logits, size_t n, size_t id)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += exp(logits[k] - logits[id]);
    return 100 / sum;
}

// "after ^mar comes i: 48%, the guess; votes for i: +3.45"
static void say_title(const Run *run, Terminal screen, const double *logits, size_t query,
                      double sum)
{
    size_t n = run->model.vocab_size, BOS = run->model.BOS;
    size_t target = run->model.tokens[query + 1], guess = argmax(logits, n);
    Label next = token_label(run, screen, target), likeliest = token_label(run, screen, guess);
    const char *comes = target == BOS ? "the end" : next.text;
    const char *guessed = guess == BOS ? "the end" : likeliest.text;
    char word[96] = "", right[64] = ", the guess";
    size_t wide = (size_t)(next.columns + likeliest.columns - 2);  // beyond one per character
    if (query > 8) strcpy(word, "..");
    for (size_t i = query > 8 ? query - 8 : 0; i <= query; i++) {
        Label label = position_label(run, screen, i);
        strcat(word, label.text);
        wide += (size_t)label.columns - 1;
    }
    if (guess != target) {
        snprintf(right, sizeof right, "; the guess, %s: %.0f%%", guessed,
                 percent(logits, n, guess));
    }
    say_sentence(screen.columns > wide ? screen.columns - wide : 1,
                 "after %s comes %s: %.0f%%%s; votes for %s: %+.2f", word, comes,
                 percent(logits, n, target), right, comes, sum);
}

static bool say_position(const Run *run, Votes *v, Terminal screen, size_t query)
{
    double sum = 0, most = 0;
    const double *logits = v->model->tape.entries[v->to].out;
    if (!count_votes(v, v->model->tokens[query + 1])) return false;
    sum_up(v);
    for (size_t i = 0; i < v->n_votes; i++) {
        sum += v->list[i].vote;
        most = fmax(most, fabs(v->list[i].vote));
    }
    say_title(run, screen, logits, query, sum);
    for (size_t i = 0; i < v->n_votes; i++) say_vote(run, screen, &v->list[i], query, most);
    say("\n");
    return true;
}

// The votes at each of the n positions on the tape, as long as they add up.
bool show_votes(Job *job, size_t n)
{
    const Run *run = &job->run;
    const Tape *tape = &run->model.tape;
    Terminal screen = terminal_of(STDOUT_FILENO);
    Votes v;
    if (!new_votes(&v, &run->model, n)) return false;
    size_t query = 0;
    bool ok = true;
    v.from = tape->kept_entries;
    for (v.to = v.from; ok && v.to < tape->n_entries; v.to++) {
        const Entry *e = &tape->entries[v.to];
        if (e->op != OP_LINEAR || e->b != run->model.lm_head->data) continue;
        ok = job->o.tsv ? say_all_values(&v, query) : say_position(run, &v, screen, query);
        v.from = v.to + 1;
        query++;
    }
    free_votes(&v);
    if (!ok || query < n) {
        return fail("%s: the votes do not add up to the logits: not finite, or gpt() adds more",
                    job->o.arguments[0]);
    }
    if (job->o.tsv) return true;
    say_sentence(screen.columns,
                 "A vote is what a voter adds to the logit of the character that comes, less what "
                 "it adds to the average logit. Their sum is the logit less the average one, "
                 "exactly.");
    return true;
}
