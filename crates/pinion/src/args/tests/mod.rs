//! Command lines as they are met in the wild, and the mistakes people make.

mod files;

use wire::ThinkingLevel;

use super::commands::COMMANDS;
use super::flags::SECTIONS;
use super::{Args, Command, Guess, Mode, UsageError, help, help_of};

fn args(line: &[&str]) -> Args {
    let line: Vec<String> = line.iter().map(ToString::to_string).collect();
    super::parse("pinion", &line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

fn parse(line: &[&str]) -> Result<Args, UsageError> {
    let line: Vec<String> = line.iter().map(ToString::to_string).collect();
    super::parse("pinion", &line)
}

fn mistake(line: &[&str]) -> String {
    match parse(line) {
        Ok(args) => panic!("{line:?} was taken: {args:?}"),
        Err(error) => error.to_string(),
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn empty_command_line_gives_defaults_without_warnings() {
    assert_eq!(args(&[]), Args::default());
}

#[test]
fn command_lines_of_known_clients_are_accepted() {
    let line = [
        "--mode",
        "rpc",
        "--no-themes",
        "--session-dir",
        "/s",
        "--session",
        "/s/x.jsonl",
    ];
    let acp = args(&line);
    assert_eq!(acp.mode, Some(Mode::Rpc));
    assert_eq!(acp.session_dir, some("/s"));
    assert_eq!(acp.session, some("/s/x.jsonl"));
    assert_eq!((acp.warnings.len(), acp.vendor), (0, None));

    let xcsh = args(&[
        "--mode",
        "rpc",
        "--no-title",
        "--provider-session-id",
        "s1",
        "--hook",
        "h.ts",
        "--tool",
        "t.ts",
    ]);
    assert_eq!(xcsh.vendor, Some(wire::Dialect::Xcsh));
    assert_eq!(xcsh.provider_session_id, some("s1"));
    assert_eq!(
        (xcsh.hooks, xcsh.custom_tools),
        (vec!["h.ts".to_owned()], vec!["t.ts".to_owned()])
    );

    let many = "--mode rpc --provider p --model m:high --thinking low --name n --no-extensions --no-skills \
        --no-prompt-templates --no-context-files --tools read,bash --exclude-tools a, --append-system-prompt x \
        --approve --no-mcp --offline --session-id a.b_c-1";
    let many = args(&many.split_whitespace().collect::<Vec<_>>());
    assert_eq!(many.model, some("m:high"));
    assert_eq!(many.thinking, Some(ThinkingLevel::Low));
    assert_eq!(many.tools, Some(vec!["read".to_owned(), "bash".to_owned()]));
    assert_eq!(many.exclude_tools, ["a"]);
    assert_eq!(many.session_id, some("a.b_c-1"));
    assert_eq!(many.approve, Some(true));
    assert!(many.no_extensions && many.no_skills && many.no_prompt_templates && many.no_context_files);
    assert!(many.no_mcp && many.offline);
    assert_eq!(many.warnings, Vec::<String>::new());
}

#[test]
fn short_options_equal_long_options() {
    let pairs: &[(&[&str], &[&str])] = &[
        (&["-c"], &["--continue"]),
        (&["-r"], &["--resume"]),
        (&["-t", "a,b"], &["--tools", "a,b"]),
        (&["-xt", "a"], &["--exclude-tools=a"]),
        (&["-nt", "-nbt"], &["--no-tools", "--no-builtin-tools"]),
        (&["-e", "x", "-ne"], &["--extension", "x", "--no-extensions"]),
        (
            &["-ns", "-np", "-nc"],
            &["--no-skills", "--no-prompt-templates", "--no-context-files"],
        ),
        (&["-a"], &["--approve"]),
        (&["-na"], &["--no-approve"]),
        (&["-n", "x"], &["--name", "x"]),
        (&["-h", "-v"], &["--help", "--version"]),
        (&["-p", "text"], &["--print=text"]),
    ];
    for (short, long) in pairs {
        let short_args = args(short);
        assert_eq!(short_args, args(long), "{short:?}");
        assert_ne!(short_args, Args::default(), "{short:?}");
    }
}

#[test]
fn print_flag_takes_following_message_only() {
    let table: &[(&[&str], &[&str], &[&str])] = &[
        (&["-p", "hi", "there"], &["hi", "there"], &[]),
        (&["-p"], &[], &[]),
        (&["-p", "@notes", "hi"], &["hi"], &["notes"]),
        (&["-p", "--offline"], &[], &[]),
        (&["-p", "---\ntitle: x"], &["---\ntitle: x"], &[]),
        (&["---\ntitle: x", "-p"], &["---\ntitle: x"], &[]),
        (
            &["-p", "--", "-5", "@x", "--model"],
            &["-5", "@x", "--model"],
            &[],
        ),
    ];
    for (line, messages, files) in table {
        let parsed = args(line);
        assert!(parsed.print, "{line:?}");
        assert_eq!(parsed.messages, *messages, "{line:?}");
        assert_eq!(parsed.files, *files, "{line:?}");
    }
}

#[test]
fn absolute_files_before_last_word_count_for_pi() {
    let words = |program: &str, words: &[&str]| {
        let line = ["-p", "--"].iter().chain(words).map(ToString::to_string);
        let line: Vec<String> = line.collect();
        let parsed = super::parse(program, &line).unwrap();
        (parsed.files, parsed.messages)
    };
    let table: &[(&str, &[&str], usize)] = &[
        ("pi", &["@/role.md", "@/a b.md", "Do it"], 2),
        ("pi", &["@/role.md", "Do it", "And this"], 1),
        ("pi", &["@/one", "@/two"], 1),
        ("pi", &["@/etc/passwd"], 0),
        ("pi", &["@notes", "Do it"], 0),
        ("pi", &["Look at", "@/etc/passwd", "please"], 0),
        ("pinion", &["@/role.md", "Do it"], 0),
    ];
    for (program, line, count) in table {
        let (files, texts) = line.split_at(*count);
        let files: Vec<String> = files.iter().map(|file| file.replacen('@', "", 1)).collect();
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        assert_eq!(words(program, line), (files, texts), "{program} {line:?}");
    }
}

#[test]
fn optional_values_do_not_swallow_options_and_files() {
    assert_eq!(args(&["--list-models"]).list_models, Some(None));
    assert_eq!(args(&["--list-models", "opus"]).list_models, Some(some("opus")));
    let followed = args(&["--list-models", "--offline"]);
    assert_eq!((followed.list_models, followed.offline), (Some(None), true));
    assert_eq!(args(&["--web-token"]).web_token, Some(None));
    assert_eq!(args(&["--web-token=t"]).web_token, Some(some("t")));
}

#[test]
fn required_value_may_start_with_dash() {
    let parsed = args(&[
        "--append-system-prompt",
        "- be brief",
        "--append-system-prompt=--x=y",
    ]);
    assert_eq!(parsed.append_system_prompt, ["- be brief", "--x=y"]);
}

#[test]
fn unknown_long_options_are_kept_for_extensions() {
    let parsed = args(&["--plan", "--deep", "3", "--flag=a=b", "--file", "@x", "msg"]);
    let flags: Vec<(&str, Option<&str>)> = parsed
        .extension_flags
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_deref()))
        .collect();
    let expected = [
        ("deep", Some("3")),
        ("file", None),
        ("flag", Some("a=b")),
        ("plan", None),
    ];
    assert_eq!(flags, expected);
    let guess = |option: &str, took_word_at| Guess {
        option: option.to_owned(),
        took_word_at,
    };
    let guesses = [
        guess("--plan", None),
        guess("--deep", Some(0)),
        guess("--flag", None),
        guess("--file", None),
    ];
    assert_eq!(parsed.guesses, guesses);
    assert_eq!(parsed.warnings, Vec::<String>::new());
    assert_eq!(
        (parsed.files, parsed.messages),
        (vec!["x".to_owned()], vec!["msg".to_owned()])
    );
}

#[test]
fn command_line_mistakes_are_named() {
    let table: &[(&[&str], &str)] = &[
        (&["-x"], "Unknown option: -x. Options: pinion --help"),
        (&["-"], "Unknown option: -. Options: pinion --help"),
        (
            &["-ne", "--sandbx", "read-only"],
            "Unknown option: --sandbx. Did you mean --sandbox? Options: pinion --help",
        ),
        (
            &["auth", "status", "--jsn"],
            "Unknown option: --jsn. Did you mean --json? Options: pinion auth --help",
        ),
        (
            &["--tools", "read,+grep"],
            "Invalid value \"read,+grep\" for --tools: tool names cannot be mixed with +name or -name entries",
        ),
        (
            &["-ne", "--profile", "work"],
            "Unknown option: --profile. Set PI_CODING_AGENT_DIR to the agent directory of the profile: ~/.omp/profiles/NAME/agent",
        ),
        (
            &["-ne", "--skills=a,b"],
            "Unknown option: --skills. Name the skills one by one: --no-skills --skill PATH",
        ),
        (
            &["--max-time", "0m"],
            "Invalid value \"0m\" for --max-time: use a whole number of seconds above 0, or a number with the unit s, m or h",
        ),
        (&["--model"], "Option --model needs a value: --model ID"),
        (&["-t"], "Option -t needs a value: -t LIST"),
        (&["--offline=yes"], "Option --offline takes no value"),
        (
            &["--mode", "rpc", "@notes.txt"],
            "@file arguments are not supported in RPC mode",
        ),
        (
            &["--fork", "a", "-c", "--no-session"],
            "--fork cannot be combined with --continue, --no-session",
        ),
        (
            &["--fork", "a", "--session", "b", "-r"],
            "--fork cannot be combined with --session, --resume",
        ),
        (
            &["--session-id", "a", "--session", "b"],
            "--session-id cannot be combined with --session",
        ),
    ];
    for (line, expected) in table {
        assert_eq!(mistake(line), *expected, "{line:?}");
    }
    assert!(mistake(&["--rpc-dialect", "klingon"]).contains("pi-delta"));
}

#[test]
fn options_of_omp_are_understood() {
    for (text, seconds) in [("90", 90), ("90s", 90), ("10m", 600), ("1h", 3_600)] {
        assert_eq!(args(&["--max-time", text]).run.limits.max_seconds, Some(seconds));
    }
    let parsed = args(&["--cwd", "/work", "--no-prewalk", "msg"]);
    assert_eq!(parsed.foreign.cwd, some("/work"));
    assert_eq!(parsed.messages, ["msg"]);
    assert_eq!(args(&["--cwd="]).foreign.cwd, None);
    let server = args(&["mcp", "add", "--cwd", "/srv", "x"]);
    assert_eq!((server.foreign.cwd, server.mcp.cwd), (None, some("/srv")));
}

#[test]
fn misspelled_command_with_address_is_refused() {
    for (line, meant) in [
        (["instal", "npm:x"], "pinion install?"),
        (["updte", "git:github.com/a/b"], "pinion update?"),
        (["trsut", "../project"], "pinion trust?"),
        (["exprt", "session.jsonl"], "pinion --export FILE?"),
    ] {
        let error = mistake(&line);
        assert!(error.contains(meant), "{line:?}: {error}");
    }
    for prompt in [
        &["last", "commit"][..],
        &["updated", "docs?"],
        &["instal", "it", "npm:x"],
        &["helm", "charts/a"],
        &["lost", "1.5"],
    ] {
        assert_eq!(args(prompt).messages, prompt);
    }
}

#[test]
fn session_id_must_fit_into_file_name() {
    for good in ["a", "7", "A-b_c.9"] {
        assert_eq!(args(&["--session-id", good]).session_id, some(good));
    }
    let long = "x".repeat(129);
    for bad in ["", "-a", "a-", ".a", "a/b", "a b", "ä", "..", long.as_str()] {
        assert!(
            mistake(&["--session-id", bad]).contains("--session-id"),
            "{bad:?}"
        );
    }
    // With --fork it names the copy, and it works without a file too.
    assert_eq!(args(&["--session-id", "a", "--fork", "b"]).fork, some("b"));
    assert!(args(&["--session-id", "a", "--no-session"]).no_session);
}

#[test]
fn unusable_option_values_are_errors() {
    for (line, expected) in [
        (
            ["--mode", "tui"],
            "Invalid value \"tui\" for --mode: use text, json, rpc, web or acp",
        ),
        (
            ["--port", "99999"],
            "Invalid value \"99999\" for --port: use a number from 0 to 65535; 0 selects a free port",
        ),
        (
            ["--sandbox", "x"],
            "Invalid value \"x\" for --sandbox: use off, workspace-write or read-only",
        ),
        (
            ["--approval-mode", "x"],
            "Invalid value \"x\" for --approval-mode: use always-ask, write or yolo",
        ),
    ] {
        let error = parse(&line).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.exit_code()), (expected, 2));
    }
    let parsed = args(&["--approval-mode", "write"]);
    assert_eq!(parsed.permission_mode, Some(wire::state::PermissionMode::Ask));
    let parsed = args(&["--approval-mode", "yolo"]);
    assert_eq!(parsed.permission_mode, Some(wire::state::PermissionMode::Auto));
    // Newer clients know more levels.
    let parsed = args(&["--thinking", "huge"]);
    assert_eq!((parsed.thinking, parsed.warnings.len()), (None, 1));
    assert!(parsed.warnings[0].contains("huge") && parsed.warnings[0].contains("xhigh"));
}

#[test]
fn mode_and_dialect_options_are_parsed() {
    let table = [
        ("text", Mode::Text, None),
        ("json", Mode::Json, None),
        ("rpc", Mode::Rpc, None),
        ("rpc-ui", Mode::Rpc, Some(wire::Dialect::OmpNow)),
        ("web", Mode::Web, None),
        ("acp", Mode::Acp, None),
    ];
    for (word, mode, vendor) in table {
        let parsed = args(&["--mode", word]);
        assert_eq!((parsed.mode, parsed.vendor), (Some(mode), vendor));
    }
    for dialect in wire::Dialect::ALL {
        assert_eq!(
            args(&["--rpc-dialect", dialect.as_str()]).rpc_dialect,
            Some(dialect)
        );
    }
}

#[test]
fn no_ui_selects_newest_omp_in_rpc() {
    let parsed = args(&["--mode", "rpc", "--no-title", "--no-ui"]);
    assert_eq!(
        (parsed.foreign.no_ui, parsed.vendor),
        (true, Some(wire::Dialect::OmpNow))
    );
    let json: &[&str] = &["--no-ui", "--mode", "json"];
    for line in [json, &["--mode", "rpc", "--no-ui", "--attach", "nats://x/s"]] {
        assert_eq!(
            mistake(line),
            "--no-ui cannot be combined with --attach or a mode other than --mode rpc"
        );
    }
}

#[test]
fn package_commands_take_sources_and_own_options() {
    let install = args(&["install", "npm:x", "-l", "--allow-scripts"]);
    assert_eq!(
        (install.command, install.messages),
        (Some(Command::Install), vec!["npm:x".to_owned()])
    );
    assert!(install.packages.local && install.packages.allow_scripts);
    assert_eq!(args(&["uninstall", "x"]).command, Some(Command::Remove));
    let update = args(&["update", "--extension", "npm:x"]);
    assert_eq!(update.packages.source.as_deref(), Some("npm:x"));
    assert!(update.extensions.is_empty());
    assert!(args(&["update", "--all"]).packages.extensions);
    assert!(mistake(&["list", "-l"]).starts_with("Unknown option: -l."));
    assert!(mistake(&["config"]).starts_with("The command \"pinion config\" does not exist."));
}

#[test]
fn help_describes_one_command_only() {
    for info in &COMMANDS {
        let text = help_of("pinion", info.command);
        for other in COMMANDS.iter().filter(|other| other.name != info.name) {
            assert!(
                !text.contains(&format!("pinion {} ", other.name)),
                "{}: {text}",
                info.name
            );
        }
        for flag in info.flags {
            assert!(text.contains(flag.names[0]) && text.contains(flag.help), "{text}");
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 120, "{line}");
        }
        let by_option = args(&[info.name, "--help"]);
        assert!(by_option.help && by_option.command == Some(info.command));
        let by_word = args(&["help", info.name]);
        assert!(by_word.help && by_word.command == Some(info.command));
    }
    assert!(args(&["help"]).help && args(&["help"]).command.is_none());
    assert!(mistake(&["help", "colours"]).contains("doctor, auth"));
}

#[test]
fn option_table_is_unique_and_shown_in_help() {
    let text = help("pinion");
    let mut seen = std::collections::BTreeSet::new();
    for (heading, flags) in SECTIONS {
        assert!(text.contains(&format!("\n{heading}:\n")));
        for flag in flags {
            assert!(flag.names[0].starts_with("--"));
            assert!(
                text.contains(flag.names[0]) && text.contains(flag.help),
                "{}",
                flag.names[0]
            );
            for name in flag.names {
                assert!(seen.insert(*name), "{name} stands twice");
            }
        }
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}

#[test]
fn doctor_command_takes_options_only() {
    let doctor = args(&["doctor", "--json", "--model", "m", "--approve"]);
    assert!(doctor.command == Some(Command::Doctor) && doctor.json && doctor.warnings.is_empty());
    assert_eq!((doctor.model, doctor.approve), (some("m"), Some(true)));
    let behind = args(&["--json", "--model", "doctor", "doctor"]);
    assert!(behind.command == Some(Command::Doctor) && behind.json && behind.messages.is_empty());
    for line in [&["-p", "doctor"][..], &["--", "doctor"]] {
        let words = args(line);
        assert!(
            words.command.is_none() && words.messages == ["doctor"],
            "{line:?}"
        );
    }
    assert!(!args(&["--json"]).json);
    assert!(mistake(&["doctor", "help", "me"]).contains("not \"help\""));
    assert!(mistake(&["doctor", "@file"]).contains("not \"file\""));
}

#[test]
fn schema_command_has_its_own_options() {
    let schema = args(&["schema", "--ts", "--dialect", "xcsh"]);
    assert_eq!(schema.command, Some(Command::Schema));
    assert_eq!(
        (schema.typescript, schema.schema_dialect),
        (true, Some(wire::Dialect::Xcsh))
    );
    assert!(!args(&["schema", "--json"]).typescript);
    assert!(mistake(&["schema", "--dialect", "klingon"]).contains("Invalid value \"klingon\""));
    assert!(mistake(&["schema", "pi"]).contains("not \"pi\""));
    assert!(mistake(&["doctor", "--ts"]).contains("Unknown option: --ts"));
}

#[test]
fn gateway_refuses_options_that_protect() {
    let url = "nats://localhost/s";
    for gateway in [
        ["--mode", "rpc", "--attach", url],
        ["--mode", "web", "--nats", url],
        ["--mode", "acp", "--nats", url],
    ] {
        for option in [
            &["--sandbox", "read-only"][..],
            &["--permission-mode", "ask"],
            &["-t", "read"],
            &["--max-cost", "1"],
            &["--approval-mode", "always-ask"],
        ] {
            let error = mistake(&[&gateway[..], option].concat());
            assert!(
                error.contains(gateway[2]) && error.contains("pinion worker"),
                "{error}"
            );
        }
        // A host that starts --mode rpc keeps its other options.
        assert!(
            args(&[&gateway[..], &["--model", "m"]].concat())
                .command
                .is_some()
        );
        // The modes refuse words after the URL.
        let words = args(&[&gateway[..], &["hello"]].concat());
        assert_eq!(words.messages, [url, "hello"]);
    }
    assert_eq!(args(&["acp", "--nats", url]).messages, [url]);
}

#[test]
fn worker_refuses_options_of_its_agents() {
    let worker = ["worker", "--nats", "nats://localhost"];
    for option in [
        &["--sandbox", "read-only"][..],
        &["--permission-mode=ask"],
        &["--approval-mode", "always-ask"],
        &["--max-cost", "1"],
        &["--model", "m"],
    ] {
        let error = mistake(&[&worker[..], option].concat());
        let name = option[0].split('=').next().unwrap_or_default();
        assert!(
            error.contains(&format!("pinion worker --nats URL -- {name}")),
            "{error}"
        );
        assert_eq!(error, mistake(&[option, &worker[..]].concat()));
        let passed = args(&[&worker[..], &["--"], option].concat());
        assert_eq!(passed.messages[3..], *option);
    }
    // These general options have a meaning of their own here.
    let own = args(&[&worker[..], &["--name", "w", "--resume", "auto"]].concat());
    assert_eq!(own.messages[2..], ["--name", "w", "--resume", "auto"]);
}

#[test]
fn empty_session_names_are_no_options() {
    assert_eq!(args(&["--session", "", "--fork="]), Args::default());
}
