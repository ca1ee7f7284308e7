//! Tests of this crate, one file per module.

mod codec;
mod commands;
mod dialects;
mod encode;
mod newest_omp;
mod parse;
mod prompts;
mod stdin;
mod writer;

/// Runs a future as the binary does: on one thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
