//! The built-in catalogue (providers.md 11): `data/catalogue.jsonl`, one line per provider followed by one line per model.
//! Only the provider lines are read at start; a provider's models are read when somebody looks at them. How the file is
//! made: `xtask models`. Not here: the user's `models.json`.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value};
use wire::Model;
use wire::model::{Modality, Prices};

/// A model with what a client must not see.
#[derive(Clone, PartialEq)]
pub struct Listed {
    /// The model as clients see it.
    pub model: Model,
    /// Extra request headers, unresolved, later ones already merged over earlier ones.
    pub headers: Vec<(String, String)>,
    /// The base URL with the login or parameters that the model does not show; none when it has none.
    pub(crate) address: Option<String>,
}

/// Hides the headers: they may hold keys.
impl fmt::Debug for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listed")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// One way to reach models of a provider.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Route {
    api: String,
    base_url: String,
    #[serde(default)]
    compat: Map<String, Value>,
    #[serde(default)]
    headers: Map<String, Value>,
}

/// The provider line.
#[derive(Debug, Deserialize)]
struct Head {
    provider: String,
    bytes: usize,
    rank: usize,
    default: String,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    ambient: Vec<Vec<String>>,
    #[serde(default)]
    adc: bool,
    #[serde(default)]
    secrets: Vec<String>,
    routes: Vec<Route>,
}

/// A model line.
#[derive(Deserialize)]
struct Line {
    id: String,
    name: String,
    #[serde(default)]
    route: usize,
    #[serde(default)]
    reasoning: bool,
    #[serde(default)]
    image: bool,
    cost: [f64; 4],
    context: u64,
    output: u64,
    thinking: Option<Map<String, Value>>,
    compat: Option<Map<String, Value>>,
}

/// A built-in provider.
#[derive(Debug)]
pub struct Provider {
    head: Head,
    lines: &'static str,
    models: OnceLock<Vec<Listed>>,
}

impl Provider {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.head.provider
    }

    /// Place in the order in which providers are asked for a default model, 0 first (pi-core.md 8.6).
    #[must_use]
    pub fn rank(&self) -> usize {
        self.head.rank
    }

    /// Id of the model used when nothing is chosen.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.head.default
    }

    /// Variables that hold a key, best first.
    #[must_use]
    pub fn key_variables(&self) -> &[String] {
        &self.head.env
    }

    /// Groups of variables; one complete group means that the provider's module finds credentials by itself.
    #[must_use]
    pub fn ambient(&self) -> &[Vec<String>] {
        &self.head.ambient
    }

    /// Does it accept Google's application default credentials?
    #[must_use]
    pub fn accepts_adc(&self) -> bool {
        self.head.adc
    }

    /// Every variable that can hold a secret of this provider.
    pub fn secret_variables(&self) -> impl Iterator<Item = &str> {
        self.head.env.iter().chain(&self.head.secrets).map(String::as_str)
    }

    /// Its models by id. The first call reads them.
    pub fn models(&self) -> &[Listed] {
        self.models.get_or_init(|| self.read())
    }

    /// Have its models been read?
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.models.get().is_some()
    }

    /// The file is part of the program and checked by a test, so a line that cannot be read is left out.
    fn read(&self) -> Vec<Listed> {
        self.lines
            .lines()
            .filter_map(|line| self.convert(serde_json::from_str(line).ok()?))
            .collect()
    }

    fn convert(&self, line: Line) -> Option<Listed> {
        let route = self.head.routes.get(line.route)?;
        let mut compat = route.compat.clone();
        compat.extend(line.compat.unwrap_or_default());
        let [input, output, cache_read, cache_write] = line.cost;
        let header = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        let model = Model {
            id: line.id,
            name: line.name,
            api: route.api.clone(),
            provider: self.head.provider.clone(),
            base_url: route.base_url.clone(),
            reasoning: line.reasoning,
            thinking_level_map: line.thinking,
            input: if line.image {
                vec![Modality::Text, Modality::Image]
            } else {
                vec![Modality::Text]
            },
            cost: Prices {
                input,
                output,
                cache_read,
                cache_write,
            },
            context_window: line.context,
            max_tokens: line.output,
            compat: Some(compat).filter(|compat| !compat.is_empty()),
        };
        Some(Listed {
            model,
            headers: route.headers.iter().filter_map(header).collect(),
            address: None,
        })
    }
}

/// All built-in providers, by id.
#[derive(Debug)]
pub struct Catalogue {
    providers: Vec<Provider>,
}

impl Catalogue {
    /// The catalogue that the program was built with. Reads provider lines only.
    #[must_use]
    pub fn built_in() -> Self {
        Self::parse(include_str!("../../data/catalogue.jsonl"))
    }

    fn parse(mut text: &'static str) -> Self {
        let mut providers = Vec::new();
        while let Some((line, rest)) = text.split_once('\n') {
            let Ok(head) = serde_json::from_str::<Head>(line) else {
                break;
            };
            let Some((lines, rest)) = rest.split_at_checked(head.bytes) else {
                break;
            };
            providers.push(Provider {
                head,
                lines,
                models: OnceLock::new(),
            });
            text = rest;
        }
        Self { providers }
    }

    /// The providers, in registry order.
    #[must_use]
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// The provider with this id.
    #[must_use]
    pub fn provider(&self, id: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.id() == id)
    }

    /// Models of a provider; none when it is unknown.
    #[must_use]
    pub fn models(&self, provider: &str) -> Vec<Model> {
        let listed = self.provider(provider).map_or(&[][..], Provider::models);
        listed.iter().map(|listed| listed.model.clone()).collect()
    }

    /// One model.
    #[must_use]
    pub fn lookup(&self, provider: &str, id: &str) -> Option<&Model> {
        let mut models = self.provider(provider)?.models().iter();
        models
            .find(|listed| listed.model.id == id)
            .map(|listed| &listed.model)
    }

    /// How many providers have had their models read; start-up must keep this small.
    #[must_use]
    pub fn read_count(&self) -> usize {
        self.providers
            .iter()
            .filter(|provider| provider.is_read())
            .count()
    }

    /// Names of all variables that can hold a provider's secret, each once: a tool's environment must not have them.
    #[must_use]
    pub fn key_variables(&self) -> Vec<String> {
        let names = self.providers.iter().flat_map(Provider::secret_variables);
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
