//! The toolbox: one entry for all tools. Repairs and validates arguments, then hands them to the tool.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use wire::{Dialect, ToolResult};

use crate::args::Args;
use crate::bash::{self, BackgroundCommand, BashRun, Means, Shell, StartedCommand, UserBash, UserOutput};
use crate::client::{CallClient, Service};
use crate::config::{ChangeRecorder, PendingChange, ToolContext, ToolOutcome, ToolRequest, ToolsConfig};
use crate::error::ToolsError;
use crate::info::{ToolInfo, infos};
use crate::nearest::{unknown_tool, with_similar_paths};
use crate::path::Resolver;
use crate::queue::FileQueue;
use crate::read::{ImageRules, Window};
use crate::search::{Names, find, grep, ls};
use crate::validate::{Coercions, validate_with};
use crate::{edit, limits, read, write};
use process::Reaper;
use process::sandbox::{Aim, Guard, Policy, check_file, file_tool};

const ABORTED: &str = "Operation aborted";

/// The seven tools with what they share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Toolbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: ToolsConfig,
    shell: Shell,
    reaper: Reaper,
    queue: FileQueue,
    guard: Option<Guard>,
}

impl Toolbox {
    /// A toolbox whose commands belong to `reaper`.
    #[must_use]
    pub fn new(config: ToolsConfig, reaper: Reaper) -> Self {
        let shell = Shell::new(&config);
        let guard = config.sandbox.clone();
        let guard = guard.map(|sandbox| Guard::new(sandbox, &config.tmp_dir));
        Self {
            shared: Arc::new(Shared {
                guard,
                config,
                shell,
                reaper,
                queue: FileQueue::default(),
            }),
        }
    }

    /// The seven tools in their order.
    #[must_use]
    pub fn infos() -> &'static [ToolInfo] {
        infos()
    }

    /// The limits of tools that work in `cwd`, as sentences for the system prompt. Looks at the disk if there is a sandbox.
    #[must_use]
    pub fn limits(&self, cwd: &Path) -> Vec<String> {
        let guard = self.shared.guard.as_ref();
        let sandbox = guard.map(|guard| guard.rules(cwd).unwrap_or_else(|error| error));
        let timeout = self.shared.config.bash_timeout.map(|timeout| {
            let seconds = timeout.as_secs_f64();
            format!("A command of bash without a timeout is stopped after {seconds} seconds.")
        });
        sandbox.into_iter().chain(timeout).collect()
    }

    /// Returns true if commands of the model may use the network.
    #[must_use]
    pub fn allows_network(&self) -> bool {
        self.shared.guard.as_ref().is_none_or(Guard::allows_network)
    }

    /// The environment of commands, without variables of a session.
    #[must_use]
    pub fn env(&self) -> &[(OsString, OsString)] {
        &self.shared.config.env
    }

    /// Brings a call's arguments into the schema's types; this is what hooks see and [`Self::run_validated`] takes. Errors
    /// have the words of a dialect.
    ///
    /// # Errors
    /// The text for the model: unknown tool or invalid arguments (pi-core.md 1.5, 1.6).
    pub fn prepare(
        name: &str,
        args: &Map<String, Value>,
        dialect: Dialect,
    ) -> Result<Map<String, Value>, String> {
        let Some(info) = infos().iter().find(|info| info.spec.name == name) else {
            let names = infos().iter().map(|info| info.spec.name.as_str());
            return Err(unknown_tool(name, names));
        };
        let schema = &info.spec.parameters;
        let mut prepared = args.clone();
        if name == "edit" {
            edit::prepare(&mut prepared);
        }
        // Models write null for "not given".
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |key: &str| required.is_some_and(|list| list.iter().any(|one| one == key));
        prepared.retain(|key, value| !value.is_null() || is_required(key));
        let coercions = Coercions::of_built_in(dialect);
        validate_with(name, schema, &prepared, coercions, dialect)
    }

    /// The arguments that a tool takes for those of the model, where the conversation shows them from then on: `edits` as a list.
    /// None if they are the model's own.
    #[must_use]
    pub fn repaired(name: &str, args: &Map<String, Value>) -> Option<Map<String, Value>> {
        (name == "edit").then(|| edit::repaired(args))?
    }

    /// Runs a call from the model's arguments. When the future is dropped, a running command is killed.
    pub async fn run(&self, call: ToolRequest, ctx: ToolContext) -> ToolOutcome {
        match Self::prepare(&call.name, &call.args, self.shared.config.dialect) {
            Ok(args) => self.run_validated(ToolRequest { args, ..call }, ctx).await,
            Err(text) => ToolOutcome::error(text),
        }
    }

    /// Runs a call whose arguments have been prepared, and perhaps changed by a hook since.
    pub async fn run_validated(&self, call: ToolRequest, ctx: ToolContext) -> ToolOutcome {
        let args = Args::new(call.args);
        if call.name != "bash" && ctx.cancel.is_cancelled() {
            return ToolOutcome::error(ABORTED);
        }
        let shared = &self.shared;
        let file = self.detailed_file(&call.name, &args, &ctx);
        let mut done = match call.name.as_str() {
            "bash" => {
                let means = Means {
                    shell: &shared.shell,
                    reaper: &shared.reaper,
                    tmp_dir: &shared.config.tmp_dir,
                    guard: shared.guard.as_ref(),
                    default_timeout: shared.config.bash_timeout,
                    dialect: shared.config.dialect,
                    client: self.client(&ctx, None, &[Service::Run]),
                };
                return bash::tool::run(&args, &ctx, &means).await;
            }
            "read" => self.read(args, &ctx).await,
            "edit" => self.edit(args, &ctx).await,
            "write" => self.write(args, &ctx).await,
            "grep" => self.grep(args, &ctx).await,
            "find" => self.find(args, &ctx).await,
            "ls" => self.ls(args, &ctx).await,
            name => Err(unknown_tool(name, [])),
        };
        if let (Some((member, path)), Ok(result)) = (file, &mut done) {
            let details = result.details.get_or_insert_with(|| Value::Object(Map::new()));
            if let Some(details) = details.as_object_mut() {
                details.insert(member.to_owned(), path.display().to_string().into());
            }
        }
        ToolOutcome::from(done)
    }

    /// The file that `details` of a call name, and the member that has it there; none in other dialects than today's oh-my-pi. As there,
    /// a read names its file only if it is another one than the arguments say.
    fn detailed_file(&self, name: &str, args: &Args, ctx: &ToolContext) -> Option<(&'static str, PathBuf)> {
        if !self.shared.config.dialect.is_newest_omp() {
            return None;
        }
        let resolver = self.resolver(ctx);
        let named = |args: &Args| resolver.resolve(args.str("path")).ok();
        match name {
            "edit" => Some(("path", named(args)?)),
            "write" => Some(("resolvedPath", named(args)?)),
            "read" => {
                let found = resolver.resolve_existing(args.str("path")).ok()?;
                (named(args)? != found).then_some(("resolvedPath", found))
            }
            _ => None,
        }
    }

    /// Returns the result of `read` for a text that the caller has read: the window of the call. `args` are prepared.
    #[must_use]
    pub fn read_text(args: Map<String, Value>, text: &str) -> ToolOutcome {
        let args = Args::new(args);
        ToolOutcome::from(read::read_text(
            text,
            args.str("path"),
            Window::of(&args, Dialect::default()),
        ))
    }

    /// Runs a command of the user (pi-core.md 1.13). Any number may run at once.
    ///
    /// # Errors
    /// When the command could not be started.
    pub async fn user_bash(&self, request: UserBash) -> Result<BashRun, ToolsError> {
        let shared = &self.shared;
        let means = Means {
            shell: &shared.shell,
            reaper: &shared.reaper,
            tmp_dir: &shared.config.tmp_dir,
            guard: shared.guard.as_ref().filter(|guard| guard.is_for_users()),
            default_timeout: None,
            dialect: shared.config.dialect,
            client: None,
        };
        bash::user::run(request, &means).await
    }

    /// The output of a command of the user that an extension runs.
    #[must_use]
    pub fn user_output(&self) -> UserOutput {
        let config = &self.shared.config;
        UserOutput::new(&config.tmp_dir, config.dialect)
    }

    /// Starts a command of the model that goes on in the background. Always here: a terminal of the client ends with its call.
    ///
    /// # Errors
    /// A text for the model, if it cannot be started.
    pub async fn start_background(&self, command: BackgroundCommand) -> Result<StartedCommand, String> {
        let shared = &self.shared;
        let means = Means {
            shell: &shared.shell,
            reaper: &shared.reaper,
            tmp_dir: &shared.config.tmp_dir,
            guard: shared.guard.as_ref(),
            default_timeout: None,
            dialect: shared.config.dialect,
            client: None,
        };
        bash::background::start(command, &means).await
    }

    /// The diff that `edit` with prepared arguments would report now. Changes nothing.
    ///
    /// # Errors
    /// Why the edit would fail, in the words for the model.
    pub async fn preview_edit(&self, args: Map<String, Value>, cwd: &Path) -> Result<String, String> {
        let args = Args::new(args);
        let resolver = Resolver {
            cwd,
            home: self.shared.config.home.as_deref(),
        };
        let path = resolver.resolve(args.str("path"))?;
        let mode = self.shared.config.fuzzy_edit;
        let guard = self.shared.guard.as_ref();
        let policy = guard.map(|guard| guard.policy(cwd)).transpose()?;
        let preview = tokio::task::spawn_blocking(move || {
            file_tool(policy.as_ref(), Aim::Read, &path, || {
                edit::preview(&path, args.str("path"), &edit::edits(args.get("edits")), mode)
            })
        });
        preview
            .await
            .unwrap_or_else(|error| Err(format!("The preview failed: {error}")))
    }

    /// The file or directory that a call with prepared arguments is about; none for tools without one, and for a name that
    /// cannot be one.
    #[must_use]
    pub fn target(&self, name: &str, args: &Map<String, Value>, cwd: &Path) -> Option<PathBuf> {
        let resolver = Resolver {
            cwd,
            home: self.shared.config.home.as_deref(),
        };
        let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
        match name {
            "read" => resolver.resolve_existing(path).ok(),
            "edit" | "write" => resolver.resolve(path).ok(),
            "grep" | "find" | "ls" => resolver.resolve(if path.is_empty() { "." } else { path }).ok(),
            _ => None,
        }
    }

    fn resolver<'a>(&'a self, ctx: &'a ToolContext) -> Resolver<'a> {
        Resolver {
            cwd: &ctx.cwd,
            home: self.shared.config.home.as_deref(),
        }
    }

    /// The client, if it serves all these requests of a call. Only files below the working directory are its business. With a
    /// sandbox everything stays local: a terminal of the client is not confined, and it could follow a link out of the sandbox.
    fn client<'a>(
        &'a self,
        ctx: &'a ToolContext,
        path: Option<&Path>,
        services: &[Service],
    ) -> Option<CallClient<'a>> {
        let client = self.shared.config.client.as_ref()?;
        let caller = ctx.caller.as_ref()?;
        let is_inside = path.is_none_or(|path| path.starts_with(&ctx.cwd));
        let serves = || services.iter().all(|service| client.serves(*service));
        (self.shared.guard.is_none() && is_inside && serves()).then_some(CallClient { client, caller })
    }

    /// What the sandbox says of a call, if there is one.
    fn policy(&self, ctx: &ToolContext) -> Result<Option<Policy>, String> {
        let guard = self.shared.guard.as_ref();
        guard.map(|guard| guard.policy(&ctx.cwd)).transpose()
    }

    async fn read(&self, args: Args, ctx: &ToolContext) -> Result<ToolResult, String> {
        let path = self.resolver(ctx).resolve_existing(args.str("path"))?;
        let images = ImageRules {
            resize: self.shared.config.auto_resize_images,
            seen: ctx.sees_images,
        };
        let window = Window::of(&args, self.shared.config.dialect);
        if let Some(client) = self.client(ctx, Some(&path), &[Service::Read])
            && let Some(text) = client.text(&path, &ctx.cancel).await?
        {
            return read::read_text(&text, args.str("path"), window);
        }
        let policy = self.policy(ctx)?;
        blocking(&ctx.cancel, Duration::ZERO, move |cancel| {
            file_tool(policy.as_ref(), Aim::Read, &path, || {
                read::read(&path, args.str("path"), window, images, &cancel)
                    .map_err(|error| with_similar_paths(error, &path, policy.as_ref()))
            })
        })
        .await
    }

    async fn edit(&self, args: Args, ctx: &ToolContext) -> Result<ToolResult, String> {
        let path = self.resolver(ctx).resolve(args.str("path"))?;
        let mode = self.shared.config.fuzzy_edit;
        let dialect = self.shared.config.dialect;
        let policy = self.policy(ctx)?;
        let turn = self.turn(&path, ctx).await?;
        let edits = edit::edits(args.get("edits"));
        // A text that the client reads goes back to it: the disk may lack unsaved changes.
        if let Some(client) = self.client(ctx, Some(&path), &[Service::Read, Service::Write])
            && let Some(text) = client.text(&path, &ctx.cancel).await?
        {
            let changed = edit::change(&text, args.str("path"), &edits, mode, dialect)?;
            let put = client.put(&path, &changed.text, &ctx.cancel);
            if recorded_by_client(ctx.changes.clone(), &path, put).await? {
                return Ok(changed.result);
            }
        }
        let changes = ctx.changes.clone();
        blocking(&ctx.cancel, limits::WRITE_GRACE, move |_| {
            let _turn = turn;
            // The recorder reads the file without the limits of the sandbox.
            check_file(policy.as_ref(), Aim::Edit, &path)?;
            recorded(changes.as_deref(), &path, || {
                file_tool(policy.as_ref(), Aim::Edit, &path, || {
                    edit::edit(&path, args.str("path"), &edits, mode, dialect)
                        .map_err(|error| with_similar_paths(error, &path, policy.as_ref()))
                })
            })
        })
        .await
    }

    async fn write(&self, args: Args, ctx: &ToolContext) -> Result<ToolResult, String> {
        let path = self.resolver(ctx).resolve(args.str("path"))?;
        let dialect = self.shared.config.dialect;
        let policy = self.policy(ctx)?;
        let turn = self.turn(&path, ctx).await?;
        if let Some(client) = self.client(ctx, Some(&path), &[Service::Write])
            && write::prepare(&path, args.str("content"))?
            && recorded_by_client(
                ctx.changes.clone(),
                &path,
                client.put(&path, args.str("content"), &ctx.cancel),
            )
            .await?
        {
            return Ok(write::result(args.str("path"), args.str("content"), dialect));
        }
        let changes = ctx.changes.clone();
        blocking(&ctx.cancel, limits::WRITE_GRACE, move |_| {
            let _turn = turn;
            check_file(policy.as_ref(), Aim::Write, &path)?;
            recorded(changes.as_deref(), &path, || {
                file_tool(policy.as_ref(), Aim::Write, &path, || {
                    write::write(&path, args.str("path"), args.str("content"), dialect)
                })
            })
        })
        .await
    }

    /// Waits for the turn on a file, and for [`limits::CHANGE_DELAY`] after `tool_execution_start` was written. A client that
    /// receives this line may read the file as it was, to show a diff: the ACP adapters of pi do. Calls of one answer wait at
    /// the same time and keep their order.
    async fn turn(&self, path: &Path, ctx: &ToolContext) -> Result<tokio::sync::OwnedMutexGuard<()>, String> {
        let delay = async {
            if let Some(line) = &ctx.start_line {
                line.written().await;
            }
            tokio::time::sleep(limits::CHANGE_DELAY).await;
        };
        let ready = async { tokio::join!(self.shared.queue.turn(path), delay).0 };
        tokio::select! {
            biased;
            () = ctx.cancel.cancelled() => Err(ABORTED.to_owned()),
            turn = ready => Ok(turn),
        }
    }

    /// The directory or file a search starts at.
    fn root(&self, args: &Args, ctx: &ToolContext) -> Result<PathBuf, String> {
        self.resolver(ctx).resolve(
            args.opt_str("path")
                .filter(|path| !path.is_empty())
                .unwrap_or("."),
        )
    }

    async fn grep(&self, args: Args, ctx: &ToolContext) -> Result<ToolResult, String> {
        let (root, query) = (self.root(&args, ctx)?, grep::Query::of(&args));
        let policy = self.policy(ctx)?;
        blocking(&ctx.cancel, Duration::ZERO, move |cancel| {
            file_tool(policy.as_ref(), Aim::Read, &root, || {
                grep::grep(&root, &query, &cancel)
                    .map_err(|error| with_similar_paths(error, &root, policy.as_ref()))
            })
        })
        .await
    }

    async fn find(&self, args: Args, ctx: &ToolContext) -> Result<ToolResult, String> {
        let root = self.root(&args, ctx)?;
        let limit = args.limit("limit", limits::FIND_LIMIT);
        let policy = self.policy(ctx)?;
        blocking(&ctx.cancel, Duration::ZERO, move |cancel| {
            file_tool(policy.as_ref(), Aim::Read, &root, || {
                let names = Names::new(policy.as_ref(), &root);
                find::find(&root, args.str("pattern"), limit, &names, &cancel)
                    .map_err(|error| with_similar_paths(error, &root, policy.as_ref()))
            })
        })
        .await
    }

    async fn ls(&self, args: Args, ctx: &ToolContext) -> Result<ToolResult, String> {
        let root = self.root(&args, ctx)?;
        let limit = args.limit("limit", limits::LS_LIMIT);
        let policy = self.policy(ctx)?;
        blocking(&ctx.cancel, Duration::ZERO, move |cancel| {
            file_tool(policy.as_ref(), Aim::Read, &root, || {
                ls::ls(&root, limit, &Names::new(policy.as_ref(), &root), &cancel)
                    .map_err(|error| with_similar_paths(error, &root, policy.as_ref()))
            })
        })
        .await
    }
}

/// Changes a file between two looks of the recorder, if there is one. Blocks.
fn recorded(
    recorder: Option<&dyn ChangeRecorder>,
    path: &Path,
    change: impl FnOnce() -> Result<ToolResult, String>,
) -> Result<ToolResult, String> {
    let pending = recorder.map(|recorder| recorder.begin(path)).transpose()?;
    let outcome = change();
    pending.into_iter().for_each(PendingChange::end);
    outcome
}

/// Lets the client change a file between two looks of the recorder, if there is one.
async fn recorded_by_client(
    recorder: Option<Arc<dyn ChangeRecorder>>,
    path: &Path,
    change: impl Future<Output = Result<bool, String>>,
) -> Result<bool, String> {
    let Some(recorder) = recorder else {
        return change.await;
    };
    let path = path.to_path_buf();
    let failed = |error: tokio::task::JoinError| format!("The checkpoint failed: {error}");
    let pending = tokio::task::spawn_blocking(move || recorder.begin(&path)).await;
    let pending = pending.map_err(failed)??;
    let outcome = change.await;
    tokio::task::spawn_blocking(move || pending.end())
        .await
        .map_err(failed)?;
    outcome
}

/// Runs blocking work off the runtime's thread. After an abort the work has `grace` to end with a true result; searches
/// have none, since they see the token themselves and change nothing.
async fn blocking(
    cancel: &CancellationToken,
    grace: Duration,
    work: impl FnOnce(CancellationToken) -> Result<ToolResult, String> + Send + 'static,
) -> Result<ToolResult, String> {
    let token = cancel.clone();
    let mut task = tokio::task::spawn_blocking(move || work(token));
    let too_long = async {
        cancel.cancelled().await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        biased;
        done = &mut task => done.unwrap_or_else(|error| Err(format!("The tool failed: {error}"))),
        () = too_long => Err(ABORTED.to_owned()),
    }
}
