//! Logins as requests use them, against the server that the tests of `auth` have.

#[path = "../../../../auth/src/login/tests/fake.rs"]
#[expect(dead_code, reason = "the tests of logins use more of it")]
mod fake;
mod renewing;

use std::time::{SystemTime, UNIX_EPOCH};

use auth::login::Endpoints;

use self::fake::{Fake, Home, Seen, jwt};
use crate::ClientConfig;

/// A client with the file of `home` at the server `fake`.
fn config(home: &Home, fake: &Fake) -> ClientConfig {
    ClientConfig {
        auth_file: Some(home.file.clone()),
        endpoints: fake.endpoints(),
        ..ClientConfig::default()
    }
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}
