//! Starting the program next to a scripted provider, talking to it, waiting for it. What must hold of every output is in
//! `check`.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::driver::{Agent, AgentConfig};
use testkit::llm::{Reply, ScriptedServer};
use testkit::workspace::Workspace;

use crate::check;
use crate::line_schema;

/// Longest wait for anything; only reached when a test fails.
pub(crate) const LONG: Duration = Duration::from_secs(90);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_pinion");

/// Reports that a test cannot run on this system. The line goes to stderr itself: the harness hides what a passing test prints,
/// and CI must see each test that did not run.
pub(crate) fn skipped(reason: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {reason} ({})\n", thread.name().unwrap_or_default());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// A provider and the folders of an agent that asks it.
pub(crate) struct World {
    pub(crate) server: ScriptedServer,
    pub(crate) dir: Workspace,
}

/// How a one-shot run ended.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl World {
    /// A provider that says `replies`; retries come fast.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = ScriptedServer::start(replies).unwrap();
        let dir = Workspace::new(&server.url()).unwrap();
        let world = Self { server, dir };
        world.settings(json!({}));
        world
    }

    /// Replaces the settings; the fast retries stay unless `retry` is given.
    pub(crate) fn settings(&self, more: Value) {
        let mut settings = json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 0}}});
        for (key, value) in more.as_object().unwrap() {
            settings[key] = value.clone();
        }
        self.dir.write_settings(&settings).unwrap();
    }

    /// Retries never.
    pub(crate) fn without_retries(self) -> Self {
        self.settings(json!({"retry": {"enabled": false, "provider": {"maxRetries": 0}}}));
        self
    }

    /// `--mode rpc` with the Anthropic model of the provider.
    pub(crate) fn config(&self) -> AgentConfig {
        let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
        self.dir.agent(PROGRAM).args(["--mode", "rpc"]).args(model)
    }

    pub(crate) fn start(&self) -> Pi {
        Pi::spawn(self.config())
    }

    pub(crate) fn start_with(&self, args: &[&str]) -> Pi {
        Pi::spawn(self.config().args(args.iter().copied()))
    }

    /// Starts RPC mode with the model of the provider that speaks chat completions.
    pub(crate) fn start_openai(&self) -> Pi {
        let model = ["--provider", "mock-openai", "--model", "gpt-mock"];
        Pi::spawn(self.dir.agent(PROGRAM).args(["--mode", "rpc"]).args(model))
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str], stdin: &str) -> Done {
        self.run_as(Path::new(PROGRAM), args, stdin)
    }

    /// Runs the program under another name.
    pub(crate) fn run_as(&self, program: &Path, args: &[&str], stdin: &str) -> Done {
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(self.dir.env())
            .current_dir(self.dir.cwd());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let done = self.run_command(&mut command, stdin);
        if args.contains(&"rpc") {
            let values: Vec<Value> = done
                .out
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            let dialect = named_dialect(args.iter().map(OsStr::new));
            line_schema::assert_all_fit(&dialect, values.iter());
        }
        done
    }

    /// Runs a command to its end.
    pub(crate) fn run_command(&self, command: &mut Command, stdin: &str) -> Done {
        let folder = tempfile::tempdir_in(self.dir.root()).unwrap();
        let (out, err) = (folder.path().join("out"), folder.path().join("err"));
        command
            .stdin(Stdio::piped())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap());
        let mut child = command.spawn().unwrap();
        // The program may end without reading its input.
        let _unread = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        let end = Instant::now() + LONG;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                child.kill().unwrap();
                panic!("{command:?} does not end");
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        Done {
            code: status.code(),
            out: text(&out),
            err: text(&err),
        }
    }

    /// Session files, oldest first.
    pub(crate) fn session_files(&self) -> Vec<PathBuf> {
        files_below(&self.dir.agent_dir().join("sessions"))
    }
}

/// Writes a program, such as a shell script, and the folders above it. A process of its own writes the file: each process that a
/// parallel test starts holds the open files of this one until its program runs, and a program that is open for writing cannot
/// be started (ETXTBSY).
pub(crate) fn write_program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = Command::new("sh")
        .args(["-c", r#"cat > "$0" && chmod 755 "$0""#])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

/// All files below a folder, by name.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path))
        } else {
            found.push(path)
        }
    }
    found.sort();
    found
}

/// A running `--mode rpc`.
pub(crate) struct Pi {
    pub(crate) agent: Agent,
    next: Cell<u32>,
    sent: RefCell<Vec<String>>,
    /// The dialect that the command line names.
    dialect: String,
}

impl Drop for Pi {
    /// Checks every line that the test read against the schema of its dialect.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let lines = self.agent.lines();
            let lines = lines
                .iter()
                .filter(|line| line.json)
                .map(|line| line.value.as_ref());
            line_schema::assert_all_fit(&self.dialect, lines);
        }
    }
}

/// The dialect that arguments name; `auto` if they name none.
fn named_dialect<'a>(args: impl Iterator<Item = &'a OsStr>) -> String {
    let dialect = args.skip_while(|arg| *arg != "--rpc-dialect").nth(1);
    dialect.map_or("auto".to_owned(), |name| name.to_string_lossy().into_owned())
}

impl Pi {
    pub(crate) fn spawn(config: AgentConfig) -> Self {
        Self {
            dialect: named_dialect(config.args.iter().map(OsString::as_os_str)),
            agent: Agent::spawn(config).unwrap(),
            next: Cell::new(0),
            sent: RefCell::default(),
        }
    }

    /// Sends a command under a new id, unless it has one.
    pub(crate) fn send(&self, mut command: Value) -> String {
        if command.get("id").is_none() {
            self.next.set(self.next.get() + 1);
            command["id"] = format!("t{}", self.next.get()).into();
        }
        let id = command["id"].as_str().unwrap().to_owned();
        self.sent.borrow_mut().push(id.clone());
        self.agent.send(&command).unwrap();
        id
    }

    /// Sends a command and waits for its response.
    pub(crate) fn ask(&self, command: Value) -> Value {
        let id = self.send(command);
        self.response(&id)
    }

    pub(crate) fn response(&self, id: &str) -> Value {
        self.agent.response(id, LONG).unwrap()
    }

    /// Sends a command that must succeed; gives its data.
    pub(crate) fn data(&self, command: Value) -> Value {
        let response = self.ask(command);
        assert_eq!(response["success"], true, "{response}");
        response["data"].clone()
    }

    /// Sends a command by its name alone; it must succeed.
    pub(crate) fn get(&self, kind: &str) -> Value {
        self.data(json!({ "type": kind }))
    }

    /// Sends a command that must fail; gives the error.
    pub(crate) fn error(&self, command: Value) -> String {
        let response = self.ask(command);
        assert_eq!(response["success"], false, "{response}");
        assert!(response.get("data").is_none(), "{response}");
        response["error"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt that must start a run.
    pub(crate) fn prompt(&self, text: &str) {
        let data = self.data(json!({"type": "prompt", "message": text}));
        assert_eq!(data["disposition"], "started");
    }

    /// Prompts and waits until the agent is idle; returns the lines in between.
    pub(crate) fn say(&self, text: &str) -> Vec<Value> {
        let before = self.agent.lines().len();
        self.agent.skip();
        self.prompt(text);
        self.settled();
        self.lines()
            .split_off(before)
            .into_iter()
            .filter(|line| line["type"] != "ready")
            .collect()
    }

    /// Waits for the next event of a type.
    pub(crate) fn wait(&self, kind: &str) -> Value {
        self.agent.wait_type(kind, LONG).unwrap()
    }

    pub(crate) fn settled(&self) -> Value {
        self.wait("agent_settled")
    }

    /// Waits for an update whose `assistantMessageEvent` has this type.
    pub(crate) fn wait_update(&self, kind: &str) -> Value {
        self.agent
            .wait(|line| line["assistantMessageEvent"]["type"] == kind, LONG)
            .unwrap()
    }

    /// Waits until stderr has these words: a thread reads it, which may come later than the response to a command.
    pub(crate) fn warns(&self, words: &str) {
        until(&format!("{words:?} on stderr"), || {
            self.agent.stderr().contains(words)
        });
    }

    /// Everything printed so far.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.agent
            .lines()
            .iter()
            .map(|line| line.value.as_ref().clone())
            .collect()
    }

    pub(crate) fn state(&self) -> Value {
        self.get("get_state")
    }

    pub(crate) fn messages(&self) -> Vec<Value> {
        self.get("get_messages")["messages"].as_array().unwrap().clone()
    }

    /// The roles of the messages.
    pub(crate) fn roles(&self) -> Vec<Value> {
        self.messages()
            .iter()
            .map(|message| message["role"].clone())
            .collect()
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.state()["sessionFile"].as_str().unwrap().into()
    }

    /// Ends it by closing stdin, checks exit code, output and session file.
    pub(crate) fn finish(self) {
        let file = self.state()["sessionFile"].as_str().map(PathBuf::from);
        self.agent.close_stdin();
        let status = self.agent.wait_exit(LONG).unwrap();
        assert_eq!(status.code(), Some(0), "{}", self.agent.stderr());
        self.wait_ended();
        let lines = check::joined(&self.agent.lines());
        check::output(&lines, &self.sent.borrow());
        if let Some(file) = file.filter(|file| file.exists()) {
            // The file is the first session's; what others said is in theirs.
            let firsts: Vec<Value> = lines
                .iter()
                .map(|line| line.value.as_ref().clone())
                .filter(|line| line.get("session").is_none())
                .collect();
            check::file(&file, &firsts);
        }
    }

    /// Waits until its output has been read to the end.
    pub(crate) fn wait_ended(&self) {
        until("the end of the output", || self.agent.ended());
    }
}

/// Waits until something holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The values of `type`; `ready` and updates left out.
pub(crate) fn kinds(lines: &[Value]) -> Vec<&str> {
    let kinds = lines.iter().map(|line| line["type"].as_str().unwrap());
    kinds
        .filter(|kind| !["ready", "message_update", "tool_execution_update"].contains(kind))
        .collect()
}

/// Where the response to a command stands among the lines.
pub(crate) fn answered_at(lines: &[Value], id: &str) -> usize {
    lines
        .iter()
        .position(|line| line["id"] == id && line["type"] == "response")
        .unwrap()
}

/// Lines of a type.
pub(crate) fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// The finished answers among the lines.
pub(crate) fn answers(lines: &[Value]) -> Vec<&Value> {
    let ends = of_type(lines, "message_end")
        .into_iter()
        .map(|line| &line["message"]);
    ends.filter(|message| message["role"] == "assistant").collect()
}

/// The text blocks of a message, joined, or its summary.
pub(crate) fn text(message: &Value) -> String {
    if let Some(text) = message["content"]
        .as_str()
        .or_else(|| message["summary"].as_str())
    {
        return text.to_owned();
    }
    let blocks = message["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// A bash call of the model.
pub(crate) fn bash(id: &str, command: &str) -> Reply {
    Reply::tool(id, "bash", json!({ "command": command }))
}

/// Kilobytes of a line of `/proc/PID/status`.
pub(crate) fn memory_kb(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
