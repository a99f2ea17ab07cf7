/* holdout.c: documents that are not trained on. Their loss tells learning from memorizing. */
#define _XOPEN_SOURCE 700
#include "job.h"

// The last n_held documents are held out. Those that are also among the others do not count: they
// go to the end.
bool hold_out(Job *job, size_t n_held, const uint32_t *uchars)
{
    Documents *docs = &job->run.docs, *held_out = &job->held_out;
    size_t n_trained = docs->n - n_held;
    *held_out = (Documents){.list = docs->list + n_trained};
    if (!know_documents(job, n_trained, 0, uchars)) return false;
    for (size_t i = n_trained; i < docs->n; i++) {
        Document doc = docs->list[i];
        if (is_known_document(job, &doc, uchars)) continue;
        docs->list[i] = held_out->list[held_out->n];
        held_out->list[held_out->n++] = doc;
    }
    if (held_out->n < n_held && !job->o.quiet) {
        note("%zu of the %zu documents held out are also in the training data and are left out",
             n_held - held_out->n, n_held);
    }
    return true;
}
