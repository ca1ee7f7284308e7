//! Signature Version 4 of a request. Whose keys sign is decided in `aws`.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as sign_request};
use aws_sigv4::sign::v4;

use super::Keys;

/// The request parts to sign.
#[derive(Debug)]
pub struct Job<'a> {
    /// HTTP method.
    pub method: &'a str,
    /// The address; its path is in percent form already.
    pub url: &'a str,
    /// Headers that are covered; the host is always.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body of the request.
    pub body: &'a [u8],
    /// The service's name.
    pub service: &'a str,
    /// The region of the service.
    pub region: &'a str,
    /// When it is signed.
    pub time: SystemTime,
}

/// The headers that make the request a signed one.
///
/// # Errors
/// When an address or a key cannot be signed.
pub fn sign(job: &Job<'_>, keys: &Keys) -> Result<Vec<(String, String)>, String> {
    let token = keys.token.as_ref().map(|token| token.expose().to_owned());
    let identity = Credentials::new(keys.id.expose(), keys.secret.expose(), token, None, "pinion").into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(job.region)
        .name(job.service)
        .time(job.time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| failed())?
        .into();
    let body = SignableBody::Bytes(job.body);
    let request = SignableRequest::new(job.method, job.url, job.headers.iter().copied(), body);
    let signed = sign_request(request.map_err(|_| failed())?, &params).map_err(|_| failed())?;
    let (instructions, _) = signed.into_parts();
    let (headers, _) = instructions.into_parts();
    Ok(headers
        .iter()
        .map(|header| (header.name().to_owned(), header.value().to_owned()))
        .collect())
}

/// The causes name parts of the request; the address is all that can be wrong with it.
fn failed() -> String {
    "The request to AWS cannot be signed".to_owned()
}
