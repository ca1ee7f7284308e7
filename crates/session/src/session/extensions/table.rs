//! The events that extensions and hooks receive, by name. They also receive the events of clients, which the outbox queues for them.

/// One line for each: see the file.
const HEARD: &str = include_str!("heard.txt");

/// Returns true if the table has the event, or clients receive it.
pub(super) fn lists(name: &str) -> bool {
    // Searched line by line, since only debug assertions ask.
    let mut lines = HEARD.lines().filter(|line| !line.starts_with('#'));
    lines.any(|line| {
        let mut cells = line.split(';').map(str::trim);
        cells.next() == Some(name) && cells.next().is_some_and(|awaited| awaited != "no")
    }) || wire::EVENT_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{HEARD, lists};

    #[test]
    fn event_table_has_three_cells_and_unique_names() {
        let mut names = std::collections::BTreeSet::new();
        for line in HEARD.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split(';').map(str::trim).collect();
            assert_eq!(cells.len(), 3, "{line}");
            assert!(
                cells.iter().all(|cell| !cell.is_empty()) && names.insert(cells[0]),
                "{line}"
            );
        }
        assert!(
            lists("tool_call")
                && lists("queue_update")
                && lists("cache_warming_decision")
                && !lists("nothing")
        );
    }
}
