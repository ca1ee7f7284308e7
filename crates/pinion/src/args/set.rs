//! Setters of options that check or convert their value. An unusable value is an error, except for an unknown thinking
//! level: newer clients of pi know more levels, and the level protects nothing. The tables that name the options are `flags`,
//! `commands` and `foreign`.

use wire::changes::Checkpoints;
use wire::state::{Durability, PermissionMode, SandboxMode};
use wire::{Dialect, ThinkingLevel};

use super::error::UsageError;
use super::{Args, Command, Mode, SESSION_ID_BYTES};

pub(super) fn set_mode(args: &mut Args, value: String) -> Result<(), UsageError> {
    let Some(mode) = Mode::parse(&value) else {
        return Err(UsageError::InvalidValue {
            flag: "--mode",
            value,
            wanted: format!("use {}", Mode::WORDS).into(),
        });
    };
    if value == "rpc-ui" {
        args.vendor = Some(Dialect::OmpNow);
    }
    args.mode = Some(mode);
    Ok(())
}

/// `--attach`: another command behind an option, so that clients which start `--mode rpc` need one more argument only.
pub(super) fn set_attach(args: &mut Args, url: String) -> Result<(), UsageError> {
    args.command = Some(Command::Attach);
    args.messages.insert(0, url);
    Ok(())
}

/// `--nats`: as `--attach`, for all sessions.
pub(super) fn set_nats(args: &mut Args, url: String) -> Result<(), UsageError> {
    if args.command == Some(Command::Acp) {
        args.mode = Some(Mode::Acp);
    }
    args.command = Some(Command::Gateway);
    args.messages.insert(0, url);
    Ok(())
}

/// An option of `worker`, which goes to another program as it is.
pub(super) fn pass_on(args: &mut Args, option: &str, value: String) {
    args.messages.extend([option.to_owned(), value]);
}

pub(super) fn set_print(args: &mut Args, value: Option<String>) {
    args.print = true;
    args.messages.extend(value);
}

pub(super) fn set_dialect(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.rpc_dialect = Some(dialect("--rpc-dialect", value)?);
    Ok(())
}

pub(super) fn set_schema_dialect(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.schema_dialect = Some(dialect("--dialect", value)?);
    Ok(())
}

fn dialect(flag: &'static str, value: String) -> Result<Dialect, UsageError> {
    Dialect::parse(&value).ok_or_else(|| UsageError::InvalidValue {
        flag,
        value,
        wanted: format!("use one of {}", Dialect::names()).into(),
    })
}

/// An option of omp and xcsh. xcsh's client is the one known to give such options by itself.
pub(super) fn set_vendor(args: &mut Args) {
    args.vendor.get_or_insert(Dialect::Xcsh);
}

pub(super) fn set_no_rules(args: &mut Args) {
    args.foreign.no_rules = true;
    set_vendor(args);
}

/// `--no-ui`, which only today's oh-my-pi has.
pub(super) fn set_no_ui(args: &mut Args) {
    args.foreign.no_ui = true;
    args.vendor = Some(Dialect::OmpNow);
}

pub(super) fn set_permission_mode(args: &mut Args, value: String) -> Result<(), UsageError> {
    let Some(mode) = PermissionMode::parse(&value) else {
        return Err(UsageError::InvalidValue {
            flag: "--permission-mode",
            value,
            wanted: "use off, auto, ask or read-only".into(),
        });
    };
    args.permission_mode = Some(mode);
    Ok(())
}

pub(super) fn set_durability(args: &mut Args, value: String) -> Result<(), UsageError> {
    let Some(durability) = Durability::parse(&value) else {
        return Err(UsageError::InvalidValue {
            flag: "--durability",
            value,
            wanted: "use process or disk".into(),
        });
    };
    args.storage.durability = Some(durability);
    Ok(())
}

pub(super) fn set_max_turns(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.run.limits.max_turns = Some(at_least("--max-turns", value, 1)?);
    Ok(())
}

pub(super) fn set_max_tool_calls(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.run.limits.max_tool_calls = Some(at_least("--max-tool-calls", value, 0)?);
    Ok(())
}

pub(super) fn set_max_tokens(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.run.limits.max_tokens = Some(at_least("--max-tokens", value, 1)?);
    Ok(())
}

pub(super) fn set_max_time(args: &mut Args, value: String) -> Result<(), UsageError> {
    // oh-my-pi also takes `90s`, `10m` and `1h`.
    let units = [('s', 1), ('m', 60), ('h', 3_600)];
    let found = units
        .iter()
        .find_map(|(unit, seconds)| Some((value.strip_suffix(*unit)?, *seconds)));
    let (number, factor) = found.unwrap_or((value.as_str(), 1_u64));
    let seconds = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor));
    let Some(seconds) = seconds.filter(|seconds| *seconds > 0) else {
        return Err(UsageError::InvalidValue {
            flag: "--max-time",
            value,
            wanted: "use a whole number of seconds above 0, or a number with the unit s, m or h".into(),
        });
    };
    args.run.limits.max_seconds = Some(seconds);
    Ok(())
}

pub(super) fn set_max_repeats(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.run.limits.max_repeats = Some(at_least("--max-repeats", value, 2)?);
    Ok(())
}

pub(super) fn set_max_cost(args: &mut Args, value: String) -> Result<(), UsageError> {
    let cost = value.parse::<f64>().ok();
    let Some(cost) = cost.filter(|cost| cost.is_finite() && *cost > 0.0) else {
        return Err(UsageError::InvalidValue {
            flag: "--max-cost",
            value,
            wanted: "use a number of US dollars above 0".into(),
        });
    };
    args.run.limits.max_cost = Some(cost);
    Ok(())
}

fn at_least(flag: &'static str, value: String, least: u64) -> Result<u64, UsageError> {
    let count = value.parse::<u64>().ok().filter(|count| *count >= least);
    count.ok_or_else(|| UsageError::InvalidValue {
        flag,
        value,
        wanted: format!("use a whole number of at least {least}").into(),
    })
}

pub(super) fn set_checkpoints(args: &mut Args, value: String) -> Result<(), UsageError> {
    let Some(checkpoints) = Checkpoints::parse(&value) else {
        return Err(UsageError::InvalidValue {
            flag: "--checkpoints",
            value,
            wanted: "use off, files or worktree".into(),
        });
    };
    args.storage.checkpoints = Some(checkpoints);
    Ok(())
}

pub(super) fn set_sandbox(args: &mut Args, value: String) -> Result<(), UsageError> {
    let Some(mode) = SandboxMode::parse(&value) else {
        return Err(UsageError::InvalidValue {
            flag: "--sandbox",
            value,
            wanted: "use off, workspace-write or read-only".into(),
        });
    };
    args.sandbox.mode = Some(mode);
    Ok(())
}

pub(super) fn set_thinking(args: &mut Args, value: String) -> Result<(), UsageError> {
    match ThinkingLevel::parse(&value) {
        Some(level) => args.thinking = Some(level),
        None => {
            let levels: Vec<&str> = ThinkingLevel::ALL.iter().map(|level| level.as_str()).collect();
            let levels = levels.join(", ");
            args.warnings.push(format!(
                "Unknown thinking level \"{value}\" is ignored. Levels: {levels}"
            ));
        }
    }
    Ok(())
}

fn list(value: &str) -> Vec<String> {
    value
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(str::to_owned)
        .collect()
}

pub(super) fn set_models(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.models = list(&value);
    Ok(())
}

/// Names, or only changes: of a mixture, pi says that it cannot be used.
pub(super) fn set_tools(args: &mut Args, value: String) -> Result<(), UsageError> {
    let tools = list(&value);
    let changes = tools.iter().filter(|item| item.starts_with(['+', '-'])).count();
    if changes > 0 && changes < tools.len() {
        return Err(UsageError::InvalidValue {
            flag: "--tools",
            value,
            wanted: "tool names cannot be mixed with +name or -name entries".into(),
        });
    }
    args.tools = Some(tools);
    Ok(())
}

pub(super) fn exclude_tools(args: &mut Args, value: String) -> Result<(), UsageError> {
    args.exclude_tools.extend(list(&value));
    Ok(())
}

/// Letters, digits and `._-`, with a letter or digit at both ends (pi-1.5-delta.md 6): it becomes part of a file name.
pub(super) fn set_session_id(args: &mut Args, value: String) -> Result<(), UsageError> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let mut ends = value.chars();
    let first = ends.next();
    let last = ends.next_back().or(first);
    if !(value.chars().all(inside) && end(first) && end(last) && value.len() <= SESSION_ID_BYTES) {
        let wanted = "use at most 128 letters, digits, '.', '_' and '-', with a letter or digit at both ends";
        return Err(UsageError::InvalidValue {
            flag: "--session-id",
            value,
            wanted: wanted.into(),
        });
    }
    args.session_id = Some(value);
    Ok(())
}

pub(super) fn set_port(args: &mut Args, value: String) -> Result<(), UsageError> {
    let Ok(port) = value.parse() else {
        return Err(UsageError::InvalidValue {
            flag: "--port",
            value,
            wanted: "use a number from 0 to 65535; 0 selects a free port".into(),
        });
    };
    args.port = Some(port);
    Ok(())
}

pub(super) fn set_max_open_sessions(args: &mut Args, value: String) -> Result<(), UsageError> {
    match value.parse::<usize>() {
        Ok(most) if most > 0 => {
            args.max_open_sessions = Some(most);
            Ok(())
        }
        _ => Err(UsageError::InvalidValue {
            flag: "--max-open-sessions",
            value,
            wanted: "use a whole number above 0".into(),
        }),
    }
}

pub(super) fn set_replay_speed(args: &mut Args, value: String) -> Result<(), UsageError> {
    match value.parse::<f64>() {
        Ok(speed) if speed.is_finite() && speed > 0.0 => {
            args.replay_speed = Some(speed);
            Ok(())
        }
        _ => Err(UsageError::InvalidValue {
            flag: "--replay-speed",
            value,
            wanted: "use a number above 0".into(),
        }),
    }
}

pub(super) fn set_provider_session(args: &mut Args, value: String) -> Result<(), UsageError> {
    set_vendor(args);
    args.provider_session_id = Some(value);
    Ok(())
}
