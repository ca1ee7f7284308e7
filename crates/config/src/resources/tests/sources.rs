//! The names of packages: what they stand for, and which are refused.

use std::path::Path;

use crate::resources::{PackageSource, SourceError};

fn parts(text: &str) -> [String; 3] {
    match PackageSource::parse(text).unwrap() {
        PackageSource::Npm { name, version } => [name, version.unwrap_or_default(), String::new()],
        PackageSource::Git {
            repository,
            host,
            path,
            reference,
        } => [
            repository,
            format!("{host}/{path}"),
            reference.unwrap_or_default(),
        ],
        PackageSource::Local(path) => [path, String::new(), String::new()],
    }
}

#[test]
fn package_sources_are_read_as_pi_reads_them() {
    for (text, wanted) in [
        ("npm:tools", ["tools", "", ""]),
        ("npm:@s/tools@^1.2 || 3", ["@s/tools", "^1.2 || 3", ""]),
        (" npm:tools@latest ", ["tools", "latest", ""]),
        (
            "git:github.com/me/tools@v1",
            ["https://github.com/me/tools", "github.com/me/tools", "v1"],
        ),
        (
            "git:git@Host.org:me/a.git@x/y",
            ["git@Host.org:me/a.git", "host.org/me/a", "x/y"],
        ),
        ("git@host.org:me/a", ["git@host.org:me/a", "host.org/me/a", ""]),
        (
            "https://h.org:8443/g/sub/a#main",
            ["https://h.org:8443/g/sub/a", "h.org/g/sub/a", "main"],
        ),
        (
            "ssh://git@h.org:22/me/a.git",
            ["ssh://git@h.org:22/me/a.git", "h.org/me/a", ""],
        ),
        ("./dir", ["./dir", "", ""]),
        ("/a::b", ["/a::b", "", ""]),
    ] {
        assert_eq!(parts(text), wanted, "{text}");
    }
}

#[test]
fn dangerous_package_sources_are_refused() {
    use SourceError::{NpmName, NpmVersion, Reference, Repository, Scheme};
    for (text, wanted) in [
        ("npm:", NpmName),
        ("npm:--prefix=/", NpmName),
        ("npm:../x", NpmName),
        ("npm:@s", NpmName),
        ("npm:@../x", NpmName),
        ("npm:@s/..", NpmName),
        ("npm:a/b", NpmName),
        ("npm:node_modules", NpmName),
        ("npm:a@npm:b", NpmVersion),
        ("npm:a@file:../b", NpmVersion),
        ("npm:a@me/repo", NpmVersion),
        ("npm:a@--global", NpmVersion),
        ("npm:a@", NpmVersion),
        ("git:github.com/me/a@--upload-pack=x", Reference),
        ("git:github.com/me/a@a..b", Reference),
        ("git:github.com/me/a@", Reference),
        ("git:github.com/../../a", Repository),
        ("git:github.com/me/%2e%2e", Repository),
        ("git:github.com/me", Repository),
        ("git:me/a", Repository),
        ("git:ext::sh -c x/a/b", Repository),
        ("ssh://-oProxyCommand=x/me/a", Repository),
        ("ssh://-o@h/me/a", Repository),
        ("git:git@-oX:me/a", Repository),
        ("https://h/me/-a", Repository),
        ("ext::sh -c x", Scheme),
        ("file:///etc/a", Scheme),
        ("github:me/a", Scheme),
    ] {
        assert_eq!(PackageSource::parse(text), Err(wanted), "{text}");
    }
}

#[test]
fn package_identity_ignores_version_and_protocol() {
    let identity = |text: &str| {
        PackageSource::parse(text)
            .unwrap()
            .identity(Path::new("/base"), None)
    };
    for [one, other] in [
        ["npm:a@1", "npm:a"],
        ["git:github.com/me/a@v1", "ssh://git@github.com/me/a.git"],
        ["./x/../y", "/base/y"],
    ] {
        assert_eq!(identity(one), identity(other));
    }
    let source = |text: &str| PackageSource::parse(text).unwrap();
    assert_eq!(source("npm:a@v1.2.3-x.1").exact_version(), Some("1.2.3-x.1"));
    assert_eq!(source("npm:a@1.2").exact_version(), None);
    assert!(source("https://me:word@h.org/a/b").has_password());
    assert!(!source("ssh://git@h.org/a/b").has_password());
}
