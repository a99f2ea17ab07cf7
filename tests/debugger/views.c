/* Views for the debugger: what one can ask of a run that stands still, in the build that `make debug` makes. It is a
 * part of microgpt.c, which includes it there. Each view is a function that any debugger can call; .gdbinit and
 * .lldbinit give them short names. All they need is on the tape, which in this build has a line for every single + and
 * *: so the algorithm in microgpt.c is as it always is.
 *
 * Where a view takes a position, LATEST is the one that gpt() was called for last.
 */
enum { LATEST = -1, NONE = -1 };
#define print(...) fprintf(stderr, __VA_ARGS__)      // beside the program's output, never in it

static struct {
    Model *model;
    const Tokenizer *tokenizer;
    int layer;           // the one whose heads and vectors are shown
    int digits;          // of every number shown
} watched = {.digits = 6};

static void watch(Model *model, const Tokenizer *tokenizer)
{
    watched.model = model;
    watched.tokenizer = tokenizer;
}

// The vectors of the forward pass, in the order in which gpt() makes them.
static const struct { const char *name, *meaning; } vectors[] = {
    {"tok_emb", "the token's embedding, a row of wte"},
    {"pos_emb", "the position's embedding, a row of wpe"},
    {"emb", "their sum"},
    {"emb_norm", "after the first rmsnorm"},
    {"x", "what enters the layer, and is kept as x_residual"},
    {"x_norm", "x after rmsnorm, what attention reads"},
    {"q", "the query"},
    {"k", "the key, in the cache"},
    {"v", "the value, in the cache"},
    {"head0.attn_logits", "a head's scores, one for each position in the cache"},
    {"head0.attn_weights", "the same as shares of attention"},
    {"head0.head_out", "the head's output, a slice of x_attn"},
    {"x_attn", "the outputs of all heads in a row"},
    {"x_wo", "x_attn after wo"},
    {"x_mid", "x_wo plus x: after the first residual connection"},
    {"mid_norm", "x_mid after rmsnorm, what the MLP reads"},
    {"fc1", "after the MLP's first matrix"},
    {"act", "after the activation"},
    {"fc2", "after the MLP's second matrix"},
    {"x_out", "fc2 plus x_mid: what leaves the layer"},
    {"logits", "a score for every token that may come next"},
    {"probs", "the same as probabilities"},
    {"loss_t", "the loss at this position"},
    {"losses", "the sum of the losses so far"},
    {"loss", "the mean loss over the document"},
};

// Where one of them is in memory.
typedef struct {
    const char *name;
    int layer, head, position;       // NONE: it belongs to none
    double *at;          // [n]
    size_t n;
} Place;

static struct { Place *all; size_t n, room; int position; } places;

static void add_place(const char *name, int layer, int head, int position, double *at, size_t n)
{
    if (at && places.n == places.room) {
        places.room = places.room ? 2 * places.room : 256;
        Place *more = realloc(places.all, places.room * sizeof *more);
        if (!more) {
            abort();
        }
        places.all = more;
    }
    if (at) {
        places.all[places.n++] = (Place){name, layer, head, position, at, n};
    }
}

// The lines of the tape that one position made.
typedef struct {
    const Line *from, *to;
} Span;

// The n neighbours that `op` made of a[0..n), or NULL if they are not all there yet. A square is not meant.
static double *made_of(Span span, Op op, const double *a, size_t n)
{
    double *first = NULL;
    for (const Line *l = span.from; a && l < span.to; l++) {
        if (l->op != op || l->a == l->b) {
            continue;
        }
        if (!first && l->a == a) {
            first = l->out;
        }
        if (first && l->a == a + n - 1) {
            return first;
        }
    }
    return NULL;
}

// The sum of the n products that begins with a * b, or NULL.
static double *sum_of(Span span, const double *a, const double *b, size_t n)
{
    for (const Line *l = span.from; a && b && l < span.to; l++) {
        if (l->op == OP_MUL && l->a == a && l->b == b) {
            return 2 * (n - 1) < (size_t)(span.to - l) ? l[2 * (n - 1)].out : NULL;
        }
    }
    return NULL;
}

static double *linear_of(Span span, const Matrix *w, const double *x)
{
    double *last = sum_of(span, w->data + (w->rows - 1) * w->cols, x, w->cols);
    return last ? sum_of(span, w->data, x, w->cols) : NULL;
}

static double *softmax_of(Span span, const double *logits, size_t n)
{
    return made_of(span, OP_MUL, made_of(span, OP_EXP, made_of(span, OP_PLUS, logits, n), n), n);
}

// What gpt() has made of the heads of one layer so far.
static double *survey_heads(Span span, int li, int position, double *q)
{
    const Model *model = watched.model;
    size_t head_dim = model->head_dim, seen = (size_t)position + 1, n_done = 0;
    double *x_attn = NULL;
    for (size_t h = 0; h < model->n_head && q; h++) {
        size_t hs = h * head_dim;
        double *k_h = model->keys[li] + hs, *v_h = model->values[li] + hs;
        double *attn_logits = made_of(span, OP_TIMES, sum_of(span, q + hs, k_h, head_dim), seen);
        double *attn_weights = softmax_of(span, attn_logits, seen);
        double *last = sum_of(span, attn_weights, v_h + head_dim - 1, seen);
        double *head_out = last ? sum_of(span, attn_weights, v_h, seen) : NULL;
        x_attn = h == 0 ? head_out : x_attn;
        n_done += head_out != NULL;
        add_place("attn_logits", li, (int)h, position, attn_logits, seen);
        add_place("attn_weights", li, (int)h, position, attn_weights, seen);
        add_place("head_out", li, (int)h, position, head_out, head_dim);
    }
    return n_done == model->n_head ? x_attn : NULL;
}

// The same way that gpt() and document_loss() go, along the lines that they left. What is not there yet is NULL, and so
// is all that comes after it.
static void survey_position(Span span, int position)
{
    const Model *model = watched.model;
    size_t E = model->n_embd, V = model->vocab_size;
    add_place("tok_emb", NONE, NONE, position, span.from->a, E);
    add_place("pos_emb", NONE, NONE, position, span.from->b, E);
    double *emb = (size_t)(span.to - span.from) >= E ? span.from->out : NULL, *x = made_of(span, OP_MUL, emb, E);
    add_place("emb", NONE, NONE, position, emb, E);
    add_place("emb_norm", NONE, NONE, position, x, E);
    for (int li = 0; (size_t)li < model->n_layer; li++) {
        const Layer *layer = &model->layers[li];
        add_place("x", li, NONE, position, x, E);
        double *x_norm = made_of(span, OP_MUL, x, E), *q = linear_of(span, layer->attn_wq, x_norm);
        add_place("x_norm", li, NONE, position, x_norm, E);
        add_place("q", li, NONE, position, q, E);
        add_place("k", li, NONE, position, linear_of(span, layer->attn_wk, x_norm), E);
        add_place("v", li, NONE, position, linear_of(span, layer->attn_wv, x_norm), E);
        double *x_attn = survey_heads(span, li, position, q), *x_wo = linear_of(span, layer->attn_wo, x_attn);
        add_place("x_attn", li, NONE, position, x_attn, E);
        add_place("x_wo", li, NONE, position, x_wo, E);
        double *x_mid = made_of(span, OP_ADD, x_wo, E), *mid_norm = made_of(span, OP_MUL, x_mid, E);
        add_place("x_mid", li, NONE, position, x_mid, E);
        add_place("mid_norm", li, NONE, position, mid_norm, E);
        double *fc1 = linear_of(span, layer->mlp_fc1, mid_norm), *act = made_of(span, OP_RELU, fc1, 4 * E);
        act = model->activation == RELU2 ? made_of(span, OP_POW, act, 4 * E) : act;
        double *fc2 = linear_of(span, layer->mlp_fc2, act);
        x = made_of(span, OP_ADD, fc2, E);
        add_place("fc1", li, NONE, position, fc1, 4 * E);
        add_place("act", li, NONE, position, act, 4 * E);
        add_place("fc2", li, NONE, position, fc2, E);
        add_place("x_out", li, NONE, position, x, E);
    }
    double *logits = linear_of(span, model->lm_head, x), *probs = softmax_of(span, logits, V);
    if (!probs) {                                  // at a temperature
        probs = softmax_of(span, made_of(span, OP_TIMES, logits, V), V);
    }
    add_place("logits", NONE, NONE, position, logits, V);
    add_place("probs", NONE, NONE, position, probs, V);
    double *target = probs ? probs + model->tokens[position + 1] : NULL;
    double *loss_t = made_of(span, OP_TIMES, made_of(span, OP_LOG, target, 1), 1);
    add_place("loss_t", NONE, NONE, position, loss_t, 1);
    double *losses = NULL;
    for (const Line *l = span.from; loss_t && l < span.to && !losses; l++) {
        losses = l->op == OP_ADD && l->b == loss_t ? l->out : NULL;
    }
    add_place("losses", NONE, NONE, position, losses, 1);
    add_place("loss", NONE, NONE, NONE, made_of(span, OP_TIMES, losses, 1), 1);
}

// Samples are made with the cache before the mark, and forget each position's lines before the next.
static bool sampling(void)
{
    const Tape *tape = &watched.model->tape;
    return watched.model->keys[0] && watched.model->keys[0] < tape->data + tape->first_value;
}

// Finds every vector that there is. A position begins where a row of wte and one of wpe are added. False, with a word
// to the learner, where there is no model yet.
static bool survey(void)
{
    if (!watched.model) {
        print("There is no model yet: stop at train_step, or later.\n");
        return false;
    }
    const Model *model = watched.model;
    const Line *lines = model->tape.lines, *end = lines + model->tape.n_lines;
    const double *wpe = model->wpe->data, *wpe_end = wpe + model->block_size * model->n_embd;
    places.n = 0;
    places.position = NONE;
    for (const Line *l = lines, *next = l; l < end; l = next) {
        bool begins = l->op == OP_ADD && l->b >= wpe && l->b < wpe_end;
        next = begins ? l + model->n_embd : l + 1;
        if (!begins) {
            continue;
        }
        while (next < end && !(next->op == OP_ADD && next->b >= wpe && next->b < wpe_end)) {
            next++;
        }
        next = next < end ? next : end;
        places.position = (int)((size_t)(l->b - wpe) / model->n_embd);
        for (int t = 0; sampling() && t < places.position; t++) {
            for (int li = 0; (size_t)li < model->n_layer; li++) {
                add_place("k", li, NONE, t, model->keys[li] + (size_t)t * model->n_embd, model->n_embd);
                add_place("v", li, NONE, t, model->values[li] + (size_t)t * model->n_embd, model->n_embd);
            }
        }
        survey_position((Span){l, next}, places.position);
    }
    return true;
}

// The vector of that name, which may begin with layerN. and headN.; NULL if it is not there.
static const Place *find_place(const char *name, int position)
{
    int layer = watched.layer, head = NONE, used = 0;
    if (sscanf(name, "layer%d.%n", &layer, &used) == 1 && used) {
        name += used;
    }
    used = 0;
    if (sscanf(name, "head%d.%n", &head, &used) == 1 && used) {
        name += used;
    }
    for (size_t i = places.n; i-- > 0;) {
        const Place *p = &places.all[i];
        if (strcmp(p->name, name) == 0 && (p->layer == NONE || p->layer == layer) && p->head == head &&
            (position == LATEST || p->position == position)) {
            return p;
        }
    }
    return NULL;
}

static const Place *need_place(const char *name, int position)
{
    const Place *place = find_place(name, position);
    if (!place && position == LATEST) {
        print("%s: there is none yet: step on, or see `vec` for the names there are.\n", name);
    } else if (!place) {
        print("%s at position %d: there is none yet, or no such position; see `vec` for the names.\n", name, position);
    }
    return place;
}

// A token as a reader knows it.
static const char *token_text(size_t token)
{
    static char text[8];
    if (token >= watched.tokenizer->BOS) {
        return "BOS";
    }
    size_t length = encode_utf8(watched.tokenizer->uchars[token], text);
    text[length] = '\0';
    return text;
}

// What stands at a position: in a sample the tokens begin after BOS.
static size_t token_at(int position)
{
    const Model *model = watched.model;
    return !sampling() ? model->tokens[position] : position ? model->tokens[position - 1] : watched.tokenizer->BOS;
}

// The name of a value, as a parameter or as an element of a vector. False if it has none: then it is called v and its
// number on the tape.
static bool name_value(const double *value, char name[96])
{
    const Model *model = watched.model;
    for (size_t i = 0; i < model->n_matrices; i++) {
        const Matrix *w = &model->state_dict[i];
        if (value >= w->data && value < w->data + w->rows * w->cols) {
            size_t k = (size_t)(value - w->data);
            snprintf(name, 96, "%s[%zu][%zu]", w->name, k / w->cols, k % w->cols);
            return true;
        }
    }
    for (size_t i = places.n; i-- > 0;) {          // of a slice and its whole, the whole comes later
        const Place *p = &places.all[i];
        if (value >= p->at && value < p->at + p->n) {
            char layer[24] = "", head[24] = "", index[24] = "";
            if (p->layer != NONE && model->n_layer > 1) {
                snprintf(layer, sizeof layer, "layer%d.", p->layer);
            }
            if (p->head != NONE) {
                snprintf(head, sizeof head, "head%d.", p->head);
            }
            if (p->n > 1) {
                snprintf(index, sizeof index, "[%td]", value - p->at);
            }
            int length = snprintf(name, 96, "%s%s%s%s", layer, head, p->name, index);
            if (p->position != NONE) {
                snprintf(name + length, 96 - (size_t)length, " at %d", p->position);
            }
            return true;
        }
    }
    snprintf(name, 96, "v%td", value - model->tape.data);
    return false;
}

static bool has_name(const double *value)
{
    char name[96];
    return name_value(value, name);
}

// The name, in memory that the next call but three uses again.
static const char *value_name(const double *value)
{
    static char names[4][96];
    static size_t turn;
    char *name = names[turn++ % 4];
    name_value(value, name);
    return name;
}

static bool on_tape(const double *value)
{
    const Tape *tape = &watched.model->tape;
    return value >= tape->data && value < tape->data + tape->n_values;
}

// A value by its name: "logits" 5 and the position, "layer0.attn_wo" 3 5, "v1234". NULL if there is none.
static double *find_value(const char *name, int i, int j)
{
    Model *model = watched.model;
    for (size_t k = 0; k < model->n_matrices; k++) {
        const Matrix *w = &model->state_dict[k];
        if (strcmp(w->name, name) == 0) {
            bool inside = i >= 0 && (size_t)i < w->rows && j >= 0 && (size_t)j < w->cols;
            if (!inside) {
                print("%s has %zu rows and %zu columns, counted from 0.\n", name, w->rows, w->cols);
            }
            return inside ? w->data + (size_t)i * w->cols + (size_t)j : NULL;
        }
    }
    size_t number = 0;
    int used = 0;
    if (sscanf(name, "v%zu%n", &number, &used) == 1 && !name[used] && number < model->tape.n_values) {
        return model->tape.data + number;
    }
    const Place *place = need_place(name, j);
    i = place && place->n == 1 && i < 0 ? 0 : i;
    if (place && (i < 0 || (size_t)i >= place->n)) {
        print("%s has %zu elements, counted from 0.\n", name, place->n);
        return NULL;
    }
    return place ? place->at + i : NULL;
}

// Whether a debugger's user gave a name, or an expression of C. Called by the commands.
int is_value_name(const char *name)
{
    Model *model = watched.model;
    for (size_t k = 0; model && k < model->n_matrices; k++) {
        if (strcmp(model->state_dict[k].name, name) == 0) {
            return true;
        }
    }
    const char *last = strrchr(name, '.');
    last = last ? last + 1 : name;
    for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; k++) {
        const char *dot = strchr(vectors[k].name, '.');
        if (strcmp(dot ? dot + 1 : vectors[k].name, last) == 0) {
            return true;
        }
    }
    return name[0] == 'v' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

// A number in its column, and the column's heading.
static void number(double x)
{
    print(" %*.*g", watched.digits + 7, watched.digits, x);
}

static void heading(const char *text)
{
    print(" %*s", watched.digits + 7, text);
}

// Whether backward() has come by: only then does the chain rule hold at the last position's logarithm. What else may
// stand in the gradients is left from the step before.
static bool gradients_known(void)
{
    const Place *loss = find_place("loss", LATEST), *probs = find_place("probs", LATEST);
    if (!loss || sampling()) {
        return false;
    }
    const Tape *tape = &watched.model->tape;
    double *target = probs->at + watched.model->tokens[probs->position + 1];
    double *logarithm = made_of((Span){tape->lines, tape->lines + tape->n_lines}, OP_LOG, target, 1);
    return *grad(tape, target) != 0 && *grad(tape, target) == 1 / *target * *grad(tape, logarithm);
}

// A value, and its gradient if there is one; the headings of the two.
static void data_and_grad(double *value, bool known)
{
    number(*value);
    if (known) {
        number(*grad(&watched.model->tape, value));
    }
}

static void headings(const char *data, bool known)
{
    heading(data);
    if (known) {
        heading("grad");
    }
}

// What the i-th element of a vector belongs to.
static void element_label(const Place *p, size_t i)
{
    static const char *const of_tokens[] = {"logits", "probs"}, *const of_heads[] = {"q", "k", "v", "x_attn"};
    for (size_t k = 0; k < 2; k++) {
        if (strcmp(p->name, of_tokens[k]) == 0) {
            print("  %s", token_text(i));
        }
    }
    for (size_t k = 0; k < 4; k++) {
        if (strcmp(p->name, of_heads[k]) == 0) {
            print("  head %zu", i / watched.model->head_dim);
        }
    }
    if (strncmp(p->name, "attn_", 5) == 0) {       // logits and weights
        print("  %s", token_text(token_at((int)i)));
    }
    print("\n");
}

// The list that a debugger begins with: the commands of .gdbinit and .lldbinit.
void show_views(void)
{
    static const char *const views[][2] = {
        {"doc", "the document, its tokens, and what is to be predicted"},
        {"vec NAME [POS]", "a vector with data and gradient; vec alone lists the names"},
        {"around OP [POS]", "vectors before and after rmsnorm, wq, wo, residual, fc1, softmax ..."},
        {"head H [POS]", "one head's slice of q, and of each k and v"},
        {"cache [POS]", "the cache of keys and values, or one position of it"},
        {"attn H [POS]", "one head's logits and weights beside their characters"},
        {"lands H [POS]", "where a head's output lands in x_attn"},
        {"top5 [POS]", "the five likeliest next characters"},
        {"param NAME ROW COL", "a parameter: value, gradient, Adam's m and v"},
        {"moves NAME ROW COL", "how Adam moves it; to be asked where adam() begins"},
        {"explain VALUE", "what made a value, from what, and who used it"},
        {"users VALUE", "who used a value, with local derivatives"},
        {"look EXPR [N]", "N values from a pointer on: data, gradient, name"},
        {"tape", "the tape, counted by operation"},
        {"layer L", "which layer to show; at first 0"},
        {"digits N", "how many digits to show; at first 6"},
        {"views", "this list; help COMMAND says more"},
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        print("  %-20s %s\n", views[i][0], views[i][1]);
    }
    print("POS is a position; without it, the latest. VALUE is  logits 5 [POS],\n"
          "layer0.attn_wo 3 5,  loss,  v123 (a value that has no name), or C without spaces,\n"
          "like  &logits[5].\n");
}

// The document in work, or the sample, and its tokens.
void show_document(void)
{
    if (!survey()) {
        return;
    }
    const Model *model = watched.model;
    size_t n = 1;
    if (sampling()) {
        n = (size_t)(places.position + 1);
        print("The sample so far, as gpt() has seen it: ");
        for (size_t i = 1; i < n; i++) {
            print("%s", token_text(token_at((int)i)));
        }
        print("\n  position  token\n");
        for (size_t i = 0; i < n; i++) {
            print("  %8zu  %5zu  %s\n", i, token_at((int)i), token_text(token_at((int)i)));
        }
        return;
    }
    if (model->tokens[0] != watched.tokenizer->BOS) {
        print("No document has been taken yet: stop at train_step, or later.\n");
        return;
    }
    while (n < model->block_size && model->tokens[n] != watched.tokenizer->BOS) {
        n++;
    }
    print("The document: ");
    for (size_t i = 1; i <= n && model->tokens[i] != watched.tokenizer->BOS; i++) {
        print("%s", token_text(model->tokens[i]));
    }
    print("\n  position  token         to predict\n");
    for (size_t i = 0; i < n; i++) {
        print("  %8zu  %5u  %-5s", i, model->tokens[i], token_text(model->tokens[i]));
        print("  %5u  %s\n", model->tokens[i + 1], token_text(model->tokens[i + 1]));
    }
}

// The names of all vectors.
void show_vectors(void)
{
    if (!survey()) {
        return;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        const Place *p = find_place(vectors[i].name, LATEST);
        print("  %-20s %-58s", vectors[i].name, vectors[i].meaning);
        if (p) {
            print(p->position == NONE ? " [%zu]\n" : " [%zu] at %d\n", p->n, p->position);
        } else {
            print(" not yet\n");
        }
    }
}

// One vector, with data and gradient.
void show_vector(const char *name, int position)
{
    const Place *p = survey() ? need_place(name, position) : NULL;
    if (!p) {
        return;
    }
    bool known = gradients_known();
    print("%s", name);
    if (p->position != NONE) {
        print(" at position %d (%s)", p->position, token_text(token_at(p->position)));
    }
    print("\n    i");
    headings("data", known);
    print("\n");
    for (size_t i = 0; i < p->n; i++) {
        print("  %3zu", i);
        data_and_grad(p->at + i, known);
        element_label(p, i);
    }
}

// n neighbours, wherever they are: what they are, with data and gradient.
void show_values(double *x, size_t n)
{
    if (!survey()) {
        return;
    }
    bool known = gradients_known();
    for (size_t i = 0; i < n; i++) {
        if (!on_tape(x + i)) {
            print("This is no value of the tape: a value is a pointer to its data, like logits or &logits[5].\n");
            return;
        }
        data_and_grad(x + i, known);
        print("  %s\n", value_name(x + i));
    }
}

// Vectors before and after one operation of the model.
void show_around(const char *operation, int position)
{
    static const char *const pairs[][3] = {
        {"rmsnorm", "emb", "emb_norm"}, {"rmsnorm", "x", "x_norm"}, {"rmsnorm", "x_mid", "mid_norm"},
        {"wq", "x_norm", "q"}, {"wk", "x_norm", "k"}, {"wv", "x_norm", "v"}, {"wo", "x_attn", "x_wo"},
        {"residual", "x_wo", "x_mid"}, {"residual", "fc2", "x_out"},
        {"fc1", "mid_norm", "fc1"}, {"activation", "fc1", "act"}, {"fc2", "act", "fc2"},
        {"lm_head", "x_out", "logits"}, {"softmax", "logits", "probs"},
    };
    size_t n_pairs = sizeof pairs / sizeof pairs[0], n_known = 0, n_shown = 0;
    bool known = survey() && gradients_known();
    for (size_t k = 0; watched.model && k < n_pairs; k++) {
        const Place *after = find_place(pairs[k][2], position);
        if (strcmp(pairs[k][0], operation) == 0) {
            n_known++;
            position = position == LATEST && after ? after->position : position;
        }
    }
    for (size_t k = 0; n_known && k < n_pairs; k++) {
        const Place *before = find_place(pairs[k][1], position), *after = find_place(pairs[k][2], position);
        if (strcmp(pairs[k][0], operation) != 0 || !before || !after) {
            continue;
        }
        n_shown++;
        print("%s at position %d (%s): before, %s; after, %s\n    i", operation, position,
              token_text(token_at(position)), before->name, after->name);
        headings("before", known);
        headings("after", known);
        print("\n");
        for (size_t i = 0; i < before->n || i < after->n; i++) {
            print("  %3zu", i);
            if (i < before->n) {
                data_and_grad(before->at + i, known);
            } else {
                headings("", known);
            }
            if (i < after->n) {
                data_and_grad(after->at + i, known);
            }
            print("\n");
        }
    }
    if (watched.model && !n_known) {
        print("%s: not one of", operation);
        for (size_t k = 0; k < n_pairs; k++) {
            if (k == 0 || strcmp(pairs[k][0], pairs[k - 1][0]) != 0) {
                print(" %s", pairs[k][0]);
            }
        }
        print(".\n");
    } else if (watched.model && !n_shown) {
        print("%s: not computed yet, or no such position: step on.\n", operation);
    }
}

static bool is_head(int head)
{
    bool ok = head >= 0 && (size_t)head < watched.model->n_head;
    if (!ok) {
        print("There are %zu heads, counted from 0.\n", watched.model->n_head);
    }
    return ok;
}

// One head's slice of the query, of each key and of each value.
void show_head(int head, int position)
{
    const Place *q = survey() && is_head(head) ? need_place("q", position) : NULL;
    if (!q) {
        return;
    }
    size_t head_dim = watched.model->head_dim, hs = (size_t)head * head_dim;
    print("head %d at position %d (%s): hs = %d * %zu = %zu, so its slices are [%zu] to [%zu]\n", head, q->position,
          token_text(token_at(q->position)), head, head_dim, hs, hs, hs + head_dim - 1);
    for (int kind = 0; kind < 3; kind++) {
        for (int t = kind ? 0 : q->position; t <= q->position; t++) {
            const Place *p = find_place(kind == 0 ? "q" : kind == 1 ? "k" : "v", t);
            if (p) {
                print("  %c_h %3d %-4s", "qkv"[kind], t, token_text(token_at(t)));
                for (size_t i = 0; i < head_dim; i++) {
                    number(p->at[hs + i]);
                }
                print("\n");
            }
        }
    }
}

// The cache of keys and values: how full it is, and one position of it, or the beginning of each.
void show_cache(int position)
{
    if (!survey()) {
        return;
    }
    int n = 0;
    bool known = gradients_known();
    size_t few = watched.model->n_embd < 3 ? watched.model->n_embd : 3;
    while (find_place("k", n) && find_place("v", n)) {
        n++;
    }
    print("layer %d: %d position%s in the cache\n", watched.layer, n, n == 1 ? "" : "s");
    for (int t = 0; t < n && position == LATEST; t++) {
        const Place *k = find_place("k", t), *v = find_place("v", t);
        print("  %3d %-4s key", t, token_text(token_at(t)));
        for (size_t i = 0; i < few; i++) {
            number(k->at[i]);
        }
        print(" ...  value");
        for (size_t i = 0; i < few; i++) {
            number(v->at[i]);
        }
        print(" ...\n");
    }
    const Place *k = position == LATEST ? NULL : need_place("k", position);
    const Place *v = k ? need_place("v", position) : NULL;
    if (!v) {
        return;
    }
    print("position %d (%s)\n    i", position, token_text(token_at(position)));
    headings("key", known);
    headings("value", known);
    print("\n");
    for (size_t i = 0; i < k->n; i++) {
        print("  %3zu", i);
        data_and_grad(k->at + i, known);
        data_and_grad(v->at + i, known);
        print("  head %zu\n", i / watched.model->head_dim);
    }
}

// What a head looks at: its logits and weights beside the characters they belong to.
void show_attention(int head, int position)
{
    char name[48];
    if (!survey() || !is_head(head)) {
        return;
    }
    snprintf(name, sizeof name, "head%d.attn_logits", head);
    const Place *logits = need_place(name, position);
    snprintf(name, sizeof name, "head%d.attn_weights", head);
    const Place *weights = logits ? need_place(name, logits->position) : NULL;
    if (!weights) {
        return;
    }
    print("head %d at position %d (%s) looks at\n    t       ", head, logits->position,
          token_text(token_at(logits->position)));
    heading("logit");
    heading("weight");
    print("\n");
    for (size_t t = 0; t < logits->n; t++) {
        print("  %3zu  %-4s ", t, token_text(token_at((int)t)));
        number(logits->at[t]);
        number(weights->at[t]);
        int width = weights->at[t] > 0 ? (int)(weights->at[t] * 40 + 0.5) : 0;
        print("  %.*s\n", width, "########################################");
    }
}

// Where a head's output stands in the row of all outputs.
void show_landing(int head, int position)
{
    char name[48];
    if (!survey() || !is_head(head)) {
        return;
    }
    snprintf(name, sizeof name, "head%d.head_out", head);
    const Place *out = need_place(name, position), *first = out ? need_place("head0.head_out", out->position) : NULL;
    if (!first) {
        return;
    }
    bool known = gradients_known();
    size_t head_dim = watched.model->head_dim;
    print("x_attn at position %d (%s):", out->position, token_text(token_at(out->position)));
    for (size_t h = 0; h < watched.model->n_head; h++) {
        print(h == (size_t)head ? " *[%zu..%zu]*" : " [%zu..%zu]", h * head_dim, (h + 1) * head_dim - 1);
    }
    print("\n");
    for (size_t i = 0; i < out->n; i++) {
        print("  head %d: head_out[%zu] is x_attn[%td]", head, i, out->at + i - first->at);
        data_and_grad(out->at + i, known);
        print("\n");
    }
}

// The likeliest next tokens.
void show_top(int position)
{
    enum { TOP = 5 };
    const Place *logits = survey() ? need_place("logits", position) : NULL;
    if (!logits) {
        return;
    }
    const Place *probs = find_place("probs", logits->position);
    double total = 0, max = logits->at[0];
    for (size_t i = 1; i < logits->n; i++) {
        max = fmax(max, logits->at[i]);
    }
    for (size_t i = 0; i < logits->n; i++) {
        total += exp(logits->at[i] - max);
    }
    print("after position %d (%s), the likeliest next\n             ", logits->position,
          token_text(token_at(logits->position)));
    heading("logit");
    heading("probability");
    print("\n");
    size_t taken[TOP];
    for (size_t rank = 0; rank < TOP && rank < logits->n; rank++) {
        size_t best = logits->n;
        for (size_t i = 0; i < logits->n; i++) {
            bool out = false;
            for (size_t k = 0; k < rank; k++) {
                out = out || taken[k] == i;
            }
            best = !out && (best == logits->n || logits->at[i] > logits->at[best]) ? i : best;
        }
        taken[rank] = best;
        print("  %zu.  %-4s   ", rank + 1, token_text(best));
        number(logits->at[best]);
        number(probs ? probs->at[best] : exp(logits->at[best] - max) / total);
        print("%s\n", !sampling() && best == watched.model->tokens[logits->position + 1] ? "  comes next" : "");
    }
}

static double *find_parameter(const char *name, int row, int column)
{
    double *p = find_value(name, row, column);
    if (p && p >= watched.model->params + watched.model->num_params) {
        print("%s is no parameter.\n", name);
        return NULL;
    }
    return p;
}

// One parameter, with what Adam remembers of it.
void show_parameter(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) {
        return;
    }
    size_t k = (size_t)(p - watched.model->params);
    print("%s\n", value_name(p));
    print("  value   ");
    number(*p);
    print("\n  gradient");
    number(*grad(&watched.model->tape, p));
    print("\n  Adam's m");
    number(watched.model->m[k]);
    print("\n  Adam's v");
    number(watched.model->v[k]);
    print("\n");
}

// How Adam is about to move one parameter: to be asked where adam() begins, with its arguments.
void show_adam(const char *name, int row, int column, size_t step, double lr, double beta1, double beta2, double eps)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) {
        return;
    }
    size_t k = (size_t)(p - watched.model->params);
    double g = *grad(&watched.model->tape, p), m = watched.model->m[k], v = watched.model->v[k];
    double new_m = beta1 * m + (1 - beta1) * g, new_v = beta2 * v + (1 - beta2) * g * g;
    double m_hat = new_m / (1 - pow(beta1, (double)step + 1)), v_hat = new_v / (1 - pow(beta2, (double)step + 1));
    double move = -lr * m_hat / (sqrt(v_hat) + eps);
    const struct { const char *what; double x; } rows[] = {
        {"gradient", g}, {"m was", m}, {"m = beta1 * m + (1 - beta1) * gradient", new_m},
        {"m_hat = m / (1 - beta1^(step + 1))", m_hat}, {"v was", v},
        {"v = beta2 * v + (1 - beta2) * gradient^2", new_v}, {"v_hat = v / (1 - beta2^(step + 1))", v_hat},
        {"learning rate", lr}, {"move = -lr * m_hat / (sqrt(v_hat) + eps)", move},
        {"value before", *p}, {"value after", *p + move},
    };
    print("%s at step %zu, counted from 0\n", value_name(p), step);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print("  %-42s", rows[i].what);
        number(rows[i].x);
        print("\n");
    }
}

// How small changes of a line's first or second operand change its result.
static double local_derivative(const Line *l, bool second)
{
    switch (l->op) {
    case OP_MUL: return second ? *l->a : *l->b;
    case OP_POW: return l->c * pow(*l->a, l->c - 1);
    case OP_LOG: return 1 / *l->a;
    case OP_EXP: return *l->out;
    case OP_RELU: return *l->a > 0 ? 1 : 0;
    case OP_TIMES: return l->c;
    default: return 1;
    }
}

static void print_line(const Line *l)
{
    const char *a = value_name(l->a);
    switch (l->op) {
    case OP_ADD: print("%s + %s", a, value_name(l->b)); break;
    case OP_MUL: print("%s * %s", a, value_name(l->b)); break;
    case OP_POW: print("%s ^ %g", a, l->c); break;
    case OP_LOG: print("log %s", a); break;
    case OP_EXP: print("e ^ %s", a); break;
    case OP_RELU: print("relu %s", a); break;
    case OP_PLUS: print("%s + %g", a, l->c); break;
    case OP_TIMES: print("%s * %g", a, l->c); break;
    default: print("%s %s", op_names[l->op], a); break;
    }
}

static const Line *maker(const double *value)
{
    const Tape *tape = &watched.model->tape;
    for (size_t i = tape->n_lines; i-- > 0;) {
        if (tape->lines[i].out == value) {
            return &tape->lines[i];
        }
    }
    return NULL;
}

// The first value with a name that a line's result was added up to, or else that result.
static const double *named_after(const Line *l)
{
    const Tape *tape = &watched.model->tape;
    const double *value = l->out;
    bool named = has_name(value);
    for (const Line *k = l + 1; !named && k < tape->lines + tape->n_lines; k++) {
        if (k->op == OP_ADD && (k->a == value || k->b == value)) {
            value = k->out;
            named = has_name(value);
        }
    }
    return named ? value : l->out;
}

// The lines that used a value: each one's local derivative times the gradient of what it made, and the sum of these.
static void print_users(double *value, size_t most)
{
    const Tape *tape = &watched.model->tape;
    bool known = gradients_known();
    size_t n = 0;
    double sum = 0;
    for (const Line *l = tape->lines; l < tape->lines + tape->n_lines; l++) {
        for (int second = 0; second < 2; second++) {
            if ((second ? l->b : l->a) != value) {
                continue;
            }
            double d = local_derivative(l, second), g = *grad(tape, l->out);
            sum += d * g;
            if (n++ >= most) {
                continue;
            }
            const double *whole = named_after(l);
            print("  line %td: %s = ", l - tape->lines, value_name(l->out));
            print_line(l);
            if (whole != l->out) {
                print(", a part of %s", value_name(whole));
            }
            print("\n    local derivative %.*g", watched.digits, d);
            if (known) {
                print(", times the gradient of %s, %.*g, is %.*g", value_name(l->out), watched.digits, g,
                      watched.digits, d * g);
            }
            print("\n");
        }
    }
    if (n > most) {
        print("  and %zu more\n", n - most);
    }
    if (n == 0) {
        print("  not used yet");
    } else {
        print("  used by %zu line%s of the tape", n, n == 1 ? "" : "s");
    }
    if (known && n) {
        print("; the sum is its gradient: %.*g", watched.digits, sum);
    }
    print("\n");
}

// Who used a value.
void show_users_at(double *value)
{
    if (survey() && on_tape(value)) {
        print("%s = %.*g\n", value_name(value), watched.digits, *value);
        print_users(value, 20);
    }
}

// The products that a value is the sum of, or a multiple of the sum of, in the order in which they were added.
static void print_sum(const Line *l)
{
    size_t n = 1;
    l = l->op == OP_TIMES && !has_name(l->a) && maker(l->a) ? maker(l->a) : l;
    const Line *first = l;
    for (; first && first->op == OP_ADD && (first == l || !has_name(first->out)); n++) {
        first = maker(first->a);
    }
    if (n < 3 || !first || first->op != OP_MUL) {
        return;
    }
    print("  %s is the last of %zu additions, which sum up %zu products:\n", value_name(l->out), n - 1, n);
    for (const Line *k = first; k <= l; k++) {
        if (k->op == OP_MUL) {
            print("   ");
            number(*k->a);
            print(" *");
            number(*k->b);
            print(" =");
            number(*k->out);
            print("  ");
            print_line(k);
            print("\n");
        }
    }
}

// Where a value comes from: the operation that made it, its operands, the local derivatives; and who used it.
void show_value(double *value)
{
    if (!survey()) {
        return;
    }
    if (!on_tape(value)) {
        print("This is no value of the tape: a value is a pointer to its data, like loss or &logits[5].\n");
        return;
    }
    const Line *l = maker(value);
    print("%s\n  data", value_name(value));
    number(*value);
    if (gradients_known()) {
        print("\n  grad");
        number(*grad(&watched.model->tape, value));
    }
    print("\n");
    if (!l) {
        print("  no operation made it: it is a %s\n",
              value < watched.model->params + watched.model->num_params ? "parameter" : "leaf");
    } else {
        print("  made by line %td of the tape: ", l - watched.model->tape.lines);
        print_line(l);
        print(" (%s)\n", op_names[l->op]);
        for (int second = 0; second < 2 && (second ? l->b : l->a); second++) {
            double *operand = second ? l->b : l->a;
            print("    operand %s = %.*g, local derivative %.*g\n", value_name(operand), watched.digits, *operand,
                  watched.digits, local_derivative(l, second));
        }
        print_sum(l);
    }
    print_users(value, 4);
}

void show_value_named(const char *name, int i, int j)
{
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) {
        show_value(value);
    }
}

void show_users(const char *name, int i, int j)
{
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) {
        show_users_at(value);
    }
}

// The tape, counted by operation.
void show_tape(void)
{
    if (!survey()) {
        return;
    }
    const Tape *tape = &watched.model->tape;
    size_t counts[N_OPS] = {0};
    for (size_t i = 0; i < tape->n_lines; i++) {
        counts[tape->lines[i].op]++;
    }
    for (size_t op = 0; op < N_OPS; op++) {
        if (counts[op]) {
            print("  %-8s %8zu\n", op_names[op], counts[op]);
        }
    }
    print("  %-8s %8zu lines, from %d position%s\n", "all", tape->n_lines, places.position + 1,
          places.position == 0 ? "" : "s");
}

// The layer that is looked at, and the digits of every number.
void show_layer(int layer)
{
    if (survey() && layer >= 0 && (size_t)layer < watched.model->n_layer) {
        watched.layer = layer;
    } else if (watched.model) {
        print("Layers are counted from 0, and there %s %zu.\n", watched.model->n_layer == 1 ? "is" : "are",
              watched.model->n_layer);
    }
}

void show_digits(int digits)
{
    if (digits < 1 || digits > 17) {
        print("Numbers are shown with 1 to 17 digits.\n");
        return;
    }
    watched.digits = digits;
}
