//! The catalogue: `data/catalogue.jsonl`, or the file of the same format that `pinion models update` writes to the agent
//! directory. The first line is the header. Each provider has a provider line, a line of values that its models share, and one
//! line per model. Start-up reads only the header and the provider lines; a provider's models are parsed on first use.
//! `snapshot` makes such files. Not here: the user's `models.json`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::Path;
use std::sync::OnceLock;

use auth::login::json_file::read_text;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wire::Model;
use wire::model::{InputLimits, Modality, PriceTier, Prices, PromptCache};

/// Name of the file in the agent directory.
pub const FILE: &str = "models-catalogue.jsonl";

// The list of models that the program is built with, from `data/catalogue.jsonl` (`build.rs`): `FIRST_LINE`, the header, and
// `PROVIDERS`, each provider line with the compressed lines below it.
include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// Members of a model line that are an index of a shared value.
pub(crate) const SHARED: [&str; 4] = ["thinking", "compat", "limits", "cache"];

/// Version of the file format. Files of an older version are ignored.
pub(crate) const FORMAT: u32 = 2;

/// First line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// Version of the file format.
    pub catalogue: u32,
    /// Where the list is from: an address, a path, or an npm package and its version.
    pub source: String,
    /// Date of the list, RFC 3339 in UTC.
    pub fetched: String,
    /// How many models it has.
    pub models: usize,
    /// How many providers it has.
    pub providers: usize,
}

impl Header {
    /// The header of the list that the program is built with.
    ///
    /// The line is generated and checked by a test; if it could not be read, the list would count as very old.
    #[must_use]
    pub fn built_in() -> &'static Self {
        static HEADER: OnceLock<Header> = OnceLock::new();
        HEADER.get_or_init(|| {
            serde_json::from_str(FIRST_LINE).unwrap_or_else(|_| Self {
                catalogue: FORMAT,
                source: String::new(),
                fetched: "1970-01-01T00:00:00Z".to_owned(),
                models: 0,
                providers: 0,
            })
        })
    }

    /// The day of the list, `YYYY-MM-DD`.
    #[must_use]
    pub fn day(&self) -> &str {
        self.fetched.split_once('T').map_or(&self.fetched, |(day, _)| day)
    }

    /// Age of the list in whole days at a Unix time in milliseconds. Returns 0 for a list of the future, and none when its
    /// date has another form.
    #[must_use]
    pub fn age_days(&self, now_ms: i64) -> Option<i64> {
        let made = days_since_1970(self.day())?;
        Some((now_ms.div_euclid(86_400_000) - made).max(0))
    }
}

/// Days from 1970-01-01 to a date of the form `YYYY-MM-DD`, in the Gregorian calendar.
fn days_since_1970(day: &str) -> Option<i64> {
    let mut parts = day.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The year starts in March here, so that the leap day is its last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
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
    headers: Map<String, Value>,
}

/// The provider line.
#[derive(Debug, Deserialize)]
struct Head {
    provider: String,
    bytes: usize,
    rank: usize,
    #[serde(default)]
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

/// Values that models of a provider share; model lines refer to them by their index.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Shared {
    thinking: Vec<Map<String, Value>>,
    compat: Vec<Map<String, Value>>,
    limits: Vec<InputLimits>,
    cache: Vec<PromptCache>,
}

/// The line with the shared values.
#[derive(Deserialize)]
struct SharedLine {
    shared: Shared,
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
    thinking: Option<usize>,
    compat: Option<usize>,
    limits: Option<usize>,
    cache: Option<usize>,
}

/// The lines below a provider line: shared values, if there are any, and models.
#[derive(Debug)]
enum Lines {
    /// Of the built-in list, gzip.
    Packed(&'static [u8]),
    /// Of a file.
    Plain(String),
}

impl Lines {
    /// The text. The built-in list is checked by a test, so lines that cannot be unpacked count as none.
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Packed(bytes) => {
                let mut text = String::new();
                let read = GzDecoder::new(*bytes).read_to_string(&mut text);
                Cow::Owned(read.map(|_| text).unwrap_or_default())
            }
        }
    }
}

/// A built-in provider.
#[derive(Debug)]
pub struct Provider {
    head: Head,
    /// The provider line as it stands, and the lines below it.
    text: (String, Lines),
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

    /// Id of the model used when nothing is chosen; empty for a provider without chat models.
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

    /// Returns true if the provider accepts Google's application default credentials.
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

    /// Its model lines as JSON by model id, with the shared values in them and `api` and `baseUrl` in place of the route.
    pub(crate) fn lines(&self) -> BTreeMap<String, Map<String, Value>> {
        let text = self.text.1.text();
        let (shared, lines) = split(&text);
        let shared: Value = shared
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_default();
        let expand = |line: &str| {
            let mut line: Map<String, Value> = serde_json::from_str(line).ok()?;
            for key in SHARED {
                let index = line.shift_remove(key).and_then(|index| index.as_u64());
                let value = index.and_then(|index| {
                    let values = shared.get("shared")?.get(key)?.as_array()?;
                    values.get(usize::try_from(index).ok()?)
                });
                if let Some(value) = value {
                    line.insert(key.to_owned(), value.clone());
                }
            }
            let route = line.shift_remove("route").and_then(|route| route.as_u64());
            let route = usize::try_from(route.unwrap_or(0)).ok()?;
            let route = self.head.routes.get(route)?;
            line.insert("api".to_owned(), Value::from(route.api.as_str()));
            line.insert("baseUrl".to_owned(), Value::from(route.base_url.as_str()));
            let id = line.get("id")?.as_str()?.to_owned();
            Some((id, line))
        };
        lines.lines().filter_map(expand).collect()
    }

    /// Returns true if its models have been parsed.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.models.get().is_some()
    }

    /// The file is part of the program and checked by a test, so a line that cannot be read is left out.
    fn read(&self) -> Vec<Listed> {
        let text = self.text.1.text();
        let (shared, lines) = split(&text);
        let shared = shared.and_then(|line| serde_json::from_str::<SharedLine>(line).ok());
        let shared = shared.map(|line| line.shared).unwrap_or_default();
        lines
            .lines()
            .filter_map(|line| self.convert(serde_json::from_str(line).ok()?, &shared))
            .collect()
    }

    /// A model from its line; none when the line refers to something that is not there.
    fn convert(&self, line: Line, shared: &Shared) -> Option<Listed> {
        let route = self.head.routes.get(line.route)?;
        let thinking = pick(&shared.thinking, line.thinking)?;
        let compat = pick(&shared.compat, line.compat)?;
        let input_limits = pick(&shared.limits, line.limits)?;
        let prompt_cache = pick(&shared.cache, line.cache)?;
        let [input, output, cache_read, cache_write] = line.cost;
        let header = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        let model = Model {
            id: line.id,
            name: line.name,
            api: route.api.clone(),
            provider: self.head.provider.clone(),
            base_url: route.base_url.clone(),
            reasoning: line.reasoning,
            thinking_level_map: thinking,
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
            compat,
            input_limits,
            prompt_cache,
            // No model of the catalogue has any.
            sampling_params: None,
            sampling_params_by_thinking_level: None,
            // The lists have other kinds, too, which no catalogue contains.
            kind: Some("chat".to_owned()),
        };
        Some(Listed {
            model,
            headers: route.headers.iter().filter_map(header).collect(),
            address: None,
        })
    }
}

/// The line of shared values, if there is one, and the model lines.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("{\"shared\":") => (Some(first), rest),
        _ => (None, text),
    }
}

/// The shared value with this index; `Some(None)` for a line without one, none for an index that does not exist.
fn pick<T: Clone>(values: &[T], index: Option<usize>) -> Option<Option<T>> {
    index.map_or(Some(None), |index| values.get(index).cloned().map(Some))
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
        let provider = |(line, packed): &(&str, &'static [u8])| {
            Some(Provider {
                head: serde_json::from_str(line).ok()?,
                text: ((*line).to_owned(), Lines::Packed(packed)),
                models: OnceLock::new(),
            })
        };
        Self {
            providers: PROVIDERS.iter().filter_map(provider).collect(),
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
            Ok(Some(text)) if is_older_format(&text) => Ok(None),
            Ok(Some(text)) => Self::of_file(&text).map(Some),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(Some((catalogue, header))) if header.fetched >= Header::built_in().fetched => {
                (catalogue, None)
            }
            // The list of this program is newer.
            Ok(_) => (Self::built_in(), None),
            Err(why) => {
                let hint = "The built-in models are used; \"pinion models update\" makes a new one";
                let problem = format!("{} is damaged: {why}. {hint}", path.display());
                (Self::built_in(), Some(problem))
            }
        }
    }

    /// The catalogue in a file's text.
    ///
    /// # Errors
    /// The reason as a clause, for example `it is not whole`.
    pub fn of_file(text: &str) -> Result<(Self, Header), String> {
        let (first, body) = text.split_once('\n').unwrap_or((text, ""));
        let header: Header =
            serde_json::from_str(first).map_err(|_| "its first line is no header".to_owned())?;
        if header.catalogue != FORMAT {
            return Err(format!("it has the form {}, not {FORMAT}", header.catalogue));
        }
        let (providers, rest) = parse(body);
        if !rest.is_empty() || providers.len() != header.providers {
            return Err("it is not whole".to_owned());
        }
        let catalogue = Self {
            providers,
            header: Some(header.clone()),
        };
        Ok((catalogue, header))
    }

    /// The header of the list in use: that of the file, or the built-in one.
    #[must_use]
    pub fn list(&self) -> &Header {
        self.header.as_ref().unwrap_or_else(|| Header::built_in())
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
        Some((format!("{head}\n{}", lines.text()), provider.models().len()))
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

/// Returns true when the file was written by a program that knew only an older format.
fn is_older_format(text: &str) -> bool {
    let (first, _) = text.split_once('\n').unwrap_or((text, ""));
    serde_json::from_str::<Header>(first).is_ok_and(|header| header.catalogue < FORMAT)
}

/// Parses providers of a file, and returns the rest of the text.
fn parse(mut text: &str) -> (Vec<Provider>, &str) {
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
            text: (line.to_owned(), Lines::Plain(lines.to_owned())),
            models: OnceLock::new(),
        });
        text = rest;
    }
    (providers, text)
}
