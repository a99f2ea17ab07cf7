# The manual page, from what `microgpt --version` and `microgpt COMMAND --help` print, and the prose in microgpt.1.
function roff(text) { gsub(/-/, "\\-", text); return text }
!prose && /^microgpt / { version = $0 }
!prose && /^  microgpt / { summary[$2] = substr($0, 43) }
!prose && /^Options of / {
    sub(/:$/, "")
    options = options ".SH OPTIONS OF " $3 "\n" roff("microgpt " $3 ": " summary[$3]) ".\n"
}
!prose && /^ .*--/ && !/^  microgpt / {
    n = split(substr($0, 3, 31), word)
    letter = word[1] ~ /,$/ ? "\\fB" substr(word[1], 1, 2) "\\fR, " : ""
    i = letter ? 2 : 1
    options = options ".TP\n" roff(letter "\\fB" word[i] "\\fR \\fI" (i < n ? word[n] : "") "\\fR\n" substr($0, 35)) "\n"
}
prose && /OPTIONS$/ { printf "%s", options; next }
prose { sub(/VERSION/, version); print }
