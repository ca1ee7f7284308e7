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
    Ok(URL_SAFE_NO_PAD.encode(random_bytes::<N>()?))
}

/// A random UUID (RFC 9562, version 4).
pub(super) fn random_uuid() -> Result<String, LoginError> {
    let bits = u128::from_be_bytes(random_bytes()?);
    let bits = (bits & !(0xf_u128 << 76)) | (4_u128 << 76);
    let bits = (bits & !(0b11_u128 << 62)) | (0b10_u128 << 62);
    let hex = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| hex.get(part).unwrap_or_default());
    Ok(parts.join("-"))
}

fn random_bytes<const N: usize>() -> Result<[u8; N], LoginError> {
    let mut bytes = [0; N];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| LoginError::System("The system gives no random numbers".to_owned()))?;
    Ok(bytes)
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
    fn random_uuids_have_version_and_variant() {
        let uuid = random_uuid().unwrap();
        let parts: Vec<&str> = uuid.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
        assert!(
            parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']),
            "{uuid}"
        );
        assert_ne!(uuid, random_uuid().unwrap());
    }

    #[test]
    fn pkce_verifiers_differ() {
        let (first, second) = (Proof::new().unwrap(), Proof::new().unwrap());
        assert_eq!(first.verifier.len(), 43);
        assert_ne!(first.verifier, second.verifier);
    }
}
