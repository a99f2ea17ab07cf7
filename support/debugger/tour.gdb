# The guided walk of `make tour` in gdb: one training step and one sampled name. commands.gdb has been read before this file.
#
# The stops are in tour.c. Here the program is moved from one to the next. The prompt is gdb's own: between two stops
# anything can be done. `go` notices if the program has moved, and starts again.

set $stop = 0
set $more = 0

# A command without its output.
define quietly
  if $argc == 1
    pipe -d @ $arg0 @ cat >/dev/null
  end
  if $argc == 2
    pipe -d @ $arg0 $arg1 @ cat >/dev/null
  end
  if $argc == 3
    pipe -d @ $arg0 $arg1 $arg2 @ cat >/dev/null
  end
end

# Run to the line of this stop, unless we are there. Sets $arrived.
define run_to_stop
  set $line = stop_line($stop)
  eval "pipe -d @ info line microgpt.c:%d @ cat >/dev/null", $line
  set $there = (long) $_
  set $arrived = !$moved && $left_stop == $stop - 1 && stop_is_same($stop)
  if !$arrived && (long) $pc == $there
    eval "set $arrived = %s", stop_condition($stop)
  end
  if !$arrived
    quietly disable
    eval "pipe -d @ tbreak microgpt.c:%d if %s @ cat >/dev/null", $line, stop_condition($stop)
    quietly continue
    set $arrived = 0
    if $_thread
      set $arrived = (long) $pc == $there
    end
    if !$arrived
      pipe -d @ delete $bpnum @ cat >/dev/null
    end
    quietly enable
  end
  # A stop that shows what a statement made: past all lines of it.
  set $tries = 0
  while $arrived && $tries < 9 && !stop_is_done($stop)
    quietly next
    set $tries = $tries + 1
  end
end

# Stop 16: where the gradient of a parameter grows for the first time.
define run_to_first_gain
  set $gradient = watch_first_gain()
  quietly disable
  pipe -d @ watch -l *$gradient @ grep -q Hardware
  set $hardware = $_shell_exitcode == 0
  if $hardware
    quietly continue
    quietly delete $bpnum
  else
    quietly delete $bpnum
    pipe -d @ tbreak mul_backward if grad(t, e->a) == $gradient || grad(t, e->b) == $gradient @ cat >/dev/null
    quietly continue
    quietly finish
  end
  quietly enable
  set $arrived = 0
  if $_thread
    set $arrived = *$gradient != 0
  end
end

# Run from the start to the first training step.
define restart
  quietly disable
  quietly tbreak train
  quietly run
  quietly enable
end

# Is the program where the walk has left it? If not, it starts again.
define come
  set $moved = $_thread == 0
  if !$moved
    quietly frame 0
    set $moved = $pc != $left_pc || $sp != $left_sp || watched.model->tape.n_entries != $left_entries
  end
  if $moved && $stop > 1
    printf "\n(It starts again and runs to stop %d.)\n", $stop
  end
  if $moved
    restart
  end
end

define remember
  set $left_pc = $pc
  set $left_sp = $sp
  set $left_entries = watched.model->tape.n_entries
end

define leave
  remember
  if $stop == n_stops()
    eval "set prompt (%d of %d, the end: go N, or any command)\\ ", $stop, n_stops()
  else
    if $more
      eval "set prompt (%d of %d: go, more, or any command)\\ ", $stop, n_stops()
    else
      eval "set prompt (%d of %d: go, or any command)\\ ", $stop, n_stops()
    end
  end
end

# One stop. What leads to it may be interrupted: then nothing is shown.
define show_this_stop
  come
  if $stop == 16
    if $left_stop != 15 || $moved
      set $stop = 15
      run_to_stop
      set $stop = 16
    end
    run_to_first_gain
  else
    if $stop == 18 && $left_stop == 17 && !$moved
      echo \nThe other training steps, without a stop: some seconds.\n
    end
    run_to_stop
  end
  if $arrived
    echo \n
    call show_stop($stop)
    set $more = has_more($stop)
    set $left_stop = $stop
    leave
  else
    printf "\n(Interrupted on the way to stop %d: `go %d` tries again.)\n", $stop, $stop
    set $left_pc = 0
    set $stop = $stop - 1
    set $more = 0
  end
end

define go
  set $wanted = $stop + 1
  if $argc > 0
    set $wanted = $arg0
  end
  if !$_thread
    restart
    remember
  end
  if $wanted < 1 || $wanted > n_stops()
    printf "The walk has %d stops: `go 1` begins anew, `go 7` goes to stop 7.\n", n_stops()
  else
    if $argc > 0
      set $left_pc = 0
    end
    set $stop = $wanted
    show_this_stop
  end
end
document go
go: on to the next stop of the walk; Enter repeats it. go N: to stop N.
If the program has been moved in between, it starts again and runs to the stop.
end

# Enter repeats it: then it goes on.
define more
  if $more
    call show_more($stop)
    set $more = 0
    leave
  else
    if $stop < n_stops()
      go
    else
      echo There is no more to this stop.\n
    end
  end
end
document more
What did not fit this stop of the walk, a page at a time; after the last page it goes on, as `go` does.
end

# The beginning. gdb repeats on Enter what was typed last, and nothing was: until something else is typed, the lines are
# read here.
set $left_pc = 0
set $left_sp = 0
set $left_entries = 0
set $left_stop = 0
define walk
  echo \nA walk through one training step and one sampled name. Enter goes on, and so\n
  echo does `go`; `more` shows more. Between stops any command of gdb can be typed.\n
  set $reading = 1
  go
  while $reading
    if $more
      eval "shell printf '(%d of %d: Enter goes on, more, or any command) '", $stop, n_stops()
    else
      eval "shell printf '(%d of %d: Enter goes on, or any command) '", $stop, n_stops()
    end
    shell IFS= read -r line || line=quit; case $line in ''|go) exit 1 ;; more) exit 2 ;; *) printf '%s\n' "$line" >.build/typed.gdb ;; esac
    set $typed = $_shell_exitcode
    if $typed == 1 && $stop < n_stops()
      go
    else
      if $typed == 2
        more
      else
        set $reading = 0
      end
    end
  end
  if $typed == 0
    source .build/typed.gdb
  end
end
