//! The page: head with its security policy, the shell, the data, the script (pi-core.md 9). How it looks is in the assets.
//!
//! The page is safe in three ways, each enough by itself: the data is escaped JSON in an element that is not executed; the
//! script only makes elements and text nodes, which the browser enforces (trusted types); and the policy allows
//! no script but this one, by its hash, and no request at all.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::ExportInput;
use crate::escape::{ScriptJson, text};
use crate::json::json;
use crate::limits::TITLE_CHARS;

const STYLE: &str = concat!(
    include_str!("../assets/page.css"),
    include_str!("../assets/content.css"),
);
const SHELL: &str = include_str!("../assets/shell.html");
const SCRIPT: &str = concat!(
    "(() => {\n'use strict';\n",
    include_str!("../assets/base.js"),
    include_str!("../assets/highlight.js"),
    include_str!("../assets/inline.js"),
    include_str!("../assets/markdown.js"),
    include_str!("../assets/ansi.js"),
    include_str!("../assets/session.js"),
    include_str!("../assets/tools.js"),
    include_str!("../assets/messages.js"),
    include_str!("../assets/header.js"),
    include_str!("../assets/transcript.js"),
    include_str!("../assets/sidebar.js"),
    include_str!("../assets/main.js"),
    "})();\n",
);

/// Writes one page that needs nothing else: no network, no server, no other file.
///
/// # Errors
/// When `out` fails.
pub fn html(input: &ExportInput<'_>, out: &mut impl Write) -> io::Result<()> {
    let title = text(&title(input));
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"generator\" content=\"pinion-export {}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{SHELL}\
         <script type=\"application/json\" id=\"session-data\">",
        env!("CARGO_PKG_VERSION"),
        policy(),
    )?;
    json(input, &mut ScriptJson(&mut *out))?;
    write!(out, "</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// What the browser may do for the page.
fn policy() -> String {
    let hash = |source: &str| STANDARD.encode(Sha256::digest(source));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE),
    )
}

/// The session's name, else the working directory's last part and the date.
fn title(input: &ExportInput<'_>) -> String {
    let named = input.name.map(str::trim).filter(|name| !name.is_empty());
    let title = named.map_or_else(
        || {
            let folder = input.header.cwd.rsplit(['/', '\\']).find(|part| !part.is_empty());
            let day = input.header.timestamp.split('T').next().unwrap_or_default();
            format!("{} {day}", folder.unwrap_or("Session"))
        },
        str::to_owned,
    );
    title.trim().chars().take(TITLE_CHARS).collect()
}
