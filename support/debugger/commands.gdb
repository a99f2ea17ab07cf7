# Commands for stepping through microgpt-debug: `make debug` reads this file. Each calls a function of
# support/debugger/views.c. POS is a position; without it, the one that gpt() was called for last.

set confirm off
set pagination off
set print frame-arguments scalars
set print inferior-events off
set print thread-events off
# Ctrl-C in a view leads back to where the program was.
set unwindonsignal on

# No progress bar among the debugger's lines.
set environment TERM dumb

# view CALL: a function of the program that shows something. While gdb records, it would be recorded, too,
# instruction by instruction, and take minutes.
define view
  pipe -d @ info record @ grep -q "^Active record target"
  if $_shell_exitcode == 0
    echo gdb is recording, and would record a view, too, for minutes: `record stop` first. `print` works.\n
  else
    call $arg0
  end
end
document view
view CALL: call a function of the program that shows something, unless gdb is recording.
end

# Is it a name, or an expression of C? A variable of a function of autograd.c hides a name.
define is_name
  set $is_name = is_value_name("$arg0", $pc)
  if $is_name == 2
    pipe -d @ info locals @ grep -q "^$arg0 = "
    set $is_name = $_shell_exitcode != 0
  end
end

define views
  view show_views()
end
document views
The list of the commands that show the model.
end

define begin
  tbreak document_loss
  run
  call show_begin()
end
document begin
Run the program to the first training step, where the loss of its document begins.
end

define at
  if $argc < 2
    help at
  else
    set $line = line_of("$arg0", "$arg1")
    if $line == 0
      printf "$arg0() has no line with this text.\n"
    else
      if $argc == 2
        eval "tbreak microgpt.c:%d", $line
      else
        eval "tbreak microgpt.c:%d if $arg2", $line
      end
    end
  end
end
document at
at FUNCTION TEXT [CONDITION]: stop once at the first line of a function of microgpt.c with this text.
Text and condition without spaces: at gpt ag_copy pos_id==3&&h==1
end

define doc
  view show_document()
end
document doc
The document in work: its characters, their tokens, the token to predict at each position, and the losses.
While sampling: the sample so far.
end

define map
  view show_map()
end
document map
The model as a map, with the sizes of this run: which vector leads to which.
end

# The local variables that point to values, with the help of awk; or else what the notes say.
define here
  pipe -d @ info record @ grep -q "^Active record target"
  set $recording = $_shell_exitcode == 0
  pipe -d @ info line *$pc @ sed -n 's/^Line \([0-9]*\) of "microgpt.c".*/call show_before(\1)/p' >.build/here.gdb
  pipe -d @ info locals @ awk '/^[a-z_]+ = \(double \*\)|^[a-z_]+ = 0x/ && !seen[$1]++ { print "call show_pointer(\"" $1 "\", " $1 ")" } END { print "call show_pointer(0, 0)" }' >>.build/here.gdb
  shell grep -q show_pointer .build/here.gdb
  if $recording
    view 0
  else
    if $_shell_exitcode == 0 && survey()
      source .build/here.gdb
    else
      call show_here()
    end
  end
end
document here
The vectors in scope, by name, with their first numbers and what they are.
end

define vec
  if $argc == 0
    view show_vectors()
  end
  if $argc == 1
    view show_vector("$arg0",-1)
  end
  if $argc == 2
    view show_vector("$arg0",$arg1)
  end
end
document vec
vec NAME [POS]: a vector of the forward pass, with data and, after backward(), gradient.
vec alone lists the names. Of a layer or head: vec layer0.q, vec head2.attn_weights.
What a call in gpt() made for itself: vec probs.exps, vec x_norm.scale
end

define row
  if $argc == 0
    help row
  end
  if $argc == 1
    view show_row("$arg0",-1)
  end
  if $argc > 1
    view show_row("$arg0",$arg1)
  end
end
document row
row NAME [POS]: the numbers of a vector, four in a row.
row MATRIX I: row I of a matrix, with its gradients: row wte 24
end

define around
  if $argc == 0
    help around
  end
  if $argc == 1
    view show_around("$arg0",-1)
  end
  if $argc > 1
    view show_around("$arg0",$arg1)
  end
end
document around
around OP [POS]: the vector before and after an operation of gpt().
OP is a word of its line in gpt(): rmsnorm, wq, wk, wv, wo, residual, fc1, relu, fc2, lm_head or softmax.
end

define head
  if $argc == 0
    help head
  end
  if $argc == 1
    view show_head($arg0,-1)
  end
  if $argc > 1
    view show_head($arg0,$arg1)
  end
end
document head
head H [POS]: what head H read: its slice q_h of the query, k_h of each key, v_h of each value.
end

define cache
  if $argc == 0
    view show_cache(-1)
  else
    view show_cache($arg0)
  end
end
document cache
cache [POS]: how many positions have their key and value in the cache, and the beginning of each.
With POS, the whole key and value of that position.
end

define attn
  if $argc == 0
    help attn
  end
  if $argc == 1
    view show_attention($arg0,-1)
  end
  if $argc > 1
    view show_attention($arg0,$arg1)
  end
end
document attn
attn H [POS]: the attn_logits and attn_weights of head H, beside the characters they belong to.
end

define lands
  if $argc == 0
    help lands
  end
  if $argc == 1
    view show_landing($arg0,-1)
  end
  if $argc > 1
    view show_landing($arg0,$arg1)
  end
end
document lands
lands H [POS]: which elements of x_attn are the head_out of head H.
end

define silence
  if $argc == 0
    help silence
  end
  if $argc == 1
    view show_silence($arg0,-1)
  end
  if $argc > 1
    view show_silence($arg0,$arg1)
  end
end
document silence
silence H [POS]: what the model would say, and its loss, if head H put zeros into x_attn at that position.
end

define top5
  if $argc == 0
    view show_top(-1)
  else
    view show_top($arg0)
  end
end
document top5
top5 [POS]: the five likeliest next characters, with logit and probability; and the true one, with its loss.
end

define draw
  view show_draw()
end
document draw
While sampling: the number drawn, against the running sums of the probabilities. Ask where a token is
chosen: tbreak choose_token
end

define param
  if $argc < 3
    help param
  else
    view show_parameter("$arg0",$arg1,$arg2)
  end
end
document param
param NAME ROW COL: a parameter's value, gradient, and Adam's m and v.
For example: param layer0.attn_wo 3 5
end

define moves
  if $argc < 3
    help moves
  else
    view show_moves("$arg0",$arg1,$arg2)
  end
end
document moves
moves NAME ROW COL: how Adam moves a parameter, term by term, in this step and in the one before.
end

define watchgrad
  if $argc < 3
    help watchgrad
  else
    set $gradient = watch_gradient("$arg0", $arg1, $arg2)
    if $gradient
      watch -l *$gradient
      commands
        silent
        frame
        echo (The line shown runs next; the one before it did this.)\n
        call show_gain()
      end
    end
  end
end
document watchgrad
watchgrad NAME ROW COL: stop each time that a parameter's gradient changes, and show which entry of the
tape did it, what it added, the sum so far, and the statement. Then: continue. The program must be running.
end

define explain
  if $argc == 0
    help explain
  end
  if $argc == 1
    is_name $arg0
    if $is_name
      view show_value_named("$arg0",-1,-1)
    else
      view show_value($arg0)
    end
  end
  if $argc == 2
    view show_value_named("$arg0",$arg1,-1)
  end
  if $argc == 3
    view show_value_named("$arg0",$arg1,$arg2)
  end
end
document explain
explain VALUE: the operation that made a value, its operands, the local derivatives, and who used it.
VALUE is  logits 5  (element 5, at the latest position),  logits 5 2  (at position 2),
layer0.attn_wo 3 5  (a parameter),  loss,  v123  (a value without a name),  logits[5]@2  (in one word),
or an expression of C without spaces: &logits[5]
end

define users
  if $argc == 0
    help users
  end
  if $argc == 1
    is_name $arg0
    if $is_name
      view show_users("$arg0",-1,-1)
    else
      view show_users_at($arg0)
    end
  end
  if $argc == 2
    view show_users("$arg0",$arg1,-1)
  end
  if $argc == 3
    view show_users("$arg0",$arg1,$arg2)
  end
end
document users
users VALUE: the operations that used a value, each with its local derivative and, after backward(),
what it added to the value's gradient. VALUE is as in: help explain
end

define graph
  if $argc == 0
    help graph
  end
  if $argc == 1
    is_name $arg0
    if $is_name
      view show_graph("$arg0",-1,-1)
    else
      view show_graph_at($arg0)
    end
  end
  if $argc == 2
    view show_graph("$arg0",$arg1,-1)
  end
  if $argc == 3
    view show_graph("$arg0",$arg1,$arg2)
  end
  if $argc > 0
    shell [ -f .build/graph.dot ] && command -v dot >/dev/null && dot -Tsvg .build/graph.dot >.build/graph.svg && echo "As a picture: .build/graph.svg"
  end
end
document graph
graph VALUE: the tree of operations that made a value, as deep as `depth N` says (at first 3), each node with
name, data, gradient and operation. Also as a picture, in .build/graph.svg. VALUE is as in: help explain
end

define nudge
  if $argc == 0
    help nudge
  end
  if $argc == 1
    is_name $arg0
    if $is_name
      view show_nudge("$arg0",-1,-1)
    else
      view show_nudge_at($arg0)
    end
  end
  if $argc == 2
    if is_number("$arg1")
      view show_nudge("$arg0",$arg1,-1)
    else
      view show_local("$arg0","$arg1")
    end
  end
  if $argc == 3
    view show_nudge("$arg0",$arg1,$arg2)
  end
end
document nudge
nudge VALUE: the gradient of a value beside what the loss really does if the value is moved a little to
both sides. Ask where adam() begins. VALUE is as in: help explain
nudge A B: the same for two values, each in one word: how A changes B.
For example: nudge head1.attn_logits[0]@3 head1.attn_weights[1]@3
end

define look
  if $argc == 0
    help look
  end
  if $argc == 1
    view show_values($arg0,1)
  end
  if $argc > 1
    view show_values($arg0,$arg1)
  end
end
document look
look EXPR [N]: N neighbors from a pointer on: data, gradient, and what each is.
In gpt(), for example: look q_h 4
end

define tape
  view show_tape()
end
document tape
How many entries the tape has, by operation.
end

define layer
  if $argc < 1
    help layer
  else
    view show_layer($arg0)
  end
end
document layer
layer L: the layer that head, attn, lands, cache, vec and around show; at first 0.
end

define digits
  if $argc < 1
    help digits
  else
    view show_digits($arg0)
  end
end
document digits
digits N: how many digits every number is shown with, 1 to 17; at first 6.
end

define depth
  if $argc < 1
    help depth
  else
    view show_depth($arg0)
  end
end
document depth
depth N: how many operations deep a graph is shown; at first 3.
end

define rewind
  set $head = 0
  set $position = 3
  if $argc > 0
    set $head = $arg0
  end
  if $argc > 1
    set $position = $arg1
  end
  set environment LD_BIND_NOW 1
  set environment GLIBC_TUNABLES glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-FMA,-FMA4,-ERMS,-XSAVE,-XSAVEC
  tbreak train
  run
  eval "tbreak microgpt.c:%d if pos_id == %d && h == %d", line_of("gpt", "q_h ="), $position, $head
  continue
  record
  echo Recording. From here on reverse-next, reverse-step and reverse-continue go back.\n
end
document rewind
rewind [H [POS]]: start again, run to head H of position POS (at first 0 and 3), and record from there,
so that next and step can be undone: reverse-next, reverse-step. `record stop` ends it.
The C library is told to use its plain routines, because gdb cannot record those with vectors.
end

# What follows needs gdb 10 or newer, and is last for that reason.
#
# What `step` does not enter: what makes room or takes notes, what is there for speed alone, and the C library.
pipe -d @ skip -rfu ^(note_.*|grad|ag_vector|ag_scalar|ag_max|fast_adam|tape_(lane|end_lanes|mark|drop)|record|clear_gradients|learning_rate)$ @ cat >/dev/null
pipe -d @ skip -rfu ^(_.*|memset|memcpy|exp|log|pow|sqrt|cos)$ @ cat >/dev/null
pipe -d @ skip -gfi support/chunks.c @ cat >/dev/null
pipe -d @ skip -gfi support/fast.h @ cat >/dev/null
pipe -d @ skip -gfi support/lanes.c @ cat >/dev/null

# What `step` goes through without a stop: what only passes on, from an operation to the arithmetic that it stands for,
# and on the way back from there. That is all of autograd.c but the operations, their arithmetic, and backward(); then
# the head of the loop in each operation, and lines that are there for speed alone.
set $stepping = 0
define hook-step
  set $stepping = 1
  pipe -d @ frame @ tail -n 1 | grep -Eq ' \+= |e->out\[i\] = '
  set $way_back = $_shell_exitcode == 0
end
define passing
  pipe -d @ info line *$pc @ grep 'of "autograd.c"' | grep -Evq ' <(ag_([^d]|d[^o])[a-z_]*|[a-z_]*_(forward|backward)|backward|sum_of_products)[+>]'
  set $passing = $_shell_exitcode == 0
  if !$passing
    pipe -d @ frame @ tail -n 1 | grep -Eq 'for \(size_t i = 0; i < (e->)?n; i\+\+\)|// for speed alone|AdamRates'
    set $passing = $_shell_exitcode == 0
  end
end
define hook-stop
  if $stepping && $_thread
    set $stepping = 0
    set $back = $way_back
    passing
    if $passing
      while $passing
        if $back
          pipe -d @ finish @ cat >/dev/null
        else
          pipe -d @ step @ cat >/dev/null
          set $stepping = 0
        end
        passing
      end
      frame
    end
  end
end
