/* names.c: names for people, and what they stand for. */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <stdio.h>
#include <string.h>

// Takes "layerN." and "headN." off the front of a name.
const char *skip_prefix(const char *name, int *layer, int *head)
{
    int length = 0;
    if (sscanf(name, "layer%d.%n", layer, &length) == 1 && length) name += length;
    length = 0;
    if (sscanf(name, "head%d.%n", head, &length) == 1 && length) name += length;
    return name;
}

// Does a line of the source make a vector of this name, or set a pointer? Then it may still come.
bool will_be_made(const char *name)
{
    int layer, head;
    char given[40];
    const char *meaning, *only = skip_prefix(name, &layer, &head), *last = strrchr(only, '.');
    for (int line = 1; line <= n_lines(); line++) {
        if (statement_start(line) != line || !name_in_source(line, given, &meaning)) continue;
        if (strcmp(given, last ? last + 1 : only) != 0) continue;
        bool makes = strncmp(source_line(line), "double *", 8) == 0;
        for (int k = line; !makes; k++) {
            makes = strstr(source_line(k), "tape") != NULL;
            if (ends_statement(k) || k >= n_lines()) break;
        }
        if (makes) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------
 * Names for people.
 */
// A token as a reader knows it.
const char *token_text(size_t token)
{
    static char texts[4][8];
    static size_t turn;
    if (token >= watched.tokenizer->BOS) return "BOS";
    char *text = texts[turn++ % 4];
    size_t length = encode_utf8(watched.tokenizer->uchars[token], text);
    text[length] = '\0';
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

// The name of a vector, in memory that the next call but three uses again.
const char *place_name(const Place *p)
{
    static char names[4][160];
    static size_t turn;
    char *name = names[turn++ % 4], layer[24] = "", head[24] = "";
    const Place *outer = p->outer == NONE ? NULL : place((size_t)p->outer);
    if (p->layer != NONE && watched.model->n_layer > 1) {
        snprintf(layer, sizeof layer, "layer%d.", p->layer);
    }
    if (p->head != NONE) snprintf(head, sizeof head, "head%d.", p->head);
    snprintf(name, 160, "%s%s%s%s%s", layer, head, outer ? outer->name : "", outer ? "." : "",
             p->name);
    return name;
}

// A value in no vector is called v and its number, with what was done, if that is short.
static void name_without_place(const double *value, char name[224])
{
    const Entry *e = maker(value);
    const Place *p = e ? place_of(e->a) : NULL;
    char operand[64] = "", done[128] = "";
    int n = snprintf(name, 224, "v%zu", value_number(value));
    if (!p || second_operand(e)) return;
    snprintf(operand, sizeof operand, p->n > 1 ? "%s[%td]" : "%s", p->name, e->a - p->at);
    name_atom(e, operand, "", done, sizeof done);
    snprintf(name + n, 224 - (size_t)n, " (%s)", done);
}

// What stands beside the values: gradients, and what Adam remembers.
static bool name_beside(const double *x, char name[224])
{
    const Model *model = watched.model;
    const double *values[] = {x - model->tape.chunk_size, model->params + (x - model->m),
                              model->params + (x - model->v)};
    static const char *const kinds[] = {"the gradient of", "Adam's m of", "Adam's v of"};
    for (int i = 0; i < 3; i++) {
        if (i ? !is_parameter(values[i]) : !on_tape(values[i])) continue;
        snprintf(name, 224, "%s %.200s", kinds[i], value_name(values[i]));
        return true;
    }
    return false;
}

// The name of a value, as a parameter or as an element of a vector. False if it has none: then it
// is called v and its number.
static bool name_value(const double *value, char name[224])
{
    const Matrix *w = matrix_of(value);
    if (w) {
        size_t k = (size_t)(value - w->data);
        snprintf(name, 224, "%s[%zu][%zu]", w->name, k / w->cols, k % w->cols);
        return true;
    }
    const Place *p = place_of(value);
    if (!p) {
        if (on_tape(value))
            name_without_place(value, name);
        else if (!name_beside(value, name))
            snprintf(name, 224, "?");
        return false;
    }
    char index[24] = "", at[24] = "";
    if (p->n > 1) snprintf(index, sizeof index, "[%td]", value - p->at);
    if (p->position != NONE) snprintf(at, sizeof at, "@%d", p->position);
    snprintf(name, 224, "%s%s%s", place_name(p), index, at);
    return true;
}

bool has_name(const double *value)
{
    char name[224];
    return name_value(value, name);
}

// The name, in memory that the next call but seven uses again.
const char *value_name(const double *value)
{
    static char names[8][224];
    static size_t turn;
    char *name = names[turn++ % 8];
    name_value(value, name);
    return name;
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

// A value by its name: "logits" 5 and the position, "layer0.attn_wo" 3 5, "logits[5]@3", "v1234".
// NULL if there is none.
double *find_value(const char *text, int i, int j)
{
    Model *model = watched.model;
    char name[64];
    split_name(text, name, &i, &j);
    const Matrix *w = find_matrix(name);
    if (w) {
        bool inside = i >= 0 && (size_t)i < w->rows && j >= 0 && (size_t)j < w->cols;
        if (!inside) {
            print("%s has %zu rows and %zu columns, counted from 0.\n", name, w->rows, w->cols);
        }
        return inside ? w->data + (size_t)i * w->cols + (size_t)j : NULL;
    }
    size_t number = 0;
    int used = 0;
    if (sscanf(name, "v%zu%n", &number, &used) == 1 && !name[used] && number < n_numbers()) {
        double *value =
            model->tape.chunks[number / model->tape.chunk_size] + number % model->tape.chunk_size;
        if (on_tape(value)) return value;
    }
    const Place *p = need_place(name, j);
    if (p && p->n == 1 && i < 0) i = 0;
    if (p && i < 0) {
        print("%s has %zu elements: which one? `%s 0` is the first.\n", name, p->n, name);
        return NULL;
    }
    if (p && (size_t)i >= p->n) {
        print("%s has %zu elements, counted from 0.\n", name, p->n);
        return NULL;
    }
    return p ? p->at + i : NULL;
}

double *find_parameter(const char *name, int row, int column)
{
    char only[64];
    int i = row, j = column;
    split_name(name, only, &i, &j);
    if (find_matrix(only)) return find_value(name, row, column);
    const Model *model = watched.model;
    print("%s is no parameter. The matrices are", name);
    for (size_t k = 0; k < model->n_matrices; k++) print(" %s", model->state_dict[k].name);
    print(".\n");
    return NULL;
}

// Does autograd.c have a variable of this name? There it hides what microgpt.c calls so.
static bool is_variable_of_engine(const char *name)
{
    static char *text;
    if (!text) text = read_text("autograd.c");
    char pointer[80];
    snprintf(pointer, sizeof pointer, "*%s", name);
    size_t length = strlen(pointer);
    for (const char *s = text; s && (s = strstr(s, pointer)); s += length) {
        if (strchr(" ,;)", s[length]) && s > text && strchr(" (", s[-1])) return true;
    }
    return false;
}

// Is it a name (1), rather than an expression of C (0)? Or a name in microgpt.c that autograd.c has for
// a variable, in a function of autograd.c (2)?
int is_value_name(const char *text, const void *pc)
{
    char name[64];
    int i = NONE, j = NONE;
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.[]@") !=
        strlen(text))
        return 0;
    if (!watched.model) return 1;
    split_name(text, name, &i, &j);
    if (find_matrix(name)) return 1;
    if (name[0] == 'v' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1)) return 1;
    if (!will_be_made(name)) return 0;
    return pc && !function_at(pc) && is_variable_of_engine(name) ? 2 : 1;
}
