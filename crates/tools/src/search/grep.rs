//! The `grep` tool (pi-core.md 5.7): file contents by regular expression, gitignored files left out inside repositories.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::overrides::OverrideBuilder;
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;
use wire::ToolResult;

use crate::args::Args;
use crate::limits;
use crate::path::relative;

/// What a call asks for.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pattern: String,
    glob: Option<String>,
    ignore_case: bool,
    literal: bool,
    context: usize,
    limit: usize,
}

impl Query {
    /// From validated arguments.
    pub(crate) fn of(args: &Args) -> Self {
        Self {
            pattern: args.str("pattern").to_owned(),
            glob: args
                .opt_str("glob")
                .map(without_dot)
                .filter(|glob| !glob.is_empty()),
            ignore_case: args.flag("ignoreCase"),
            literal: args.flag("literal"),
            context: args
                .count("context", 0)
                .unwrap_or(0)
                .min(limits::GREP_CONTEXT_MAX),
            limit: args.limit("limit", limits::GREP_LIMIT),
        }
    }

    fn matcher(&self) -> Result<RegexMatcher, String> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .multi_line(true)
            .line_terminator(Some(b'\n'))
            .size_limit(limits::GREP_PATTERN_SIZE);
        builder.build(&self.pattern).map_err(|error| reported(&error))
    }
}

/// A glob without `./` at its beginning, where a `!` may stand before it. Globs are compared with paths that begin with a name.
fn without_dot(glob: &str) -> String {
    let (sign, mut rest) = match glob.strip_prefix('!') {
        Some(rest) => ("!", rest),
        None => ("", glob),
    };
    while let Some(below) = rest.strip_prefix("./") {
        rest = below;
    }
    format!("{sign}{rest}")
}

/// An error as pi shows it, whose tool passes on what the program `rg` prints.
fn reported(error: &impl std::fmt::Display) -> String {
    format!("rg: {error}")
}

/// Searches a file or everything below a directory. Blocks.
pub(crate) fn grep(root: &Path, query: &Query, cancel: &CancellationToken) -> Result<ToolResult, String> {
    let meta = root
        .metadata()
        .map_err(|_| format!("Path not found: {}", root.display()))?;
    let matcher = query.matcher()?;
    let base = if meta.is_dir() {
        root
    } else {
        root.parent().unwrap_or(root)
    };
    let mut globs = OverrideBuilder::new(base);
    if let Some(glob) = &query.glob {
        globs.add(glob).map_err(|error| reported(&error))?;
    }
    let globs = globs.build().map_err(|error| reported(&error))?;
    // A file with a null byte is binary. In a directory it is left out from that byte on; a file that the call names is searched
    // to its end, as ripgrep does it: a log can have such a byte.
    let binary = match meta.is_dir() {
        true => BinaryDetection::quit(0),
        false => BinaryDetection::convert(0),
    };
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(query.context)
        .after_context(query.context)
        .binary_detection(binary)
        .heap_limit(Some(limits::GREP_HEAP))
        .build();
    let mut found = Found::new(query.limit, cancel);
    for entry in super::walk(root, false, globs).build() {
        if cancel.is_cancelled() {
            return Err(super::ABORTED.to_owned());
        }
        let Ok(entry) = entry else { continue };
        // Pipes and devices would make the search wait.
        let regular = entry.file_type().is_some_and(|kind| kind.is_file());
        let named = entry.depth() == 0 && meta.is_file();
        if !regular && !named {
            continue;
        }
        found.name = relative(entry.path(), base);
        found.after = 0;
        // What cannot be read is passed over, as a search over many files must.
        if let Ok(file) = open(entry.path()) {
            let _ = searcher.search_reader(&matcher, Watched { file, cancel }, &mut found);
        }
        if found.is_over() {
            break;
        }
    }
    if cancel.is_cancelled() {
        return Err(super::ABORTED.to_owned());
    }
    Ok(found.result())
}

/// Opens a file. Non-blocking, since a file may have become a pipe after it was listed.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// A file that ends when the search is aborted, however long it is.
struct Watched<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl io::Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            Ok(0)
        } else {
            self.file.read(buffer)
        }
    }
}

/// The lines found so far.
struct Found<'a> {
    name: String,
    lines: Vec<String>,
    bytes: usize,
    matches: usize,
    limit: usize,
    /// There is a match that the limit leaves out.
    more: bool,
    cut: bool,
    /// Context lines that still belong to the last match of the limit.
    after: usize,
    cancel: &'a CancellationToken,
}

impl<'a> Found<'a> {
    fn new(limit: usize, cancel: &'a CancellationToken) -> Self {
        Self {
            name: String::new(),
            lines: Vec::new(),
            bytes: 0,
            matches: 0,
            limit,
            more: false,
            cut: false,
            after: 0,
            cancel,
        }
    }

    /// Returns true when nothing that comes can change the result.
    fn is_over(&self) -> bool {
        self.more || self.bytes > limits::GREP_OUTPUT_MAX
    }

    fn add(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let number = number.unwrap_or_default();
        let mut line = format!("{}{mark}{number}{mark} ", self.name);
        match text.char_indices().nth(limits::GREP_LINE_CHARS) {
            Some((end, _)) => {
                line.push_str(text.get(..end).unwrap_or_default());
                line.push_str("... [truncated]");
                self.cut = true;
            }
            None => line.push_str(text),
        }
        self.bytes += line.len();
        self.lines.push(line);
    }

    fn result(self) -> ToolResult {
        if self.lines.is_empty() {
            return ToolResult::text("No matches found");
        }
        let (mut notices, mut details) = (Vec::new(), Map::new());
        if self.more {
            notices.push(format!(
                "{} matches limit reached. Use limit={} for more, or refine pattern",
                self.limit,
                self.limit * 2
            ));
            details.insert("matchLimitReached".to_owned(), json!(self.limit));
        }
        let notice = format!(
            "Some lines truncated to {} chars. Use read tool to see full lines",
            limits::GREP_LINE_CHARS
        );
        let late = self.cut.then_some((notice.as_str(), "linesTruncated"));
        super::result(&self.lines, notices, details, late)
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.bytes > limits::GREP_OUTPUT_MAX {
            return Ok(false);
        }
        if self.matches >= self.limit {
            // Only a match that is left out tells that there are more than the limit. It can be context of the last one.
            self.more = true;
            if self.after > 0 {
                self.after -= 1;
                self.add('-', hit.line_number(), hit.bytes());
            }
            return Ok(self.after > 0 && !self.cancel.is_cancelled());
        }
        self.add(':', hit.line_number(), hit.bytes());
        self.matches += 1;
        self.after = searcher.after_context();
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        if self.bytes > limits::GREP_OUTPUT_MAX {
            return Ok(false);
        }
        let is_last = self.matches >= self.limit;
        // Behind the context of the last match come lines before a match that is left out.
        if !is_last || self.after > 0 {
            self.add('-', context.line_number(), context.bytes());
        }
        if is_last {
            self.after = self.after.saturating_sub(1);
        }
        // The match that is left out is found already.
        let is_done = self.more && self.after == 0;
        Ok(!is_done && !self.cancel.is_cancelled())
    }
}
