//! Credentials that are found, not configured: the chains that the tools of Amazon and Google follow. Here: finding and
//! keeping them, and signing for AWS. Not here: which requests need them (`llm`).

pub mod aws;
mod cache;
mod fetch;
pub mod google;

pub use cache::{CredentialCache, Key};
pub use fetch::percent;
