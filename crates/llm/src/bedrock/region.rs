//! Which AWS region and which address a request goes to (providers.md 8). Not here: whose keys sign it.

use auth::Environment;
use auth::cloud::aws::Files;
use reqwest::Url;

use crate::request::ModelRequest;

/// Where a request goes, as far as it can be told without reading files.
#[derive(Debug)]
pub(crate) struct Target {
    /// The address to use in every region: a gateway, a private endpoint, or that of the catalogue.
    pinned: Option<String>,
    region: Region,
}

/// How the region is found.
#[derive(Debug)]
enum Region {
    Known(String),
    /// The profile's, else this one.
    OfProfile(String),
}

/// Used when nothing names a region.
const DEFAULT: &str = "us-east-1";

impl Target {
    /// The rules, first match wins: the region of a model that is named by ARN, the region variables, the profile, that of
    /// the model's own address. An address that is not one of Amazon's standard ones is always used.
    pub(super) fn of(request: &ModelRequest) -> Self {
        let environment = &request.environment;
        let base = request.model.base_url.trim();
        let standard = standard_region(base);
        let custom = (standard.is_none() && !base.is_empty()).then(|| base.to_owned());
        let custom = custom.or_else(|| environment.value("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"));
        let configured = arn_region(&request.model.id)
            .or_else(|| environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
        let otherwise = standard.clone().unwrap_or_else(|| DEFAULT.to_owned());
        let profile = environment.value("AWS_PROFILE").is_some();
        let (pinned, region) = match configured {
            Some(region) => (custom, Region::Known(region)),
            None if profile => (custom, Region::OfProfile(otherwise)),
            None => {
                let own = standard.is_some().then(|| base.to_owned());
                (custom.or(own), Region::Known(otherwise))
            }
        };
        Self { pinned, region }
    }

    /// The region; may read the files of the AWS tools.
    pub(super) async fn region(&self, environment: &Environment) -> Result<String, String> {
        match &self.region {
            Region::Known(region) => Ok(region.clone()),
            Region::OfProfile(otherwise) => {
                let files = Files::read(environment).await?;
                let own = files.value(&files.profile, "region");
                Ok(own.unwrap_or(otherwise).to_owned())
            }
        }
    }

    /// The region as far as it is known without reading files.
    pub(super) fn likely_region(&self) -> &str {
        let (Region::Known(region) | Region::OfProfile(region)) = &self.region;
        region
    }

    /// The address for a region.
    pub(super) fn endpoint(&self, region: &str) -> String {
        self.pinned.clone().unwrap_or_else(|| {
            let china = if region.starts_with("cn-") { ".cn" } else { "" };
            format!("https://bedrock-runtime.{region}.amazonaws.com{china}")
        })
    }
}

/// The region of a standard address.
fn standard_region(base: &str) -> Option<String> {
    let url = Url::parse(base).ok()?;
    let host = url.host_str()?;
    let rest = host
        .strip_prefix("bedrock-runtime.")
        .or_else(|| host.strip_prefix("bedrock-runtime-fips."))?;
    let region = rest
        .strip_suffix(".amazonaws.com")
        .or_else(|| rest.strip_suffix(".amazonaws.com.cn"))?;
    let is_region = region
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_region && !region.is_empty()).then(|| region.to_owned())
}

/// The region of `arn:aws:bedrock:REGION:...`.
fn arn_region(id: &str) -> Option<String> {
    let mut parts = id.split(':');
    let arn = parts.next() == Some("arn") && parts.next()?.starts_with("aws") && parts.next()? == "bedrock";
    let region = parts.next().filter(|region| arn && !region.is_empty())?;
    Some(region.to_owned())
}

/// Returns true if a request goes to the cloud of the US government.
pub(super) fn is_gov(request: &ModelRequest) -> bool {
    let region = request.environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    let id = request.model.id.to_ascii_lowercase();
    region.is_some_and(|region| region.to_ascii_lowercase().starts_with("us-gov-"))
        || id.starts_with("us-gov.")
        || id.starts_with("arn:aws-us-gov:")
}
