//! Opens the store that an address names, if this program was built with its engine.

use anyhow::Result;
#[cfg(not(all(feature = "nats", feature = "s3")))]
use anyhow::bail;
use store::SessionStore;

use crate::address::Address;

/// Connects to the store of an address. `environment` has the variables that begin with `AWS_`; only S3 reads them.
///
/// # Errors
/// When the address is wrong, the program was built without the engine, or the engine cannot be reached.
pub async fn open(text: &str, environment: &[(String, String)]) -> Result<Box<dyn SessionStore>> {
    match Address::parse(text)? {
        #[cfg(feature = "nats")]
        Address::Nats(address) => Ok(Box::new(crate::NatsStore::connect(&address).await?)),
        #[cfg(not(feature = "nats"))]
        Address::Nats(_) => bail!("{}", without("NATS")),
        #[cfg(feature = "s3")]
        Address::S3(address) => {
            // Fails when a provider is there already, which is as good.
            drop(rustls::crypto::ring::default_provider().install_default());
            Ok(Box::new(crate::S3Store::new(&address, environment)?))
        }
        #[cfg(not(feature = "s3"))]
        Address::S3(_) => {
            let _unused = environment;
            bail!("{}", without("S3"))
        }
    }
}

/// The error of a program that was built without an engine.
#[must_use]
pub fn without(engine: &str) -> String {
    format!(
        "This pinion-cluster was built without {engine}. Build it again in a clone of {}: cargo install --locked --path \
         crates/cluster --features nats,s3",
        env!("CARGO_PKG_REPOSITORY")
    )
}
