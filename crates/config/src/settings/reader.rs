//! Typed look-ups over the layers. A value of the wrong type is reported, and the next layer, then the default, is used.

use std::path::Path;

use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::settings::layers::Layer;
use crate::settings::protection;

/// Reads keys from the layers, the strongest first.
pub(crate) struct Reader<'a> {
    pub(crate) layers: &'a [Layer],
    pub(crate) notes: Vec<Diagnostic>,
}

impl Reader<'_> {
    /// The first layer's value that `convert` takes. `wanted` completes the sentence "should be ...".
    pub(crate) fn get<T>(
        &mut self,
        path: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        for layer in self.layers {
            let Some(value) = layer.get(path) else { continue };
            if let Some(converted) = convert(value) {
                return Some(converted);
            }
            let message = format!("\"{path}\" should be {wanted}; ignored");
            self.notes.push(complaint(&layer.path, path, message));
        }
        None
    }

    /// The values of all layers, the strongest first; values that `convert` does not take are left out.
    pub(crate) fn each<T>(
        &mut self,
        path: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Vec<Option<T>> {
        let mut out = Vec::new();
        for layer in self.layers {
            let Some(value) = layer.get(path) else { continue };
            let converted = convert(value);
            if converted.is_none() {
                let message = format!("\"{path}\" should be {wanted}; ignored");
                self.notes.push(complaint(&layer.path, path, message));
            }
            out.push(converted);
        }
        out
    }

    /// The members of an object whose names are the user's own (and may hold dots), weakest layer first, so that who
    /// collects them into a map gets the strongest value of each.
    pub(crate) fn members<T>(
        &mut self,
        path: &str,
        wanted: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Vec<(String, T)> {
        let mut out = Vec::new();
        for layer in self.layers.iter().rev() {
            let Some(value) = layer.get(path) else { continue };
            let Value::Object(members) = value else {
                let message = format!("\"{path}\" should be an object; ignored");
                self.notes.push(complaint(&layer.path, path, message));
                continue;
            };
            for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                match convert(value) {
                    Some(converted) => out.push((name.clone(), converted)),
                    None => self.notes.push(complaint(
                        &layer.path,
                        path,
                        format!("\"{path}.{name}\" should be {wanted}; ignored"),
                    )),
                }
            }
        }
        out
    }

    /// Complains where a value that must hold others is something else.
    pub(crate) fn expect_objects(&mut self, paths: impl Iterator<Item = &'static str>) {
        for path in paths {
            self.get(path, "an object", |value| value.is_object().then_some(()));
        }
    }

    pub(crate) fn flag(&mut self, path: &str, default: bool) -> bool {
        self.get(path, "true or false", Value::as_bool).unwrap_or(default)
    }

    pub(crate) fn text(&mut self, path: &str) -> Option<String> {
        self.get(path, "a text", |value| value.as_str().map(str::to_owned))
            .filter(|text| !text.is_empty())
    }

    pub(crate) fn count(&mut self, path: &str) -> Option<u64> {
        self.get(path, "a whole number that is not negative", whole)
    }

    pub(crate) fn small(&mut self, path: &str) -> Option<u32> {
        self.get(path, "a whole number that is not negative", |value| {
            u32::try_from(whole(value)?).ok()
        })
    }

    pub(crate) fn texts(&mut self, path: &str) -> Option<Vec<String>> {
        self.get(path, TEXTS, texts)
    }

    /// A text that must be one of a few words.
    pub(crate) fn word<T>(
        &mut self,
        path: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        self.get(path, wanted, |value| parse(value.as_str()?))
    }
}

/// What a list of texts should be, for complaints.
pub(crate) const TEXTS: &str = "a list of texts";

/// A list of texts.
pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

/// A complaint about a value of the wrong type.
pub(crate) fn complaint(file: &Path, key: &str, message: String) -> Diagnostic {
    if protection::is_needed(key) {
        Diagnostic::fault(file, key, message)
    } else {
        Diagnostic::new(file, message)
    }
}

/// A whole number, also when it is written as `3.0`.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        // Beyond 2^53 a float is no count any more.
        let fits = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
        fits.then(|| format!("{number:.0}").parse().ok())?
    })
}
