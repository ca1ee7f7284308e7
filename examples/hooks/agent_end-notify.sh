#!/bin/sh
# Says that a run is over: on the desktop where that is possible, and in a log. Nobody waits for it.
cat >/dev/null
text="Session $PI_SESSION_ID in $(basename "$PWD") is done"
if command -v notify-send >/dev/null; then
  notify-send "pinion" "$text" || true
elif command -v osascript >/dev/null; then
  osascript -e "display notification \"$text\" with title \"pinion\"" || true
fi
echo "$(date '+%Y-%m-%d %H:%M:%S') $text" >>"${PINION_HOOK_LOG:-$PI_CODING_AGENT_DIR/runs.log}"
