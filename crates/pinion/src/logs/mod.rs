//! Consumers of logs and traces: stderr or a file, and an OpenTelemetry collector if the program was built with it.
//! Without a consumer nothing is collected. Every line is written without credentials, crash texts included. `session` and
//! `llm` decide which events are logged.

mod file;
mod json;
#[cfg(feature = "otel")]
mod otel;

use std::io::{self, Write};
use std::sync::Arc;

use auth::Secrets;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{FmtSpan, JsonFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::args::Args;
use crate::environment::{Environment, complain};

/// Variables with the log filter, as `level` or `target=level,...`; the first one with a value counts.
const VARIABLES: [&str; 2] = ["PINION_LOG", "RUST_LOG"];

type Boxed = Box<dyn Layer<Registry> + Send + Sync>;

/// Log consumers that must be closed before the process ends.
#[derive(Default)]
pub(crate) struct Logs {
    #[cfg(feature = "otel")]
    export: Option<otel::Export>,
}

impl Logs {
    /// Starts the consumers that options and variables ask for.
    pub(crate) fn start(args: &Args, env: &Environment, secrets: &Secrets) -> anyhow::Result<Self> {
        hook_panics(secrets.clone());
        #[cfg_attr(not(feature = "otel"), expect(unused_mut, reason = "changed by otel only"))]
        let mut logs = Self::default();
        let mut layers: Vec<Boxed> = Vec::new();
        layers.extend(written(args, env, secrets)?);
        #[cfg(feature = "otel")]
        if let Some((layer, export)) = otel::start(env, secrets)? {
            layers.push(layer);
            logs.export = Some(export);
        }
        if !layers.is_empty() {
            // The first one counts; there is but one in a process.
            let _other = tracing_subscriber::registry().with(layers).try_init();
        }
        Ok(logs)
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        #[cfg(feature = "otel")]
        if let Some(export) = self.export.take() {
            export.finish();
        }
    }
}

/// Lines for people on stderr, or JSON lines in a file.
fn written(args: &Args, env: &Environment, secrets: &Secrets) -> anyhow::Result<Option<Boxed>> {
    let named = VARIABLES.iter().find_map(|name| Some((name, env.get(name)?)));
    let filter = match named.map(|(name, text)| (name, text.parse::<Targets>())) {
        Some((_, Ok(filter))) => Some(filter),
        Some((name, Err(_))) => {
            complain(&format!(
                "Warning: {name} is not understood and ignored; it takes a level or target=level,target=level"
            ));
            None
        }
        None => None,
    };
    let Some(path) = &args.log_file else {
        return Ok(filter.map(|filter| {
            let layer = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_span_events(FmtSpan::CLOSE)
                .with_writer(Masked::new(secrets, Out::Stderr));
            layer.with_filter(filter).boxed()
        }));
    };
    let file = file::open(&env.path(path))?;
    let layer = tracing_subscriber::fmt::layer()
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(Masked::new(secrets, Out::File(Arc::new(file))))
        .fmt_fields(JsonFields::new())
        .event_format(json::Json);
    let filter = filter.unwrap_or_else(|| {
        // It tells every message of MCP servers in full.
        Targets::new()
            .with_default(LevelFilter::INFO)
            .with_target("rmcp", LevelFilter::WARN)
    });
    Ok(Some(layer.with_filter(filter).boxed()))
}

/// Where lines go.
#[derive(Clone)]
enum Out {
    Stderr,
    File(Arc<std::fs::File>),
}

/// Takes credentials out of each line.
#[derive(Clone)]
struct Masked {
    secrets: Secrets,
    out: Out,
}

impl Masked {
    fn new(secrets: &Secrets, out: Out) -> Self {
        Self {
            secrets: secrets.clone(),
            out,
        }
    }
}

impl<'a> MakeWriter<'a> for Masked {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Masked {
    /// Writes one whole line. A line that cannot be written is lost: a failing log must not stop the program.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let masked = self.secrets.redact_bytes(line);
        let shown = masked.as_deref().unwrap_or(line);
        let _lost = match &self.out {
            Out::Stderr => io::stderr().write_all(shown),
            Out::File(file) => file.as_ref().write_all(shown),
        };
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Crash texts quote values, and values may be credentials.
fn hook_panics(secrets: Secrets) {
    std::panic::set_hook(Box::new(move |info| {
        let thread = std::thread::current();
        let backtrace = std::backtrace::Backtrace::capture();
        let has_trace = backtrace.status() == std::backtrace::BacktraceStatus::Captured;
        let trace = has_trace.then(|| backtrace.to_string());
        let name = thread.name().unwrap_or("unnamed");
        complain(&crash_text(&secrets, name, &info.to_string(), trace.as_deref()));
    }));
}

fn crash_text(secrets: &Secrets, thread: &str, said: &str, trace: Option<&str>) -> String {
    let trace = trace.unwrap_or("RUST_BACKTRACE=1 shows where it came from");
    secrets.redact(format!("thread '{thread}' {said}\n{trace}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_texts_and_logs_hold_no_credentials() {
        let secrets = Secrets::default();
        secrets.learn("sk-planted-0123456789");
        let text = crash_text(
            &secrets,
            "main",
            "panicked at a.rs:1:\nbad \"sk-planted-0123456789\"",
            None,
        );
        assert!(
            text.starts_with("thread 'main' panicked at a.rs:1:\nbad \"[key]\"\n"),
            "{text}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let out = Out::File(Arc::new(file.reopen().unwrap()));
        Masked::new(&secrets, out)
            .write_all(b"{\"k\":\"sk-planted-0123456789\"}\n")
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(file.path()).unwrap(),
            "{\"k\":\"[key]\"}\n"
        );
    }
}
