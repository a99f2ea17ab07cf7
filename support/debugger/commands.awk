# The definitions of the commands for a debugger (-v to=gdb, -v to=lldb) or the guide's list (-v to=guide), made from the
# table in commands.c. A row is its quoted strings: the first is the command with its words, the others say what it shows.
/^static const Command commands/ { table = 1; next }
/^};/ { table = 0 }
table { row = row $0; if (/},$/) { make(row); row = "" } }

function make(row,    part, n, i, usage, help, name) {
    n = split(row, part, "\"")
    usage = part[2]
    for (i = 4; i <= n; i += 2) help = help part[i]
    name = usage
    sub(/ .*/, "", name)
    own = row ~ /NULL/
    if (to == "guide") print "| `" usage "` | " help " |"
    if (to == "gdb") gdb(name, usage, help)
    if (to == "lldb" && !own) lldb(name, usage, help)
}

function gdb(name, usage, help,    i, line) {
    if (!own) {
        print "define " name
        for (i = 0; i <= 3; i++) {
            line = line (i ? " $arg" i - 1 : "")
            print "if $argc == " i "\nask \"" name line "\""
            if (i == 1 && usage ~ /VALUE|EXPR/ || i == 2 && usage ~ /EXPR/)
                print "if $expression\nview_at " name " $arg0 " (i == 1 ? 1 : "$arg1") "\nend"
            print "end"
        }
        if (name == "graph") print "draw_picture"
        print "end"
    }
    print "document " name "\n" usage ": " help ".\nend"
}

function lldb(name, usage, help) {
    gsub(/`/, "", help)  # there it would be evaluated
    print "\ncommand regex -h \"" help ".\" -s \"" usage "\" -- " name
    if (usage ~ /EXPR/) {
        print "s/^([^ ]+)$/expression -- command_at(\"" name "\", %1, 1)/"
        print "s/^([^ ]+) +([0-9]+)$/expression -- command_at(\"" name "\", %1, %2)/"
    } else if (usage ~ /VALUE/) {
        print "s/^([][a-z_0-9.@ ]*)$/expression -- answer(\"" name " %1\", (void *)$pc)/"
        print "s/^(.+)$/expression -- command_at(\"" name "\", %1, 1)/"
    } else print "s/^(.*)$/expression -- answer(\"" name " %1\", (void *)$pc)/"
}
