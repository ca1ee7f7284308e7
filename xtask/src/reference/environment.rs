//! `environment.md`: the environment variables that Pinion reads or sets. The table is here; [`undocumented`] finds names in the
//! sources that are not in it, and a test fails if there are any.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use regex::Regex;
use serde_json::Value;

use super::{cell, head, read, scan};

type Variable = (&'static str, &'static str);

/// Headings with the variables below them.
const SECTIONS: [(&str, &[Variable]); 9] = [
    ("Directories and behaviour", GENERAL),
    ("Extensions", EXTENSIONS),
    ("Proxies", PROXIES),
    ("Logs and traces", LOGS),
    ("Local model servers", LOCAL),
    ("Amazon Bedrock", AWS),
    ("Google Vertex AI", GOOGLE),
    ("Azure OpenAI", AZURE),
    ("Variables that Pinion sets for child processes", CHILDREN),
];

const GENERAL: &[Variable] = &[
    (
        "HOME",
        "The home directory. Required unless `PI_CODING_AGENT_DIR` is set.",
    ),
    (
        "PATH",
        "Where shells, Node or Bun, hooks and MCP servers are searched.",
    ),
    (
        "TMPDIR",
        "Directory for temporary files, such as the full output of long commands. Default: `/tmp`.",
    ),
    (
        "PI_CODING_AGENT_DIR",
        "Agent directory with settings, keys, models and sessions. Default: `~/.pi/agent`.",
    ),
    (
        "PI_CODING_AGENT_SESSION_DIR",
        "Directory of the session files. `--session-dir` takes precedence; the setting `sessionDir` does not.",
    ),
    (
        "PI_OFFLINE",
        "`1`, `true` or `yes`: no network access except to models, as with `--offline`.",
    ),
    (
        "PI_CACHE_RETENTION",
        "How long providers cache prompts: `short` (default), `long` or `none`.",
    ),
    (
        "PINION_WEB_TOKEN",
        "Token that clients of `--mode web` must send, without its value on the command line. Tools do not see it.",
    ),
    (
        "PINION_DEBUGGABLE",
        "Any value: let debuggers, profilers and other processes of the user read the memory and descriptors of the agent (Linux). \
         Tools can then write to its standard output.",
    ),
    (
        "PI_RPC_DIALECT",
        "Dialect of the RPC protocol, as `--rpc-dialect`, for callers that cannot change the command line.",
    ),
    (
        "PI_RPC_EMIT_TITLE",
        "`1`, `true`, `yes` or `on`: send window titles of extensions to every client.",
    ),
    (
        "PI_OAUTH_CALLBACK_HOST",
        "Address on which a login waits for the browser. Default: 127.0.0.1.",
    ),
    (
        "KIMI_CODE_OAUTH_HOST",
        "Address of Kimi's login server, for `kimi-coding`. Default: `https://auth.kimi.com`.",
    ),
    (
        "KIMI_OAUTH_HOST",
        "The same, if `KIMI_CODE_OAUTH_HOST` is not set.",
    ),
    ("NO_COLOR", "If set, no colours on a terminal."),
    ("TERM", "`dumb`: no colours on a terminal."),
];

const EXTENSIONS: &[Variable] = &[
    (
        "PINION_EXTENSION_MEMORY",
        "Memory limit of an extension process, in MiB. Default: 3072.",
    ),
    (
        "PINION_EXTENSION_SILENCE",
        "Seconds without any output until an extension process that owes an answer is killed. Default: 10.",
    ),
    (
        "PINION_EXTENSION_HOST",
        "Path of `main.mjs` of the TypeScript host, in place of the built-in one. For development.",
    ),
];

const PROXIES: &[Variable] = &[
    (
        "HTTP_PROXY",
        "Proxy for `http` addresses. Lower case takes precedence, here and below.",
    ),
    ("HTTPS_PROXY", "Proxy for `https` addresses."),
    ("ALL_PROXY", "Proxy for all addresses without one of their own."),
    (
        "NO_PROXY",
        "Hosts that are reached without a proxy, separated by commas.",
    ),
];

const LOGS: &[Variable] = &[
    (
        "PINION_LOG",
        "Log filter: a level (`debug`) or `target=level,...`. The log goes to stderr or to `--log-file`.",
    ),
    ("RUST_LOG", "The same, if `PINION_LOG` is not set."),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "Address of an OpenTelemetry collector. This and the following variables need a build with the feature `otel`.",
    ),
    (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "Address for traces only; takes precedence.",
    ),
    (
        "OTEL_SERVICE_NAME",
        "Name of the service in traces. Default: `pinion`.",
    ),
    (
        "OTEL_RESOURCE_ATTRIBUTES",
        "Further attributes of the resource, as `name=value,...`.",
    ),
    ("OTEL_SDK_DISABLED", "`true`: no traces."),
    ("OTEL_TRACES_EXPORTER", "`none`: no traces."),
];

const LOCAL: &[Variable] = &[
    (
        "OLLAMA_BASE_URL",
        "Address of Ollama. Default: port 11434 of this machine.",
    ),
    ("OLLAMA_HOST", "The same, if `OLLAMA_BASE_URL` is not set."),
    ("LLAMA_CPP_BASE_URL", "Address of llama.cpp. Default: port 8080."),
    ("LMSTUDIO_BASE_URL", "Address of LM Studio. Default: port 1234."),
    ("VLLM_BASE_URL", "Address of vLLM. Default: port 8000."),
    ("LLAMA_API_KEY", "Key for llama.cpp."),
    ("LM_API_TOKEN", "Key for LM Studio."),
    ("VLLM_API_KEY", "Key for vLLM."),
];

const AWS: &[Variable] = &[
    ("AWS_REGION", "Region of the requests."),
    ("AWS_DEFAULT_REGION", "The same, if `AWS_REGION` is not set."),
    ("AWS_PROFILE", "Profile of the configuration files."),
    ("AWS_ACCESS_KEY_ID", "Access key."),
    ("AWS_SECRET_ACCESS_KEY", "Secret of the access key."),
    ("AWS_SESSION_TOKEN", "Token of temporary credentials."),
    ("AWS_CONFIG_FILE", "Configuration file. Default: `~/.aws/config`."),
    (
        "AWS_SHARED_CREDENTIALS_FILE",
        "Credentials file. Default: `~/.aws/credentials`.",
    ),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "File with a web identity token."),
    ("AWS_ROLE_ARN", "Role that the web identity assumes."),
    ("AWS_ROLE_SESSION_NAME", "Name of the role's session."),
    (
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "Path of the container credentials.",
    ),
    (
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "Address of the container credentials.",
    ),
    (
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "Token for the container credentials.",
    ),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "File with that token."),
    (
        "AWS_EC2_METADATA_DISABLED",
        "`true`: do not ask the metadata service of EC2.",
    ),
    (
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "Address of the metadata service.",
    ),
    ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "Address of Bedrock."),
    ("AWS_ENDPOINT_URL_SSO", "Address of the single sign-on service."),
    ("AWS_ENDPOINT_URL_STS", "Address of the token service."),
    (
        "AWS_BEDROCK_SKIP_AUTH",
        "`1`: send requests without a signature, for a gateway that signs them.",
    ),
    (
        "AWS_BEDROCK_FORCE_CACHE",
        "`1`: mark prompts for the cache even if the model's name does not say that it supports one.",
    ),
    ("AWS_BEDROCK_FORCE_HTTP1", "`1`: use HTTP/1.1."),
];

const GOOGLE: &[Variable] = &[
    ("GOOGLE_CLOUD_PROJECT", "Project of the requests."),
    (
        "GCLOUD_PROJECT",
        "The same, if `GOOGLE_CLOUD_PROJECT` is not set.",
    ),
    ("GOOGLE_CLOUD_LOCATION", "Location of the requests."),
    (
        "GOOGLE_APPLICATION_CREDENTIALS",
        "File with application default credentials.",
    ),
    (
        "GOOGLE_CLOUD_QUOTA_PROJECT",
        "Project that the quota is charged to.",
    ),
    (
        "CLOUDSDK_CONFIG",
        "Directory of the `gcloud` configuration. Default: `~/.config/gcloud`.",
    ),
    ("GCE_METADATA_HOST", "Host of the metadata service."),
];

const AZURE: &[Variable] = &[
    ("AZURE_OPENAI_BASE_URL", "Address of the resource."),
    (
        "AZURE_OPENAI_RESOURCE_NAME",
        "Name of the resource, if no address is set.",
    ),
    ("AZURE_OPENAI_API_VERSION", "Version of the API. Default: `v1`."),
    (
        "AZURE_OPENAI_DEPLOYMENT_NAME_MAP",
        "Deployments of models, as `model=deployment,...`.",
    ),
];

const CHILDREN: &[Variable] = &[
    ("PI_CODING_AGENT", "`true` in the environment of tools."),
    ("AI_AGENT", "`pinion` in the environment of tools."),
    ("PI_SESSION_ID", "Id of the session, for tools and hooks."),
    (
        "PI_SESSION_FILE",
        "Path of the session file, for tools and hooks.",
    ),
    ("PI_PROVIDER", "Provider of the current model."),
    ("PI_MODEL", "Id of the current model."),
    (
        "PI_REASONING_LEVEL",
        "Thinking level of the session, for tools and hooks.",
    ),
    ("PI_HOOK_EVENT", "Event for which a hook runs."),
    ("PI_HOOK_TOOL", "Tool that the event is about."),
    (
        "PINION_COMMAND_ID",
        "Marks the processes of a command, so that all of them can be ended.",
    ),
    (
        "PINION_SESSION",
        "Id of the session, for programs of `pinion worker`.",
    ),
    (
        "PINION_CWD",
        "Working directory of the session, for programs of `pinion worker`.",
    ),
    (
        "PINION_HOOK",
        "`prepare` or `save`, for programs of `pinion worker`.",
    ),
];

/// Literals in the sources that look like variables and are none, are documented by another name, or are set for git alone.
const OTHER: [&str; 19] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_VERSION",
    "DBUS_SESSION_BUS_ADDRESS",
    "GIT_ALLOW_PROTOCOL",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_TEMPLATE_DIR",
    "GIT_TERMINAL_PROMPT",
    "GIT_WORK_TREE",
    "MAX_TOKENS",
    "OUT_DIR",
    "PINION_BUILD_COMMIT",
    "PINION_BUILD_DATE",
    "SSH_AUTH_SOCK",
];

fn documented() -> impl Iterator<Item = &'static str> {
    SECTIONS
        .iter()
        .flat_map(|(_, variables)| variables.iter().map(|(name, _)| *name))
}

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let mut out = head("Environment variables");
    out.push_str("An empty variable counts as unset. [Settings](settings.md) and [options](cli.md) cover most of the same ground.\n");
    for (title, variables) in SECTIONS {
        out.push_str(&format!(
            "\n## {title}\n\n| variable | meaning |\n| --- | --- |\n"
        ));
        for (name, doc) in variables {
            out.push_str(&format!("| `{name}` | {} |\n", cell(doc)));
        }
    }
    out.push_str("\n## Keys of providers\n\nThese variables hold the keys of providers. Tools do not see them unless the setting `keepKeysInToolEnv` is true. The page\n[Providers](providers.md) lists the models. The dialect `pi-delta` sends `ANTHROPIC_AUTH_TOKEN` to Anthropic as `Authorization: Bearer`.\n\n| provider | variables |\n| --- | --- |\n");
    for (provider, names) in keys(root)? {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        out.push_str(&format!("| {provider} | {} |\n", names.join(", ")));
    }
    Ok(out)
}

/// Providers of the catalogue with the variables of their keys.
fn keys(root: &Path) -> Result<Vec<(String, Vec<String>)>> {
    let mut out = Vec::new();
    for line in read(root, "crates/models/data/catalogue.jsonl")?.lines() {
        let value: Value = serde_json::from_str(line)?;
        let Some(provider) = value.get("provider").and_then(Value::as_str) else {
            continue;
        };
        let names = value.get("env").and_then(Value::as_array).into_iter().flatten();
        let names = names.filter_map(Value::as_str);
        let token = (provider == models::TOKEN_PROVIDER).then_some(models::TOKEN_VARIABLE);
        let names: Vec<String> = names.chain(token).map(str::to_owned).collect();
        if !names.is_empty() {
            out.push((provider.to_owned(), names));
        }
    }
    ensure!(!out.is_empty(), "the catalogue names no variables");
    out.sort();
    Ok(out)
}

/// Names that look like environment variables in the sources of the program and are not on the page, and names on the page that
/// are not in the sources.
///
/// # Errors
/// When a source cannot be read.
pub fn undocumented(root: &Path) -> Result<Vec<String>> {
    let literal = Regex::new(r#""([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)""#)?;
    let mut found = BTreeSet::new();
    let mut all = String::new();
    for crate_dir in fs::read_dir(root.join("crates"))? {
        let crate_dir = crate_dir?;
        // In `permissions`, names are of variables in command lines that are judged; `client` is not a part of the program.
        if ["permissions", "client"]
            .iter()
            .any(|name| crate_dir.file_name() == *name)
        {
            continue;
        }
        for path in scan::sources(&crate_dir.path().join("src"))? {
            let text = fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(&text);
            found.extend(
                literal
                    .captures_iter(code)
                    .filter_map(|hit| Some(hit.get(1)?.as_str().to_owned())),
            );
            all.push_str(code);
        }
    }
    let from_catalogue: BTreeSet<String> = keys(root)?.into_iter().flat_map(|(_, names)| names).collect();
    let known: BTreeSet<&str> = documented().chain(OTHER).collect();
    let mut wrong: Vec<String> = found
        .into_iter()
        .filter(|name| !known.contains(name.as_str()) && !from_catalogue.contains(name))
        .map(|name| format!("{name} is not on the page"))
        .collect();
    wrong.extend(
        documented()
            .filter(|name| *name != "TMPDIR" && !all.contains(&format!("\"{name}\"")))
            .map(|name| format!("{name} is not in the sources")),
    );
    Ok(wrong)
}
