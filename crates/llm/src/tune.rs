//! Settings of a request that most callers leave alone, written into the body in each family's words: temperature, and which
//! tools the model has to call (providers.md 2).

use serde_json::{Map, Value, json};

use wire::ThinkingLevel;

use crate::compat::flag;
use crate::family::Family;
use crate::http::HttpRequest;
use crate::openai_responses::request::is_chatgpt_login;
use crate::request::{ModelRequest, ToolChoice};

/// Adds to the body what the request asks for. A body that is no JSON object stays as it is.
pub(crate) fn apply(family: Family, request: &ModelRequest, http: &mut HttpRequest) {
    if request.temperature.is_none() && request.tool_choice.is_none() {
        return;
    }
    let Ok(Value::Object(mut body)) = serde_json::from_slice::<Value>(&http.body) else {
        return;
    };
    if let Some(temperature) = request.temperature.filter(|_| takes_temperature(family, request)) {
        let place = match family {
            Family::Google => below(&mut body, "generationConfig"),
            Family::Bedrock => below(&mut body, "inferenceConfig"),
            _ => Some(&mut body),
        };
        if let Some(place) = place {
            place.insert("temperature".to_owned(), json!(temperature));
        }
    }
    if let Some(choice) = request.tool_choice.as_ref().filter(|_| !request.tools.is_empty()) {
        choose(family, choice, &mut body);
    }
    if let Ok(bytes) = serde_json::to_vec(&body) {
        http.body = bytes;
    }
}

/// Returns false for models and logins that refuse a temperature. Claude also refuses one together with reasoning.
fn takes_temperature(family: Family, request: &ModelRequest) -> bool {
    let model = &request.model;
    let reasons = model.reasoning
        && (request.thinking != ThinkingLevel::Off || flag(model, "supportsMidConvoEffort", false));
    flag(model, "supportsTemperature", true)
        && !(family == Family::Anthropic && reasons)
        && !(family == Family::OpenAiResponses && is_chatgpt_login(request))
}

/// An object inside the body, made when it is missing.
fn below<'a>(body: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let inner = body.entry(name).or_insert_with(|| Value::Object(Map::new()));
    inner.as_object_mut()
}

fn choose(family: Family, choice: &ToolChoice, body: &mut Map<String, Value>) {
    use ToolChoice::{Any, Auto, None as Never, Tool};
    match family {
        Family::Anthropic => {
            let value = match choice {
                Auto => json!({"type": "auto"}),
                Any => json!({"type": "any"}),
                Never => json!({"type": "none"}),
                Tool(name) => json!({"type": "tool", "name": name}),
            };
            body.insert("tool_choice".to_owned(), value);
        }
        Family::OpenAiCompletions | Family::OpenAiResponses | Family::OpenAiCodex | Family::Mistral => {
            let value = match choice {
                Auto => json!("auto"),
                Any => json!("required"),
                Never => json!("none"),
                Tool(name) if matches!(family, Family::OpenAiResponses | Family::OpenAiCodex) => {
                    json!({"type": "function", "name": name})
                }
                Tool(name) => json!({"type": "function", "function": {"name": name}}),
            };
            body.insert("tool_choice".to_owned(), value);
        }
        Family::Google => {
            let config = match choice {
                // The mode of strict schemas leaves the choice to the model, too (pi 1.5.2).
                Auto if body.contains_key("toolConfig") => return,
                Auto => json!({"mode": "AUTO"}),
                Any => json!({"mode": "ANY"}),
                Never => json!({"mode": "NONE"}),
                Tool(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
            };
            body.insert("toolConfig".to_owned(), json!({"functionCallingConfig": config}));
        }
        Family::Bedrock => {
            // It knows no word for "none": without tools nothing can be called.
            let value = match choice {
                Auto => json!({"auto": {}}),
                Any => json!({"any": {}}),
                Tool(name) => json!({"tool": {"name": name}}),
                Never => {
                    body.remove("toolConfig");
                    return;
                }
            };
            if let Some(config) = below(body, "toolConfig") {
                config.insert("toolChoice".to_owned(), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderMap;

    fn tuned(api: &str, choice: ToolChoice) -> Value {
        let model = json!({"id": "m", "name": "M", "api": api, "provider": "p", "baseUrl": "http://h"});
        let mut request = ModelRequest::new(serde_json::from_value(model).unwrap(), 0);
        request.temperature = Some(0.5);
        request.tool_choice = Some(choice);
        request.tools = vec![wire::ToolSpec {
            name: "t".into(),
            description: String::new(),
            parameters: json!({}),
            prefers_strict: false,
        }];
        let mut http = HttpRequest {
            url: String::new(),
            headers: HeaderMap::new(),
            body: br#"{"a":1}"#.to_vec(),
        };
        apply(Family::of(api).unwrap(), &request, &mut http);
        serde_json::from_slice(&http.body).unwrap()
    }

    #[test]
    fn temperature_is_omitted_for_refusing_models() {
        let body = |fields: Value, thinking: ThinkingLevel| {
            let mut model = json!({"id": "m", "name": "M", "api": "anthropic-messages", "provider": "p", "reasoning": true});
            model
                .as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            let mut request = ModelRequest::new(serde_json::from_value(model).unwrap(), 0);
            request.temperature = Some(0.5);
            request.thinking = thinking;
            let mut http = HttpRequest {
                url: String::new(),
                headers: HeaderMap::new(),
                body: b"{}".to_vec(),
            };
            apply(Family::of(&request.model.api).unwrap(), &request, &mut http);
            serde_json::from_slice::<Value>(&http.body).unwrap()
        };
        let refuses = json!({"compat": {"supportsTemperature": false}});
        let effort = json!({"compat": {"supportsMidConvoEffort": true}});
        let completions = json!({"api": "openai-completions"});
        assert_eq!(body(json!({}), ThinkingLevel::Off)["temperature"], 0.5);
        assert_eq!(body(completions, ThinkingLevel::High)["temperature"], 0.5);
        assert_eq!(body(json!({}), ThinkingLevel::Low), json!({}));
        assert_eq!(body(refuses, ThinkingLevel::Off), json!({}));
        assert_eq!(body(effort, ThinkingLevel::Off), json!({}));
    }

    #[test]
    fn tuning_options_use_words_of_family() {
        let rows = [
            (
                "anthropic-messages",
                json!({"a": 1, "temperature": 0.5, "tool_choice": {"type": "tool", "name": "t"}}),
            ),
            (
                "openai-completions",
                json!({"a": 1, "temperature": 0.5, "tool_choice": {"type": "function", "function": {"name": "t"}}}),
            ),
            (
                "openai-responses",
                json!({"a": 1, "temperature": 0.5, "tool_choice": {"type": "function", "name": "t"}}),
            ),
            (
                "google-generative-ai",
                json!({"a": 1, "generationConfig": {"temperature": 0.5},
                    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["t"]}}}),
            ),
            (
                "bedrock-converse-stream",
                json!({"a": 1, "inferenceConfig": {"temperature": 0.5}, "toolConfig": {"toolChoice": {"tool": {"name": "t"}}}}),
            ),
        ];
        for (api, expected) in rows {
            assert_eq!(tuned(api, ToolChoice::Tool("t".into())), expected, "{api}");
        }
        assert_eq!(
            tuned("mistral-conversations", ToolChoice::Any)["tool_choice"],
            "required"
        );
        assert_eq!(
            tuned("bedrock-converse-stream", ToolChoice::None).get("toolConfig"),
            None
        );
    }
}
