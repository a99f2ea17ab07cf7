/* graph.c: the graph below a value, as a tree in the terminal and as a picture.
 *
 * A node is a value; below it are the values that it was made from. A chain of additions that has
 * no name in between is one node, a sum. The picture is a file for Graphviz.
 */
#define _XOPEN_SOURCE 700
#include "views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 20, SHOWN = 4 };  // of many terms, so many are shown

// The values that a value was made from. A sum without a name in between is taken as one.
typedef struct {
    const Entry *entry;  // NULL: a leaf
    const double **terms;
    size_t n;
} Made;

static Made made_from(const double *value)
{
    Made made = {.entry = maker(value)};
    size_t n = 1;
    if (!made.entry) return made;
    const Entry *e = made.entry;
    for (const Entry *k = e; k && k->op == OP_ADD && (k == e || !has_name(k->out));
         k = maker(k->a)) {
        n++;
    }
    made.terms = malloc((n + 1) * sizeof *made.terms);
    if (!made.terms) abort();
    made.n = n;
    if (e->op != OP_ADD) {
        made.terms[0] = e->a;
        made.terms[1] = e->b;
        made.n = e->b && e->b != e->a ? 2 : 1;
        return made;
    }
    for (size_t i = n; i-- > 1; e = maker(e->a)) {
        made.terms[i] = e->b;
        made.terms[0] = e->a;
    }
    return made;
}

// What an operation is called in a node.
static void name_operation(const double *value, const Made *made, char name[64])
{
    const Entry *e = made->entry;
    if (!e) snprintf(name, 64, is_parameter(value) ? "parameter" : "leaf");
    if (!e) return;
    switch (e->op) {
    case OP_ADD: snprintf(name, 64, made->n > 2 ? "sum of %zu" : "+", made->n); break;
    case OP_MUL: snprintf(name, 64, e->a == e->b ? "^ 2" : "*"); break;
    case OP_POW: snprintf(name, 64, "^ %g", e->c); break;
    case OP_ADD_CONST:
        snprintf(name, 64, "%c %.3g", e->c < 0 ? '-' : '+', e->c < 0 ? -e->c : e->c);
        break;
    case OP_MUL_CONST: snprintf(name, 64, "* %.3g", e->c); break;
    default: snprintf(name, 64, "%s", operations[e->op].name); break;
    }
}

static void print_tree(const double *value, int level)
{
    Made made = made_from(value);
    char operation[64];
    name_operation(value, &made, operation);
    print("%*s", 2 * level, "");
    if (has_name(value)) print("%s ", value_name(value));
    print("= %.*g", watched.digits, data_of(value));
    if (gradients_known()) {
        print("  grad %.*g", watched.digits, gradient_of((double *)(uintptr_t)value));
    }
    print("  (%s)\n", operation);
    for (size_t i = 0; i < made.n && level < watched.depth; i++) {
        if (made.n > SHOWN && i == SHOWN - 1) {
            print("%*s... and %zu more\n", 2 * (level + 1), "", made.n - i);
            break;
        }
        print_tree(made.terms[i], level + 1);
    }
    free(made.terms);
}

// The picture: each node once, with its name, its operation, its data and its gradient.
static void draw_node(FILE *file, const double *value, int level, unsigned char *drawn, size_t most)
{
    size_t number = value_number(value);
    if (drawn[number]) return;
    drawn[number] = 1;
    Made made = made_from(value);
    char operation[64], name[128] = "";
    name_operation(value, &made, operation);
    if (has_name(value)) snprintf(name, sizeof name, "%s | ", value_name(value));
    fprintf(file, "  v%zu [label=\"%s%s | data %.4g", number, name, operation, data_of(value));
    if (gradients_known()) {
        fprintf(file, " | grad %.3g", gradient_of((double *)(uintptr_t)value));
    }
    fprintf(file, "\"%s];\n", made.entry ? "" : ", style=filled, fillcolor=\"#f0f0f0\"");
    for (size_t i = 0; i < made.n && level < watched.depth; i++) {
        if (made.n > most + 1 && i == most) {
            fprintf(file, "  more%zu [shape=plaintext, label=\"... and %zu more\"];\n", number,
                    made.n - i);
            fprintf(file, "  more%zu -> v%zu;\n", number, number);
            break;
        }
        draw_node(file, made.terms[i], level + 1, drawn, most);
        fprintf(file, "  v%zu -> v%zu;\n", value_number(made.terms[i]), number);
    }
    free(made.terms);
}

static bool draw(const double *value, const char *path, size_t most)
{
    FILE *file = fopen(path, "w");
    unsigned char *drawn = calloc(n_numbers(), 1);
    if (!drawn) abort();
    if (file) {
        fprintf(file, "digraph {\n  rankdir=LR;\n  node [shape=record, fontname=\"Helvetica\", "
                      "fontsize=11];\n");
        draw_node(file, value, 0, drawn, most);
        fprintf(file, "}\n");
    }
    free(drawn);
    return file && fclose(file) == 0;
}

void show_graph_at(double *value)
{
    remove(".build/graph.dot");
    if (!survey()) return;
    if (!on_tape(value)) {
        print("This is no value of the tape. A value is a pointer to its data, like loss.\n");
        return;
    }
    print_tree(value, 0);
    if (draw(value, ".build/graph.dot", SHOWN)) print("For Graphviz: .build/graph.dot\n");
}

void show_graph(const char *name, int i, int j)
{
    remove(".build/graph.dot");
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) show_graph_at(value);
}

void show_depth(int depth)
{
    if (depth < 1 || depth > MAX_DEPTH) {
        print("A graph is 1 to %d operations deep.\n", MAX_DEPTH);
        return;
    }
    watched.depth = depth;
}

// make graph: one weight of a head, from its logits down to the parameters.
void draw_if_asked(void)
{
    const char *path = getenv("MICROGPT_GRAPH");
    if (!path || !watched.model || !survey()) return;
    double *value = find_value("head1.attn_weights", 0, 1);
    watched.depth = 11;
    exit(value && draw(value, path, 1) ? 0 : 1);
}
