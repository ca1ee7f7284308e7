//! Spans for an OpenTelemetry collector: OTLP over HTTP, as JSON. Configured by the usual variables; queue, requests and the
//! wait at the end are bounded. A collector that is not there costs nothing but its spans.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use auth::Secrets;
use bytes::Bytes;
use http::{Request, Response};
use llm::{Client, ClientConfig};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;

use super::Boxed;
use crate::environment::Environment;
use crate::limits;
use crate::version;

/// The exporter of traces; it must be flushed before the process ends.
pub(super) struct Export(SdkTracerProvider);

impl Export {
    /// Sends the remaining spans within [`limits::TRACES_FLUSH`].
    pub(super) fn finish(self) {
        let _late = self.0.shutdown_with_timeout(limits::TRACES_FLUSH);
    }
}

/// Begins to export if a collector is named.
pub(super) fn start(env: &Environment, secrets: &Secrets) -> anyhow::Result<Option<(Boxed, Export)>> {
    let off = env.get("OTEL_SDK_DISABLED") == Some("true") || env.get("OTEL_TRACES_EXPORTER") == Some("none");
    let Some(endpoint) = endpoint(env).filter(|_| !off) else {
        return Ok(None);
    };
    let headers = pairs(either(env, "HEADERS"));
    headers
        .iter()
        .for_each(|(name, value)| secrets.learn_header(name, value));
    secrets.learn_url(&endpoint);
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpJson)
        .with_endpoint(endpoint)
        .with_timeout(limits::TRACES_REQUEST)
        .with_headers(headers)
        .with_http_client(Sender::new(env)?)
        .build()
        .context("OpenTelemetry")?;
    let queue = BatchConfigBuilder::default()
        .with_max_queue_size(limits::TRACES_QUEUE)
        .build();
    let name = env.get("OTEL_SERVICE_NAME").unwrap_or("pinion").to_owned();
    let own = [
        ("service.version", version::OWN.to_owned()),
        ("service.name", name),
    ];
    let said = pairs(env.get("OTEL_RESOURCE_ATTRIBUTES"));
    let attributes = said
        .into_iter()
        .chain(own.map(|(name, value)| (name.to_owned(), value)));
    let resource = Resource::builder_empty()
        .with_attributes(attributes.map(|(name, value)| KeyValue::new(name, value)))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_span_processor(
            BatchSpanProcessor::builder(exporter)
                .with_batch_config(queue)
                .build(),
        )
        .with_resource(resource)
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("pinion"))
        .with_location(false)
        .with_threads(false);
    // Only our own: the exporter's requests must not be traced.
    let ours = ["pinion_session", "pinion_llm", "pinion"];
    let filter = ours.into_iter().fold(Targets::new(), |filter, target| {
        filter.with_target(target, LevelFilter::INFO)
    });
    Ok(Some((layer.with_filter(filter).boxed(), Export(provider))))
}

/// Where traces go: their own address as it is, or the collector's with the usual path.
fn endpoint(env: &Environment) -> Option<String> {
    let own = env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned);
    own.or_else(|| {
        let base = env.get("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!("{}/v1/traces", base.trim_end_matches('/')))
    })
}

fn either<'a>(env: &'a Environment, what: &str) -> Option<&'a str> {
    env.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}"))
        .or_else(|| env.get(&format!("OTEL_EXPORTER_OTLP_{what}")))
}

/// `a=b,c=d`
fn pairs(text: Option<&str>) -> HashMap<String, String> {
    text.into_iter()
        .flat_map(|text| text.split(','))
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Sends with the HTTP client and the proxies that models are asked with. The exporter has a thread of its own and no runtime.
struct Sender {
    client: Client,
    runtime: Mutex<Runtime>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender(..)")
    }
}

impl Sender {
    fn new(env: &Environment) -> anyhow::Result<Self> {
        let client = Client::new(ClientConfig {
            proxy: env.proxy(None),
            ..ClientConfig::default()
        });
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        Ok(Self {
            client,
            runtime: Mutex::new(runtime),
        })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        let url = parts.uri.to_string();
        let sent = self.client.post(&url, parts.headers, body);
        let answer = runtime.block_on(async { tokio::time::timeout(limits::TRACES_REQUEST, sent).await });
        let (status, body) = answer??;
        Ok(Response::builder().status(status).body(body)?)
    }
}

impl HttpClient for Sender {
    fn send_bytes<'life, 'out>(
        &'life self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'out>>
    where
        'life: 'out,
        Self: 'out,
    {
        Box::pin(async move { self.send(request) })
    }
}
