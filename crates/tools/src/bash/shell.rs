//! Which shell runs a command, with which arguments and environment (pi-core.md 5.4). Starts nothing itself.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::config::ToolsConfig;
use crate::error::ToolsError;
use process::SpawnSpec;

/// A shell with its environment, found out once.
#[derive(Debug)]
pub(crate) struct Shell {
    custom: Option<PathBuf>,
    found: PathBuf,
    prefix: Option<String>,
    env: Vec<(OsString, OsString)>,
}

impl Shell {
    /// Settles what the configuration leaves open.
    pub(crate) fn new(config: &ToolsConfig) -> Self {
        let path = config
            .env
            .iter()
            .find(|(name, _)| name == "PATH")
            .map(|(_, value)| value.clone());
        let mut env = config.env.clone();
        if let Some(bin) = &config.bin_dir {
            env.retain(|(name, _)| name != "PATH");
            env.push(("PATH".into(), prepend(bin, path.as_deref())));
        }
        let standard = PathBuf::from("/bin/bash");
        let found = if standard.exists() {
            standard
        } else {
            search("bash", path.as_deref()).unwrap_or_else(|| PathBuf::from("/bin/sh"))
        };
        Self {
            custom: config.shell_path.clone(),
            found,
            prefix: config.shell_command_prefix.clone(),
            env,
        }
    }

    /// What to spawn for a command line.
    pub(crate) fn spec(
        &self,
        command: &str,
        cwd: &Path,
        extra: &[(OsString, OsString)],
    ) -> Result<SpawnSpec, ToolsError> {
        let program = match &self.custom {
            Some(custom) if !custom.exists() => return Err(ToolsError::ShellMissing(custom.clone())),
            Some(custom) => custom,
            None => &self.found,
        };
        if !cwd.is_dir() {
            return Err(ToolsError::CwdMissing(cwd.to_path_buf()));
        }
        let line = match &self.prefix {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{command}"),
            _ => command.to_owned(),
        };
        let mut env: Vec<_> = self
            .env
            .iter()
            .filter(|(name, _)| !extra.iter().any(|(n, _)| n == name))
            .cloned()
            .collect();
        env.extend_from_slice(extra);
        Ok(SpawnSpec {
            program: program.clone().into_os_string(),
            args: vec!["-c".into(), line.into()],
            env,
            cwd: cwd.as_os_str().to_owned(),
        })
    }
}

fn prepend(bin: &Path, path: Option<&OsStr>) -> OsString {
    let mut joined = bin.as_os_str().to_owned();
    if let Some(path) = path.filter(|path| !path.is_empty()) {
        joined.push(":");
        joined.push(path);
    }
    joined
}

fn search(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_spec_has_prefix_environment_and_errors() {
        let mut config = ToolsConfig {
            bin_dir: Some("/agent/bin".into()),
            shell_command_prefix: Some("X=1".into()),
            env: vec![("PATH".into(), "/bin".into()), ("A".into(), "1".into())],
            ..ToolsConfig::default()
        };
        let spec = Shell::new(&config)
            .spec("echo", Path::new("/"), &[("A".into(), "2".into())])
            .unwrap();
        assert_eq!(spec.args, ["-c", "X=1\necho"]);
        let env: Vec<_> = spec
            .env
            .iter()
            .map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap()))
            .collect();
        assert_eq!(env, [("PATH", "/agent/bin:/bin"), ("A", "2")]);
        let missing = Shell::new(&config)
            .spec("x", Path::new("/no/such"), &[])
            .unwrap_err()
            .to_string();
        assert!(missing.starts_with("Working directory does not exist: /no/such\n"));
        config.shell_path = Some("/no/shell".into());
        let missing = Shell::new(&config)
            .spec("x", Path::new("/"), &[])
            .unwrap_err()
            .to_string();
        assert_eq!(missing, "Custom shell path not found: /no/shell");
    }
}
