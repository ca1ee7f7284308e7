#!/bin/sh
# A permission gate in a shell script: no jq, no library. It lets every tool call through but those of bash that
# mention "rm -rf" or "sudo".
#
# What makes this possible: each line begins with its members in the order that docs/reference/extension-protocol.md shows, so that
# the shell's own patterns find the type, the id and the name. The arguments come last; looking for a word anywhere in
# the line errs on the safe side.

answer() { printf '{"type":"result","id":%s,"value":%s}\n' "$1" "$2"; }

while IFS= read -r line; do
    # {"type":"event","session":"...","id":7,"name":"tool_call",...  ->  7
    id=${line#*\"id\":}
    id=${id%%[!0-9]*}
    case $line in
    '{"type":"hello"'*)
        printf '{"type":"ready","protocol":1}\n'
        ;;
    '{"type":"open"'*)
        answer "$id" '{"extensions":[{"events":["tool_call"]}]}'
        ;;
    '{"type":"event"'*'"toolName":"bash"'*'rm -rf'* | '{"type":"event"'*'"toolName":"bash"'*sudo*)
        answer "$id" '{"block":true,"reason":"The gate does not let this command through"}'
        ;;
    '{"type":"event"'* | '{"type":"close"'*)
        answer "$id" null
        ;;
    '{"type":"ping"'*)
        printf '{"type":"pong","id":%s}\n' "$id"
        ;;
    esac
done
