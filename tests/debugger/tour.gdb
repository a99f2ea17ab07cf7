# The guided walk of `make tour`: one training step and one sampled name. .gdbinit has been read before this file.
# A stop runs to its place, shows the line of the source, says what happens there, and shows the numbers of this run.

set $stop = 0
set $stops = 18

# Run on to the breakpoint that was set last, and select the function that called: its line is where we are.
define arrive
  pipe -d @ continue @ cat >/dev/null
  up-silently
  where_we_are
end

define where_we_are
  printf "\n==== %d of %d ====\n", $stop, $stops
  set print frame-arguments presence
  set print address off
  frame
  set print address on
  set print frame-arguments scalars
  echo \n
end

# Leave the function that we arrived in, and end the line that called it.
define work
  pipe -d @ frame 0 @ cat >/dev/null
  pipe -d @ finish @ cat >/dev/null
  pipe -d @ next @ cat >/dev/null
end

# Enter goes on. Anything else is a command: it is run, and the walk waits until `go`.
define ask
  shell line=; if [ -t 0 ] && [ -t 1 ]; then \
    printf '\n[Enter: go on; or any command, then go; q: quit] '; IFS= read -r line || line=q; fi; \
    if [ "$line" ]; then printf 'set $walking = 0\n%s\n' "$line"; fi >tests/build/tour-answer
  source tests/build/tour-answer
end

define go
  set $walking = 1
  while $walking && $stop < $stops
    set $stop = $stop + 1
    eval "stop_%d", $stop
    if $stop < $stops
      ask
    end
  end
  if $stop == $stops
    echo \nThat was the walk. `make debug` is the same place without a guide; `views` lists\n
    echo the commands.\n
  end
end
document go
Go on with the walk, to its next stop.
end

define stop_1
  pipe -d @ tbreak train_step @ cat >/dev/null
  pipe -d @ run @ cat >/dev/null
  where_we_are
  echo A training step begins. Its document is one name, a row of characters, and\n
  echo every character has a number: its token. The token BOS stands before and\n
  echo behind it. From each token, and those before it, the model is to say which one\n
  echo comes next.\n\n
  doc
end

define stop_2
  pipe -d @ tbreak gpt if pos_id == 3 @ cat >/dev/null
  pipe -d @ continue @ cat >/dev/null
  pipe -d @ tbreak v_add @ cat >/dev/null
  arrive
  echo Embedding. We join at position 3, after three tokens have passed through. The\n
  echo token picks a row of the matrix wte, the position a row of wpe; their sum is\n
  echo how the model sees "this character, at this place".\n\n
  work
  vec emb
  explain emb 0
end

define stop_3
  pipe -d @ tbreak rmsnorm @ cat >/dev/null
  arrive
  echo rmsnorm. The vector keeps its direction and gets the size 1: it is divided by\n
  echo the root of the mean of its squares. So no later step has to cope with numbers\n
  echo that grow or fade from layer to layer.\n\n
  work
  around rmsnorm
end

define stop_4
  pipe -d @ tbreak linear if w == watched.model->layers[0].attn_wq @ cat >/dev/null
  arrive
  echo Query, key, value. Three matrices read the same vector. The query says what\n
  echo this position looks for, the key what it can be found by, the value what it\n
  echo hands on. Each element is a row of the matrix times x_norm, added up.\n\n
  work
  vec q
end

define stop_5
  pipe -d @ tbreak v_linear if w == watched.model->layers[0].attn_wv @ cat >/dev/null
  arrive
  echo The cache. The key and the value of this position are put behind those of the\n
  echo positions before. That is all a later position can know of an earlier one, and\n
  echo nothing of the past is computed twice.\n\n
  work
  cache
end

define stop_6
  pipe -d @ tbreak v_weighted_sum @ cat >/dev/null
  pipe -d @ continue @ cat >/dev/null
  work
  pipe -d @ next @ cat >/dev/null
  where_we_are
  echo One head's slice. The heads share the vectors: each has its own part of the\n
  echo query, of every key and of every value, and starts at hs. Head 0 is done; here\n
  echo head 1 begins.\n\n
  pipe -d @ next 4 @ cat >/dev/null
  head 1
end

define stop_7
  pipe -d @ tbreak v_dots @ cat >/dev/null
  arrive
  echo Attention logits. The head's query is multiplied with its part of each cached\n
  echo key, element by element, and added up: the better the two fit, the higher the\n
  echo score. The root of head_dim keeps the scores small.\n\n
  work
  vec head1.attn_logits
  explain head1.attn_logits 2
end

define stop_8
  pipe -d @ tbreak softmax @ cat >/dev/null
  arrive
  echo Attention weights. softmax turns the scores into shares: all positive, with\n
  echo the sum 1. Before training they are nearly even, because the head has not\n
  echo learned yet where to look.\n\n
  work
  attn 1
end

define stop_9
  pipe -d @ tbreak v_weighted_sum @ cat >/dev/null
  arrive
  echo Head output. The values of all positions are mixed, each by its weight. What\n
  echo the head has looked at most is most of what it says.\n\n
  work
  vec head1.head_out
  explain head1.head_out 0
end

define stop_10
  pipe -d @ tbreak linear if w == watched.model->layers[0].attn_wo @ cat >/dev/null
  arrive
  echo Concatenation. All heads have spoken, and their outputs stand in a row,\n
  echo x_attn: head_out was a place in it from the start, so nothing had to be moved.\n\n
  lands 1
  vec x_attn
end

define stop_11
  where_we_are
  echo wo. So far each head knows only its own slice. One more matrix mixes the row,\n
  echo so that every element of the result can draw on every head.\n\n
  work
  around wo
end

define stop_12
  pipe -d @ tbreak v_add @ cat >/dev/null
  arrive
  echo Residual connection. What attention found is added to what entered the layer:\n
  echo the layer corrects its input and does not replace it. Backward, the gradient\n
  echo flows through this addition undiminished.\n\n
  work
  around residual
  explain x_mid 0
end

define stop_13
  pipe -d @ tbreak v_relu @ cat >/dev/null
  arrive
  echo MLP. Now the position thinks for itself: a matrix makes the vector four times\n
  echo as long, relu sets what is negative to zero, and a second matrix brings it\n
  echo back to size. Here are the first eight after relu.\n\n
  work
  look x 8
end

define stop_14
  pipe -d @ tbreak softmax @ cat >/dev/null
  arrive
  echo Logits. After the second residual connection, lm_head gives every token a\n
  echo score, and softmax makes them probabilities. An untrained model finds all of\n
  echo them about equally likely.\n\n
  work
  top5
end

define stop_15
  pipe -d @ tbreak backward @ cat >/dev/null
  arrive
  echo Loss. At each position it is minus the logarithm of the probability that the\n
  echo true next token got; the document's loss is their mean. All that was computed\n
  echo is on the tape, one line for each operation.\n\n
  vec loss_t 3
  tape
  printf "  loss %.16g\n", *loss
end

define stop_16
  set $param = watched.model->layers[0].attn_wo->data + 3 * watched.model->n_embd + 5
  pipe -d @ tbreak mul_backward if l->a == $param @ cat >/dev/null
  pipe -d @ continue @ cat >/dev/null
  where_we_are
  echo Backward, through one multiplication. The tape is read from its end. This line\n
  echo made out = a * b, with a the parameter layer0.attn_wo[3][5]. A change of a\n
  echo counts b times in out: so b times the gradient of out is added to the gradient\n
  echo of a, and for b it is the other way round.\n\n
  printf "  a = %.6g, b = %.6g, gradient of out = %.6g\n", *l->a, *l->b, *grad(t, l->out)
  printf "  gradient of a before %.6g", *grad(t, l->a)
  set $line = l
  set $tape = t
  work
  printf ", after %.6g\n", *grad($tape, $line->a)
end

define stop_17
  pipe -d @ tbreak adam @ cat >/dev/null
  arrive
  echo Adam. Every parameter now has its gradient: what each use of it added up. Adam\n
  echo keeps a running mean of the gradients, m, and of their squares, v, and moves\n
  echo the parameter against m, in steps of about the learning rate whatever the\n
  echo gradient's size.\n\n
  pipe -d @ frame 0 @ cat >/dev/null
  users layer0.attn_wo 3 5
  moves layer0.attn_wo 3 5
  work
  param layer0.attn_wo 3 5
end

define stop_18
  echo \nThe other training steps, without a stop: a few seconds.\n
  pipe -d @ tbreak sample @ cat >/dev/null
  pipe -d @ continue @ cat >/dev/null
  pipe -d @ tbreak random_choice @ cat >/dev/null
  arrive
  echo Sampling. The trained model starts from BOS alone. Its logits are divided by\n
  echo the temperature, softmax makes probabilities of them, and one token is drawn;\n
  echo it is the next input. So a name grows until BOS is drawn.\n\n
  top5
  echo \nThree characters later:\n\n
  set $drawn = 0
  while $drawn < 3
    pipe -d @ tbreak random_choice @ cat >/dev/null
    pipe -d @ continue @ cat >/dev/null
    set $drawn = $drawn + 1
  end
  attn 0
  top5
  pipe -d @ tbreak say_tokens @ cat >/dev/null
  pipe -d @ continue @ cat >/dev/null
  echo \nThe name:\n
  doc
end

echo \nA walk through one training step and one sampled name, in 18 stops. At each:\n
echo the line of the source, what happens there, and the numbers of this run.\n
go
