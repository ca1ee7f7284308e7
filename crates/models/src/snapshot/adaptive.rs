//! The list of Anthropic's models that `llm` keeps: which decide for themselves how long to think.

use llm::compat::flag;

use crate::catalogue::Catalogue;

/// A line for each of Anthropic's models in the catalogue: its id, and `adaptive` or `budget`.
#[must_use]
pub fn adaptive_list(catalogue: &Catalogue) -> String {
    let models = catalogue.models("anthropic").into_iter();
    let lines = models.map(|model| {
        let is_adaptive = flag(&model, "forceAdaptiveThinking", false);
        format!(
            "{} {}\n",
            model.id,
            if is_adaptive { "adaptive" } else { "budget" }
        )
    });
    lines.collect()
}
