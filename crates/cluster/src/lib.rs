//! Session stores that several machines share, and what the program `pinion-cluster` does with them.
//!
//! What lives here: the stores ([`FileStore`], `NatsStore`, `S3Store`), their addresses ([`address`]), and copying between them
//! ([`copy`]); with NATS, the `worker` that runs sessions and the `gateway` through which clients reach them. What does not: the trait they implement and the session files themselves (`store`), sessions, models, tools.
//! The program `pinion` does not depend on this crate: it starts `pinion-cluster`, so that nothing here costs it anything.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod address;
#[cfg(feature = "nats")]
mod answer;
#[cfg(feature = "nats")]
mod bus;
pub mod copy;
mod files;
#[cfg(feature = "nats")]
pub mod gateway;
pub mod limits;
#[cfg(any(feature = "nats", feature = "s3"))]
mod lines;
#[cfg(feature = "nats")]
mod nats;
mod open;
#[cfg(feature = "s3")]
mod s3;

#[cfg(feature = "nats")]
pub mod worker;

pub use files::FileStore;
#[cfg(feature = "nats")]
pub use nats::NatsStore;
pub use open::{open, without};
#[cfg(feature = "s3")]
pub use s3::S3Store;
