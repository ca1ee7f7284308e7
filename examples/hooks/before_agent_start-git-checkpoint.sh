#!/bin/sh
# Keeps the working tree as it is before each prompt, with files that git does not know yet: a commit below refs/pinion, which
# no branch has. To go back: git restore --source=refs/pinion/SESSION/N --worktree .
# Neither the index nor HEAD is touched. Where there is no repository nothing happens.
cat >/dev/null
top=$(git rev-parse --show-toplevel 2>/dev/null) || exit 0
cd "$top" || exit 0
index=$(mktemp) || exit 1
trap 'rm -f "$index"' EXIT
cp "$(git rev-parse --git-path index)" "$index" 2>/dev/null || rm -f "$index"
export GIT_INDEX_FILE="$index"
git add --all . && tree=$(git write-tree) || exit 1
unset GIT_INDEX_FILE
parent=$(git rev-parse --verify --quiet HEAD)
export GIT_AUTHOR_NAME=pinion GIT_AUTHOR_EMAIL=pinion@localhost GIT_COMMITTER_NAME=pinion GIT_COMMITTER_EMAIL=pinion@localhost
commit=$(echo "Before a prompt of session $PI_SESSION_ID" | git commit-tree ${parent:+-p "$parent"} "$tree") || exit 1
refs="refs/pinion/$PI_SESSION_ID"
count=$(git for-each-ref "$refs" | wc -l)
git update-ref "$refs/$((count + 1))" "$commit"
