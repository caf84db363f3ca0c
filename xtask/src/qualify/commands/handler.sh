#!/bin/sh
# The handler of the lane. It notes the beginning and the end of each run in $LANE_LOG and answers
# with the SHA-256 of what it got, which differs from try to try. What else it does, the command's
# body says: {"do":"quick|slow|fail|reject|private","ms":0,…}.
set -u

# A clock that is off is the agent's; the notes are by the machine's.
unset LD_PRELOAD FAKETIME FAKETIME_SHARED

IFS= read -r command || exit 1

field() {
    value=${command#*\""$1"\":}
    value=${value%%[,\}]*}
    value=${value#\"}
    printf '%s' "${value%\"}"
}

run="$(field seq) $(field try) $(field commandId)"
echo "start $run $(date +%s.%N)" >> "$LANE_LOG"
sum=$(printf '%s' "$command" | sha256sum)
sum=${sum%% *}
what=$(field do)
case $what in
    slow) sleep "0.$(printf '%03d' "$(field ms)")" ;;
    private) printf 'private %s' "$sum" > "$SITE_AGENT_OUTPUT_FILE" ;;
esac
printf '{"sha256":"%s"}\n' "$sum"
echo "end $run $sum $(date +%s.%N)" >> "$LANE_LOG"
case $what in
    fail) exit 3 ;;
    reject) exit 65 ;;
esac
