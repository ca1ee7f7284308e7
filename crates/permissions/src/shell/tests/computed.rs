//! Words of a line that variables and commands of the line make.

use super::{cpu_time, is_refused, policy, rule};
use crate::{Call, Verdict};

/// The program stands in no line as a word of its own, so that only its values can tell it.
#[test]
fn commands_of_known_values_are_refused() {
    let policy = policy(
        "auto",
        &[],
        &[],
        &["bash(rm *)".to_owned(), "bash(cat /etc/shadow)".to_owned()],
    );
    for line in [
        "o=-I y=rm; tar $o $y -cf a.tar b",
        "o=-I; y=rm; tar cf a.tar $o \"$y\" b",
        "o='-I rm'; tar cf a.tar $o b",
        "a=--to-; o=${a}command; tar xf a.tar $o rm",
        "r=rm; find . -exec $r x {} +",
        "t=xec; find . -e$t rm x +",
        "r=r; m=m; nice $r$m x",
        "o=-e; y=rm; rsync $o $y a b:c",
        "f() { tar cf a.tar $1 $2 b; }; f -I rm",
        "f=/etc/shadow; cat $f",
        "f=/etc/shadow; cat \"$f\"",
        "d=/etc; cat $d/shadow",
        "d=/etc; f=$d/shadow; cat \"$f\"",
        "f=shadow; for d in /tmp /etc; do cat $d/$f; done",
        "cat() { :; }; unset -f cat; f=/etc/shadow; cat $f",
        "f=Makefile; printf 'all:\\n\\trm x\\n' > $f; make",
        "o=-I; tar ${o:-x} rm -cf a.tar b",
        "IFS= o='-I rm'; tar $o -cf a.tar b",
    ] {
        assert!(is_refused(&policy, line), "{line}");
    }
    for line in [
        "o=-C y=rm; tar $o $y -cf a.tar b",
        "f=/etc/hosts; cat $f",
        "f=README.md; git add \"$f\" && git commit -m \"Change $f\"",
        "list=a; list=\"$list b\"; for i in $list; do cat \"$i\"; done",
        "export PATH=\"$HOME/bin:$PATH\"; cargo build",
        "set -- -v; set -- \"$@\" x; cargo build \"$@\"",
        "IFS=$'\\n'; d=dist; for f in $(git ls-files); do gcc -I $d -c $f; done",
        "src=app; rsync -a \"${src:-.}/\" backup/",
        "args=--a; args+=' --b'; args+=' --c'; args+=' --d'; args+=' --e'; args+=' --f'; cargo build $args",
    ] {
        assert!(!is_refused(&policy, line), "{line}");
    }
}

#[test]
fn computed_words_that_can_be_options_are_refused() {
    let policy = policy("auto", &[], &[], &rule());
    for line in [
        "tar xf a.tar $(cat options)",
        "tar xf a.tar \"$(printf %s%s --to-command= program)\"",
        "o=$(cat options); tar xf a.tar $o",
        "o=$(cat options); tar xf a.tar \"$o\"",
        "read -r o < options; tar xf a.tar $o",
        "read -r o <<< 'x y'; rsync a $o b",
        "printf -v o %s%s --to-command= x; tar xf a.tar \"$o\"",
        "mapfile -t o < options; tar xf a.tar \"${o[@]}\"",
        "set -- $(cat options); tar xf a.tar \"$@\"",
        "f() { tar xf a.tar \"$1\"; }; f \"$(cat options)\"",
        "f() { local o=$1; tar xf a.tar $o; }; f \"$(cat options)\"",
        "x=xx--to-command=y; tar xf a.tar \"${x#xx}\"",
        "tar xf a.tar \"${x:---to-command=y}\"",
        "tar xf a.tar ${x/a/b}",
        ": --to-command=y; tar xf a.tar $_",
        "tar xf a.tar a$(cat options)",
        "tar xf a.tar -C $(cat options)",
        "echo x | xargs -I{} tar xf a.tar {}",
        "find . $(cat options)",
        "git rebase $(cat options) main",
        "git fetch origin $(cat options)",
        "rsync -a a \"$(cat options)\" b",
        "gcc $(cat options) a.c",
        "python3 $(cat options) a.py",
        "perl $(cat options)",
        "awk $(cat options) a",
        "sed -n p $(cat options)",
        "vim $(cat options)",
        "tar cf a.tar -T <(printf %s --x)",
        "printf %s --x | tar cf a.tar -T -",
        "tar cf a.tar -T \"$(cat list)\"",
        "make -j \"$(cat jobs)\"",
        "git rebase -S \"$(cat key)\"",
        "psql -o '|program'",
        "f() { tar cf a.tar \"${1#x}\" b; }; f x--to-command=y",
        "pwd() { cat options; }; tar xf a.tar \"$(pwd)\"",
        "ls() { cat options; }; ls | xargs tar cf a.tar b",
        "HOME='-- --to-command=x/y'; tar xf a.tar \"$(dirname $HOME)\"",
        "HOME=--to-command=x; tar xf a.tar \"$(git rev-parse \"$HOME\")\"",
        "export TMPDIR=$(cat options); tar xf a.tar \"$(mktemp)\"",
        "bash -c 'tar xf a.tar $(dirname $0)' '-- --to-command=x/y'",
        "tar xf a.tar $(date +%Z)",
        "tar xf a.tar $(echo a --to-command=x)",
        "tar xf a.tar \"$(cd dir && cat options)\"",
        "date() { cat options; }; tar xf a.tar \"$(date)\"",
    ] {
        assert!(is_refused(&policy, line), "{line}");
    }
}

#[test]
fn computed_words_that_are_no_options_are_allowed() {
    let policy = policy("auto", &[], &[], &rule());
    for line in [
        "tar xf \"$(cat name)\" -C \"$(cat dir)\"",
        "tar czf \"backup-$(date +%F).tgz\" src",
        "tar czf backup-$(date +%F).tgz src",
        "tmp=$(mktemp -d); tar xf a.tgz -C \"$tmp\"; rsync -a \"$tmp\"/ b/",
        "branch=$(git branch --show-current); git push -u origin \"$branch\"",
        "git rebase \"$(git merge-base HEAD main)\"",
        "git commit -m \"$(cat message)\"",
        "gcc $(pkg-config --cflags --libs gtk4) a.c -o \"$(cat name)\"",
        "make -j$(nproc) && cmake --build b -j $(nproc)",
        "sed -i 's/a/b/' $(git ls-files '*.rs')",
        "git ls-files | while read -r f; do gcc -c \"$f\"; done",
        "tar -cf a.tar -- \"$(cat name)\"",
        "find \"$(pwd)\" -newermt \"$(cat stamp)\"",
        "python3 a.py \"$(cat name)\"",
        "python3 \"$(which pytest)\" -x",
        "tar cf a.tar -T <(git ls-files)",
        "git ls-files | tar cf a.tar -T -",
        "for f in \"$@\"; do tar tf \"$f\"; done",
        "./deploy.sh \"$(git rev-parse HEAD)\"",
        "dir=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" >/dev/null 2>&1 && pwd); python3 \"$dir/gen.py\" && rsync -a \"$dir/\" out/",
        "root=$(git rev-parse --show-toplevel 2>/dev/null || pwd); find \"$root\" -name '*.rs'",
        "v=$(git describe --tags --always --dirty 2>/dev/null || echo dev); tar czf app-$v.tgz dist",
        "make -j$(nproc 2>/dev/null || sysctl -n hw.ncpu)",
        "tar czf db-$(date -u +%Y%m%dT%H%M%S).tgz dump",
        "tmp=$(mktemp -d -t app.XXXXXX); cp a \"$tmp\"; tar cf \"$tmp/a.tar\" \"$tmp/a\"",
        "tmp=$(mktemp -d \"${TMPDIR:-/tmp}/app.XXXX\"); rsync -a \"$tmp\"/ out/",
        "name=app-$(cat VERSION); tar czf \"$name.tgz\" dist && zip -r \"$name.zip\" dist",
        "for i in $(seq 1 3); do rsync -a src/ copy-$i/; done",
        "git fetch origin \"${SHA:0:7}\"",
        "bash -c 'ls \"$@\"' -- a b",
        "ruby gen.rb \"$(cat name)\"",
    ] {
        assert!(!is_refused(&policy, line), "{line}");
    }
}

/// A rule for some arguments of a program, and a command whose arguments the line computes.
#[test]
fn computed_argument_is_unclear_for_rule_it_could_fit() {
    let denied = [
        "bash(cat /etc/shadow*)",
        "bash(git push --force *)",
        "bash(*secret*)",
    ]
    .map(str::to_owned);
    let (denies, asks) = (
        policy("auto", &[], &[], &denied),
        policy("auto", &[], &denied, &[]),
    );
    for line in [
        "cat \"$(printf /etc/sha%s dow)\"",
        "f=$(printf /etc/sha%s dow); cat $f",
        "cat /etc/$(printf shadow)",
        "cat ${x/a/b}",
        "git push $(cat options) origin",
    ] {
        assert!(is_refused(&denies, line), "{line}");
        assert_eq!(asks.judge(&Call::command("bash", line)), Verdict::Ask, "{line}");
    }
    for line in [
        "cat \"$file\"",
        "cat /tmp/$(date +%F)",
        "head \"$(printf x)\"",
        "git push origin \"$(git branch --show-current)\"",
        "git commit -m \"$(cat message)\"",
    ] {
        assert!(!is_refused(&denies, line), "{line}");
    }
    let denies = policy(
        "auto",
        &[],
        &[],
        &[
            "bash(docker run *--privileged*)".to_owned(),
            "bash(git commit *--no-verify*)".to_owned(),
        ],
    );
    for line in [
        "docker run -v \"$(pwd)\":/app image make",
        "git commit -am \"$(cat message)\"",
    ] {
        assert!(!is_refused(&denies, line), "{line}");
    }
    assert!(is_refused(&denies, "docker run $(cat options) image"));
}

/// Values of values, in many commands, would be much longer than the line.
#[test]
fn many_long_values_are_refused_soon() {
    let policy = policy("auto", &[], &[], &rule());
    let values: String = (0..200).map(|at| format!("a={at}; ")).collect();
    let long = format!("{values}b={}; c={}; ", "$a".repeat(30), "$b".repeat(60));
    let start = cpu_time();
    for line in [
        format!("{long}{}", "cargo build $b $c; ".repeat(250)),
        format!("{long}{}", "d=$c; ".repeat(1_000)),
        format!("{long}cargo build {}", "$c ".repeat(2_500)),
    ] {
        assert!(is_refused(&policy, &line), "{}", line.len());
    }
    // Generous: a debug build. Without the bounds it takes hours.
    let took = cpu_time() - start;
    assert!(took.as_secs() < 40, "{took:?}");
    let few = format!("{values}cargo build $a");
    assert!(!is_refused(&policy, &few), "fewer than 256 values");
}

#[test]
fn file_named_like_option_is_refused() {
    let policy = policy("auto", &[], &[], &rule());
    for line in [
        "touch -- --checkpoint=1 --checkpoint-action=exec=forbidden-program; tar cf a.tar *",
        "touch ./-Iforbidden-program; tar cf a.tar *",
        ": > ./--use-compress-program=forbidden-program; tar cf a.tar *",
    ] {
        assert!(is_refused(&policy, line), "{line}");
    }
}
