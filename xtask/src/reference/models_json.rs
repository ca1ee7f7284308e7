//! `models-json.md`: the format of models.json. The fields come from the types that read the file; a field without a
//! description here, or a description without a field, is an error. The API families define the compat flags.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use super::{cell, head, read, scan};

const SOURCE: &str = "crates/models/src/models_file.rs";

const INTRO: &str = "\
`models.json` in the agent directory adds providers and models, and changes built-in ones. It is JSON with comments. Pinion reports
errors: it ignores a provider that lacks a member, and after other errors the whole file. `pinion doctor` shows what it read.

```json,models
{
  \"providers\": {
    \"my-server\": {
      \"baseUrl\": \"http://localhost:8000/v1\",
      \"api\": \"openai-completions\",
      \"apiKey\": \"MY_SERVER_KEY\",
      \"models\": [
        {\"id\": \"my-model\", \"contextWindow\": 131072, \"maxTokens\": 8192, \"input\": [\"text\", \"image\"]}
      ]
    },
    \"anthropic\": {\"headers\": {\"x-team\": \"tools\"}}
  }
}
```

`providers` maps provider ids to objects. An id of a [built-in provider](providers.md) changes that provider. A provider with models that is not
built in needs `baseUrl` and, here or at each model, `api`. Its key is `apiKey`, or is stored in `auth.json`. A provider without models needs at
least one of `baseUrl`, `apiKey`, `authHeader`, `headers`, `compat` and `modelOverrides`.

`apiKey` and header values are literals, names of environment variables, or commands (`!command`), whose output is used.
";

type Doc = (&'static str, &'static str, &'static str);

const PROVIDER: &[Doc] = &[
    ("name", "string", "Name that people see."),
    (
        "baseUrl",
        "string",
        "Address that requests begin with. It also applies to built-in models of the provider.",
    ),
    (
        "apiKey",
        "string",
        "API key: a literal, the name of an environment variable, or `!command`.",
    ),
    (
        "api",
        "string",
        "API family of models that name none; see [Providers](providers.md).",
    ),
    (
        "headers",
        "object of strings",
        "Additional headers of all requests.",
    ),
    ("compat", "object", "Compat flags of all models; see below."),
    (
        "authHeader",
        "boolean",
        "Also send the key as `Authorization: Bearer`. Default: false.",
    ),
    ("models", "array of models", "Further models."),
    (
        "modelOverrides",
        "object of overrides",
        "Changes to built-in models, by model id.",
    ),
];

const MODEL: &[Doc] = &[
    ("id", "string", "Id that the provider knows. Required."),
    ("name", "string", "Name that people see. Default: the id."),
    ("api", "string", "API family. Default: that of the provider."),
    ("baseUrl", "string", "Address. Default: that of the provider."),
    (
        "reasoning",
        "boolean",
        "Whether the model supports thinking. Default: false.",
    ),
    (
        "thinkingLevelMap",
        "object of strings or null",
        "Value to send for each thinking level. Null: the level does not exist.",
    ),
    (
        "thinking",
        "object",
        "Levels as oh-my-pi names them, for its clients and models without `thinkingLevelMap`: `efforts` (or `levels`), a list, and `effortMap`, the value to send for each.",
    ),
    ("input", "array", "`text` and `image`. Default: `[\"text\"]`."),
    (
        "cost",
        "object",
        "Prices in US dollars per million tokens: `input`, `output`, `cacheRead`, `cacheWrite`, all required; `tiers` for large inputs.",
    ),
    (
        "contextWindow",
        "integer",
        "Context window in tokens. Default: 128000.",
    ),
    ("maxTokens", "integer", "Output limit in tokens. Default: 16384."),
    (
        "inputLimits",
        "object",
        "Limits of one request. `images.maxPerRequest` and `images.maxPerMessage`: how many images are sent; the oldest beyond that become a remark.",
    ),
    (
        "promptCache",
        "object",
        "How long the provider keeps a prompt, in seconds: `short` and `long`. Cache warming needs it.",
    ),
    (
        "headers",
        "object of strings",
        "Additional headers of requests to this model.",
    ),
    ("compat", "object", "Compat flags of this model."),
    (
        "samplingParams",
        "object",
        "Fields that are added to the body of each request, such as `temperature`.",
    ),
    (
        "samplingParamsByThinkingLevel",
        "object of objects",
        "The same for single thinking levels.",
    ),
];

/// Fields that an override has, too.
const NOT_IN_OVERRIDES: [&str; 3] = ["id", "api", "baseUrl"];

/// The page.
pub(super) fn render(root: &Path) -> Result<String> {
    let source = read(root, SOURCE)?;
    let mut out = head("models.json");
    out.push_str(INTRO);
    out.push_str("\n## Provider\n");
    let mut fields = names(&source, "ProviderDef")?;
    // `modelOverrides` is read by hand, as `overrides`.
    fields.retain(|name| name != "overrides");
    fields.push("modelOverrides".to_owned());
    section(&mut out, &fields, PROVIDER)?;
    out.push_str("\n## Model\n");
    section(&mut out, &names(&source, "ModelDef")?, MODEL)?;
    out.push_str("\n`tiers` is a list of objects with `inputTokensAbove` and the prices that apply above that size of the input.\n");
    out.push_str("\n## Override\n\nAn object in `modelOverrides` has the fields of a model except ");
    let absent: Vec<String> = NOT_IN_OVERRIDES.iter().map(|name| format!("`{name}`")).collect();
    out.push_str(&format!(
        "{}. A field that is missing stays as it is.\n",
        absent.join(", ")
    ));
    let expected: BTreeSet<String> = MODEL
        .iter()
        .map(|(name, ..)| (*name).to_owned())
        .filter(|name| !NOT_IN_OVERRIDES.contains(&name.as_str()))
        .collect();
    ensure!(
        expected == names(&source, "OverrideDef")?.into_iter().collect(),
        "the fields of an override have changed"
    );
    compat(&mut out, root)?;
    Ok(out)
}

fn names(source: &str, name: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for field in scan::fields(source, name)? {
        // Flattened into the objects.
        if field.name == "hosting" {
            names.extend(self::names(source, "Hosting")?);
        // Set by the program that reads the file.
        } else if field.name != "has_omp_levels" {
            names.push(scan::camel(&field.name));
        }
    }
    Ok(names)
}

fn section(out: &mut String, fields: &[String], docs: &[Doc]) -> Result<()> {
    out.push_str("\n| field | type | meaning |\n| --- | --- | --- |\n");
    for (name, kind, doc) in docs {
        ensure!(
            fields.iter().any(|field| field == name),
            "there is no field {name} any more"
        );
        out.push_str(&format!("| `{name}` | {kind} | {} |\n", cell(doc)));
    }
    let missing = fields
        .iter()
        .find(|field| !docs.iter().any(|(name, ..)| name == field));
    ensure!(missing.is_none(), "no description for {missing:?}");
    Ok(())
}

/// The flags that the sources ask for, by family.
fn compat(out: &mut String, root: &Path) -> Result<()> {
    let asked = Regex::new(r#"compat::(?:flag|word|value)\(\s*[^,()]+,\s*"(\w+)""#)?;
    let imported = Regex::new(r#"\b(?:flag|word|value)\(\s*&?(?:request\.)?model,\s*"(\w+)""#)?;
    let mut flags: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // The registry writes flags and asks for none; local servers are asked elsewhere.
    let (families, local) = (root.join("crates/llm/src"), root.join("crates/models/src"));
    let mut paths = scan::sources(&families)?;
    paths.extend(scan::sources(&local.join("local"))?);
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let part = path
            .strip_prefix(&families)
            .or_else(|_| path.strip_prefix(&local));
        let part = part.context("outside of the folders")?;
        let family = part
            .components()
            .next()
            .context("no name")?
            .as_os_str()
            .to_string_lossy();
        let family = family.trim_end_matches(".rs").replace('_', "-");
        for hit in asked.captures_iter(&text).chain(imported.captures_iter(&text)) {
            let name = hit
                .get(1)
                .map(|name| name.as_str().to_owned())
                .unwrap_or_default();
            flags.entry(name).or_default().insert(family.clone());
        }
    }
    flags.retain(|name, _| !name.starts_with("samplingParams"));
    ensure!(flags.len() > 10, "hardly any compat flags were found: {flags:?}");
    out.push_str("\n## Compat flags\n\nFlags describe how a server differs from the API that it imitates. Names and values are those of pi. The column *read by* names the API\nfamilies of Pinion that read a flag; all other flags are ignored.\n\n| flag | read by |\n| --- | --- |\n");
    for (name, families) in flags {
        let families: Vec<String> = families.into_iter().collect();
        out.push_str(&format!("| `{name}` | {} |\n", families.join(", ")));
    }
    Ok(())
}
