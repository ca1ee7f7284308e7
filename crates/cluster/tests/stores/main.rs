//! One suite for all stores. Files need nothing. NATS and S3 need the features `nats` and `s3` and the programs `nats-server` and
//! `weed` on PATH, or in the folder that CLUSTER_ENGINES names; a test whose engine is missing prints `skipped:` to stderr, and
//! fails if CLUSTER_ENGINES is set.

#[cfg(any(feature = "nats", feature = "s3"))]
mod engine;
mod files;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "nats", feature = "s3"))]
mod proxy;
#[cfg(feature = "s3")]
mod s3;
mod suite;

/// The tests that every store passes. `$place` makes a fresh place, or none if the engine is not installed.
macro_rules! tests_of {
    ($place:path: $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() -> anyhow::Result<()> {
                crate::suite::run(async {
                    match $place().await? {
                        Some(place) => crate::suite::$name(&place).await,
                        None => Ok(()),
                    }
                })
            }
        )*
    };
}
pub(crate) use tests_of;

/// All tests of the suite, for a store in one module.
macro_rules! whole_suite {
    ($place:path) => {
        crate::tests_of!($place:
            appended_lines_load_byte_for_byte,
            wrong_position_is_refused,
            racing_writers_win_each_position_once,
            load_begins_at_any_position,
            long_session_loads_in_pieces,
            list_names_sessions_with_odd_ids,
            deleted_session_refuses_its_writer,
            watch_delivers_past_and_new_lines,
            large_lines_survive,
            lines_survive_engine_restart,
            copies_append_only_what_is_missing,
        );
    };
}
pub(crate) use whole_suite;
