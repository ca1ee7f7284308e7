//! OpenAI's models at Azure (providers.md 5): address, API version and names of deployments, from variables. The rest of
//! a request is that of `request`.

use crate::error::LlmError;
use crate::http::join_url;
use crate::request::ModelRequest;

/// The API family.
pub(crate) const API: &str = "azure-openai-responses";

/// The API version when nothing names another.
const VERSION: &str = "v1";

/// Hosts of Azure itself, whose API has a path of its own; gateways are taken as they are.
const HOSTS: [&str; 3] = [
    ".openai.azure.com",
    ".cognitiveservices.azure.com",
    ".ai.azure.com",
];

/// Where a request goes: the address that a variable names, else that of the resource that one names, else the model's. The
/// catalogue knows none, each customer has another.
pub(super) fn url(request: &ModelRequest) -> Result<String, LlmError> {
    let version = request
        .environment
        .value("AZURE_OPENAI_API_VERSION")
        .unwrap_or_else(|| VERSION.to_owned());
    Ok(join_url(
        &base(request)?,
        &format!("responses?api-version={version}"),
    ))
}

/// The address that the paths of both of Azure's APIs start with.
pub(crate) fn base(request: &ModelRequest) -> Result<String, LlmError> {
    let environment = &request.environment;
    let resource = || environment.value("AZURE_OPENAI_RESOURCE_NAME");
    let base = environment
        .value("AZURE_OPENAI_BASE_URL")
        .or_else(|| Some(format!("https://{}.openai.azure.com", resource()?)))
        .unwrap_or_else(|| request.model.base_url.trim().to_owned());
    if base.is_empty() {
        return Err(LlmError::Placeholder {
            name: "AZURE_OPENAI_BASE_URL".to_owned(),
            provider: request.model.provider.clone(),
        });
    }
    Ok(with_path(&base))
}

/// The address with the path of the API, where Azure itself is asked without one. A query is no part of an address.
fn with_path(base: &str) -> String {
    let base = base.split('?').next().unwrap_or_default().trim_end_matches('/');
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.split(':').next().unwrap_or_default();
    let is_azure = HOSTS.iter().any(|suffix| host.ends_with(suffix));
    match path {
        "" if is_azure => format!("{base}/openai/v1"),
        "openai" if is_azure => format!("{base}/v1"),
        // The address of requests, as Azure's pages show it.
        "openai/v1/responses" if is_azure => base.trim_end_matches("/responses").to_owned(),
        _ => base.to_owned(),
    }
}

/// The name of the deployment that serves a model: that of the map `model=deployment,...`, else the model's id.
pub(crate) fn deployment(request: &ModelRequest) -> String {
    let id = &request.model.id;
    let map = request
        .environment
        .value("AZURE_OPENAI_DEPLOYMENT_NAME_MAP")
        .unwrap_or_default();
    let pairs = map.split(',').filter_map(|pair| pair.split_once('='));
    let mut named = pairs
        .map(|(model, deployment)| (model.trim(), deployment.trim()))
        .filter(|(model, deployment)| model == id && !deployment.is_empty());
    named
        .next_back()
        .map_or_else(|| id.clone(), |(_, deployment)| deployment.to_owned())
}
