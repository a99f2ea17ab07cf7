/* names.c: names for people, and the values that they stand for. */
#include "views.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH = 224 };

// Memory for a name, which the next call but fifteen uses again.
static char *new_name(void)
{
    static char names[16][LENGTH];
    static size_t turn;
    return names[turn++ % 16];
}

// A token as a reader knows it.
const char *token_text(size_t token)
{
    if (token >= watched.tokenizer->BOS) return "BOS";
    char *text = new_name();
    text[encode_utf8(watched.tokenizer->uchars[token], text)] = '\0';
    return text;
}

// What stands at a position. In a sample the tokens begin after BOS.
size_t token_at(int position)
{
    const Model *model = watched.model;
    if (!sampling()) return model->tokens[position];
    return position ? model->tokens[position - 1] : watched.tokenizer->BOS;
}

const char *text_at(int position) { return token_text(token_at(position)); }

const char *place_name(const Place *p)
{
    char *name = new_name(), layer[24] = "", head[24] = "";
    const char *outer = p->outer == NONE ? "" : notes.all[p->outer].name;
    if (p->layer != NONE && watched.model->n_layer > 1)
        snprintf(layer, sizeof layer, "layer%d.", p->layer);
    if (p->head != NONE) snprintf(head, sizeof head, "head%d.", p->head);
    snprintf(name, LENGTH, "%s%s%s%s%s", layer, head, outer, *outer ? "." : "", p->name);
    return name;
}

// A value in no vector is called v and its number, with what was done, if that is short.
static void name_number(const double *value, char name[LENGTH])
{
    const Entry *e = maker(value);
    const Place *p = e ? place_of(e->a) : NULL;
    char operand[64] = "", done[128] = "";
    int n = snprintf(name, LENGTH, "v%zu", value_number(value));
    if (!p || second_operand(e)) return;
    snprintf(operand, sizeof operand, p->n > 1 ? "%s[%td]" : "%s", p->name, e->a - p->at);
    name_atom(e, operand, "", done, sizeof done);
    snprintf(name + n, LENGTH - (size_t)n, " (%s)", done);
}

// What stands beside the values: gradients, and what Adam remembers.
static void name_beside(const double *x, char name[LENGTH])
{
    const Model *model = watched.model;
    const double *value = x - model->tape.chunk_size;
    const double *of_m = model->params + (x - model->m), *of_v = model->params + (x - model->v);
    snprintf(name, LENGTH, "?");
    if (on_tape(value))
        snprintf(name, LENGTH, "the gradient of %.200s", value_name(value));
    else if (is_parameter(of_m))
        snprintf(name, LENGTH, "Adam's m of %.200s", value_name(of_m));
    else if (is_parameter(of_v))
        snprintf(name, LENGTH, "Adam's v of %.200s", value_name(of_v));
}

bool has_name(const double *value) { return matrix_of(value) || place_of(value); }

const char *value_name(const double *value)
{
    char *name = new_name(), index[24] = "", at[24] = "";
    const Matrix *w = matrix_of(value);
    const Place *p = place_of(value);
    if (w) {
        size_t k = (size_t)(value - w->data);
        snprintf(name, LENGTH, "%s[%zu][%zu]", w->name, k / w->cols, k % w->cols);
    } else if (p) {
        if (p->n > 1) snprintf(index, sizeof index, "[%td]", value - p->at);
        if (p->position != NONE) snprintf(at, sizeof at, "@%d", p->position);
        snprintf(name, LENGTH, "%.160s%s%s", place_name(p), index, at);
    } else if (on_tape(value)) {
        name_number(value, name);
    } else {
        name_beside(value, name);
    }
    return name;
}

/* ------------------------------------------------------------------------
 * What a name stands for.
 */
// Takes "layerN." and "headN." off the front of a name.
const char *skip_prefix(const char *name, int *layer, int *head)
{
    int length = 0;
    if (sscanf(name, "layer%d.%n", layer, &length) == 1) name += length;
    length = 0;
    if (sscanf(name, "head%d.%n", head, &length) == 1) name += length;
    return name;
}

// The line that makes a vector of this name: it may still come.
const Line *line_of_vector(const char *name)
{
    int layer, head;
    const char *only = skip_prefix(name, &layer, &head), *last = strrchr(only, '.');
    return line_that_names(last ? last + 1 : only);
}

// Splits "name[5]@3" and "name[3][5]" into a name and two numbers.
static void split_name(const char *text, char name[64], int *i, int *j)
{
    size_t length = strcspn(text, "[@");
    snprintf(name, 64, "%.*s", (int)length, text);
    const char *at = strchr(text, '@');
    int n = sscanf(text + length, "[%d][%d]", i, j);
    if (n < 2 && at) sscanf(at, "@%d", j);
}

// The value v123 of the tape; NULL if it is none.
static double *numbered(const char *name)
{
    const Tape *tape = &watched.model->tape;
    size_t number = 0;
    int used = 0;
    if (sscanf(name, "v%zu%n", &number, &used) != 1 || name[used] || number >= n_numbers())
        return NULL;
    double *value = tape->chunks[number / tape->chunk_size] + number % tape->chunk_size;
    return on_tape(value) ? value : NULL;
}

static double *in_matrix(const Matrix *w, int i, int j)
{
    if (i >= 0 && (size_t)i < w->rows && j >= 0 && (size_t)j < w->cols)
        return w->data + (size_t)i * w->cols + (size_t)j;
    print("%s has %zu rows and %zu columns, counted from 0.\n", w->name, w->rows, w->cols);
    return NULL;
}

// A value by its name: "logits" 5 and the position, "layer0.attn_wo" 3 5, "logits[5]@3", "v1234".
// NULL if there is none.
double *find_value(const char *text, int i, int j)
{
    char name[64];
    split_name(text, name, &i, &j);
    if (find_matrix(name)) return in_matrix(find_matrix(name), i, j);
    if (numbered(name)) return numbered(name);
    const Place *p = need_place(name, j);
    if (p && p->n == 1 && i < 0) i = 0;
    if (p && i >= 0 && (size_t)i < p->n) return p->at + i;
    if (p)
        print("%s has %zu elements, counted from 0: which one? `%s 0` is the first.\n", name, p->n,
              name);
    return NULL;
}

double *find_parameter(const char *text, int i, int j)
{
    char name[64];
    split_name(text, name, &i, &j);
    if (find_matrix(name)) return in_matrix(find_matrix(name), i, j);
    const Model *model = watched.model;
    print("%s is no parameter. The matrices are", name);
    for (size_t k = 0; k < model->n_matrices; k++) print(" %s", model->state_dict[k].name);
    print(".\n");
    return NULL;
}

// Is it a name, where the program is, rather than an expression of C?
bool is_value_name(const char *text, const void *pc)
{
    char name[64];
    int i, j;
    for (const char *s = text; *s; s++) {
        if (!isalnum((unsigned char)*s) && !strchr("_.[]@", *s)) return false;
    }
    if (!watched.model) return true;
    split_name(text, name, &i, &j);
    if (find_matrix(name) || numbered(name)) return true;
    const Line *line = line_of_vector(name);
    return line->starts && (!pc || function_at(pc) || !line->of_engine);
}
