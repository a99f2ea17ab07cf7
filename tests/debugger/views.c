/* Views for the debugger: what one can ask of a run that has stopped, in the build that `make debug` makes. It is a
 * part of microgpt.c, which includes it there. Each view is a function that any debugger can call; .gdbinit and .lldbinit
 * give them short names. All they need is on the tape, which in this build has a line for every single + and *, and in
 * the notes that names.h takes: so the algorithm in microgpt.c is as it always is.
 *
 * Where a view takes a position, LATEST is the one that gpt() was called for last.
 */
#undef linear_into
#undef linear
#undef softmax
#undef rmsnorm
#undef gpt

enum { LATEST = -1, NONE = -1 };

static struct {
    Model *model;
    const Tokenizer *tokenizer;
    int layer;           // the one whose heads and vectors are shown
    int digits;          // of every number shown
    double *gradient;    // the one that `watchgrad` watches
    double gained;       // and what it was at the last stop
} watched = {.digits = 6};

static void watch(Model *model, const Tokenizer *tokenizer)
{
    watched.model = model;
    watched.tokenizer = tokenizer;
}

/* ------------------------------------------------------------------------------------------------------------------
 * What is shown: on standard output, in lines of at most WIDTH columns. The program's own output is buffered elsewhere,
 * and does not mix with it within a line.
 */
enum { WIDTH = 79 };

// Puts a line out, and breaks it at spaces if it is too long, unless more digits were asked for.
static void print_broken(const char *line)
{
    for (const char *indent = "";; indent = "      ") {
        size_t column = strlen(indent), cut = 0, end = 0;
        for (; line[end] && (column <= WIDTH || watched.digits > 6); end++) {
            cut = line[end] == ' ' && end > 0 && line[end - 1] != ' ' && column < WIDTH ? end : cut;
            column += (line[end] & 0xc0) != 0x80;              // characters, not bytes
        }
        if (!line[end] && (column <= WIDTH || watched.digits > 6)) {
            cut = 0;
        }
        size_t length = cut ? cut : strlen(line);
        while (length > 0 && line[length - 1] == ' ') {
            length--;
        }
        printf("%s%.*s\n", indent, (int)length, line);
        if (!cut) {
            break;
        }
        line += cut + strspn(line + cut, " ");
    }
}

// How many bytes of a text fit so many columns.
static int print_width(const char *text, int columns)
{
    int n = 0;
    for (; text[n] && (columns > 0 || (text[n] & 0xc0) == 0x80); n++) {
        columns -= (text[n] & 0xc0) != 0x80;
    }
    return n;
}

static void print(const char *format, ...) PRINTF_LIKE(1, 2);
static void print(const char *format, ...)
{
    static char text[1024];                                    // the line so far
    static size_t n;
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text + n, sizeof text - n, format, args);
    va_end(args);
    n = length < 0 || n + (size_t)length >= sizeof text ? sizeof text - 1 : n + (size_t)length;
    char *line = text;
    for (char *end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
        *end = '\0';
        print_broken(line);
        line = end + 1;
    }
    n = strlen(line);
    memmove(text, line, n + 1);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The source, which has the names.
 */
static struct { char *text; char **lines; int n; } source;

// The text of a line of microgpt.c, counted from 1, without its indentation. "" if it cannot be read.
static const char *source_line(int line)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    int file = source.text ? -1 : open_file("microgpt.c", O_RDONLY);
    if (file >= 0 && read_all(file, &bytes, &n, "microgpt.c") && n > 0) {
        source.text = (char *)bytes;
        source.lines = malloc(n * sizeof *source.lines);
        source.text[n - 1] = '\0';                             // its last byte ends a line
        for (char *s = source.text; s && source.lines; s = strchr(s, '\n')) {
            *s = s > source.text ? '\0' : *s;
            s += s > source.text;
            source.lines[source.n++] = s;
        }
    }
    if (file >= 0) {
        close(file);
    }
    return line >= 1 && line <= source.n ? source.lines[line - 1] + strspn(source.lines[line - 1], " ") : "";
}

// The first line with a text in a function's definition; 0 if there is none. The debuggers' commands use it, too.
int line_of(const char *function, const char *text)
{
    enum { OUTSIDE, HEADER, BODY } where = OUTSIDE;
    char start[64];
    snprintf(start, sizeof start, "%s(", function);
    source_line(1);
    for (int i = 0; i < source.n; i++) {
        const char *line = source.lines[i], *at = line[0] == ' ' ? NULL : strstr(line, start);
        size_t length = strlen(line);
        where = where == OUTSIDE && at && at > line && strchr(" *", at[-1]) ? HEADER : where;
        where = where == HEADER && length > 0 && line[length - 1] == ';' ? OUTSIDE : where;
        where = where == HEADER && line[0] == '{' ? BODY : where;
        if (where == BODY && strstr(line, text)) {
            return i + 1;
        }
        where = where == BODY && line[0] == '}' ? OUTSIDE : where;
    }
    return 0;
}

// The identifier that a text begins with; NULL if it does not.
static const char *identifier(const char *text, size_t *length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    *length = strspn(text, letters);
    *length += *length ? strspn(text + *length, "0123456789") : 0;
    *length += *length ? strspn(text + *length, letters) : 0;
    return *length ? text : NULL;
}

// Whether a line of the source is a comment and nothing else.
static bool is_comment(int line)
{
    return strncmp(source_line(line), "// ", 3) == 0;
}

// Whether a statement can begin after a line: it ends one, or is empty, or a comment.
static bool ends_statement(int line)
{
    const char *text = source_line(line), *comment = strstr(text, "// ");
    size_t n = comment ? (size_t)(comment - text) : strlen(text);
    while (n > 0 && text[n - 1] == ' ') {
        n--;
    }
    return n == 0 || strchr(";{}", text[n - 1]);
}

// Where the statement begins that a line is a part of.
static int statement_start(int line)
{
    while (line > 1 && !ends_statement(line - 1)) {
        line--;
    }
    return line;
}

// The comment on a statement, beside its first line or above it, without the number of the lesson's line; NULL if there
// is none.
static const char *comment_on(int line)
{
    const char *comment = strstr(source_line(line), "// ");
    comment = !comment && is_comment(line - 1) ? source_line(line - 1) : comment;
    if (comment) {
        comment += 3;
        size_t digits = strspn(comment, "0123456789");
        comment += digits && comment[digits] == ':' ? digits + 2 : 0;
    }
    return comment;
}

// The name of what a statement makes, and what is said of it. It is what its comment begins with, before a colon; or
// else what it assigns to; or else, where it assigns nothing, what it names after the tape. False if it has none.
static bool name_in_source(int line, char name[40], const char **meaning)
{
    line = statement_start(line);
    const char *text = source_line(line), *comment = comment_on(line), *given = NULL;
    const char *equals = strstr(text, " = "), *end = text + strlen(text);
    equals = !equals && end - text > 2 && strcmp(end - 2, " =") == 0 ? end - 2 : equals;
    const char *into = equals ? NULL : strstr(text, "(tape, ");
    size_t length = 0;
    *meaning = comment ? comment : "";
    if (comment && identifier(comment, &length) && comment[length] == ':') {
        given = comment;
        *meaning = comment + length + 1 + strspn(comment + length + 1, " ");
    } else if (equals) {
        const char *start = equals;
        while (start > text && start[-1] != ' ' && start[-1] != '*') {
            start--;
        }
        given = identifier(start, &length) && start + length == equals ? start : NULL;
    } else if (into && strncmp(text, "return", 6) != 0) {
        given = identifier(into + 7, &length);
        given = given && given[length] == ',' ? given : NULL;
    }
    if (given) {
        snprintf(name, 40, "%.*s", (int)length, given);
    }
    return given != NULL;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The notes, and the vectors that they lead to.
 */
static struct {
    Note *all;
    size_t n, room;
    struct { const char *operation; size_t note; } open[8];    // operations that have not ended yet, and their notes
    size_t n_open;
    size_t pos_id, pos_lines;              // what gpt() was called for last, and how long the tape was then
} notes = {.pos_id = NOWHERE};

static void *more_room(void *all, size_t *room, size_t size)
{
    *room = *room ? 2 * *room : 256;
    all = realloc(all, *room * size);
    if (!all) {
        abort();
    }
    return all;
}

// The tape has been dropped since the last note.
static bool notes_are_old(const Tape *tape)
{
    const Note *last = notes.n > 0 ? &notes.all[notes.n - 1] : NULL;
    return last && (tape->n_lines < last->n_lines || tape->n_values < last->n_values);
}

// The gradient of the first value after the mark. backward() sets it to zero before anything else; until then it has
// the number that says so.
#define NO_GRADIENT 1e300
static double *first_gradient(const Tape *tape)
{
    return grad(tape, tape->data + tape->first_value);
}

static void note_operation(const Tape *tape, const char *operation, Note noted)
{
    bool inside = tape->counting || tape->first_value == 0;    // or a part of an operation that has its note
    for (size_t i = 0; i < notes.n_open; i++) {
        inside = inside || strcmp(notes.open[i].operation, noted.function) == 0;
    }
    if (!inside && (notes.n == 0 || notes_are_old(tape))) {
        notes.n = 0;
        *first_gradient(tape) = NO_GRADIENT;
    }
    if (notes.n == notes.room) {
        notes.all = more_room(notes.all, &notes.room, sizeof *notes.all);
    }
    if (notes.n_open == sizeof notes.open / sizeof notes.open[0]) {
        abort();
    }
    notes.open[notes.n_open].operation = operation;
    notes.open[notes.n_open++].note = inside ? NOWHERE : notes.n;
    if (!inside) {
        notes.all[notes.n++] = noted;
    }
}

static double *made(double *result)
{
    size_t i = notes.open[--notes.n_open].note;
    if (i < notes.n) {
        notes.all[i].result = result;
    }
    return result;
}

static void note_position(const Tape *tape, size_t pos)
{
    notes.pos_id = pos;
    notes.pos_lines = tape->n_lines;
}

// The position that gpt() was called for last, since the tape was dropped; NONE if it was not.
static int latest_position(void)
{
    return watched.model && notes.pos_id != NOWHERE && watched.model->tape.n_lines >= notes.pos_lines
               ? (int)notes.pos_id : NONE;
}

// A vector: its name, and where it is in memory.
typedef struct {
    char name[40];
    const char *meaning;
    int line;                        // of the source
    int layer, head, position;       // NONE: it belongs to none
    double *at;                      // [n]
    size_t n;
    const Line *from, *to;           // the lines of the tape that made it
} Place;

static struct { Place *all; size_t n, room; unsigned char *used; size_t used_room; } places;

static void add_place(Place place)
{
    if (places.n == places.room) {
        places.all = more_room(places.all, &places.room, sizeof *places.all);
    }
    places.all[places.n++] = place;
}

static int number_or_none(size_t number)
{
    return number == NOWHERE ? NONE : (int)number;
}

// What a span of the tape made: those results that the span itself has not used up.
static void find_results(Place *place)
{
    double *data = watched.model->tape.data;
    for (const Line *l = place->from; l < place->to; l++) {
        places.used[l->out - data] = 0;
    }
    for (const Line *l = place->from; l < place->to; l++) {
        places.used[l->a - data] = 1;
        places.used[(l->b ? l->b : l->a) - data] = 1;
    }
    for (const Line *l = place->from; l < place->to; l++) {
        if (!places.used[l->out - data]) {
            place->at = place->n == 0 || l->out < place->at ? l->out : place->at;
            place->n++;
        }
    }
}

// Samples are made with the cache before the mark, and forget each position's lines before the next.
static bool sampling(void)
{
    const Tape *tape = &watched.model->tape;
    double *cache = watched.model->keys[0];
    return cache && cache >= tape->data && cache < tape->data + tape->first_value;
}

// Finds every vector that there is. False, with a word to the learner, where there is no model yet.
static bool survey(void)
{
    if (!watched.model) {
        print("There is no model yet: stop in train_step, or later.\n");
        return false;
    }
    Model *model = watched.model;
    Tape *tape = &model->tape;
    if (tape->fused) {
        print("This command works with whole vectors: see the views in training and in sampling.\n");
        return false;
    }
    int last = latest_position();
    if (places.used_room < tape->max_values) {
        places.used_room = tape->max_values;
        free(places.used);
        places.used = calloc(places.used_room, 1);
        if (!places.used) {
            abort();
        }
    }
    places.n = 0;
    source_line(1);
    for (int t = 0; sampling() && t < last; t++) {             // what is left of the positions before
        for (int layer = 0; (size_t)layer < model->n_layer; layer++) {
            size_t at = (size_t)t * model->n_embd;
            add_place((Place){"k", "", 0, layer, NONE, t, model->keys[layer] + at, model->n_embd, NULL, NULL});
            add_place((Place){"v", "", 0, layer, NONE, t, model->values[layer] + at, model->n_embd, NULL, NULL});
        }
    }
    for (size_t i = 0; !notes_are_old(tape) && i < notes.n; i++) {
        const Note *noted = &notes.all[i], *next = i + 1 < notes.n ? noted + 1 : NULL;
        Place place = {.line = noted->line, .layer = number_or_none(noted->li), .head = number_or_none(noted->h),
                       .position = number_or_none(noted->pos_id), .from = tape->lines + noted->n_lines,
                       .to = tape->lines + (next ? next->n_lines : tape->n_lines)};
        if (!noted->result || !name_in_source(noted->line, place.name, &place.meaning)) {
            continue;                                          // at work, or not named
        }
        if (noted->n_leaves > 0) {
            place.at = noted->result;
            place.n = noted->n_leaves;
            place.to = place.from;
        } else {
            find_results(&place);
        }
        if (place.n > 0) {
            add_place(place);
        }
    }
    if (source.n == 0) {
        print("The names are in microgpt.c, and it cannot be read: start the debugger in the project's folder.\n");
    }
    return true;
}

// The vector of that name, which may begin with layerN. and headN.; NULL if it is not there.
static const Place *find_place(const char *name, int position)
{
    int layer = watched.layer, head = NONE, length = 0;
    if (sscanf(name, "layer%d.%n", &layer, &length) == 1 && length) {
        name += length;
    }
    length = 0;
    if (sscanf(name, "head%d.%n", &head, &length) == 1 && length) {
        name += length;
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

static const char *token_text(size_t token);
static size_t token_at(int position);

// The same, with a word where there is none, or where it is of an earlier position than one might think.
static const Place *need_place(const char *name, int position)
{
    const Place *place = find_place(name, position);
    if (!place && position == LATEST) {
        print("%s: there is none yet: step on, or see `vec` for the names there are.\n", name);
    } else if (!place) {
        print("%s at position %d: there is none yet, or no such position; see `vec` for the names.\n", name, position);
    } else if (position == LATEST && place->position != NONE && place->position < latest_position()) {
        print("(Position %d has not come to %s yet. This is position %d.)\n", latest_position(), place->name,
              place->position);
    }
    return place;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Names for people.
 */
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

// The vector that a value is in; NULL if it is in none.
static const Place *place_of(const double *value)
{
    for (size_t i = 0; i < places.n; i++) {
        const Place *p = &places.all[i];
        if (value >= p->at && value < p->at + p->n) {
            return p;
        }
    }
    return NULL;
}

// The first vector that another was made from; NULL if it was made from parameters alone.
static const Place *operand_of(const Place *place)
{
    for (const Line *l = place->from; l < place->to; l++) {
        for (int second = 0; second < 2; second++) {
            const double *operand = second ? l->b : l->a;
            const Place *p = operand ? place_of(operand) : NULL;
            if (p && p != place) {
                return p;
            }
        }
    }
    return NULL;
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
    const Place *p = place_of(value);
    if (p) {
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
    const char *last = strrchr(name, '.'), *meaning;
    last = last ? last + 1 : name;
    source_line(1);
    for (int line = 1; line <= source.n; line++) {             // any that gpt() will make
        char given[40];
        if (name_in_source(line, given, &meaning) && strcmp(given, last) == 0 &&
            strstr(source_line(line), "(tape, ")) {
            return true;
        }
    }
    return name[0] == 'v' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

// A number in its column, and the column's heading.
static void number(double x)
{
    print(" %*.*g", watched.digits + 6, watched.digits, x);
}

static void heading(const char *text)
{
    print(" %*s", watched.digits + 6, text);
}

// Whether backward() has come by: it clears the mark that the first note has left.
static bool gradients_known(void)
{
    const Tape *tape = &watched.model->tape;
    return !sampling() && notes.n > 0 && !notes_are_old(tape) && *first_gradient(tape) != NO_GRADIENT;
}

// Whether Adam has come by after that, and cleared the gradients of all parameters.
static bool gradients_cleared(void)
{
    const Model *model = watched.model;
    for (size_t i = 0; i < model->num_params; i++) {
        if (*grad(&model->tape, model->params + i) != 0) {
            return false;
        }
    }
    return gradients_known();
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
        {"vec NAME [POS]", "a vector with data and gradient; alone, the names"},
        {"row NAME [POS]", "the same without gradients, four in a row"},
        {"around OP [POS]", "before and after an operation: rmsnorm, wq, wo ..."},
        {"head H [POS]", "one head's slice of q, and of each k and v"},
        {"cache [POS]", "the cache of keys and values, or one position of it"},
        {"attn H [POS]", "one head's logits and weights beside their characters"},
        {"lands H [POS]", "where a head's output lands in x_attn"},
        {"top5 [POS]", "the five likeliest next characters"},
        {"param NAME ROW COL", "a parameter: value, gradient, Adam's m and v"},
        {"moves NAME ROW COL", "how Adam moves it; to be asked where adam() begins"},
        {"watchgrad NAME ROW COL", "stop whenever its gradient changes, with the reason"},
        {"explain VALUE", "what made a value, from what, and who used it"},
        {"users VALUE", "who used a value, with local derivatives"},
        {"nudge VALUE", "its gradient, and what the loss does if it is moved"},
        {"look EXPR [N]", "N values from a pointer on: data, gradient, name"},
        {"tape", "the tape, counted by operation"},
        {"layer L, digits N", "which layer to show, and how many digits"},
        {"views", "this list; help COMMAND says more"},
    };
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        print("  %-22s %s\n", views[i][0], views[i][1]);
    }
    print("POS is a position; without it, the latest. VALUE is  logits 5 [POS],\n"
          "layer0.attn_wo 3 5,  loss,  v123 (a value that has no name), or C\n"
          "without spaces, like  &logits[5].\n");
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
        n = (size_t)(latest_position() + 1);
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
        print("No document has been taken yet: stop in document_loss, or later.\n");
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
        print("  %5u  %-5s", model->tokens[i + 1], token_text(model->tokens[i + 1]));
        print((int)i == latest_position() ? "  <- gpt() was called for this one last\n" : "\n");
    }
}

// The names of all vectors, as gpt() makes them: of the first head, and of the layer that is shown.
void show_vectors(void)
{
    if (!survey()) {
        return;
    }
    bool any = false;
    for (size_t i = 0; i < places.n; i++) {
        const Place *p = &places.all[i];
        char name[64];
        snprintf(name, sizeof name, "%s%s", p->head == 0 ? "head0." : "", p->name);
        if (p->head > 0 || (p->layer != NONE && p->layer != watched.layer) || find_place(name, LATEST) != p) {
            continue;
        }
        any = true;
        char size[40];
        snprintf(size, sizeof size, p->position == NONE ? "[%zu]" : "[%zu] at %d", p->n, p->position);
        int length = print_width(p->meaning, WIDTH - 2 - 20 - 11);
        print("  %-19s %-10s %.*s\n", name, size, length, p->meaning);
    }
    if (!any) {
        print("There are none yet: step on.\n");
    }
}

// The title of a vector.
static void title(const char *name, const Place *p)
{
    print("%s", name);
    if (p->position != NONE) {
        print(" at position %d (%s)", p->position, token_text(token_at(p->position)));
    }
    print("\n");
}

// One vector, with data and gradient.
void show_vector(const char *name, int position)
{
    const Place *p = survey() ? need_place(name, position) : NULL;
    if (!p) {
        return;
    }
    bool known = gradients_known();
    title(name, p);
    print("    i");
    headings("data", known);
    print("\n");
    for (size_t i = 0; i < p->n; i++) {
        print("  %3zu", i);
        data_and_grad(p->at + i, known);
        element_label(p, i);
    }
}

// The same in few lines: the numbers alone.
void show_row(const char *name, int position)
{
    const Place *p = survey() ? need_place(name, position) : NULL;
    if (!p) {
        return;
    }
    title(name, p);
    for (size_t i = 0; i < p->n; i++) {
        if (i % 4 == 0) {
            print("  [%2zu]", i);
        }
        number(p->at[i]);
        if (i % 4 == 3 || i + 1 == p->n) {
            print("\n");
        }
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

// Vectors before and after one operation of the model: every line of the source that has its name.
void show_around(const char *operation, int position)
{
    size_t n_shown = 0;
    bool known = survey() && gradients_known();
    int asked = position;
    for (size_t k = 0; watched.model && k < places.n; k++) {
        const Place *p = &places.all[k];
        if (asked == LATEST && p->from && p->head == NONE && operand_of(p) && strstr(source_line(p->line), operation)) {
            position = p->position;
        }
    }
    for (size_t k = 0; watched.model && k < places.n; k++) {
        const Place *after = &places.all[k], *before = operand_of(after);
        if (after->position != position || after->head != NONE || !before ||
            !strstr(source_line(after->line), operation) ||
            (after->layer != NONE && after->layer != watched.layer)) {
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
    if (watched.model && !n_shown) {
        print("%s: no line of gpt() with this text has come by yet, or there is no such position. Try rmsnorm, wq, wo, "
              "residual, fc1, relu, lm_head, softmax.\n", operation);
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
    print("layer %d, head %d at position %d (%s): hs = %d * %zu = %zu, its slices are [%zu] to [%zu]\n", q->layer, head,
          q->position, token_text(token_at(q->position)), head, head_dim, hs, hs, hs + head_dim - 1);
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
    size_t few = watched.model->n_embd < 2 ? watched.model->n_embd : 2;
    while (find_place("k", n) && find_place("v", n)) {
        n++;
    }
    print("layer %d: %d position%s in the cache\n", watched.layer, n, n == 1 ? "" : "s");
    for (int t = 0; t < n && position == LATEST; t++) {
        const Place *k = find_place("k", t), *v = find_place("v", t);
        print(" %3d %-4s key", t, token_text(token_at(t)));
        for (size_t i = 0; i < few; i++) {
            number(k->at[i]);
        }
        print(" ... value");
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
    print("layer %d, head %d at position %d (%s) looks at\n    t       ", logits->layer, head, logits->position,
          token_text(token_at(logits->position)));
    heading("logit");
    heading("weight");
    print("\n");
    for (size_t t = 0; t < logits->n; t++) {
        print("  %3zu  %-4s ", t, token_text(token_at((int)t)));
        number(logits->at[t]);
        number(weights->at[t]);
        int width = weights->at[t] > 0 ? (int)(weights->at[t] * 36 + 0.5) : 0;
        print("  %.*s\n", width, "####################################");
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
    const Place *out = need_place(name, position);
    if (!out) {
        return;
    }
    bool known = gradients_known();
    size_t head_dim = watched.model->head_dim;
    print("layer %d, x_attn at position %d (%s):", out->layer, out->position, token_text(token_at(out->position)));
    for (size_t h = 0; h < watched.model->n_head; h++) {
        print(h == (size_t)head ? " *[%zu..%zu]*" : " [%zu..%zu]", h * head_dim, (h + 1) * head_dim - 1);
    }
    print("\n");
    const Tape *tape = &watched.model->tape;
    for (const Line *l = out->to; l < tape->lines + tape->n_lines && l->op == OP_COPY; l++) {
        const Place *row = place_of(l->out);
        if (row && l->a >= out->at && l->a < out->at + out->n) {
            print("  head %d: head_out[%td] -> %s[%td]", head, l->a - out->at, row->name, l->out - row->at);
            data_and_grad(l->out, known);
            print("\n");
        }
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
    const Place *probs = find_place("probs", logits->position), *scores = probs ? operand_of(probs) : logits;
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
    if (scores != logits) {                // a sample: what softmax has read is the logits over the temperature
        heading(scores->name);
    }
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
        if (scores != logits) {
            number(scores->at[best]);
        }
        number(probs ? probs->at[best] : exp(logits->at[best] - max) / total);
        print("%s\n", !sampling() && best == watched.model->tokens[logits->position + 1] ? "  comes next" : "");
    }
}

static double *find_parameter(const char *name, int row, int column)
{
    const Model *model = watched.model;
    for (size_t k = 0; k < model->n_matrices; k++) {
        if (strcmp(model->state_dict[k].name, name) == 0) {
            return find_value(name, row, column);
        }
    }
    print("%s is no parameter. The matrices are", name);
    for (size_t k = 0; k < model->n_matrices; k++) {
        print(" %s", model->state_dict[k].name);
    }
    print(".\n");
    return NULL;
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
    print("%s", gradients_cleared() ? "  cleared by adam() for the next step" : "");
    print("\n  Adam's m");
    number(watched.model->m[k]);
    print("\n  Adam's v");
    number(watched.model->v[k]);
    print("\n");
}

// How Adam is about to move one parameter: to be asked where adam() begins, with its arguments. Its eps is not an
// argument, and not set there yet.
void show_adam(const char *name, int row, int column, double lr, double beta1, double beta2)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    if (!p) {
        return;
    }
    size_t k = (size_t)(p - watched.model->params), step = watched.model->steps_done;
    double eps = 1e-8;
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
    case OP_MUL_CONST: return l->c;
    case OP_ADD: case OP_ADD_CONST: case OP_COPY: return 1;
    default: break;
    }
    // An operation that is new: what its own backward adds, to a copy of the line on values of its own.
    double values[] = {*l->a, l->b ? *l->b : 0, *l->out, 0, 0, 1};
    Line alone = *l;
    alone.n = 1;
    alone.a = values;
    alone.b = values + 1;
    alone.out = values + 2;
    operations[l->op].backward(&(Tape){.max_values = 3}, &alone);
    return values[second ? 4 : 3];
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
    case OP_COPY: print("copy of %s", a); break;
    case OP_ADD_CONST: print("%s + %g", a, l->c); break;
    case OP_MUL_CONST: print("%s * %g", a, l->c); break;
    default: print("%s %s", operations[l->op].name, a); break;
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
            print("  line %td: ", l - tape->lines);
            print_line(l);
            print(whole == l->out ? ", which is %s" : ", a part of %s", value_name(whole));
            print("\n    local derivative %.*g", watched.digits, d);
            if (known) {
                print(" times gradient %.*g is %.*g", watched.digits, g, watched.digits, d * g);
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
    l = l->op == OP_MUL_CONST && !has_name(l->a) && maker(l->a) ? maker(l->a) : l;
    const Line *first = l;
    for (; first && first->op == OP_ADD && (first == l || !has_name(first->out)); n++) {
        first = maker(first->a);
    }
    if (n < 3 || !first || first->op != OP_MUL) {
        return;
    }
    const Line *last = l->op == OP_ADD ? maker(l->b) : l;
    print("  It ends a sum of %zu products. The first and the last of them:\n    ", n);
    print_line(first);
    print("\n    ");
    print_line(last && last->op == OP_MUL ? last : first);
    print("\n");
    for (const Line *k = first; k <= l; k++) {
        if (k->op == OP_MUL) {
            print("   ");
            number(*k->a);
            print(" *");
            number(*k->b);
            print(" =");
            number(*k->out);
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
        print(" (%s)\n", operations[l->op].name);
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

// The loss if a value were another number: all lines after the one that made it are computed anew.
static double loss_with(double *value, double number, const double *loss)
{
    const Tape *tape = &watched.model->tape;
    const Line *made_it = maker(value);
    size_t i = made_it ? (size_t)(made_it - tape->lines) + 1 : tape->first_line;
    *value = number;
    for (; i < tape->n_lines; i++) {
        operations[tape->lines[i].op].forward(&tape->lines[i]);
    }
    return *loss;
}

// A value is moved a little to both sides: what the loss does then is its derivative, whatever backward() says.
void show_nudge_at(double *value)
{
    const Place *loss = survey() && on_tape(value) ? find_place("loss", LATEST) : NULL;
    bool parameter = loss && value < watched.model->params + watched.model->num_params;
    if (!loss || !gradients_known() || (parameter && gradients_cleared())) {
        print("There is no loss with its gradients here: stop where adam() begins.\n");
        return;
    }
    double before = *value, h = 1e-5, gradient = *grad(&watched.model->tape, value);
    double up = loss_with(value, before + h, loss->at), down = loss_with(value, before - h, loss->at);
    double slope = (up - down) / (2 * h);
    loss_with(value, before, loss->at);
    print("%s = %.*g\n", value_name(value), watched.digits, before);
    print("  the loss, if it is %g more   %.15g\n  the loss, if it is %g less   %.15g\n", h, up, h, down);
    print("  their difference over %g     %.*g\n", 2 * h, watched.digits, slope);
    print("  its gradient, by backward()  %.*g\n", watched.digits, gradient);
    print("  %s\n", fabs(slope - gradient) <= 1e-8 + 1e-4 * fabs(slope) ? "They agree." : "THEY DIFFER.");
}

void show_nudge(const char *name, int i, int j)
{
    double *value = survey() ? find_value(name, i, j) : NULL;
    if (value) {
        show_nudge_at(value);
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
            print("  %-10s %8zu\n", operations[op].name, counts[op]);
        }
    }
    int positions = 0;
    for (size_t i = 0; i < places.n; i++) {
        positions = places.all[i].position >= positions ? places.all[i].position + 1 : positions;
    }
    print("  %-10s %8zu lines, from %d position%s\n", "all", tape->n_lines, positions, positions == 1 ? "" : "s");
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

// The gradient of a parameter, to be watched by the debugger; NULL if there is none.
double *watch_gradient(const char *name, int row, int column)
{
    double *p = survey() ? find_parameter(name, row, column) : NULL;
    watched.gradient = p ? grad(&watched.model->tape, p) : NULL;
    watched.gained = p ? *watched.gradient : 0;
    if (p) {
        print("The gradient of %s is %.*g now.\n", value_name(p), watched.digits, watched.gained);
    }
    return watched.gradient;
}

// If that gradient has changed since it was asked for last: which line of the tape did it, and by how much. backward()
// reads the tape from its end, so these are the uses of the parameter from the last on.
void show_gain(void)
{
    if (!watched.gradient || *watched.gradient == watched.gained || !survey()) {
        return;
    }
    const Tape *tape = &watched.model->tape;
    double *p = watched.gradient - tape->max_values, now = *watched.gradient, sum = 0, addend = 0, off = 0;
    const Line *found = NULL;
    size_t n = 0, n_users = 0;
    for (const Line *l = tape->lines + tape->n_lines; l-- > tape->lines + tape->first_line;) {
        for (int second = 0; second < 2; second++) {
            if ((second ? l->b : l->a) != p) {
                continue;
            }
            n_users++;
            double part = local_derivative(l, second) * *grad(tape, l->out);
            sum += part;
            if (!found || fabs(sum - now) < off) {             // what is still to come is zero so far
                found = l;
                n = n_users;
                addend = part;
                off = fabs(sum - now);
            }
        }
    }
    print("The gradient of %s was %.*g and is now %.*g.\n", value_name(p), watched.digits, watched.gained,
          watched.digits, now);
    if (now == 0) {
        print("  adam() has cleared it for the next step.\n");
    } else if (found) {
        const double *whole = named_after(found);
        print("  line %td: ", found - tape->lines);
        print_line(found);
        print(whole == found->out ? ", which is %s" : ", a part of %s", value_name(whole));
        print("\n  adds %.*g, as use %zu of %zu, counted from the end\n", watched.digits, addend, n, n_users);
    }
    watched.gained = now;
}

// A statement of the source for the walk: where it is, the code, and what its comment says.
void show_source(const char *function, int line)
{
    line = statement_start(line);
    const char *comment = is_comment(line - 1) && !strstr(source_line(line), "// ") ? source_line(line - 1) : NULL;
    print("microgpt.c:%d, in %s()\n   ", line, function);
    for (bool more = true; more && line < source.n; line++) {
        const char *text = source_line(line), *beside = strstr(text, "// ");
        int length = (int)(beside ? (size_t)(beside - text) : strlen(text));
        while (length > 0 && text[length - 1] == ' ') {
            length--;
        }
        print(" %.*s", length, text);
        comment = beside ? beside : comment;
        more = !ends_statement(line);
    }
    print("\n");
    if (comment) {
        print("    %s\n", comment);
    }
}
