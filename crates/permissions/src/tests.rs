//! Rules and modes: what they say of calls.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wire::state::PermissionMode;

use super::{Bases, Call, PermissionLayer, PermissionSettings, Policy, Source, Verdict};

mod command_lines;

const CWD: &str = "/nowhere/project";

fn layer(mode: &str, allow: &[&str], ask: &[&str], deny: &[&str]) -> PermissionLayer {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    PermissionLayer {
        mode: PermissionMode::parse(mode),
        allow: texts(allow),
        ask: texts(ask),
        deny: texts(deny),
    }
}

fn bases(cwd: &Path) -> Bases<'_> {
    Bases {
        cwd,
        home: Some(Path::new("/nowhere/home")),
        real_path: process::real_path,
    }
}

fn policy_in(cwd: &Path, user: PermissionLayer, project: PermissionLayer) -> Policy {
    let (policy, notes) = Policy::new(&PermissionSettings { user, project }, None, bases(cwd));
    assert!(notes.is_empty(), "{notes:?}");
    policy
}

fn policy(mode: &str, allow: &[&str], ask: &[&str], deny: &[&str]) -> Policy {
    policy_in(
        Path::new(CWD),
        layer(mode, allow, ask, deny),
        PermissionLayer::default(),
    )
}

/// `run`, `ask` or `refuse`.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Run => "run",
        Verdict::Ask => "ask",
        Verdict::Refuse(_) => "refuse",
    }
}

fn file_call(tool: &str, named: PathBuf) -> Call {
    let real = process::real_path(&named);
    Call::file(tool, named, real)
}

fn bash(policy: &Policy, command: &str) -> &'static str {
    word(policy.judge(&Call::command("bash", command)))
}

fn file(policy: &Policy, tool: &str, path: &str) -> &'static str {
    word(policy.judge(&file_call(tool, PathBuf::from(path))))
}

#[test]
fn permission_modes_without_rules_give_defaults() {
    let calls = [
        file_call("read", PathBuf::from("/etc/passwd")),
        Call::other(agent::todo::TOOL),
        file_call("edit", PathBuf::from("/nowhere/project/a")),
        Call::command("bash", "ls"),
        Call::other("host_tool"),
        Call::uri("write", "notes://a"),
    ];
    for (mode, expected) in [
        ("off", ["run"; 6]),
        ("auto", ["run"; 6]),
        ("ask", ["run", "run", "ask", "ask", "ask", "ask"]),
        (
            "read-only",
            ["run", "run", "refuse", "refuse", "refuse", "refuse"],
        ),
    ] {
        let policy = policy(mode, &[], &[], &[]);
        let said: Vec<&str> = calls.iter().map(|call| word(policy.judge(call))).collect();
        assert_eq!(said, expected, "{mode}");
    }
}

#[test]
fn deny_precedes_ask_precedes_allow() {
    let policy = policy(
        "ask",
        &["bash(git *)", "edit", "lookup"],
        &["bash(git push *)", "edit(secret/**)"],
        &["bash(git push --force *)", "*(.env)", "read(~/.ssh)"],
    );
    assert_eq!(bash(&policy, "git status"), "run");
    assert_eq!(bash(&policy, "git push origin"), "ask");
    assert_eq!(bash(&policy, "git push --force origin"), "refuse");
    assert_eq!(file(&policy, "edit", "/nowhere/project/a.rs"), "run");
    assert_eq!(file(&policy, "edit", "/nowhere/project/secret/a"), "ask");
    for tool in ["read", "edit", "write", "grep"] {
        assert_eq!(file(&policy, tool, "/nowhere/project/deep/.env"), "refuse");
        assert_eq!(file(&policy, tool, "/elsewhere/.env"), "refuse");
    }
    assert_eq!(file(&policy, "read", "/nowhere/home/.ssh/id_rsa"), "refuse");
    assert_eq!(file(&policy, "read", "/nowhere/home/.sshx"), "run");
    assert_eq!(word(policy.judge(&Call::other("lookup"))), "run");
    assert_eq!(word(policy.judge(&Call::other("other"))), "ask");
    assert!(matches!(
        policy.judge(&file_call("read", PathBuf::from("/x/.env"))),
        Verdict::Refuse(why) if why.contains("*(.env)")
    ));
}

#[test]
fn shortened_tool_is_judged_by_full_name() {
    let server = format!("dev-{}", "b".repeat(60));
    let call = |tool: &str, full_name: &str| {
        let source = Source::McpServer {
            server: server.clone(),
            tool: "read-file".to_owned(),
            full_name: full_name.to_owned(),
            config: String::new(),
        };
        Call::other(tool).from_source(&source)
    };
    let full = format!("mcp__dev_{}__read_file", "b".repeat(60));
    let short = format!("{}_0123abcd", &full[..55]);
    let shortened = call(&short, &full);
    for rule in [
        format!("mcp__{server}__*"),
        format!("mcp__dev_{}__*", "b".repeat(60)),
        format!("mcp__{server}__read-file"),
        full.clone(),
        short.clone(),
        "mcp__dev*".to_owned(),
    ] {
        let rules = [rule.as_str()];
        assert_eq!(
            word(policy("auto", &[], &[], &rules).judge(&shortened)),
            "refuse",
            "{rule}"
        );
        assert_eq!(
            word(policy("auto", &[], &rules, &[]).judge(&shortened)),
            "ask",
            "{rule}"
        );
    }
    for (rule, expected) in [
        (short.clone(), "run"),
        (format!("{}*", &full[..50]), "run"),
        // Another server has the beginning of the name.
        (format!("{}_*", &full[..55]), "ask"),
        (full.clone(), "ask"),
    ] {
        assert_eq!(
            word(policy("ask", &[rule.as_str()], &[], &[]).judge(&shortened)),
            expected,
            "{rule}"
        );
    }
    let whole = call("mcp__docs__search", "mcp__docs__search");
    assert_eq!(
        word(policy("ask", &["mcp__docs__*"], &[], &[]).judge(&whole)),
        "run"
    );
    assert_eq!(
        word(policy("auto", &[], &[], &["mcp__docs__*"]).judge(&whole)),
        "refuse"
    );
}

#[test]
fn read_only_mode_refuses_writes_except_allowed_commands() {
    let policy = policy("read-only", &["bash(git log *)", "write", "lookup"], &[], &[]);
    assert_eq!(bash(&policy, "git log -p"), "run");
    assert_eq!(bash(&policy, "git log > log.txt"), "refuse");
    assert_eq!(bash(&policy, "git commit"), "refuse");
    assert_eq!(file(&policy, "write", "/nowhere/project/a"), "refuse");
    assert_eq!(word(policy.judge(&Call::other("lookup"))), "run");
    assert_eq!(word(policy.judge(&Call::other("other"))), "refuse");
}

#[test]
fn project_rules_only_tighten() {
    let cwd = Path::new(CWD);
    let user = || layer("ask", &["bash"], &[], &[]);
    let looser = policy_in(cwd, user(), layer("off", &["edit"], &[], &[]));
    assert_eq!(looser.mode(), PermissionMode::Ask);
    let tighter = policy_in(cwd, user(), layer("read-only", &[], &[], &["bash(rm *)"]));
    assert_eq!(tighter.mode(), PermissionMode::ReadOnly);
    assert_eq!(bash(&tighter, "rm x"), "refuse");
    // Rules alone hold, too, and the user cannot choose below them.
    let mut rules = policy_in(
        cwd,
        PermissionLayer::default(),
        layer("", &[], &[], &["bash(rm *)"]),
    );
    assert_eq!(
        (rules.mode(), bash(&rules, "rm x")),
        (PermissionMode::Auto, "refuse")
    );
    rules.choose(PermissionMode::Off);
    assert_eq!(
        (rules.mode(), bash(&rules, "rm x")),
        (PermissionMode::Auto, "refuse")
    );
    let mut none = policy("", &[], &[], &["bash(rm *)"]);
    none.choose(PermissionMode::Off);
    assert_eq!((none.mode(), bash(&none, "rm x")), (PermissionMode::Off, "run"));
}

#[test]
fn session_grant_covers_only_the_same_call() {
    let mut policy = policy("ask", &[], &["read(secret)"], &["bash(rm *)"]);
    let call = Call::command("bash", "make test");
    policy.grant(&call);
    policy.grant(&file_call("read", PathBuf::from("/nowhere/project/secret/a")));
    policy.grant(&Call::command("bash", "rm x"));
    assert_eq!(bash(&policy, "make test"), "run");
    assert_eq!(bash(&policy, "make test install"), "ask");
    assert_eq!(file(&policy, "read", "/nowhere/project/secret/a"), "run");
    assert_eq!(file(&policy, "read", "/nowhere/project/secret/b"), "ask");
    assert_eq!(bash(&policy, "rm x"), "refuse");
    policy.choose(PermissionMode::ReadOnly);
    assert_eq!(bash(&policy, "make test"), "refuse");
}

#[test]
fn links_and_dots_do_not_loosen_rules() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let cwd = root.join("project");
    std::fs::create_dir_all(cwd.join("src")).unwrap();
    std::fs::create_dir_all(cwd.join("secret")).unwrap();
    std::fs::create_dir_all(root.join("outside")).unwrap();
    std::fs::write(cwd.join("secret/key"), "x").unwrap();
    symlink(root.join("outside"), cwd.join("src/out")).unwrap();
    symlink("../secret", cwd.join("src/in")).unwrap();
    symlink(root.join("outside/new"), cwd.join("src/dangling")).unwrap();
    symlink("round", cwd.join("src/round")).unwrap();
    symlink(&cwd, root.join("alias")).unwrap();
    for cwd in [cwd.clone(), root.join("alias")] {
        let policy = policy_in(
            &cwd,
            layer("ask", &["write(src/**)"], &[], &["*(secret/**)"]),
            PermissionLayer::default(),
        );
        let write = |path: &str| word(policy.judge(&file_call("write", cwd.join(path))));
        assert_eq!(write("src/a"), "run");
        assert_eq!(write("src/deep/new/a"), "run");
        assert_eq!(write("src/out/a"), "ask");
        assert_eq!(write("src/dangling"), "ask");
        assert_eq!(write("src/in/key"), "refuse");
        assert_eq!(write("secret/key"), "refuse");
        assert_eq!(write("a"), "ask");
        assert_eq!(write("srcs/a"), "ask");
        let read = |path: &Path| word(policy.judge(&file_call("read", path.to_path_buf())));
        assert_eq!(read(&root.join("alias/secret/key")), "refuse");
        assert_eq!(read(&root.join("project/src/in/key")), "refuse");
        assert_eq!(read(&root.join("project/src/a")), "run");
    }
    // The agent could have put the link there itself: a rule about it does not follow it.
    symlink(root.join("outside"), cwd.join("link")).unwrap();
    let policy = policy_in(
        &cwd,
        layer("ask", &["write(link/**)"], &[], &[]),
        PermissionLayer::default(),
    );
    assert_eq!(word(policy.judge(&file_call("write", cwd.join("link/a")))), "ask");
    let policy = policy_in(
        &cwd,
        layer("auto", &[], &[], &["write(link)"]),
        PermissionLayer::default(),
    );
    assert_eq!(
        word(policy.judge(&file_call("write", root.join("outside/a")))),
        "refuse"
    );
}

#[test]
fn path_patterns_are_anchored_by_prefix() {
    let policy = policy(
        "ask",
        &[
            "write(*.md)",
            "write(./top)",
            "write(../beside/**)",
            "write(/abs/x*/y)",
            "write(~/notes/)",
            "write({a,b}/c)",
        ],
        &[],
        &[],
    );
    for (path, expected) in [
        ("/nowhere/project/a.md", "run"),
        ("/nowhere/project/deep/a.md", "run"),
        ("/nowhere/a.md", "ask"),
        ("/nowhere/project/top", "run"),
        ("/nowhere/project/top/below", "run"),
        ("/nowhere/project/deep/top", "ask"),
        ("/nowhere/beside/a", "run"),
        ("/abs/x1/y", "run"),
        ("/abs/x1/z/y", "ask"),
        ("/nowhere/home/notes/a", "run"),
        ("/nowhere/project/b/c", "run"),
        ("/nowhere/project/c/c", "ask"),
    ] {
        assert_eq!(file(&policy, "write", path), expected, "{path}");
    }
}

#[test]
fn unreadable_rules_are_reported_and_never_loosen() {
    let settings = PermissionSettings {
        user: layer(
            "auto",
            &["write(a", "(x)"],
            &[],
            &["edit([)", "bash(rm", "read(a/../b)"],
        ),
        project: PermissionLayer::default(),
    };
    let (mut policy, notes) = Policy::new(&settings, None, bases(Path::new(CWD)));
    assert_eq!(notes.len(), 5, "{notes:?}");
    assert!(notes[0].to_string().contains("\"write(a\" cannot be read"));
    assert_eq!(file(&policy, "edit", "/x"), "refuse");
    assert_eq!(file(&policy, "read", "/x"), "refuse");
    assert_eq!(bash(&policy, "ls"), "refuse");
    policy.choose(PermissionMode::Ask);
    assert_eq!(file(&policy, "write", "/nowhere/project/a"), "ask");
}

#[test]
fn name_resembling_link_target_is_shown_with_target() {
    let shown = |name: &str| file_call("write", Path::new("/nowhere").join(name)).shown();
    assert_eq!(shown("plain.txt"), "/nowhere/plain.txt");
    assert_eq!(
        shown("x (which is y)"),
        "/nowhere/x (which is y) (which is /nowhere/x (which is y))"
    );
}

#[test]
fn limits_state_mode_and_deny_rules() {
    let limits = |mode: &str, deny: &[&str]| policy(mode, &[], &[], deny).limits();
    assert!(limits("off", &["bash(rm *)"]).is_empty() && limits("auto", &[]).is_empty());
    assert_eq!(
        limits("auto", &["bash(rm *)", "read(.env)"]),
        ["The user's rules deny calls: bash(rm *), read(.env). Do not try to get around them."]
    );
    let many: Vec<String> = (0..23).map(|n| format!("bash(x{n})")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let [mode, rules] = limits("read-only", &many).try_into().unwrap();
    assert!(mode.starts_with("This session is read-only"), "{mode}");
    assert!(rules.contains("bash(x19) and 3 more."), "{rules}");
}
