# Makes the manual page of what `microgpt --version` and `microgpt COMMAND --help` print and of the prose in microgpt.1.
function roff(text) { gsub(/-/, "\\-", text); return text }
!prose && /^microgpt / { version = $0 }
!prose && /^  microgpt / && !summary[$2] {
    summary[$2] = substr($0, 43)
    arguments = substr($0, 13 + length($2), 30 - length($2))
    sub(/ *$/, "", arguments)
    usage = usage (usage ? ".br\n" : "") ".B microgpt " (usage ? $2 : "[" $2 "]") "\n\\fI" arguments "\\fR\n"
}
!prose && /^Options of / {
    sub(/:$/, "")
    options = options ".SH OPTIONS OF " $3 "\n" roff("microgpt " $3 ": " summary[$3]) ".\n"
}
# An option: its name and argument on the left, its help on the right, perhaps continued below.
!prose && /^ *(-[a-z], )?--/ {
    n = split($0, word)
    letter = word[1] ~ /,$/ ? "\\fB" substr(word[1], 1, 2) "\\fR, " : ""
    i = letter ? 2 : 1
    argument = word[i + 1] ~ /^([A-Z]+|[a-z0-9]+\|.*)$/ ? word[i + 1] : ""
    options = options ".TP\n" roff(letter "\\fB" word[i] "\\fR \\fI" argument "\\fR\n")
    if (length($0) > 31) options = options roff(substr($0, 32)) "\n"
}
!prose && length($0) > 31 && substr($0, 1, 31) ~ /^ *$/ { options = options roff(substr($0, 32)) "\n" }
prose && /USAGE$/ { printf "%s", usage; next }
prose && /OPTIONS$/ { printf "%s", options; next }
prose { sub(/VERSION/, version); print }
