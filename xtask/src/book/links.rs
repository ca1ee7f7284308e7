//! Checks links within the repository: the file exists, and the page has the anchor. Addresses on the network are not asked for.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::Report;
use super::page::Page;

pub(super) fn check(root: &Path, pages: &[Page], report: &mut Report) {
    let by_path: BTreeMap<&Path, &Page> = pages.iter().map(|page| (page.path.as_path(), page)).collect();
    for page in pages {
        for (line, target) in &page.links {
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            report.links += 1;
            if let Err(why) = follow(root, &by_path, page, target) {
                report.wrong.push(format!("{}: {why}", page.place(*line)));
            }
        }
    }
}

fn follow(root: &Path, pages: &BTreeMap<&Path, &Page>, page: &Page, target: &str) -> Result<(), String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        let folder = page.path.parent().unwrap_or(Path::new(""));
        plain(&folder.join(file)).ok_or_else(|| format!("the link {target} leaves the repository"))?
    };
    if !root.join(&path).exists() {
        return Err(format!(
            "the link {target} leads to {}, which does not exist",
            path.display()
        ));
    }
    if anchor.is_empty() {
        return Ok(());
    }
    match pages.get(path.as_path()) {
        Some(page) if !page.anchors.contains(anchor) => {
            Err(format!("{} has no heading #{anchor}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir if out.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(out)
}
