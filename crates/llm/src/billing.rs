//! What a router says it billed for an answer. OpenRouter puts it with the token counts (pi-1.5-delta.md 3); the price that
//! Pinion computes itself is in `wire`.

use serde::Deserialize;
use serde_json::Value;
use wire::Model;

/// Returns true if answers of a model come from OpenRouter.
pub(crate) fn is_openrouter(model: &Model) -> bool {
    model.provider == "openrouter" || model.base_url.contains("openrouter.ai")
}

/// The bill of an answer, as far as the provider reports one. A member of another type counts as missing.
#[derive(Debug, Default, Clone, Deserialize)]
pub(crate) struct Bill {
    /// What the router charges, in US dollars.
    #[serde(default)]
    cost: Value,
    /// Whether the user brought a key of the provider, who then bills the tokens.
    #[serde(default)]
    is_byok: Value,
    /// What that provider bills.
    #[serde(default)]
    cost_details: Value,
}

impl Bill {
    /// The whole cost in US dollars; none unless the report is complete and valid.
    pub(crate) fn total(&self) -> Option<f64> {
        let own = amount(&self.cost)?;
        if !self.is_byok.as_bool()? {
            return Some(own);
        }
        let part = |name| self.cost_details.get(name);
        let upstream = match part("upstream_inference_cost")? {
            Value::Null => {
                amount(part("upstream_inference_prompt_cost")?)?
                    + amount(part("upstream_inference_completions_cost")?)?
            }
            whole => amount(whole)?,
        };
        Some(own + upstream)
    }
}

fn amount(value: &Value) -> Option<f64> {
    value.as_f64().filter(|amount| *amount >= 0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bill_needs_complete_valid_report() {
        let upstream = json!({"upstream_inference_cost": 0.5});
        let parts = json!({
            "upstream_inference_cost": null,
            "upstream_inference_prompt_cost": 0.25,
            "upstream_inference_completions_cost": 0.5,
        });
        for (bill, wanted) in [
            (json!({"cost": 0.25, "is_byok": false}), Some(0.25)),
            (json!({"cost": 0, "is_byok": false}), Some(0.0)),
            (
                json!({"cost": 0.25, "is_byok": true, "cost_details": upstream}),
                Some(0.75),
            ),
            (
                json!({"cost": 0.25, "is_byok": true, "cost_details": parts}),
                Some(1.0),
            ),
            (json!({"cost": 0.25}), None),
            (json!({"cost": -1, "is_byok": false}), None),
            (json!({"cost": "1", "is_byok": false}), None),
            (json!({"is_byok": false}), None),
            (json!({"cost": 0.25, "is_byok": true}), None),
            (json!({"cost": 0.25, "is_byok": true, "cost_details": {}}), None),
        ] {
            let read: Bill = serde_json::from_value(bill.clone()).unwrap();
            assert_eq!(read.total(), wanted, "{bill}");
        }
    }
}
