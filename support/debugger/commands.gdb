# gdb's own part of the commands for stepping through microgpt-debug. make puts the others behind it, from the table in
# commands.c, into .build/debug/commands.gdb, which `make debug` reads.

set confirm off
set pagination off
set print frame-arguments scalars
set print inferior-events off
set print thread-events off
# Ctrl-C in a view leads back to where the program was.
set unwindonsignal on

# No progress bar among the debugger's lines.
set environment TERM dumb

# ask "COMMAND": the program answers. While gdb records, it would record that, too, instruction by instruction, for minutes.
define ask
  set $expression = 0
  pipe -d @ info record @ grep -q "^Active record target"
  if $_shell_exitcode == 0
    echo gdb is recording, and would record a view, too, for minutes: `record stop` first. `print` works.\n
  else
    set $expression = command($arg0, (void *) $pc)
  end
end

define view_at
  call command_at("$arg0", $arg1, $arg2)
end

define begin
  tbreak document_loss
  run
  echo \nThe loss of the first document begins here. `views` lists the commands.\n
end

define at
  if $argc < 2
    help at
  else
    set $line = line_of("$arg0", "$arg1")
    if $line == 0
      printf "$arg0() has no line with this text.\n"
    else
      eval "tbreak microgpt.c:%d", $line
      if $argc > 2
        condition $bpnum $arg2
      end
    end
  end
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

define draw_picture
  shell [ -f .build/graph.dot ] && command -v dot >/dev/null && dot -Tsvg .build/graph.dot >.build/graph.svg && echo "As a picture: .build/graph.svg"
end

# The walk: the program goes from stop to stop, tells each, and calls walk_stop(). Nothing of it is here but that stop.
define walk
  set environment MICROGPT_TOUR 1 in a debugger
  break walk_stop
  commands
    silent
    eval "set prompt (%d of %d: go, more, back, or any command)\\ ", walk_number(), n_stops()
    if walk_stays()
      up-silently 3
    else
      up-silently 2
      pipe -d @ finish @ cat >/dev/null
    end
  end
  run
end

# Where walk_to() says that a stop is behind (0), the program starts again for it.
define go
  set $where = $_thread != 0
  if $argc && $_thread
    set $where = walk_to($arg0)
  end
  if $argc && $where == 0
    eval "set environment MICROGPT_TOUR %d in a debugger", $arg0
  end
  if $where == 0
    run
  end
  if $where == 1
    continue
  end
end
document go
go: on to the next stop of the walk, as `continue` does; Enter repeats it. go N: to stop N.
end

define more
  call show_more()
end
document more
What did not fit this stop of the walk.
end

define back
  eval "go %d", walk_number() - 1
end
document back
To the stop before this one.
end

# What `step` does not enter: what makes room, and what is there for speed alone.
pipe -d @ skip -rfu ^(grad|ag_vector|ag_scalar|ag_max|fast_.*|tape_(lane|end_lanes|mark|drop)|record|clear_gradients|learning_rate)$ @ cat >/dev/null
