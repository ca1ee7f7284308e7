//! Addresses of stores: `nats://HOST` and `s3://BUCKET`, with a prefix and options. Nothing is connected here.

use std::fmt;
use std::path::PathBuf;

/// The first word of all subjects, streams and objects unless the address has another one.
pub const DEFAULT_PREFIX: &str = "pinion";

/// Where sessions are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// NATS JetStream.
    Nats(NatsAddress),
    /// S3, or a server that speaks its protocol.
    S3(S3Address),
}

/// `nats://[USER:PASSWORD@]HOST[:PORT][,...][/PREFIX][?replicas=N&creds=FILE]`, or `tls://` for TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct NatsAddress {
    /// Servers of one cluster, each as a URL without a login.
    pub servers: Vec<String>,
    /// Login of all servers.
    pub login: Option<NatsLogin>,
    /// First word of the subjects; sessions of different prefixes are separate.
    pub prefix: String,
    /// Copies of the stream if it has to be made.
    pub replicas: usize,
    /// A credentials file of NATS.
    pub credentials: Option<PathBuf>,
}

/// How to log in to NATS, as the part of the address before `@` says.
#[derive(Clone, PartialEq, Eq)]
pub enum NatsLogin {
    /// `USER:PASSWORD@`.
    User(String, String),
    /// `TOKEN@`.
    Token(String),
}

/// Leaves out the login.
impl fmt::Debug for NatsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsAddress")
            .field("servers", &self.servers)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

/// `s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]`. Keys come from the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Address {
    /// The bucket, which must exist.
    pub bucket: String,
    /// Beginning of the names of all objects.
    pub prefix: String,
    /// URL of the server; none for Amazon's own.
    pub endpoint: Option<String>,
    /// The region; none for the one of the environment.
    pub region: Option<String>,
}

/// Why an address was refused. Does not contain the address, which may have a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}. Addresses look like nats://HOST:4222 or s3://BUCKET/PREFIX?endpoint=https://HOST",
            self.0
        )
    }
}

impl std::error::Error for AddressError {}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// When the scheme is unknown, the host or the bucket is missing, or an option is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let refused = |reason: &str| AddressError(reason.to_owned());
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| refused("the store's address has no scheme"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let options = options(query)?;
        if authority.is_empty() {
            return Err(refused("the store's address has no host or bucket"));
        }
        let prefix = match path.trim_end_matches('/') {
            "" => DEFAULT_PREFIX.to_owned(),
            prefix => prefix.to_owned(),
        };
        let is_word = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        match scheme {
            "nats" | "tls" => {
                if !is_word(&prefix) {
                    return Err(refused("the prefix may have letters, digits, - and _ only"));
                }
                nats(scheme, authority, prefix, options)
            }
            "s3" => {
                if !prefix.split('/').all(is_word) {
                    return Err(refused(
                        "the prefix may have letters, digits, -, _ and single / only",
                    ));
                }
                s3(authority, prefix, options)
            }
            other => Err(AddressError(format!("unknown scheme {other}"))),
        }
    }
}

fn nats(
    scheme: &str,
    authority: &str,
    prefix: String,
    options: Vec<(String, String)>,
) -> Result<Address, AddressError> {
    let (mut servers, mut login) = (Vec::new(), None);
    for server in authority.split(',') {
        let (own, host) = match server.rsplit_once('@') {
            Some((own, host)) => (Some(nats_login(own)?), host),
            None => (None, server),
        };
        // The client logs in to all servers in the same way.
        if own.is_some() && login.is_some() && own != login {
            return Err(AddressError(
                "the servers of a NATS address have different logins".to_owned(),
            ));
        }
        login = login.or(own);
        servers.push(format!("{scheme}://{host}"));
    }
    let mut address = NatsAddress {
        servers,
        login,
        prefix,
        replicas: 1,
        credentials: None,
    };
    for (name, value) in options {
        match name.as_str() {
            "replicas" => {
                let number = value.parse().ok().filter(|number| (1..=5).contains(number));
                address.replicas =
                    number.ok_or_else(|| AddressError("replicas must be 1 to 5".to_owned()))?;
            }
            "creds" => address.credentials = Some(value.into()),
            other => return Err(AddressError(format!("unknown option {other} of a NATS address"))),
        }
    }
    Ok(Address::Nats(address))
}

fn nats_login(text: &str) -> Result<NatsLogin, AddressError> {
    let word = |text| decode(text).ok_or_else(|| AddressError("bad login of a NATS address".to_owned()));
    Ok(match text.split_once(':') {
        Some((user, password)) => NatsLogin::User(word(user)?, word(password)?),
        None => NatsLogin::Token(word(text)?),
    })
}

fn s3(bucket: &str, prefix: String, options: Vec<(String, String)>) -> Result<Address, AddressError> {
    let mut address = S3Address {
        bucket: bucket.to_owned(),
        prefix,
        endpoint: None,
        region: None,
    };
    for (name, value) in options {
        match name.as_str() {
            "endpoint" => address.endpoint = Some(value),
            "region" => address.region = Some(value),
            other => return Err(AddressError(format!("unknown option {other} of an S3 address"))),
        }
    }
    Ok(Address::S3(address))
}

fn options(query: &str) -> Result<Vec<(String, String)>, AddressError> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value).ok_or_else(|| AddressError(format!("bad value of {name}")))?;
            Ok((name.to_owned(), value))
        })
        .collect()
}

/// Replaces `%41` by `A`.
fn decode(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nats_address_names_servers_and_options() {
        let parsed = Address::parse("nats://u:p%40@a:1,b:2/team?replicas=3&creds=%2Fc.creds").unwrap();
        let Address::Nats(address) = &parsed else {
            panic!("{parsed:?}")
        };
        assert_eq!(address.servers, ["nats://a:1", "nats://b:2"]);
        assert!(address.login == Some(NatsLogin::User("u".into(), "p@".into())));
        assert_eq!((address.prefix.as_str(), address.replicas), ("team", 3));
        assert_eq!(address.credentials, Some("/c.creds".into()));
        assert!(!format!("{parsed:?}").contains("p@"));
    }

    #[test]
    fn s3_address_names_bucket_and_endpoint() {
        let parsed = Address::parse("s3://b/x/y?endpoint=http://h:1&region=r").unwrap();
        let expected = S3Address {
            bucket: "b".into(),
            prefix: "x/y".into(),
            endpoint: Some("http://h:1".into()),
            region: Some("r".into()),
        };
        assert_eq!(parsed, Address::S3(expected));
    }

    #[test]
    fn wrong_addresses_are_refused() {
        for text in [
            "host",
            "nats://",
            "ftp://h",
            "nats://h/a.b",
            "nats://h/a/b",
            "nats://h?replicas=0",
            "nats://h?x=1",
            "nats://u:p@h,v:p@i",
            "nats://u:%4@h",
            "s3://b//x",
            "s3://b?replicas=1",
            "s3://b?region=%4",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
