//! The text of `--list-models` (pi-core.md 7.7).

use wire::Model;

use crate::store::Registry;

/// The available models that fit `search`, by provider and id. Every word of it must be part of provider, id or name; when
/// nothing fits so, the letters of each word need only come in their order.
#[must_use]
pub fn search_models<'a>(registry: &'a Registry, search: Option<&str>) -> Vec<&'a Model> {
    let wanted = search.unwrap_or("").to_lowercase();
    let fitting = |fits: fn(&str, &str) -> bool| {
        let is_match = |model: &&Model| {
            let text = format!("{}/{} {}", model.provider, model.id, model.name).to_lowercase();
            wanted.split_whitespace().all(|word| fits(&text, word))
        };
        registry.models().into_iter().filter(is_match).collect()
    };
    let mut models: Vec<&Model> = fitting(|text, word| text.contains(word));
    if models.is_empty() {
        models = fitting(in_order);
    }
    models.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
    models
}

/// Returns true if `text` contains the letters of `word` in their order, with anything between them.
fn in_order(text: &str, word: &str) -> bool {
    let mut letters = text.chars();
    word.chars().all(|wanted| letters.any(|letter| letter == wanted))
}

/// The table of the models that [`search_models`] gives; or one line that says that there are none. Ends without a line feed.
#[must_use]
pub fn list_models(registry: &Registry, search: Option<&str>) -> String {
    let models = search_models(registry, search);
    if models.is_empty() {
        return format!("No models matching \"{}\"", search.unwrap_or(""));
    }
    let head = ["provider", "model", "context", "max-out", "thinking", "images"].map(str::to_owned);
    let rows: Vec<[String; 6]> = [head].into_iter().chain(models.into_iter().map(row)).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; 6]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(model: &Model) -> [String; 6] {
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    [
        model.provider.clone(),
        model.id.clone(),
        tokens(model.context_window),
        tokens(model.max_tokens),
        yes(model.reasoning),
        yes(model.sees_images()),
    ]
}

/// `200K`, `1M`, `1.5M`, `262.1K`; below a thousand the number itself.
fn tokens(count: u64) -> String {
    let short = |unit: u64, letter: char| {
        let tenths = (count * 10 + unit / 2) / unit;
        if count.is_multiple_of(unit) {
            format!("{}{letter}", count / unit)
        } else {
            format!("{}.{}{letter}", tenths / 10, tenths % 10)
        }
    };
    match count {
        1_000_000.. => short(1_000_000, 'M'),
        1_000.. => short(1_000, 'K'),
        _ => count.to_string(),
    }
}
