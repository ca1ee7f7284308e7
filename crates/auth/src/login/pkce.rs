//! The secrets of one login: proof key and state (RFC 7636, S256).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::LoginError;

/// A proof key; the server gets its hash first and the key itself with the code.
pub(super) struct Proof {
    /// 43 characters.
    pub(super) verifier: String,
    /// Its hash.
    pub(super) challenge: String,
}

impl Proof {
    /// A new one.
    pub(super) fn new() -> Result<Self, LoginError> {
        Ok(Self::of(random::<32>()?))
    }

    fn of(verifier: String) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        Self { verifier, challenge }
    }
}

/// So many random bytes, as text.
pub(super) fn random<const N: usize>() -> Result<String, LoginError> {
    let mut bytes = [0; N];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| LoginError::System("The system gives no random numbers".to_owned()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn pkce_challenge_is_hash_of_verifier() {
        let proof = Proof::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(proof.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn pkce_verifiers_differ() {
        let (first, second) = (Proof::new().unwrap(), Proof::new().unwrap());
        assert_eq!(first.verifier.len(), 43);
        assert_ne!(first.verifier, second.verifier);
    }
}
