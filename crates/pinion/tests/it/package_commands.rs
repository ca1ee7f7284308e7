//! `pinion install`, `remove`, `list` and `update`: with the real npm against a registry in the test, and with local git
//! repositories. What loading a package does is in `packages`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::extensions::can_run;
use crate::kit::{Done, PROGRAM, Pi, World, files_below, skipped, until, write_program};

/// A registry of npm packages.
struct Registry {
    url: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (shared, seen) = (Arc::clone(&files), Arc::clone(&asked));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read > 0) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let body = shared.lock().unwrap().get(&path).cloned();
                seen.lock().unwrap().push(path);
                let (status, body) = body.map_or(("404 Not Found", b"{}".to_vec()), |body| ("200 OK", body));
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _gone = stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(&body));
            }
        });
        Self { url, files, asked }
    }

    /// Publishes a version; the last one published is the latest. Its script writes a file into the package.
    fn publish(&self, name: &str, version: &str) {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("package");
        write_package(&package, name, version);
        let tarball = folder.path().join("p.tgz");
        let done = Command::new("tar")
            .args(["-czf", "p.tgz", "package"])
            .current_dir(folder.path())
            .status();
        assert!(done.unwrap().success());
        let mut files = self.files.lock().unwrap();
        let known = files
            .get(&format!("/{name}"))
            .map(|known| serde_json::from_slice::<Value>(known).unwrap());
        let mut document = known.unwrap_or_else(|| json!({"name": name, "versions": {}}));
        let address = format!("{}/{name}-{version}.tgz", self.url);
        document["versions"][version] = json!({"name": name, "version": version, "hasInstallScript": true, "dist": {"tarball": address},
                   "scripts": {"postinstall": "echo ran > ran.txt"}});
        document["dist-tags"] = json!({"latest": version});
        files.insert(format!("/{name}"), document.to_string().into_bytes());
        files.insert(format!("/{name}-{version}.tgz"), fs::read(&tarball).unwrap());
    }
}

/// A package with one command, which the version names.
fn write_package(package: &Path, name: &str, version: &str) {
    let manifest = json!({"name": name, "version": version, "pi": {"extensions": ["./x.js"]},
                          "scripts": {"postinstall": "echo ran > ran.txt"}});
    let code = format!(
        "module.exports = (pi) => pi.registerCommand('{name}-{version}', {{ handler: async () => {{}} }});"
    );
    fs::create_dir_all(package).unwrap();
    fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    fs::write(package.join("x.js"), code).unwrap();
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if !found {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// The program with the network, which other tests switch off, and with `PATH`.
fn command(world: &World, args: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(args)
        .env_clear()
        .envs(world.dir.env())
        .env_remove("PI_OFFLINE");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(world.dir.cwd());
    command
}

fn run(world: &World, args: &[&str]) -> Done {
    let done = command(world, args).output().unwrap();
    Done {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// A home whose npm uses the registry.
fn world(registry: &Registry) -> World {
    let world = World::new([]);
    fs::write(
        world.dir.home().join(".npmrc"),
        format!("registry={}\nfetch-retries=0\n", registry.url),
    )
    .unwrap();
    world
}

fn good(done: &Done) -> &str {
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    &done.out
}

fn bad<'a>(done: &'a Done, text: &str) -> &'a str {
    assert_eq!(done.code, Some(1), "{}{}", done.out, done.err);
    assert!(done.err.contains(text), "{}", done.err);
    &done.err
}

fn settings_text(world: &World) -> String {
    fs::read_to_string(world.dir.agent_dir().join("settings.json")).unwrap()
}

fn sources(world: &World) -> Value {
    serde_json::from_str::<Value>(&settings_text(world)).unwrap()["packages"].clone()
}

/// All files of the agent directory but logs of npm and locks.
fn snapshot(world: &World) -> Vec<PathBuf> {
    let mut files = files_below(&world.dir.agent_dir());
    files.retain(|path| !path.ends_with("packages.pinion-lock"));
    files
}

fn command_names(world: &World) -> Vec<String> {
    let pi = world.start();
    let names = names(&pi);
    pi.finish();
    names
}

fn names(pi: &Pi) -> Vec<String> {
    let commands = pi.get("get_commands")["commands"].clone();
    let names = commands.as_array().unwrap().iter();
    names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{args:?} {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Commits a version of a package to a repository and tags it.
fn commit(repository: &Path, version: &str) {
    write_package(repository, "tools", version);
    if !repository.join(".git").exists() {
        git(repository, &["init", "-q"]);
    }
    git(repository, &["add", "."]);
    git(repository, &["commit", "-q", "-m", version]);
    git(repository, &["tag", &format!("v{version}")]);
}

/// A repository that git reaches as `https://git.example.com/me/tools`.
fn repository(world: &World) -> PathBuf {
    let root = world.dir.root().join("remote");
    let rewritten = format!(
        "[url \"file://{}/\"]\n\tinsteadOf = https://git.example.com/\n",
        root.display()
    );
    fs::write(world.dir.home().join(".gitconfig"), rewritten).unwrap();
    commit(&root.join("me/tools"), "1.0.0");
    root.join("me/tools")
}

#[test]
fn npm_package_is_installed_loaded_and_removed() {
    if !has("npm") || !can_run() {
        return;
    }
    let registry = Registry::start();
    registry.publish("tools", "1.0.0");
    let world = world(&registry);
    let before = settings_text(&world);
    let commented = before.replacen('{', "{\n  // mine\n", 1);
    fs::write(world.dir.agent_dir().join("settings.json"), &commented).unwrap();
    let open = world.start();
    let done = run(&world, &["install", "npm:tools"]);
    assert_eq!(good(&done), "Installing npm:tools...\nInstalled npm:tools\n");
    assert!(settings_text(&world).contains("// mine"));
    let package = world.dir.agent_dir().join("npm/node_modules/tools");
    assert!(package.join("x.js").is_file() && !package.join("ran.txt").exists());
    let project = fs::read_to_string(world.dir.agent_dir().join("npm/package.json")).unwrap();
    let project: Value = serde_json::from_str(&project).unwrap();
    assert_eq!(
        (&project["name"], &project["dependencies"]),
        (&json!("pi-extensions"), &json!({"tools": "^1.0.0"}))
    );
    assert_eq!(
        good(&run(&world, &["list"])),
        format!("User packages:\n  npm:tools\n    {}\n", package.display())
    );
    let listed: Value = serde_json::from_str(good(&run(&world, &["list", "--json"]))).unwrap();
    let wanted = json!({"source": "npm:tools", "scope": "user", "filtered": false, "path": package, "version": "1.0.0"});
    assert_eq!(listed, json!({ "packages": [wanted] }));
    open.get("reload_resources");
    assert_eq!(names(&open), ["tools-1.0.0"]);
    open.finish();
    assert_eq!(command_names(&world), ["tools-1.0.0"]);
    bad(
        &run(&world, &["remove", "tools"]),
        "No matching package found for tools. Did you mean npm:tools?",
    );
    assert_eq!(
        good(&run(&world, &["uninstall", "npm:tools"])),
        "Removing npm:tools...\nRemoved npm:tools\n"
    );
    assert!(!package.exists());
    assert!(settings_text(&world).contains("// mine"));
    assert_eq!(good(&run(&world, &["list"])), "No packages installed.\n");
    bad(
        &run(&world, &["remove", "npm:tools"]),
        "No matching package found for npm:tools",
    );
}

#[test]
fn package_scripts_run_only_when_allowed() {
    if !has("npm") {
        return;
    }
    let registry = Registry::start();
    registry.publish("tools", "1.0.0");
    let world = world(&registry);
    let ran = world.dir.agent_dir().join("npm/node_modules/tools/ran.txt");
    fs::write(world.dir.cwd().join(".npmrc"), "ignore-scripts=false\n").unwrap();
    good(&run(&world, &["install", "npm:tools"]));
    assert!(!ran.exists());
    good(&run(&world, &["remove", "npm:tools"]));
    good(&run(&world, &["install", "npm:tools", "--allow-scripts"]));
    assert!(ran.exists());
}

#[test]
fn update_installs_newest_allowed_version() {
    if !has("npm") {
        return;
    }
    let registry = Registry::start();
    registry.publish("tools", "1.0.0");
    registry.publish("fixed", "1.0.0");
    let world = world(&registry);
    good(&run(&world, &["install", "npm:tools"]));
    good(&run(&world, &["install", "npm:fixed@1.0.0"]));
    let current = run(&world, &["update"]);
    assert!(
        good(&current).ends_with("Packages are already up to date\n"),
        "{}",
        current.out
    );
    registry.publish("tools", "1.1.0");
    registry.publish("fixed", "2.0.0");
    // npm keeps documents of the registry for five minutes.
    fs::remove_dir_all(world.dir.home().join(".npm")).unwrap();
    let offline = run(&world, &["update", "--offline"]);
    assert_eq!(good(&offline), "Skipped package updates (offline mode)\n");
    let updated = run(&world, &["update"]);
    assert!(
        good(&updated).ends_with("Updated 1 package:\n  npm:tools 1.0.0 -> 1.1.0\n"),
        "{}",
        updated.out
    );
    // A package that is configured but missing.
    fs::remove_dir_all(world.dir.agent_dir().join("npm")).unwrap();
    let restored = run(&world, &["update", "npm:fixed"]);
    assert!(
        good(&restored).ends_with("  npm:fixed@1.0.0 (none) -> 1.0.0\n"),
        "{}",
        restored.out
    );
    bad(
        &run(&world, &["update", "npm:other"]),
        "No matching package found for npm:other",
    );
    bad(
        &run(&world, &["update", "--self"]),
        "Pinion does not update itself",
    );
    assert_eq!(sources(&world), json!(["npm:tools", "npm:fixed@1.0.0"]));
}

#[test]
fn failed_install_changes_nothing() {
    if !has("npm") || !has("git") {
        return;
    }
    let registry = Registry::start();
    registry.publish("tools", "1.0.0");
    let world = world(&registry);
    repository(&world);
    for round in 0..2 {
        let before = (snapshot(&world), settings_text(&world));
        for source in [
            "npm:missing",
            "npm:tools@9",
            "git:git.example.com/me/missing",
            "git:git.example.com/me/tools@missing",
            "./missing",
        ] {
            let done = run(&world, &["install", source]);
            bad(&done, "Error: ");
            assert_eq!(
                (snapshot(&world), settings_text(&world)),
                before,
                "{round} {source}"
            );
        }
        good(&run(&world, &["install", "npm:tools"]));
    }
    assert!(!world.dir.agent_dir().join("git").exists());
    // Settings that cannot be changed take the files back.
    let path = world.dir.agent_dir().join("settings.json");
    fs::write(&path, "{\"packages\": 1}").unwrap();
    let before = snapshot(&world);
    bad(
        &run(&world, &["install", "git:git.example.com/me/tools"]),
        "\"packages\" is not a list",
    );
    assert_eq!(snapshot(&world), before);
}

#[test]
fn dangerous_sources_reach_no_program() {
    let registry = Registry::start();
    let world = world(&registry);
    let before = (snapshot(&world), settings_text(&world));
    for source in [
        "npm:--prefix=/tmp",
        "npm:../../x",
        "npm:x@file:/etc",
        "git:git.example.com/me/tools@--upload-pack=touch x",
        "git:git.example.com/../../me",
        "git:ext::sh -c touch% x",
        "ext::sh -c touch% x",
        "ssh://-oProxyCommand=touch/me/tools",
        "https://me:secret@git.example.com/me/tools",
    ] {
        let done = run(&world, &["install", "--", source]);
        assert!(!bad(&done, "Error: ").contains("failed with"), "{}", done.err);
    }
    assert!(registry.asked.lock().unwrap().is_empty());
    assert_eq!((snapshot(&world), settings_text(&world)), before);
    bad(&run(&world, &["install"]), "Missing install source.");
    bad(&run(&world, &["install", "a", "b"]), "Unexpected argument b.");
}

#[test]
fn git_package_follows_branch_and_keeps_tag() {
    if !has("git") || !has("npm") || !can_run() {
        return;
    }
    let world = world(&Registry::start());
    let remote = repository(&world);
    fs::write(remote.join(".npmrc"), "git=/bin/false\n").unwrap();
    let source = "git:git.example.com/me/tools";
    good(&run(&world, &["install", source]));
    let checkout = world.dir.agent_dir().join("git/git.example.com/me/tools");
    assert!(checkout.join("x.js").is_file() && !checkout.join("ran.txt").exists());
    assert_eq!(command_names(&world), ["tools-1.0.0"]);
    commit(&remote, "1.1.0");
    let (old, new) = (
        git(&remote, &["rev-parse", "v1.0.0"]),
        git(&remote, &["rev-parse", "HEAD"]),
    );
    let updated = run(&world, &["update", "--extensions"]);
    let line = format!("Updated 1 package:\n  {source} {} -> {}\n", &old[..7], &new[..7]);
    assert!(good(&updated).ends_with(&line), "{}", updated.out);
    assert!(checkout.join(".npmrc").is_file());
    assert_eq!(command_names(&world), ["tools-1.1.0"]);
    // Another reference on the command line does not mean the installed one.
    let config = world.config().env("PI_OFFLINE", "0");
    let pi = Pi::spawn(config.args(["-e", "git:git.example.com/me/tools@v1.0.0"]));
    let found = names(&pi);
    pi.finish();
    assert!(found.contains(&"tools-1.0.0".to_owned()), "{found:?}");
    let again = run(&world, &["update", source]);
    assert!(good(&again).ends_with("is already up to date\n"), "{}", again.out);
    // Another reference of the same repository replaces the entry.
    good(&run(
        &world,
        &["install", "https://git.example.com/me/tools@v1.0.0"],
    ));
    assert_eq!(
        sources(&world),
        json!(["https://git.example.com/me/tools@v1.0.0"])
    );
    commit(&remote, "1.2.0");
    let pinned = run(&world, &["update"]);
    assert!(
        good(&pinned).ends_with("Packages are already up to date\n"),
        "{}",
        pinned.out
    );
    assert_eq!(git(&checkout, &["rev-parse", "HEAD"]), old);
    good(&run(&world, &["remove", source]));
    assert_eq!(sources(&world), json!([]));
    let left: Vec<_> = files_below(&world.dir.agent_dir().join("git"));
    assert_eq!(left, [world.dir.agent_dir().join("git/.gitignore")]);
    assert!(!world.dir.agent_dir().join("git/git.example.com").exists());
}

#[test]
fn concurrent_installs_both_succeed() {
    if !has("npm") {
        return;
    }
    let registry = Registry::start();
    let names: Vec<String> = (0..3).map(|index| format!("tools{index}")).collect();
    for name in &names {
        registry.publish(name, "1.0.0");
    }
    let world = world(&registry);
    std::thread::scope(|scope| {
        for name in &names {
            let world = &world;
            scope.spawn(move || {
                let done = run(world, &["install", &format!("npm:{name}")]);
                good(&done);
            });
        }
    });
    let listed = sources(&world);
    for name in &names {
        assert!(
            listed.as_array().unwrap().contains(&json!(format!("npm:{name}"))),
            "{listed}"
        );
        assert!(
            world
                .dir
                .agent_dir()
                .join("npm/node_modules")
                .join(name)
                .join("x.js")
                .is_file()
        );
    }
}

#[test]
fn local_package_is_named_relative_to_settings() {
    let world = World::new([]);
    let package = world.dir.cwd().join("mine");
    write_package(&package, "mine", "1.0.0");
    good(&run(&world, &["install", "./mine"]));
    let stored = sources(&world)[0].as_str().unwrap().to_owned();
    assert!(stored.starts_with("../"), "{stored}");
    assert_eq!(
        world.dir.agent_dir().join(&stored).canonicalize().unwrap(),
        package.canonicalize().unwrap()
    );
    good(&run(&world, &["install", package.to_str().unwrap()]));
    assert_eq!(sources(&world), json!([stored]));
    good(&run(&world, &["remove", "./mine"]));
    assert!(package.join("x.js").is_file() && sources(&world) == json!([]));
}

#[test]
fn project_packages_need_trust() {
    if !has("npm") {
        return;
    }
    let registry = Registry::start();
    registry.publish("tools", "1.0.0");
    let world = world(&registry);
    // The first package of a project that brings nothing.
    let done = run(&world, &["install", "-l", "npm:tools"]);
    good(&done);
    assert!(done.err.contains("The project is not trusted"), "{}", done.err);
    let project = world.dir.cwd().join(".pi");
    assert!(project.join("npm/node_modules/tools/x.js").is_file());
    assert_eq!(
        fs::read_to_string(project.join("npm/.gitignore")).unwrap(),
        "*\n!.gitignore\n"
    );
    let refused = "Project is not trusted. Use --approve to modify local package config.";
    bad(&run(&world, &["remove", "-l", "npm:tools"]), refused);
    bad(&run(&world, &["install", "-l", "npm:tools"]), refused);
    bad(
        &run(&world, &["install", "-l", "npm:tools", "--no-approve"]),
        refused,
    );
    assert_eq!(good(&run(&world, &["list"])), "No packages installed.\n");
    let listed = run(&world, &["list", "--approve"]);
    assert!(
        good(&listed).starts_with("Project packages:\n  npm:tools\n"),
        "{}",
        listed.out
    );
    good(&run(&world, &["remove", "-l", "npm:tools", "--approve"]));
    assert!(!project.join("npm/node_modules/tools").exists());
}

#[test]
fn missing_programs_and_offline_mode_are_reported() {
    let world = World::new([]);
    let empty = world.dir.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let run = |args: &[&str]| {
        let done = command(&world, args).env("PATH", &empty).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    for (source, text) in [
        ("npm:tools", "npm was not found. Install Node.js"),
        ("git:git.example.com/me/tools", "git was not found. Install git"),
    ] {
        let (code, err) = run(&["install", source]);
        assert!(code == Some(1) && err.contains(text), "{code:?} {err}");
        let (code, err) = run(&["install", source, "--offline"]);
        assert!(
            code == Some(1) && err.contains("offline mode is on"),
            "{code:?} {err}"
        );
    }
}

/// Starts an installation whose npm waits; gives the process and the id of a child of npm.
fn waiting_install(world: &World) -> (Child, String) {
    let (bin, pid) = (world.dir.root().join("bin"), world.dir.root().join("pid"));
    let script = format!(
        "#!/bin/sh\n(sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait)\n",
        pid.display()
    );
    write_program(&bin.join("npm"), &script);
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let child = command(world, &["install", "npm:tools"])
        .env("PATH", path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("a child of npm", || pid.exists());
    let sleeper = fs::read_to_string(&pid).unwrap().trim().to_owned();
    fs::remove_file(&pid).unwrap();
    (child, sleeper)
}

/// The directory that the system has for a process while it exists.
fn process(id: &str) -> PathBuf {
    Path::new("/proc").join(id)
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn interrupted_install_ends_children_and_removes_files() {
    let world = World::new([]);
    let before = snapshot(&world);
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (mut child, sleeper) = waiting_install(&world);
        send(signal, &child);
        let status = child.wait().unwrap();
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let wanted = (Some(code), "Cancelled; nothing was changed\n");
        assert_eq!((status.code(), err.as_str()), wanted);
        until("the end of the child of npm", || !process(&sleeper).exists());
        assert_eq!(snapshot(&world), before);
    }
}

#[test]
fn killed_install_leaves_nothing_to_next_one() {
    let world = World::new([]);
    let before = snapshot(&world);
    let (mut child, sleeper) = waiting_install(&world);
    send("-KILL", &child);
    child.wait().unwrap();
    until("the end of the child of npm", || !process(&sleeper).exists());
    assert_ne!(snapshot(&world), before);
    let (mut child, _) = waiting_install(&world);
    send("-INT", &child);
    child.wait().unwrap();
    assert_eq!(snapshot(&world), before);
}

#[test]
fn named_package_is_installed_for_one_start() {
    if !has("npm") || !can_run() {
        return;
    }
    let registry = Registry::start();
    registry.publish("tools", "1.0.0");
    registry.publish("tools", "2.0.0");
    let world = world(&registry);
    let before = settings_text(&world);
    // npm is found with the `PATH` of the test, which the agent gets.
    let start = |source: &str| {
        let config = world.config().env("PI_OFFLINE", "0");
        Pi::spawn(config.args(["-e", source]))
    };
    for (source, command) in [
        ("npm:tools", "tools-2.0.0"),
        ("npm:tools@1.0.0", "tools-1.0.0"),
        ("npm:tools", "tools-2.0.0"),
    ] {
        let pi = start(source);
        assert_eq!(names(&pi), [command], "{source}");
        pi.finish();
    }
    let asked = registry.asked.lock().unwrap().clone();
    let tarballs = asked.iter().filter(|path| path.ends_with(".tgz"));
    assert_eq!(tarballs.count(), 2, "{asked:?}");
    assert_eq!(settings_text(&world), before);
    let named = world.dir.agent_dir().join("tmp/extensions");
    assert!(!files_below(&named).iter().any(|path| path.ends_with("ran.txt")));
    assert!(!world.dir.agent_dir().join("npm").exists());
    // A package that does not exist stops the start of a program without clients.
    bad(
        &run(&world, &["-p", "-e", "npm:missing", "hi"]),
        "package npm:missing is not installed. Run: pinion install npm:missing",
    );
    let refused = run(&world, &["-p", "-e", "https://me:word@h.org/a/b", "hi"]);
    let error = bad(&refused, "Use git's credential helper");
    assert!(!error.contains("Installing"), "{error}");
}
