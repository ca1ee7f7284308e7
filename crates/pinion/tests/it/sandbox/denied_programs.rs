//! Programs that permission rules deny cannot be run by scripts in the sandbox either.

use serde_json::json;
use testkit::llm::Reply;

use super::{ends, offered};
use crate::kit::{World, bash, write_program};

/// Ways to a program that no rule sees in the command line `./build.sh`.
const SCRIPT: &str = "#!/bin/bash
uname -s
/usr/bin/uname -s
sh -c 'uname -s'
python3 -c \"import subprocess; subprocess.run(['uname', '-s'])\"
cp \"$(command -v uname)\" copy && ./copy -s
cat \"$(command -v uname)\" > copy2 && chmod +x copy2 && ./copy2 -s
ln \"$(command -v uname)\" link && ./link -s
ln -s \"$(command -v uname)\" symlink && ./symlink -s
/lib64/ld-linux-x86-64.so.2 \"$(command -v uname)\" -s
echo reached the end; id -u
";

/// Runs the script with a deny rule for `uname` and returns the text of the result. A protected name that is a link makes the
/// sandbox do without user namespaces.
fn run(sandbox: &str, mode: &str, has_link: bool) -> String {
    let world = World::new([bash("c", "./build.sh 2>&1"), Reply::text(["done"])]);
    if has_link {
        std::os::unix::fs::symlink("elsewhere", world.dir.cwd().join(".omp")).unwrap();
    }
    write_program(&world.dir.cwd().join("build.sh"), SCRIPT);
    world.settings(json!({
        "sandbox": {"mode": sandbox},
        "permissions": {"mode": mode, "deny": ["bash(uname *)"]},
    }));
    let pi = world.start();
    pi.say("Go");
    let text = ends(&pi).remove(0).1;
    pi.finish();
    text
}

#[test]
fn denied_program_cannot_run_from_a_script() {
    if offered().0 == 0 {
        return;
    }
    let cases = [
        ("workspace-write", "auto", false),
        ("workspace-write", "auto", true),
        ("read-only", "off", false),
    ];
    for case @ (sandbox, mode, has_link) in cases {
        let text = run(sandbox, mode, has_link);
        assert!(!text.lines().any(|line| line == "Linux"), "{case:?}: {text}");
        assert!(text.contains("reached the end"), "{case:?}: {text}");
        assert!(text.contains("denied"), "{case:?}: {text}");
    }
}

#[test]
fn denied_program_runs_in_scripts_without_sandbox() {
    let text = run("off", "auto", false);
    assert!(text.lines().any(|line| line == "Linux"), "{text}");
}

#[test]
fn denied_shell_keeps_other_commands_working() {
    if offered().0 == 0 {
        return;
    }
    let world = World::new([bash("c", "echo works; id -u"), Reply::text(["done"])]);
    world.settings(json!({
        "sandbox": {"mode": "workspace-write"},
        "permissions": {"mode": "auto", "deny": ["bash(bash *)", "bash(/usr/bin/bash)"]},
    }));
    let pi = world.start();
    pi.say("Go");
    let (is_error, text) = ends(&pi).remove(0);
    assert!(!is_error && text.contains("works"), "{text}");
    pi.finish();
}
