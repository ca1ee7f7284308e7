//! The OCI image: a layout (image-spec 1.1) in a tar archive, which `skopeo`, `podman load` and `docker load` read.
//!
//! The image starts from nothing. It contains a statically linked program, CA certificates, an unprivileged user with a
//! writable home directory, and no shell: the tool `bash` needs an image that is built on top.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::archive::{Body, Entry, gzip, tar, with_directories};
use super::contents::{Contents, names};
use super::sums::sha256;
use super::{Artefact, Release, elf};

/// User and group of the program: no user of usual systems.
const USER: u32 = 65532;
const NAME: &str = "ghcr.io/pinion-agent/pinion";

/// Makes the image.
pub(crate) fn image(
    release: &Release,
    contents: &Contents,
    program: &Path,
    ca_bundle: &Path,
) -> Result<Artefact> {
    let entries = root(contents, program, ca_bundle)?;
    let layer = tar(&entries, "", release.seconds)?;
    let diff = sha256(&layer);
    let layer = gzip(&layer)?;
    let created = timestamp(release.seconds);
    let config = serde_json::to_vec(&json!({
        "created": created,
        "architecture": release.target.oci(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", "HOME=/home/pinion", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
            "Entrypoint": ["/usr/bin/pinion"],
            "WorkingDir": "/workspace",
            "Labels": {
                "org.opencontainers.image.title": "pinion",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff}")]},
        "history": [{"created": created, "created_by": "xtask package"}],
    }))?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
    }))?;
    let entry = json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": format!("sha256:{}", sha256(&manifest)),
        "size": manifest.len(),
        "platform": {"architecture": release.target.oci(), "os": "linux"},
        "annotations": {
            "org.opencontainers.image.ref.name": release.version,
            "io.containerd.image.name": format!("{NAME}:{}", release.version),
        },
    });
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    }))?;
    let mut files = vec![
        Entry::file("index.json", 0o644, index),
        Entry::file(
            "oci-layout",
            0o644,
            br#"{"imageLayoutVersion":"1.0.0"}"#.as_slice(),
        ),
    ];
    for blob in [config, manifest, layer] {
        files.push(Entry::file(
            format!("blobs/sha256/{}", sha256(&blob)),
            0o644,
            blob,
        ));
    }
    let archive = tar(&with_directories(files), "", release.seconds)?;
    let name = format!("pinion-{}-oci-{}.tar", release.version, release.target.oci());
    release.write(name, &archive, names(&entries))
}

/// Returns the files of the image.
fn root(contents: &Contents, program: &Path, ca_bundle: &Path) -> Result<Vec<Entry>> {
    let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
    let needs = elf::needs(&bytes)?;
    if !needs.libraries.is_empty() {
        bail!(
            "{} is not statically linked, it needs {}",
            program.display(),
            needs.libraries.join(", ")
        );
    }
    let certificates = std::fs::read(ca_bundle).with_context(|| ca_bundle.display().to_string())?;
    let user = format!(
        "root:x:0:0:root:/root:/sbin/nologin\npinion:x:{USER}:{USER}:pinion:/home/pinion:/sbin/nologin\n"
    );
    let mut entries = vec![
        Entry::file("usr/bin/pinion", 0o755, bytes),
        Entry::file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates),
        Entry::file("etc/passwd", 0o644, user),
        Entry::file("etc/group", 0o644, format!("root:x:0:\npinion:x:{USER}:\n")),
        // The C library asks these two, which are built into it, and loads no modules.
        Entry::file(
            "etc/nsswitch.conf",
            0o644,
            "passwd: files\ngroup: files\nhosts: files dns\n",
        ),
        Entry::directory("home/pinion", 0o700, USER),
        Entry::directory("workspace", 0o755, USER),
        Entry::directory("tmp", 0o1777, 0),
    ];
    for file in &contents.files {
        if file.path.starts_with("share/doc/") && file.body != Body::Directory {
            let mut file = file.clone();
            file.path = format!("usr/{}", file.path);
            entries.push(file);
        }
    }
    Ok(with_directories(entries))
}

fn descriptor(kind: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{}", sha256(bytes)), "size": bytes.len()})
}

/// Formats seconds since 1970 as RFC 3339 (Howard Hinnant's civil_from_days).
pub(super) fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
