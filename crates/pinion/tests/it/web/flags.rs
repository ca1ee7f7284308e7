//! The command line of `--mode web` (web.md 1.1): names of flags, output at the start, and refused values.

use std::process::{Command, Stdio};

use testkit::llm::Reply;

use super::Web;
use crate::kit::{PROGRAM, World, until, write_program};

#[test]
fn web_banner_lists_addresses() {
    let world = World::new([]);
    world.dir.write("ui/index.html", "x").unwrap();
    let plain = Web::start(&world, &[]);
    let (banner, address) = (plain.banner.clone(), plain.address.clone());
    let lines: Vec<&str> = banner.lines().collect();
    assert!(
        lines[0].starts_with("Pinion ") && lines[0].ends_with(", web"),
        "{banner}"
    );
    assert_eq!(lines[1], format!("  UI:        http://{address}"));
    assert_eq!(lines[2], format!("  WebSocket: ws://{address}/ws"));
    assert_eq!(lines[3], "  Static UI: built in");
    assert_eq!(lines.len(), 4, "no token, no line of it");
    plain.finish();
    let more = Web::start(
        &world,
        &["--web-host", "0.0.0.0", "--web-token=a b&c", "--serve-ui", "ui"],
    );
    assert!(
        more.banner.contains("UI:        http://localhost:"),
        "{}",
        more.banner
    );
    assert!(more.banner.contains("/?token=a%20b%26c\n"), "{}", more.banner);
    assert!(more.banner.contains("Token:     a b&c\n"));
    assert!(more.banner.contains("/ui\n"), "{}", more.banner);
    more.try_tab("/ws?token=a%20b%26c", &[]).unwrap();
    more.finish();
}

/// Starts a server at a port that was free a moment before; returns the port, too. Another process may have taken it, so
/// several are tried.
fn start_at_free_port(world: &World) -> (Web, u16) {
    let out = world.dir.root().join("web.out");
    let listens = || std::fs::read_to_string(&out).unwrap().contains("Static UI:");
    for _ in 0..10 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut web = Web::try_start(world, &["--web-port", &port.to_string()]);
        until("the banner or the end", || listens() || web.has_ended());
        if listens() {
            return (Web::listening(world, web), port);
        }
        assert!(web.errors().contains("Cannot listen"), "{}", web.errors());
    }
    panic!("other processes took every port");
}

/// Returns true if the process has a socket that listens.
fn has_listener(pid: u32) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table
        .lines()
        .map(|row| row.split_whitespace().collect::<Vec<_>>());
    // The fourth column is the state, with 0A for LISTEN, and the tenth the inode.
    let listening: Vec<String> = rows
        .filter(|row| row.get(3) == Some(&"0A"))
        .filter_map(|row| row.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let mut targets = files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.any(|target| listening.iter().any(|name| target.as_os_str() == name.as_str()))
}

#[test]
fn port_flag_must_be_available() {
    let world = World::new([]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    // Taken: said in one line, and over.
    let mut taken = Web::try_start(&world, &["--web-port", &port.to_string()]);
    assert_eq!(taken.wait().code(), Some(1));
    assert!(
        taken
            .errors()
            .contains(&format!("Cannot listen at 127.0.0.1:{port}")),
        "{}",
        taken.errors()
    );
    assert!(taken.errors().contains("--port 0"), "{}", taken.errors());
    drop(free);
    let (web, port) = start_at_free_port(&world);
    assert_eq!(web.port(), port);
    web.finish();
    let mut nowhere = Web::try_start(&world, &["--host", "no.such.host.invalid"]);
    assert_eq!(nowhere.wait().code(), Some(1));
    assert!(
        nowhere.errors().contains("no.such.host.invalid"),
        "{}",
        nowhere.errors()
    );
}

#[test]
fn allowed_origin_flag_has_two_names_and_repeats() {
    let world = World::new([]);
    let args = [
        "--web-allowed-origin",
        "https://one.example",
        "--web-allowed-origins",
        "http://two.example:8080",
    ];
    let web = Web::start(&world, &args);
    for origin in ["https://one.example", "http://two.example:8080"] {
        web.try_tab("/ws", &[("origin", origin)]).unwrap();
    }
    for origin in [
        "http://one.example",
        "https://two.example:8080",
        "https://ONE.example",
        "https://one.example/",
    ] {
        assert_eq!(
            web.try_tab("/ws", &[("origin", origin)]).err(),
            Some(403),
            "{origin}"
        );
    }
    web.finish();
}

#[test]
fn open_flag_creates_token_and_opens_browser() {
    let world = World::new([]);
    let bin = world.dir.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for flag in ["--open", "--web-open"] {
        let opened = world.dir.root().join("opened");
        let _none_yet = std::fs::remove_file(&opened);
        let script = format!("#!/bin/sh\necho \"$1\" > {}\n", opened.display());
        for name in ["xdg-open", "open"] {
            write_program(&bin.join(name), &script);
        }
        let web = Web::start_with_path(&world, &[flag], &bin);
        let mut address = String::new();
        until("a browser", || {
            address = std::fs::read_to_string(&opened).unwrap_or_default();
            address.ends_with('\n')
        });
        let address = address.trim();
        let line = web.banner.lines().find(|line| line.contains("UI:")).unwrap();
        assert_eq!(line.trim_start_matches("  UI:").trim(), address);
        let token = address.split("/?token=").nth(1).unwrap();
        assert!(token.len() >= 43, "{address}");
        assert!(address.starts_with(&web.origin()));
        web.try_tab(&format!("/ws?token={token}"), &[]).unwrap();
        web.finish();
    }
    // No browser is no reason not to run.
    std::fs::remove_file(bin.join("xdg-open")).unwrap();
    std::fs::remove_file(bin.join("open")).unwrap();
    let web = Web::start_with_path(&world, &["--open"], &bin);
    until("a word about it", || web.errors().contains("Cannot start"));
    web.finish();
}

#[test]
fn invalid_web_flags_are_refused() {
    let world = World::new([]);
    world.dir.write("notes.txt", "words").unwrap();
    world.dir.write("none/readme.txt", "no page").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (
            &["@notes.txt"],
            "@file arguments are not supported in RPC/web mode",
        ),
        (&["--web-token="], "--web-token must not be empty"),
        (&["--serve-ui", "missing"], "missing"),
        (&["--serve-ui", "none"], "none"),
    ];
    for (args, what) in cases {
        let mut web = Web::try_start(&world, args);
        assert_eq!(web.wait().code(), Some(1), "{args:?}");
        assert!(web.errors().contains(what), "{args:?}: {}", web.errors());
    }
}

#[test]
fn web_mode_survives_closed_stdin_and_stdout() {
    let world = World::new([Reply::text(["Hi."])]);
    let mut child = Command::new(PROGRAM)
        .args([
            "--mode",
            "web",
            "--port",
            "0",
            "--provider",
            "mock-anthropic",
            "--model",
            "claude-mock",
        ])
        .env_clear()
        .envs(world.dir.env())
        .current_dir(world.dir.cwd())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    until("it to listen", || has_listener(child.id()));
    assert!(child.try_wait().unwrap().is_none());
    super::terminate(i32::try_from(child.id()).unwrap());
    let mut ended = None;
    until("its end", || {
        ended = child.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(0));
}
