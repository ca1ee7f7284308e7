//! Which dialect the command line and the surroundings name (dialects.md 6, rules 1 to 3). What the client shows later is
//! `serve`'s business.

use std::ffi::OsStr;
use std::path::Path;

use wire::Dialect;

use crate::args::Args;
use crate::environment::Environment;

/// The variable with the dialect, for users who cannot change the command line.
const VARIABLE: &str = "PI_RPC_DIALECT";

/// The dialect that this process begins with, and a word about the variable if it names none.
pub(crate) fn of(args: &Args, env: &Environment) -> (Dialect, Option<String>) {
    choose(args, env.get(VARIABLE), std::env::args_os().next().as_deref())
}

/// The dialect to begin with, and a word about a variable that names none. `program` is how we were called.
fn choose(args: &Args, variable: Option<&str>, program: Option<&OsStr>) -> (Dialect, Option<String>) {
    let named = variable.and_then(Dialect::parse);
    let warning = variable
        .filter(|_| named.is_none())
        .map(|value| format!("{VARIABLE}={value} is ignored. Dialects: {}", Dialect::names()));
    let dialect = args
        .rpc_dialect
        .or(named)
        .or_else(|| by_program(program, args.vendor))
        .or(args.vendor);
    (dialect.unwrap_or_default(), warning)
}

/// A link with the name of another agent stands for it. Only today's omp has options of its own.
fn by_program(program: Option<&OsStr>, vendor: Option<Dialect>) -> Option<Dialect> {
    match Path::new(program?).file_name()?.to_str()? {
        "omp" if vendor.is_some() => Some(Dialect::OmpNow),
        "omp" => Some(Dialect::Omp),
        "xcsh" => Some(Dialect::Xcsh),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flags: &[&str], variable: Option<&str>, program: &str) -> Dialect {
        let words: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let args = crate::args::parse("pinion", &words).unwrap();
        choose(&args, variable, Some(OsStr::new(program))).0
    }

    #[test]
    fn dialect_sources_have_precedence() {
        assert_eq!(chosen(&[], None, "/usr/bin/pinion"), Dialect::Auto);
        assert_eq!(chosen(&[], None, "pi"), Dialect::Auto);
        assert_eq!(chosen(&["--no-title"], None, "pinion"), Dialect::Xcsh);
        assert_eq!(chosen(&["--no-rules"], None, "pinion"), Dialect::Xcsh);
        assert_eq!(chosen(&["--no-pty"], None, "pinion"), Dialect::Xcsh);
        let session = ["--provider-session-id", "s1"];
        assert_eq!(chosen(&session, None, "pinion"), Dialect::Xcsh);
        assert_eq!(chosen(&["--mode", "rpc-ui"], None, "pinion"), Dialect::OmpNow);
        assert_eq!(chosen(&["--no-title"], None, "/opt/omp"), Dialect::OmpNow);
        assert_eq!(chosen(&[], None, "/opt/omp"), Dialect::Omp);
        assert_eq!(chosen(&["--mode", "rpc-ui"], None, "/opt/xcsh"), Dialect::Xcsh);
        assert_eq!(chosen(&["--no-title"], Some("hooks"), "/opt/omp"), Dialect::Hooks);
        let flag = ["--rpc-dialect", "early"];
        assert_eq!(chosen(&flag, Some("hooks"), "/opt/omp"), Dialect::Early);
        assert_eq!(
            chosen(&["--rpc-dialect", "auto"], None, "/opt/omp"),
            Dialect::Auto
        );
    }

    #[test]
    fn unknown_dialect_variable_is_reported_and_ignored() {
        let (dialect, warning) = choose(&Args::default(), Some("klingon"), Some(OsStr::new("xcsh")));
        assert_eq!(dialect, Dialect::Xcsh);
        assert!(warning.unwrap().contains("PI_RPC_DIALECT=klingon is ignored"));
        assert_eq!(choose(&Args::default(), Some("web"), None), (Dialect::Web, None));
    }
}
