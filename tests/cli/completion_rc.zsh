# Completes $LINE as a terminal would, and writes what is offered and the line after it into $CAPTURE.
PROMPT=
autoload -U compinit
compinit -u -D
source "$SCRIPT"
compadd() {
  # With these options it fills arrays and offers nothing.
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a offered
  builtin compadd -A offered "$@"
  print -rl -- $offered >>"$CAPTURE"
  builtin compadd "$@"
}
zle-line-init() {
  BUFFER=$LINE
  CURSOR=$#BUFFER
  zle complete-word
  exit 0
}
zle -N zle-line-init
