//! Work that blocks, such as reading a disk or asking a local server, away from the thread that serves all sessions.

/// Runs `work` on a blocking thread and returns its result. A panic of `work` continues in the caller.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime cancels blocking work only when the process ends.
        Err(_) => std::future::pending().await,
    }
}
