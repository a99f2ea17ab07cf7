# The guided walk of `make tour`: one training step and one sampled name. .gdbinit has been read before this file.
#
# A stop runs to its own line of microgpt.c, which it finds by its text, shows the line, says what happens there, and
# shows the numbers of this run. It fits a screen of 24 lines of 80 columns; what does not is a matter for `more`. The
# prompt is gdb's own: between two stops anything can be done. `go` notices if the program has moved, and starts again.

set $stop = 0
set $stops = 18
set $more = 0

# run_to FUNCTION TEXT CONDITION: run to the line with that text, unless we are there.
define run_to
  set $line = line_of("$arg0", $arg1)
  eval "pipe -d @ info line microgpt.c:%d @ cat >/dev/null", $line
  set $there = (long) $_
  if $pc != $there || !($arg2)
    pipe -d @ disable @ cat >/dev/null
    eval "pipe -d @ tbreak microgpt.c:%d if $arg2 @ cat >/dev/null", $line
    pipe -d @ continue @ cat >/dev/null
    pipe -d @ enable @ cat >/dev/null
  end
end

# The same for a stop, with its heading.
define reach
  run_to $arg0 $arg1 $arg2
  printf "\n==== %d of %d ==== ", $stop, $stops
  call show_source("$arg0", $line)
  echo \n
end

define quietly
  if $argc == 1
    pipe -d @ $arg0 @ cat >/dev/null
  else
    pipe -d @ $arg0 $arg1 @ cat >/dev/null
  end
end

# Run from the start to the first training step.
define restart
  quietly disable
  quietly tbreak train_step
  quietly run
  quietly enable
end

# Before a stop: is the program where the walk has left it?
define come
  set $moved = $_thread == 0
  if !$moved
    quietly frame 0
    set $moved = $pc != $left_pc || $sp != $left_sp || watched.model->tape.n_lines != $left_lines
  end
  if $moved && $stop > 1
    printf "\n(The program is elsewhere: it starts again and runs to stop %d.)\n", $stop
  end
  if $moved || $stop == 1
    restart
  end
end

define leave
  set $left_pc = $pc
  set $left_sp = $sp
  set $left_lines = watched.model->tape.n_lines
  if $stop == $stops
    eval "set prompt (%d of %d, the end: go N, more, or any command)\\ ", $stop, $stops
  end
  if $stop < $stops && $more
    eval "set prompt (%d of %d: go, more, or any command)\\ ", $stop, $stops
  end
  if $stop < $stops && !$more
    eval "set prompt (%d of %d: go, or any command)\\ ", $stop, $stops
  end
end

define go
  set $go_on = 1
  if $argc > 0
    set $stop = $arg0 - 1
    set $left_pc = 0
  end
  if $stop >= $stops || $stop < 0
    printf "The walk has %d stops: `go 1` begins anew, `go 7` goes to stop 7.\n", $stops
    set $go_on = 0
  end
  if $go_on
    set $stop = $stop + 1
    set $more = 0
    come
    eval "stop_%d", $stop
    leave
  end
end
document go
go: on to the next stop of the walk; Enter repeats it. go N: to stop N.
If the program has been moved in between, it starts again and runs to the stop.
end

define more
  if $more
    eval "more_%d", $stop
  else
    echo There is no more to this stop.\n
  end
end
document more
What did not fit this stop of the walk.
end

# The whole walk at once, where nobody is at a keyboard.
define whole
  while $stop < $stops
    go
    if $more
      echo \n
      more
    end
  end
end

define stop_1
  reach train_step "document_loss(" step==0
  echo A training step begins. Its document is one name, a row of characters, and\n
  echo every character has a number: its token. The token BOS marks both its ends.\n
  echo From each token, and those before it, the model is to say which comes next.\n\n
  doc
end

define stop_2
  reach gpt "tok_emb, pos_emb" pos_id==3
  echo Embedding. We join at position 3, after three tokens have passed through. The\n
  echo token picks a row of the matrix wte, the position a row of wpe; their sum is\n
  echo how the model sees "this character, at this place".\n\n
  quietly next
  row emb
  set $more = 1
end
define more_2
  explain emb 0
end

define stop_3
  reach gpt "rmsnorm(" pos_id==3
  echo rmsnorm. The vector keeps its direction; it is divided by the root of the mean\n
  echo of its squares, so that this mean is 1 afterwards. No later step has to cope\n
  echo with numbers that grow or fade from layer to layer.\n\n
  quietly next
  row emb
  row emb_norm
  set $more = 1
end
define more_3
  around rmsnorm
end

define stop_4
  reach gpt "layer->attn_wq" pos_id==3
  echo Query, key, value. Three matrices read the same vector. The query says what\n
  echo this position looks for, the key what it can be found by, the value what it\n
  echo hands on. Each element is a row of the matrix times x_norm, added up.\n\n
  quietly next
  row q
  set $more = 1
end
define more_4
  vec q
end

define stop_5
  reach gpt "layer->attn_wv" pos_id==3
  echo The cache. The key and the value of this position join those of the positions\n
  echo before it. That is all that a later position can know of an earlier one, and\n
  echo nothing of the past is computed twice.\n\n
  quietly next
  cache
end

define stop_6
  reach gpt "hs = " pos_id==3&&h==1
  echo One head's slice. The heads share the vectors: each has its own part of the\n
  echo query, of every key and of every value, and starts at hs. Head 0 is done; here\n
  echo head 1 begins.\n\n
  quietly next 4
  head 1
end

define stop_7
  reach gpt "ag_row_dots(" pos_id==3&&h==1
  echo Attention logits. The head's query is multiplied with its part of each cached\n
  echo key, element by element, and added up: the better the two fit, the higher the\n
  echo score. The root of head_dim keeps the scores small.\n\n
  quietly next
  vec head1.attn_logits
  set $more = 1
end
define more_7
  explain head1.attn_logits 2
end

define stop_8
  reach gpt "attn_weights = " pos_id==3&&h==1
  echo Attention weights. softmax turns the scores into shares: all positive, with\n
  echo the sum 1. Before training they are nearly even, because the head has not\n
  echo learned yet where to look.\n\n
  quietly next
  attn 1
end

define stop_9
  reach gpt "head_out = " pos_id==3&&h==1
  echo Head output. The values of all positions are mixed, each by its weight. What\n
  echo the head has looked at most is most of what it says.\n\n
  quietly next
  vec head1.head_out
  set $more = 1
end
define more_9
  explain head1.head_out 0
end

define stop_10
  reach gpt "ag_copy(" pos_id==3&&h==1
  echo Concatenation. The head's output goes to its place in x_attn, a row with room\n
  echo for the outputs of all heads. Here they are once the last head is done.\n\n
  run_to gpt "layer->attn_wo" pos_id==3
  lands 1
  row x_attn
end

define stop_11
  reach gpt "layer->attn_wo" pos_id==3
  echo wo. So far each head knows only its own slice. One more matrix mixes the row,\n
  echo so that every element of the result can draw on every head.\n\n
  quietly next
  row x_attn
  row x_wo
  set $more = 1
end
define more_11
  around wo
end

define stop_12
  reach gpt "x, x_residual" pos_id==3
  echo Residual connection. What attention found is added to what entered the layer:\n
  echo the layer corrects its input and does not replace it. Backward, the gradient\n
  echo flows through this addition undiminished.\n\n
  quietly next
  row x_wo
  row x_mid
  set $more = 1
end
define more_12
  around residual
  explain x_mid 0
end

define stop_13
  reach gpt "relu(" pos_id==3
  echo MLP. Now the position thinks for itself: a matrix makes the vector four times\n
  echo as long, relu sets what is negative to zero, and a second matrix brings it\n
  echo back to size. Here are the first eight of 64 after relu.\n\n
  quietly next
  look x 8
  set $more = 1
end
define more_13
  around relu
end

define stop_14
  reach document_loss "probs = " pos_id==3
  echo Logits. After the second residual connection, lm_head gives every token a\n
  echo score, and softmax makes them probabilities. An untrained model finds all of\n
  echo them about equally likely.\n\n
  quietly next
  top5
  set $more = 1
end
define more_14
  around softmax
end

define stop_15
  reach train_step "backward(" step==0
  echo Loss. At each position it is minus the logarithm of the probability that the\n
  echo true next token got; the document's loss is their mean. All that was computed\n
  echo is on the tape, one line for each operation.\n\n
  row loss_t 3
  tape
  printf "  loss %.16g\n", *loss
end

# Where the gradient of a parameter grows for the first time.
define stop_16
  set $more = 0
  reach train_step "backward(" step==0
  echo Backward, through one multiplication. The tape is read from its end. One line\n
  echo of it made out = a * b, with a the parameter layer0.attn_wo[3][5]. A change of\n
  echo a counts b times in out: so b times the gradient of out is added to the\n
  echo gradient of a, and for b it is the other way round.\n\n
  set $param = watched.model->layers[0].attn_wo->data + 3 * watched.model->n_embd + 5
  set $gradient = watch_gradient("layer0.attn_wo", 3, 5)
  quietly disable
  pipe -d @ watch -l *$gradient @ grep -q Hardware
  if $_shell_exitcode == 0
    quietly continue
    delete $bpnum
  else
    echo (There are no hardware watchpoints here: it takes some seconds.)\n
    delete $bpnum
    quietly tbreak backward
    quietly continue
    pipe -d @ tbreak mul_backward if l->a == $param @ cat >/dev/null
    quietly continue
    quietly next 4
  end
  quietly enable
  echo In autograd.c, mul_backward():\n
  printf "  a = %.6g, b = %.6g, gradient of out = %.6g\n", *l->a, *l->b, *grad(t, l->out)
  call show_gain()
end

define stop_17
  reach train_step "adam(" step==0
  echo Adam. Every parameter now has its gradient. Adam keeps a running mean of the\n
  echo gradients, m, and of their squares, v, and moves the parameter against m, in\n
  echo steps of about the learning rate, whatever the gradient's size. Then it clears\n
  echo the gradients for the next step.\n\n
  quietly tbreak adam
  quietly continue
  moves layer0.attn_wo 3 5
  set $more = 1
end
define more_17
  users layer0.attn_wo 3 5
  quietly finish
  quietly next
  param layer0.attn_wo 3 5
  leave
end

define stop_18
  echo \nThe other training steps, without a stop:\n
  set $trained = 0
  quietly disable
  while $trained < 800
    set $trained = $trained + 200
    eval "quietly tbreak train_step if step == %d", $trained
    quietly continue
    printf "  step %d of %d\n", $trained, config->steps
  end
  quietly enable
  reach sample "probs = " pos_id==0
  echo Sampling. The trained model starts from BOS alone. Its logits are divided by\n
  echo the temperature, softmax makes probabilities of them, and one token is drawn;\n
  echo it is the next input. So a name grows until BOS is drawn.\n\n
  quietly next
  top5
  set $more = 1
end
define more_18
  run_to sample "probs = " pos_id==3
  echo Three characters later:\n\n
  quietly next
  attn 0
  top5
  run_to sample "return true" *length>0
  echo \nAnd the name:\n\n
  doc
  leave
end

echo \nA walk through one training step and one sampled name, in 18 stops. `go` goes\n
echo on, and Enter repeats it. Between stops any command of gdb can be typed.\n
