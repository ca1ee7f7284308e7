//! A throw-away home, agent directory and working directory whose `models.json` points at a scripted server. The
//! files are laid out as the pi family looks for them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driver::AgentConfig;
use crate::error::{Error, Result};

/// Temporary directories `home`, `agent`, `cwd` and `tmp` next to each other; removed when dropped.
#[derive(Debug)]
pub struct Workspace {
    root: TempDir,
    url: String,
}

impl Workspace {
    /// Makes the directories, `models.json` with the providers of [`default_models`], and `settings.json` with the
    /// provider libraries' own retries switched off.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn new(url: &str) -> Result<Self> {
        let root = tempfile::Builder::new()
            .prefix("testkit-")
            .tempdir()
            .map_err(Error::io("workspace"))?;
        let workspace = Self {
            root,
            url: url.to_owned(),
        };
        for dir in [
            workspace.home(),
            workspace.agent_dir(),
            workspace.cwd(),
            workspace.tmp(),
        ] {
            std::fs::create_dir(dir).map_err(Error::io("workspace"))?;
        }
        workspace.write_models(&default_models(url))?;
        workspace.write_settings(&json!({"retry": {"provider": {"maxRetries": 0}}}))?;
        Ok(workspace)
    }

    /// The directory above all the others.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// `HOME`.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// `PI_CODING_AGENT_DIR`.
    #[must_use]
    pub fn agent_dir(&self) -> PathBuf {
        self.root().join("agent")
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        self.root().join("cwd")
    }

    /// `TMPDIR`.
    #[must_use]
    pub fn tmp(&self) -> PathBuf {
        self.root().join("tmp")
    }

    /// Replaces `models.json`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_models(&self, models: &Value) -> Result<()> {
        self.write(self.agent_dir().join("models.json"), models.to_string())
    }

    /// Replaces `settings.json`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_settings(&self, settings: &Value) -> Result<()> {
        self.write(self.agent_dir().join("settings.json"), settings.to_string())
    }

    /// Writes a file, given absolute or relative to the working directory, and the directories above it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
        let path = self.cwd().join(path);
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(Error::io("workspace"))?;
        }
        std::fs::write(path, content).map_err(Error::io("workspace"))
    }

    /// The environment an agent gets here, without `PATH`.
    #[must_use]
    pub fn env(&self) -> BTreeMap<OsString, OsString> {
        let pairs: [(&str, OsString); 9] = [
            ("HOME", self.home().into()),
            ("LANG", "C.UTF-8".into()),
            ("TZ", "UTC".into()),
            ("TMPDIR", self.tmp().into()),
            ("PI_CODING_AGENT_DIR", self.agent_dir().into()),
            ("PI_OFFLINE", "1".into()),
            ("PI_TELEMETRY", "0".into()),
            ("TERM", "dumb".into()),
            ("CONFORMANCE_MOCK", self.url.clone().into()),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect()
    }

    /// A configuration that runs `program` here.
    #[must_use]
    pub fn agent(&self, program: impl Into<PathBuf>) -> AgentConfig {
        let mut config = AgentConfig::new(program).cwd(self.cwd());
        config.env = self.env();
        config
    }
}

/// A `models.json` with one provider for each protocol, all served by the server at `url`: `mock-anthropic`
/// (`claude-mock`, `claude-plain`), `mock-openai` (`gpt-mock`), `mock-responses` (`resp-mock`) and `mock-google`
/// (`gemini-mock`). Sizes are tokens, costs dollars for a million of them.
#[must_use]
pub fn default_models(url: &str) -> Value {
    let key = "mock-key";
    let both = json!(["text", "image"]);
    let cost =
        |i: f64, o: f64, r: f64, w: f64| json!({"input": i, "output": o, "cacheRead": r, "cacheWrite": w});
    json!({"providers": {
        "mock-anthropic": {
            "baseUrl": format!("{url}/anthropic"), "api": "anthropic-messages", "apiKey": key,
            "models": [
                {"id": "claude-mock", "name": "Claude Mock", "reasoning": true, "input": both,
                 "contextWindow": 200_000, "maxTokens": 32_000, "cost": cost(3.0, 15.0, 0.3, 3.75)},
                {"id": "claude-plain", "name": "Claude Plain", "reasoning": false, "input": ["text"],
                 "contextWindow": 100_000, "maxTokens": 4096, "cost": cost(1.0, 2.0, 0.1, 0.5)},
            ],
        },
        "mock-openai": {
            "baseUrl": format!("{url}/openai/v1"), "api": "openai-completions", "apiKey": key,
            "models": [
                {"id": "gpt-mock", "name": "GPT Mock", "reasoning": true, "input": both,
                 "contextWindow": 128_000, "maxTokens": 16_384, "cost": cost(2.0, 8.0, 0.5, 0.0)},
            ],
        },
        "mock-responses": {
            "baseUrl": format!("{url}/responses/v1"), "api": "openai-responses", "apiKey": key,
            "models": [
                {"id": "resp-mock", "name": "Responses Mock", "reasoning": true, "input": both,
                 "contextWindow": 400_000, "maxTokens": 128_000, "thinkingLevelMap": {"xhigh": "xhigh"},
                 "cost": cost(1.25, 10.0, 0.125, 0.0)},
            ],
        },
        "mock-google": {
            "baseUrl": format!("{url}/google/v1beta"), "api": "google-generative-ai", "apiKey": key,
            "models": [
                {"id": "gemini-mock", "name": "Gemini Mock", "reasoning": true, "input": both,
                 "contextWindow": 1_000_000, "maxTokens": 65_536, "cost": cost(1.0, 4.0, 0.25, 0.0)},
            ],
        },
    }})
}
