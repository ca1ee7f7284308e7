//! What each package system calls a target.

use anyhow::{Result, bail};

/// A target that releases are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// The triple of rustc.
    pub(crate) triple: &'static str,
    arch: Arch,
    system: System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arch {
    X64,
    Arm64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum System {
    Glibc,
    Musl,
    Mac,
}

const TARGETS: [Target; 6] = [
    Target::new("x86_64-unknown-linux-gnu", Arch::X64, System::Glibc),
    Target::new("aarch64-unknown-linux-gnu", Arch::Arm64, System::Glibc),
    Target::new("x86_64-unknown-linux-musl", Arch::X64, System::Musl),
    Target::new("aarch64-unknown-linux-musl", Arch::Arm64, System::Musl),
    Target::new("x86_64-apple-darwin", Arch::X64, System::Mac),
    Target::new("aarch64-apple-darwin", Arch::Arm64, System::Mac),
];

impl Target {
    const fn new(triple: &'static str, arch: Arch, system: System) -> Self {
        Self { triple, arch, system }
    }

    /// Finds a target by its triple.
    pub(crate) fn parse(triple: &str) -> Result<Self> {
        let Some(target) = TARGETS.into_iter().find(|target| target.triple == triple) else {
            let known = TARGETS.map(|target| target.triple).join(", ");
            bail!("there are no packages for the target {triple}, only for {known}");
        };
        Ok(target)
    }

    /// Returns all targets.
    pub(crate) fn all() -> [Self; 6] {
        TARGETS
    }

    pub(crate) fn is_linux(self) -> bool {
        self.system != System::Mac
    }

    /// Debian's architecture, for programs that use Debian's C library.
    pub(crate) fn debian(self) -> Option<&'static str> {
        match (self.system, self.arch) {
            (System::Glibc, Arch::X64) => Some("amd64"),
            (System::Glibc, Arch::Arm64) => Some("arm64"),
            _ => None,
        }
    }

    /// The architecture in an OCI image.
    pub(crate) fn oci(self) -> &'static str {
        match self.arch {
            Arch::X64 => "amd64",
            Arch::Arm64 => "arm64",
        }
    }

    /// The suffix of the npm package of this target.
    pub(crate) fn npm(self) -> String {
        let (os, cpu) = (self.npm_os(), self.npm_cpu());
        let libc = if self.system == System::Musl { "-musl" } else { "" };
        format!("{os}-{cpu}{libc}")
    }

    /// `os` of `package.json`.
    pub(crate) fn npm_os(self) -> &'static str {
        if self.is_linux() { "linux" } else { "darwin" }
    }

    /// `cpu` of `package.json`.
    pub(crate) fn npm_cpu(self) -> &'static str {
        match self.arch {
            Arch::X64 => "x64",
            Arch::Arm64 => "arm64",
        }
    }

    /// `libc` of `package.json`.
    pub(crate) fn npm_libc(self) -> Option<&'static str> {
        match self.system {
            System::Glibc => Some("glibc"),
            System::Musl => Some("musl"),
            System::Mac => None,
        }
    }

    /// The platform tag of a wheel whose program needs this version of glibc (PEP 600, 656).
    pub(crate) fn wheel(self, glibc: Option<(u32, u32)>) -> String {
        let linux = match self.arch {
            Arch::X64 => "x86_64",
            Arch::Arm64 => "aarch64",
        };
        match (self.system, glibc) {
            // pip knows no lower glibc than 2.5 in this scheme.
            (System::Glibc, Some((major, minor))) => format!("manylinux_{major}_{}_{linux}", minor.max(5)),
            (System::Glibc, None) => format!("manylinux_2_5_{linux}"),
            (System::Musl, _) => format!("musllinux_1_2_{linux}"),
            (System::Mac, _) if self.arch == Arch::Arm64 => "macosx_11_0_arm64".to_owned(),
            (System::Mac, _) => "macosx_10_12_x86_64".to_owned(),
        }
    }
}
