//! What a one-shot run says to the model: stdin, `@file` arguments and words of the command line (pi-core.md 6.6).

use std::io::Read;

use anyhow::{Context, bail};
use serde_json::Value;
use wire::ImageContent;

use crate::args::{Args, read_files, read_named};
use crate::environment::Environment;

use super::is_piped;

/// Longest text taken from stdin, in bytes.
const STDIN_BYTES: u64 = 32 * 1024 * 1024;

/// One prompt.
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) images: Vec<ImageContent>,
    /// The schema of the result that its run must give.
    pub(crate) output_schema: Option<Value>,
}

/// The schema that `--output-schema` names. It belongs to the last prompt.
pub(crate) fn output_schema(args: &Args, env: &Environment) -> anyhow::Result<Option<Value>> {
    let Some(name) = &args.run.output_schema else {
        return Ok(None);
    };
    let bytes = read_named(name, &env.cwd, env.home.as_deref())?;
    let schema = serde_json::from_slice(&bytes).with_context(|| format!("{name} is not JSON"))?;
    Ok(Some(schema))
}

/// The text that is piped in, without whitespace around it. As in `@file` arguments and lines of clients, bytes that are no UTF-8
/// become U+FFFD: one of them in a log must not cost the prompt.
fn piped_text(input: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let mut input = input.take(STDIN_BYTES + 1);
    input.read_to_end(&mut bytes).context("stdin cannot be read")?;
    if input.limit() == 0 {
        bail!("stdin has more than {STDIN_BYTES} bytes. Name a file with the text in the prompt instead");
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// The prompts, in order: the first is made of stdin, files and the first message; each further message is one of its own.
pub(crate) fn collect(args: &Args, env: &Environment) -> anyhow::Result<Vec<Prompt>> {
    let mut first = if is_piped() {
        piped_text(std::io::stdin())?
    } else {
        String::new()
    };
    let files = read_files(&args.files, &env.cwd, env.home.as_deref())?;
    let mut messages = args.messages.iter();
    for part in [files.text.as_str(), messages.next().map_or("", String::as_str)] {
        if !first.is_empty() && !part.is_empty() && !first.ends_with('\n') {
            first.push('\n');
        }
        first.push_str(part);
    }
    let mut prompts = Vec::new();
    if !first.is_empty() || !files.images.is_empty() {
        prompts.push(Prompt {
            text: first,
            images: files.images,
            output_schema: None,
        });
    }
    prompts.extend(messages.map(|text| Prompt {
        text: text.clone(),
        images: Vec::new(),
        output_schema: None,
    }));
    Ok(prompts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_bytes_outside_utf8_are_replaced() {
        let text = piped_text(&b"\n error: caf\xe9 \n"[..]).unwrap();
        assert_eq!(text, "error: caf\u{fffd}");
    }

    #[test]
    fn piped_text_beyond_limit_is_refused() {
        let text = piped_text(std::io::repeat(b'a').take(STDIN_BYTES)).unwrap();
        assert_eq!(u64::try_from(text.len()), Ok(STDIN_BYTES));
        let error = piped_text(std::io::repeat(b'a').take(STDIN_BYTES + 1)).unwrap_err();
        assert!(error.to_string().contains("more than 33554432 bytes"), "{error}");
    }
}
