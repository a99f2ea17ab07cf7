# Commands for stepping through microgpt-debug: `make debug` reads this file. Each calls a function of
# tests/debugger/views.c. POS is a position; without it, the one that gpt() was called for last.

set confirm off
set pagination off
set print frame-arguments scalars

# No progress bar among the debugger's lines.
set environment TERM dumb

define views
  call show_views()
end
document views
The list of the commands that show the model.
end

define begin
  tbreak document_loss if !model->tape.counting
  run
  echo \n
  views
end
document begin
Run the program to the first training step, where its document's loss begins, and list the commands.
end

define doc
  call show_document()
end
document doc
The document in work: its characters, their tokens, and the token to predict at each position.
While sampling: the sample so far.
end

define vec
  if $argc == 0
    call show_vectors()
  end
  if $argc == 1
    call show_vector("$arg0", -1)
  end
  if $argc == 2
    call show_vector("$arg0", $arg1)
  end
end
document vec
vec NAME [POS]: a vector of the forward pass, with data and, after backward(), gradient.
vec alone lists the names. Of a layer or head: vec layer0.q, vec head2.attn_weights.
end

define row
  if $argc == 0
    help row
  end
  if $argc == 1
    call show_row("$arg0", -1)
  end
  if $argc > 1
    call show_row("$arg0", $arg1)
  end
end
document row
row NAME [POS]: the numbers of a vector, four in a row.
end

define around
  if $argc == 0
    help around
  end
  if $argc == 1
    call show_around("$arg0", -1)
  end
  if $argc > 1
    call show_around("$arg0", $arg1)
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
    call show_head($arg0, -1)
  end
  if $argc > 1
    call show_head($arg0, $arg1)
  end
end
document head
head H [POS]: where head H begins (hs), and its slices q_h, k_h and v_h.
end

define cache
  if $argc == 0
    call show_cache(-1)
  else
    call show_cache($arg0)
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
    call show_attention($arg0, -1)
  end
  if $argc > 1
    call show_attention($arg0, $arg1)
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
    call show_landing($arg0, -1)
  end
  if $argc > 1
    call show_landing($arg0, $arg1)
  end
end
document lands
lands H [POS]: which elements of x_attn are the head_out of head H.
end

define top5
  if $argc == 0
    call show_top(-1)
  else
    call show_top($arg0)
  end
end
document top5
top5 [POS]: the five likeliest next characters, with logit and probability.
end

define param
  if $argc < 3
    help param
  else
    call show_parameter("$arg0", $arg1, $arg2)
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
    call show_adam("$arg0", $arg1, $arg2, lr, beta1, beta2)
  end
end
document moves
moves NAME ROW COL: how Adam moves a parameter, term by term.
It reads the arguments of adam(), so ask it where adam() begins: break adam, continue.
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
        call show_gain()
      end
    end
  end
end
document watchgrad
watchgrad NAME ROW COL: stop each time that a parameter's gradient changes, and show which line of the
tape did it, what it added, and the sum so far. Then: continue. It works where the program is running.
end

define explain
  if $argc == 0
    help explain
  end
  if $argc == 1
    if is_value_name("$arg0")
      call show_value_named("$arg0", -1, -1)
    else
      call show_value($arg0)
    end
  end
  if $argc == 2
    call show_value_named("$arg0", $arg1, -1)
  end
  if $argc == 3
    call show_value_named("$arg0", $arg1, $arg2)
  end
end
document explain
explain VALUE: the operation that made a value, its operands, the local derivatives, and who used it.
VALUE is  logits 5  (element 5, at the latest position),  logits 5 2  (at position 2),
layer0.attn_wo 3 5  (a parameter),  loss,  v123  (a value without a name),
or an expression of C without spaces: &logits[5]
end

define users
  if $argc == 0
    help users
  end
  if $argc == 1
    if is_value_name("$arg0")
      call show_users("$arg0", -1, -1)
    else
      call show_users_at($arg0)
    end
  end
  if $argc == 2
    call show_users("$arg0", $arg1, -1)
  end
  if $argc == 3
    call show_users("$arg0", $arg1, $arg2)
  end
end
document users
users VALUE: the operations that used a value, each with its local derivative and, after backward(),
what it added to the value's gradient. VALUE is as in: help explain
end

define nudge
  if $argc == 0
    help nudge
  end
  if $argc == 1
    if is_value_name("$arg0")
      call show_nudge("$arg0", -1, -1)
    else
      call show_nudge_at($arg0)
    end
  end
  if $argc == 2
    call show_nudge("$arg0", $arg1, -1)
  end
  if $argc == 3
    call show_nudge("$arg0", $arg1, $arg2)
  end
end
document nudge
nudge VALUE: the gradient of a value beside what the loss really does if the value is moved a little to
both sides. To be asked where adam() begins. VALUE is as in: help explain
end

define look
  if $argc == 0
    help look
  end
  if $argc == 1
    call show_values($arg0, 1)
  end
  if $argc > 1
    call show_values($arg0, $arg1)
  end
end
document look
look EXPR [N]: N neighbours from a pointer on: data, gradient, and what each is.
In gpt(), for example: look q_h 4
end

define tape
  call show_tape()
end
document tape
How many lines the tape has, by operation.
end

define layer
  if $argc < 1
    help layer
  else
    call show_layer($arg0)
  end
end
document layer
layer L: the layer that head, attn, lands, cache, vec and around show; at first 0.
end

define digits
  if $argc < 1
    help digits
  else
    call show_digits($arg0)
  end
end
document digits
digits N: how many digits every number is shown with, 1 to 17; at first 6.
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
  tbreak train_step
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
pipe -d @ skip -rfu ^(note_operation|made|note_position|grad|ag_vector|ag_scalar|ag_max|ag_adam)$ @ cat >/dev/null
pipe -d @ skip -rfu ^(tape_.*|begin_line|is_output_of|lanes_backward|learning_rate)$ @ cat >/dev/null
pipe -d @ skip -rfu ^(_.*|memset|memcpy|exp|log|pow|sqrt|cos)$ @ cat >/dev/null

# What `step` goes through without a stop: what only passes on, from an operation to the arithmetic that it stands for,
# and on the way back from there.
set $stepping = 0
define hook-step
  set $stepping = 1
  pipe -d @ info symbol $pc @ grep -Eq '_(forward|backward) '
  set $way_back = $_shell_exitcode == 0
end
define passing
  pipe -d @ info symbol $pc @ grep -Eq '^(ag_dot|atoms|end_line|line_forward|lines_forward|lines_backward) '
  set $passing = $_shell_exitcode == 0
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
