/* graph.c: the graph below a value, as a tree in the terminal and as a picture.
 *
 * A node is a value; below it are the values that it was made from. A chain of additions that has
 * no name in between is one node, a sum. The picture is a file for Graphviz.
 */
#include "views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Is an addition a sum, or a part of it that has no name?
static bool in_sum(const Entry *e, const Entry *sum)
{
    return e && e->op == OP_ADD && (e == sum || !has_name(e->out));
}

Made made_from(const double *value)
{
    Made made = {.entry = maker(value)};
    const Entry *e = made.entry;
    if (!e) return made;
    const double *second = second_operand(e);
    made.n = second && second != e->a ? 2 : 1;
    made.terms[0] = e->a;
    made.terms[1] = second;
    if (e->op != OP_ADD) return made;
    for (made.n = 1; in_sum(e, made.entry); made.n++) {
        made.terms[0] = e->a;
        e = maker(e->a);
    }
    e = made.entry;
    for (size_t i = made.n; i-- > 1; e = maker(e->a)) {
        if (i < MAX_TERMS) made.terms[i] = second_operand(e);
    }
    return made;
}

// What a node says: its operation, its data and, after backward(), its gradient.
static void name_operation(const Made *made, const double *value, char name[64])
{
    const Entry *e = made->entry;
    char atom[64] = "";
    if (e) name_atom(e, "", "", atom, sizeof atom);
    if (!e)
        snprintf(name, 64, is_parameter(value) ? "parameter" : "leaf");
    else if (e->op == OP_ADD)
        snprintf(name, 64, made->n > 2 ? "sum of %zu" : "+", made->n);
    else if (e->op == OP_MUL)
        snprintf(name, 64, made->n == 1 ? "^ 2" : "*");
    else
        snprintf(name, 64, "%s", atom[0] == ' ' ? atom + 1 : operations[e->op].name);
}

// Prints a tree, of long sums the first terms, and no more lines than a screen has.
static void print_tree(const double *value, int level, int *lines)
{
    enum { SCREEN = 20 };
    Made made = made_from(value);
    char operation[64];
    name_operation(&made, value, operation);
    if (++*lines <= SCREEN) {
        print("%*s", 2 * level, "");
        if (has_name(value)) print("%s ", value_name(value));
        print("= %.*g", watched.digits, data_of(value));
        if (gradients_known())
            print("  grad %.*g", watched.digits, gradient_of((double *)(uintptr_t)value));
        print("  (%s)\n", operation);
    }
    size_t most = watched.depth > 3 ? 1 : MAX_TERMS - 1;
    for (size_t i = 0; i < made.n && level < watched.depth; i++) {
        if (made.n > most + 1 && i == most) {
            if (++*lines <= SCREEN) print("%*s... and %zu more\n", 2 * (level + 1), "", made.n - i);
            break;
        }
        print_tree(made.terms[i], level + 1, lines);
    }
    if (level == 0 && *lines > SCREEN)
        print("and %d lines more: the picture has all\n", *lines - SCREEN);
}

// The toy of `make graph`: values that no line of microgpt.c has made, and so their names.
static const double *toy[5];
static const char *const toy_names[] = {"a", "b", "c", "a * b", "sum"};

// The picture: each node once.
static void draw_node(FILE *file, const double *value, int level, unsigned char *drawn, size_t most)
{
    size_t number = value_number(value);
    if (drawn[number]) return;
    drawn[number] = 1;
    Made made = made_from(value);
    char operation[64];
    const char *name = has_name(value) ? value_name(value) : "";
    for (int i = 0; i < 5; i++) name = toy[i] == value ? toy_names[i] : name;
    name_operation(&made, value, operation);
    fprintf(file, "  v%zu [label=\"%s%s%s | data %.4g", number, name, *name ? " | " : "", operation,
            data_of(value));
    if (gradients_known()) fprintf(file, " | grad %.3g", gradient_of((double *)(uintptr_t)value));
    fprintf(file, made.entry ? "\"];\n" : "\", style=filled, fillcolor=\"#f0f0f0\"];\n");
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

void show_graph(const Question *q)
{
    remove(".build/graph.dot");
    print_tree(q->value, 0, &(int){0});
    if (draw(q->value, ".build/graph.dot", MAX_TERMS - 1))
        print("For Graphviz: .build/graph.dot\n");
}

// make graph: a toy of three values, a * b + c and relu; or one weight of a head, from its logits
// down to the parameters.
void draw_if_asked(void)
{
    const char *path = getenv("MICROGPT_GRAPH");
    if (!path || !watched.model || !survey()) return;
    double *value = find_value("head1.attn_weights", 0, 1);
    watched.depth = 11;
    if (strstr(path, "toy")) {
        Tape *tape = &watched.model->tape;
        double *a = ag_scalar(tape, 2), *b = ag_scalar(tape, -3), *c = ag_scalar(tape, 10);
        double *product = ag_mul(tape, a, b, 1), *sum = ag_add(tape, product, c, 1);
        memcpy(toy, (const double *[]){a, b, c, product, sum}, sizeof toy);
        value = ag_relu(tape, sum, 1);
        backward(tape, value);
        if (!survey()) exit(1);
    }
    exit(value && draw(value, path, 1) ? 0 : 1);
}
