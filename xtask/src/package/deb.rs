//! The Debian package: an `ar` archive of two tarballs (deb(5)).

use anyhow::Result;

use super::archive::{Body, Entry, gzip, tar, with_directories};
use super::contents::{Contents, names};
use super::{Artefact, Release};

const DESCRIPTION: &str = "headless coding agent, compatible with pi --mode rpc
 Pinion sends messages to a language model and runs the tools that the model
 calls. Applications control it with JSON lines on stdin and stdout, browsers
 over HTTP and WebSocket. Without an API key a built-in offline model answers.";

/// Makes the package.
pub(crate) fn package(release: &Release, contents: &Contents) -> Result<Artefact> {
    let mut entries = contents.below("usr/");
    entries.push(Entry::file(
        "usr/share/doc/pinion/copyright",
        0o644,
        release.read("packaging/debian-copyright")?,
    ));
    for entry in &mut entries {
        // Debian keeps manual pages compressed.
        if let Body::File(bytes) = &mut entry.body
            && entry.path.starts_with("usr/share/man/")
        {
            *bytes = gzip(bytes)?;
            entry.path.push_str(".gz");
        }
        // Where Debian's zsh looks for completions of packages.
        entry.path = entry
            .path
            .replace("/zsh/site-functions", "/zsh/vendor-completions");
    }
    let entries = with_directories(entries);
    let size: usize = entries
        .iter()
        .map(|entry| match &entry.body {
            Body::File(bytes) => bytes.len().div_ceil(1024),
            _ => 1,
        })
        .sum();
    let control = control(release, contents, size);
    let control = [Entry::file("control", 0o644, control)];
    let control = gzip(&tar(&control, "./", release.seconds)?)?;
    let data = gzip(&tar(&entries, "./", release.seconds)?)?;
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in [
        ("debian-binary", b"2.0\n".as_slice()),
        ("control.tar.gz", &control),
        ("data.tar.gz", &data),
    ] {
        let header = format!(
            "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n",
            release.seconds,
            0,
            0,
            "100644",
            bytes.len()
        );
        out.extend(header.bytes());
        out.extend(bytes);
        if bytes.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    let arch = release.target.debian().unwrap_or("all");
    let name = format!("pinion_{}_{arch}.deb", release.version);
    release.write(name, &out, names(&entries))
}

fn control(release: &Release, contents: &Contents, size: usize) -> String {
    let mut depends = Vec::new();
    if let Some((major, minor)) = contents.needs.glibc {
        depends.push(format!("libc6 (>= {major}.{minor})"));
    }
    if contents
        .needs
        .libraries
        .iter()
        .any(|name| name.starts_with("libgcc_s"))
    {
        depends.push("libgcc-s1".to_owned());
    }
    let depends = if depends.is_empty() {
        String::new()
    } else {
        format!("Depends: {}\n", depends.join(", "))
    };
    format!(
        "Package: pinion\nVersion: {}\nArchitecture: {}\nMaintainer: The Pinion developers \
         <pinion-agent@users.noreply.github.com>\nInstalled-Size: {size}\n{depends}Recommends: ca-certificates, bash\n\
         Suggests: nodejs (>= 20)\nSection: devel\nPriority: optional\nHomepage: {}\nDescription: {DESCRIPTION}\n",
        release.version,
        release.target.debian().unwrap_or("all"),
        env!("CARGO_PKG_REPOSITORY"),
    )
}
