//! What can go wrong with a login, worded for the person who reads it. No text holds a key: what a server says is cut, and
//! tokens are taken out of it.

use std::time::Duration;

/// A login, renewal or change of `auth.json` that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// There is no login for this provider.
    #[error("There is no login for {0}. To store a key: pinion auth login {0} --api-key")]
    NotOffered(String),
    /// Not a domain name.
    #[error("\"{0}\" is no domain name")]
    Domain(String),
    /// The user pressed Ctrl-C.
    #[error("The login was cancelled")]
    Cancelled,
    /// The person took too long.
    #[error("The login took longer than {} min and was given up", .0.as_secs() / 60)]
    TooLate(Duration),
    /// The person, or the provider, said no.
    #[error("The login was denied")]
    Denied,
    /// The code of the device flow ran out.
    #[error("The code has expired. Log in again for a new one")]
    CodeExpired,
    /// The pasted text is no address or code of this login.
    #[error("This is not the address or code of this login")]
    Paste,
    /// The local callback cannot be bound, and there is no terminal to paste into.
    #[error("Cannot listen on {address}: {reason}")]
    Callback {
        /// Host and port.
        address: String,
        /// The system's words.
        reason: String,
    },
    /// The endpoint cannot be reached.
    #[error("Connection error: {host}: {reason}")]
    Unreachable {
        /// Whom we wanted to reach.
        host: String,
        /// Why we did not.
        reason: String,
    },
    /// The endpoint said no.
    #[error("{host} answered {status}: {reason}")]
    Refused {
        /// Who said it.
        host: String,
        /// HTTP status.
        status: u16,
        /// Their words, cut.
        reason: String,
    },
    /// The endpoint's answer lacks something.
    #[error("The answer of {host} has no {what}")]
    Answer {
        /// Who answered.
        host: String,
        /// The missing member.
        what: &'static str,
    },
    /// Another program holds `auth.json`.
    #[error("{0} is locked by another program")]
    Locked(String),
    /// `auth.json` cannot be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// What should be stored is no key.
    #[error("{0}")]
    Key(&'static str),
    /// No random numbers, the HTTP client cannot be built, or `auth.json` cannot be read.
    #[error("{0}")]
    System(String),
    /// The token of a request is of no use, and why.
    #[error("Authentication failed for \"{provider}\": {reason}. {help}")]
    Authentication {
        /// Provider id.
        provider: String,
        /// What happened.
        reason: String,
        /// What to do.
        help: String,
    },
}

impl LoginError {
    /// A token that is of no use, and what would help.
    pub(super) fn of_request(provider: &str, reason: &str) -> Self {
        let help = if super::way(provider).is_some() {
            format!("Run: pinion auth login {provider}")
        } else {
            format!("Pinion does not renew it; to store a key: pinion auth login {provider} --api-key")
        };
        Self::authentication(provider, reason, help)
    }

    /// A login of an extension that is of no use. The extension renews it, so only another login helps.
    pub(super) fn of_lent(provider: &str, reason: &str) -> Self {
        Self::authentication(provider, reason, format!("Log in to {provider} again"))
    }

    /// A renewal that failed, as the error of the request that needed it.
    pub(super) fn into_request(self, provider: &str) -> Self {
        match self {
            Self::Authentication { .. } => self,
            // A new login would not help against these, and the old one is still there.
            Self::Unreachable { .. }
            | Self::Locked(_)
            | Self::File { .. }
            | Self::System(_)
            | Self::Refused {
                status: 429 | 500..=599,
                ..
            } => Self::authentication(provider, &self.to_string(), "The login is kept".to_owned()),
            _ => Self::of_request(provider, &self.to_string()),
        }
    }

    fn authentication(provider: &str, reason: &str, help: String) -> Self {
        Self::Authentication {
            provider: provider.to_owned(),
            reason: reason.trim_end_matches('.').to_owned(),
            help,
        }
    }
}
