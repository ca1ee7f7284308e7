//! `exit-codes.md`: the constants in `exit.rs` of the program.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{cell, head, read, scan};

const SOURCE: &str = "crates/pinion/src/exit.rs";

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let codes = scan::constants(&read(root, SOURCE)?);
    ensure!(!codes.is_empty(), "{SOURCE} has no constants");
    let mut out = head("Exit codes");
    out.push_str("| code | meaning |\n| --- | --- |\n");
    for code in codes {
        out.push_str(&format!("| {} | {} |\n", code.value, cell(&code.doc)));
    }
    out.push_str(
        "\nWith `--mode text` and `--mode json`, a run that ends with an error or an abort is a failure, too. With `--mode text`, so is a run that ends at\nthe output limit of the model. With `--mode rpc`, failed runs and commands are reported in the protocol and do not change the exit code.\n",
    );
    Ok(out)
}
