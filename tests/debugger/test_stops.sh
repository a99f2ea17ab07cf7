#!/bin/sh
# Every view of the guide, at many stops of a run, drawn at random: forward, backward, Adam, sampling; in gdb, with the
# program as it is and with gpt() changed. No error, no figure that the engine does not have, no view that takes long.
# this file only with ALL=1
# needs microgpt-debug
. tests/debugger/helpers.sh
if [ ! "$have_gdb" ]; then
    skip "every view at random stops" "no gdb that can run a program"
    finish
fi
figures 1 16 4
: "${SEED:=$(date +%s)}"

# The views, as the guide's table has them; H, P and so on are drawn.
tr '|' '\n' >"$T/views" <<'END'
doc|map|here|vec|vec q P|vec head1.attn_weights|vec probs.exps P|row NAME P|row wte 24|around rmsnorm P|around residual
head H P|head H|cache|cache P|attn H P|lands H P|silence H P|silence H all|biggest moves 3|biggest gradients
vec head2.k_h P|top5|top5 P|draw|param layer0.attn_wo 3 5|moves layer0.attn_wo 3 5|explain NAME 1 P
explain layer0.attn_wo 3 5|explain loss|explain head1.attn_logits 0 P|users x_mid 0 P|users wte 24 0|graph NAME 0 P
nudge NAME 0 P|nudge head1.attn_logits[0]@P head1.attn_weights[0]@P|look watched.model->params 2|tape|digits 17|layer 0
END
for name in $(sed -n 's/^    {"\([a-z0-9]*\).*/\1/p' support/debugger/commands.c); do
    case $name in watchgrad | views | at | depth | rewind | begin) continue ;; esac
    check "the views that are asked have $name" grep -q "^$name" "$T/views"
done

# stops N: a script with N stops in the order of a run, and the views at each of them. Before each view, the time.
stops()
{
    awk -v n="$1" -v seed="$SEED" '
        function any(k) { return int(rand() * k) }
        function views(    i, text) {
            for (i = 1; i <= n_views; i++) {
                if (any(3) && i != n_views) continue
                text = view[i]
                gsub(/H/, any(4), text); gsub(/P/, any(7), text); sub(/NAME/, word[1 + any(n_words)], text)
                printf "echo @%s\\n\nshell date +%%s%%N\n%s\n", text, text
            }
            print "echo @end\\n\nshell date +%s%N"
        }
        { view[++n_views] = $0 }
        END {
            srand(seed)
            n_words = split("emb emb_norm x_norm q k v x_attn x_wo x_mid mid_norm fc1 act fc2 x_out logits", word, " ")
            print "begin"
            for (s = 0; s < n; s++) {
                kind = s < n * 0.4 ? "forward" : s < n * 0.6 ? "backward" : s < n * 0.75 ? "adam" : "sampling"
                if (kind == "forward") {
                    n_places = split("ag_row_dots softmax rmsnorm ag_weighted_sum ag_copy sum_of_products mul_forward", f, " ")
                    printf "tbreak %s\nignore $bpnum %d\ncontinue\n", f[1 + any(n_places)], any(60)
                } else if (kind == "backward") {
                    printf "tbreak %s\nignore $bpnum %d\ncontinue\n", any(2) ? "mul_backward" : "add_backward", any(4000)
                } else if (kind == "adam") {
                    if (any(2)) printf "tbreak adam\ncontinue\nnext %d\n", any(20); else print "tbreak after_step\ncontinue"
                } else {
                    if (!sampled++) print "delete\ntbreak infer\ncontinue"
                    printf "tbreak %s\nignore $bpnum %d\ncontinue\n", any(2) ? "choose_token" : "ag_weighted_sum", any(3)
                }
                views()
            }
        }' "$T/views"
}

# judged WHAT: the session that has just been.
judged()
{
    same "$1: no error" "" "$(grep -n 'Error\|No symbol\|Undefined\|SIGSEGV\|SIGABRT\|being debugged\|nan\|ANOTHER\|DIFFER' "$T/session" | head -n 5)"
    asked=$(grep -c '^@' "$T/session")
    check "$1: $asked views were asked (seed $SEED)" [ "$asked" -gt "$2" ]
    same "$1: none took longer than a second" "" "$(awk '/^@/ { view = $0; getline; if (last && $1 - last > 1e9) print name, ($1 - last) / 1e9
        last = view == "@end" ? 0 : $1; name = view }' "$T/session")"
}

stops 50 >"$T/script"
ask '--steps 90 --samples 60' <"$T/script"
judged "as it is" 300
changed shared 's/double \*k_h = keys\[li\] + hs;/double *k_h = keys[li] + h \/ 2 * 2 * head_dim;/
    s/x = ag_relu(tape, x, \([a-z_]*\));/x = ag_log(tape, ag_add_const(tape, ag_exp(tape, x, \1), 1, \1), \1);/'
SEED=$((SEED + 1))
stops 16 | ask_in shared '--steps 90 --samples 60'
judged "with a changed gpt()" 90
finish
