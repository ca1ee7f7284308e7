//! The catalogue (providers.md 11): `data/catalogue.jsonl`, one line per provider followed by one line per model, or the file
//! of the same form that `pinion models update` has put into the agent directory, after a line of its own. Only the provider
//! lines are read at start; a provider's models are read when somebody looks at them. How such files are made: `snapshot`.
//! Not here: the user's `models.json`.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wire::Model;
use wire::model::{Modality, PriceTier, Prices};

use crate::registry::models_file::read_text;

/// Name of the file in the agent directory.
pub const FILE: &str = "models-catalogue.jsonl";

/// The day of the data that the program was built with; a file fetched before it is out of date.
pub const BUILT_IN_DAY: &str = "2026-05-21";

/// Form of the file; others are not read.
pub(crate) const FORMAT: u32 = 1;

/// First line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// Form of the file.
    pub catalogue: u32,
    /// Where it is from, for people.
    pub source: String,
    /// When it was fetched, RFC 3339.
    pub fetched: String,
    /// How many models it has.
    pub models: usize,
    /// How many providers it has.
    pub providers: usize,
}

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
    #[serde(default)]
    tiers: Vec<(u64, f64, f64, f64, f64)>,
    context: u64,
    output: u64,
    thinking: Option<Map<String, Value>>,
    compat: Option<Map<String, Value>>,
}

/// A built-in provider.
#[derive(Debug)]
pub struct Provider {
    head: Head,
    /// The provider line as it stands, and the model lines.
    text: (String, Cow<'static, str>),
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
        self.text
            .1
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
                tiers: line.tiers.into_iter().map(tier).collect(),
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

/// A price tier of a line.
fn tier((above, input, output, cache_read, cache_write): (u64, f64, f64, f64, f64)) -> PriceTier {
    PriceTier {
        input_tokens_above: above,
        input,
        output,
        cache_read,
        cache_write,
    }
}

/// All known providers, by id.
#[derive(Debug)]
pub struct Catalogue {
    providers: Vec<Provider>,
    header: Option<Header>,
}

impl Catalogue {
    /// The catalogue that the program was built with. Reads provider lines only.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            providers: parse(include_str!("../../data/catalogue.jsonl"), Cow::Borrowed).0,
            header: None,
        }
    }

    /// The catalogue of the agent directory; the built-in one when there is none there, or none that can be used: then also
    /// why.
    #[must_use]
    pub fn load(agent_dir: &Path) -> (Self, Option<String>) {
        let path = agent_dir.join(FILE);
        let read = match read_text(&path) {
            Ok(None) => return (Self::built_in(), None),
            Ok(Some(text)) => Self::of_file(&text),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok((catalogue, header)) if header.fetched.as_str() >= BUILT_IN_DAY => (catalogue, None),
            // A newer program knows better.
            Ok(_) => (Self::built_in(), None),
            Err(why) => {
                let hint = "The built-in models are used; \"pinion models update\" makes a new one";
                let problem = format!("{} is damaged: {why}. {hint}", path.display());
                (Self::built_in(), Some(problem))
            }
        }
    }

    /// The catalogue in a file's text.
    pub(crate) fn of_file(text: &str) -> Result<(Self, Header), String> {
        let (first, body) = text.split_once('\n').unwrap_or((text, ""));
        let header: Header =
            serde_json::from_str(first).map_err(|_| "its first line is no header".to_owned())?;
        if header.catalogue != FORMAT {
            return Err(format!("it has the form {}, not {FORMAT}", header.catalogue));
        }
        let (providers, rest) = parse(body, |lines| Cow::Owned(lines.to_owned()));
        if !rest.is_empty() || providers.len() != header.providers {
            return Err("it is not whole".to_owned());
        }
        let catalogue = Self {
            providers,
            header: Some(header.clone()),
        };
        Ok((catalogue, header))
    }

    /// What the file says about itself; nothing for the built-in catalogue.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// A provider's lines, and how many models they are.
    pub(crate) fn section(&self, id: &str) -> Option<(String, usize)> {
        let provider = self.provider(id)?;
        let (head, lines) = &provider.text;
        Some((format!("{head}\n{lines}"), provider.models().len()))
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

/// The providers in a text, and what is left of it.
fn parse<'a>(mut text: &'a str, keep: impl Fn(&'a str) -> Cow<'static, str>) -> (Vec<Provider>, &'a str) {
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
            text: (line.to_owned(), keep(lines)),
            models: OnceLock::new(),
        });
        text = rest;
    }
    (providers, text)
}
