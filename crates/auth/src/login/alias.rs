//! Providers with two names: newer versions of the original agent renamed some, and their files and clients use the new
//! name. A provider of the user's own with that name and models stands for itself.

/// New and old name; the old one is the catalogue's.
const RENAMED: [(&str, &str); 1] = [("azure", "azure-openai-responses")];

/// The catalogue's name of a provider that is called by its new one.
#[must_use]
pub fn old_name(id: &str) -> Option<&'static str> {
    let renamed = |(new, _): &&(&str, &str)| new.eq_ignore_ascii_case(id);
    RENAMED.iter().find(renamed).map(|(_, old)| *old)
}

/// The new name of a provider of the catalogue.
#[must_use]
pub fn new_name(id: &str) -> Option<&'static str> {
    let renamed = |(_, old): &&(&str, &str)| *old == id;
    RENAMED.iter().find(renamed).map(|(new, _)| *new)
}
