//! TLS of a web server: certificate and key from PEM files.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What shakes hands with these.
///
/// # Errors
/// When a file cannot be read, holds nothing of the kind, or the key does not fit.
pub(crate) fn acceptor(chain: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(chain)
        .map_err(|error| named(chain, &error))?
        .collect::<Result<_, _>>()
        .map_err(|error| named(chain, &error))?;
    if certificates.is_empty() {
        return Err(named(chain, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, &error))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(io::Error::other)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn named(file: &Path, what: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {what}", file.display()))
}
