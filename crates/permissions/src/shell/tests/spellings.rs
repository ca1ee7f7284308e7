//! Options and code in unusual spellings, and lines of every day that look like them.

use super::{cpu_time, is_refused, policy, rule};
use crate::{Call, Verdict};

/// The letters of `-Lfatal` and `-Ebefore.awk` belong to values, and are no options for code.
#[test]
fn value_of_awk_option_is_no_script() {
    let policy = policy("auto", &[], &[], &rule());
    for line in [
        "gawk -Lfatal 'BEGIN { system(\"forbidden\" \"-program\") }'",
        "gawk -Zfr_FR 'BEGIN { system(\"forbidden\" \"-program\") }'",
        "echo 'BEGIN { system(\"forbidden\" \"-program\") }' > before.awk; gawk -Ebefore.awk x",
        "echo 'BEGIN { system(\"forbidden\" \"-program\") }' > x.awk; gawk -bEx.awk x",
    ] {
        assert!(is_refused(&policy, line), "{line}");
    }
    assert!(!is_refused(&policy, "gawk -Lfatal '{ print $1 }' x"));
}

#[test]
fn value_behind_grouped_letters_is_no_script() {
    let policy = policy("auto", &[], &[], &rule());
    let code = "'BEGIN { system(\"forbidden\" \"-program\") }'";
    for line in [
        format!("gawk -bv a=1 {code}"),
        format!("gawk -bF , {code}"),
        format!("gawk -bi inplace {code}"),
        format!("gawk -e 1 -be {code} x"),
        format!("echo {code} > s; gawk -bf s x"),
        format!("echo {code} > s; gawk -bWexec s"),
        "sed -nl 5 '1e forbidden\"\"-program' x".to_owned(),
        "sed -e p -ne '1e forbidden\"\"-program' x".to_owned(),
        "echo '1e forbidden\"\"-program' > s; sed -nf s x".to_owned(),
    ] {
        assert!(is_refused(&policy, &line), "{line}");
    }
    for line in [
        "gawk -bv a=1 '{ print a }' x",
        "gawk -bF , '{ print $1 }' x",
        "gawk -bf lib.awk x",
        "sed -nl 5 p x",
        "sed -nf lib.sed x",
        "sed -nEe 's/a/b/p' x",
        "sed -ni 's/a/b/p' x",
    ] {
        assert!(!is_refused(&policy, line), "{line}");
    }
}

#[test]
fn value_in_word_of_its_own_is_no_script() {
    let policy = policy("auto", &[], &[], &rule());
    let code = "'BEGIN { system(\"forbidden\" \"-program\") }'";
    for line in [
        format!("gawk --assign a=1 {code}"),
        format!("gawk --field , {code}"),
        format!("gawk -Z C {code}"),
        format!("awk -F\"$s\" {code} x"),
        format!("awk -F\"$s\" , {code} x"),
        format!("awk -v\"$s\" {code}"),
        "sed --line-length 5 '1e forbidden\"\"-program' x".to_owned(),
        "sed --line 5 '1e forbidden\"\"-program' x".to_owned(),
        "sed '-e=;1e forbidden\"\"-program' x".to_owned(),
        "sed -e\"$s\" p x".to_owned(),
        "sed --expression=\"$s\" p x".to_owned(),
    ] {
        assert!(is_refused(&policy, &line), "{line}");
    }
    for line in [
        "gawk --assign a=1 '{ print a }' x",
        "gawk --assign=a=1 '{ print a }' x",
        "awk -F\"$s\" '{ print $1 }' x",
        "awk -F\"$s\" '{ print $1 }' \"$f\"",
        "awk -v\"$s\" '{ print $1 }'",
        "sed --line-length=5 p x",
        "sed --line-length 5 p x",
        "sed -ne= x",
        "sed -e=p x",
    ] {
        assert!(!is_refused(&policy, line), "{line}");
    }
}

#[test]
fn file_that_sed_changes_is_read() {
    let policy = policy("auto", &[], &[], &rule());
    for sed in ["sed -i", "sed -Ei", "sed -ni.b", "sed --in", "gsed -i"] {
        let line = format!("{sed} '$a[alias]\\nq = !forbidden-program' .git/config; git q");
        assert!(is_refused(&policy, &line), "{line}");
    }
    assert!(!is_refused(&policy, "sed -Ei 's/a/b/' .git/config; git status"));
}

#[test]
fn second_subscript_of_perl_is_code() {
    let policy = policy("auto", &[], &[], &rule());
    for line in [
        "perl -pe 's/a/$x[0]{system(\"forbidden-program\")}/' x",
        "perl -pe 's/a/$x->[0]->[system(\"forbidden-program\")]/' x",
    ] {
        assert!(is_refused(&policy, line), "{line}");
    }
    assert!(!is_refused(&policy, "perl -pe 's/(a)/$h{x}: $1/' x"));
}

#[test]
fn ordinary_options_need_no_further_rule() {
    let allow = ["tar", "scp", "npm", "eslint", "less"].map(|program| format!("bash({program} *)"));
    let policy = policy("ask", &allow, &[], &[]);
    for line in [
        "tar -xzf a.tgz -C/Files",
        "tar -czf a.tgz -C/home/I src",
        "scp -i/home/me/key a h:b",
        "npm exec --no -- eslint src",
    ] {
        assert_eq!(policy.judge(&Call::command("bash", line)), Verdict::Run, "{line}");
    }
    for line in ["tar -xIprogram -f a", "scp -rSprogram a h:b"] {
        assert_eq!(policy.judge(&Call::command("bash", line)), Verdict::Ask, "{line}");
    }
}

#[test]
fn ordinary_code_and_patterns_are_not_refused() {
    let policy = policy("auto", &[], &[], &["bash(git push *)".to_owned()]);
    let words = "word ".repeat(2_500);
    let code = "config = 1\nopen('out', 'w').write(str(config))\n";
    for line in [
        "less '+/foo\\.bar' a".to_owned(),
        // Such a file has no aliases of `git`.
        "cat > a.ts <<'EOF'\n// an alias; push it\nEOF\nnpm test; git add a.ts".to_owned(),
        // The name of a variable is no file with settings.
        format!("python3 - <<'EOF'\n{code}# {words}\nEOF\ngit status"),
    ] {
        assert!(!is_refused(&policy, &line), "{}", line.get(..60).unwrap_or(&line));
    }
    let written = "python3 -c 'open(\"config\", \"w\").write(\"[alias] p = push origin\")'; git p";
    assert!(is_refused(&policy, written));
}

/// Each of these words takes the rest of the line.
#[test]
fn texts_of_many_words_are_refused_soon() {
    let policy = policy("auto", &[], &[], &rule());
    let start = cpu_time();
    for line in [
        format!("socat {}", "exec:".repeat(5_000)),
        format!("gh alias{}", " x".repeat(12_000)),
        format!("git config{}", " alias.".repeat(4_000)),
        format!("tar{}", " -aa x".repeat(4_000)),
    ] {
        assert!(is_refused(&policy, &line), "{}", line.len());
    }
    // Generous: a debug build.
    let took = cpu_time() - start;
    assert!(took.as_secs() < 20, "{took:?}");
}
