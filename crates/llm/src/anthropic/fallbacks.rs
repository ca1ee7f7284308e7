//! Models that may answer when the provider's model refuses or is overloaded (beta `server-side-fallback-2026-07-01`). The flag
//! `allowedFallbackModels` of a model names them, with their prices.

use serde_json::Value;
use wire::Model;
use wire::model::Prices;

use crate::compat::value;

/// The header value that lets a request name them.
pub(super) const BETA: &str = "server-side-fallback-2026-07-01";

/// A model that may answer in place of another one of its provider.
#[derive(Debug)]
pub(super) struct Fallback {
    /// Its id.
    pub(super) model: String,
    /// What it costs.
    pub(super) prices: Prices,
}

/// The models that may answer in place of this one; mostly none.
pub(super) fn fallbacks(model: &Model) -> Vec<Fallback> {
    let read = |entry: &Value| {
        let text = |name: &str| entry.get(name).and_then(Value::as_str);
        if text("provider") != Some(model.provider.as_str()) {
            return None;
        }
        let prices = entry.get("cost").cloned().unwrap_or_default();
        Some(Fallback {
            model: text("model")?.to_owned(),
            prices: serde_json::from_value(prices).unwrap_or_default(),
        })
    };
    let listed = value(model, "allowedFallbackModels").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(read).collect()
}
