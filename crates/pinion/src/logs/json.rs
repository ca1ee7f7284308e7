//! Log lines for programs: one JSON object each, with the spans that the event or the closing span is in, outermost first,
//! whether or not they are entered (ours are not, they belong to sessions, not to threads).

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// The format.
pub(super) struct Json;

impl<S> FormatEvent<S, JsonFields> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    JsonFields: for<'a> FormatFields<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let meta = event.metadata();
        let mut fields = Fields(Map::new());
        fields
            .0
            .insert("timestamp".into(), jiff::Timestamp::now().to_string().into());
        fields.0.insert("level".into(), meta.level().as_str().into());
        fields.0.insert("target".into(), meta.target().into());
        event.record(&mut fields);
        let mut spans: Vec<Value> = context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| described(&span))
            .collect();
        if let Some(inner) = spans.pop() {
            fields.0.insert("span".into(), inner);
            fields.0.insert("spans".into(), spans.into());
        }
        writeln!(writer, "{}", Value::Object(fields.0))
    }
}

/// Name and fields of a span.
fn described<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Value {
    let mut out = json!({"name": span.name()});
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<JsonFields>>();
    let parsed = fields.and_then(|fields| serde_json::from_str::<Map<String, Value>>(fields).ok());
    if let Some(out) = out.as_object_mut() {
        out.extend(parsed.unwrap_or_default());
    }
    out
}

/// The fields of an event.
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}
