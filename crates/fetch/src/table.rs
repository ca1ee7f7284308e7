//! Tables as Markdown. The converter's own tables pad each cell to the widest one of its column, so that one long cell and many short rows
//! make 100 GB of a page of 2 MiB. They also lose the headers of rows.

use std::rc::{Rc, Weak};

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, Node};
use markup5ever_rcdom::NodeData;

/// A row of a table.
struct Row {
    cells: Vec<Rc<Node>>,
    /// True if the row is in the head of the table, or all its cells are headers.
    is_head: bool,
}

/// Converts a table with headers to lines of cells. A table without headers orders a page, and a cell has room for one line: such a table
/// gives the content of its cells.
pub(crate) fn markdown(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let rows = rows(element.node);
    let has_header = |row: &Row| row.is_head || row.cells.iter().any(|cell| name(cell) == "th");
    if !rows.iter().any(has_header) || is_in_cell(element.node) {
        return Some(handlers.walk_children(element.node));
    }
    let mut text = String::from("\n\n");
    for caption in children(element.node, |name| name == "caption") {
        text.push_str(&one_line(&handlers.walk_children(&caption).content));
        text.push_str("\n\n");
    }
    for (index, row) in rows.iter().filter(|row| !row.cells.is_empty()).enumerate() {
        let columns = row.cells.len();
        let ruler = format!("|{}\n", "---|".repeat(columns));
        // Markdown has no table without a head.
        if index == 0 && !row.is_head {
            text.push_str(&format!("|{}\n{ruler}", "  |".repeat(columns)));
        }
        text.push('|');
        for cell in &row.cells {
            let content = one_line(&handlers.walk_children(cell).content);
            text.push_str(&format!(" {content} |"));
        }
        text.push('\n');
        if index == 0 && row.is_head {
            text.push_str(&ruler);
        }
    }
    text.push('\n');
    Some(text.into())
}

fn rows(table: &Node) -> Vec<Row> {
    let parts = children(table, |name| matches!(name, "tr" | "thead" | "tbody" | "tfoot"));
    let of_part = |part: Rc<Node>| match name(&part) {
        "tr" => vec![row(&part, false)],
        name => {
            let is_head = name == "thead";
            let own = children(&part, |name| name == "tr");
            own.iter().map(|tr| row(tr, is_head)).collect()
        }
    };
    parts.into_iter().flat_map(of_part).collect()
}

fn row(tr: &Node, is_in_head: bool) -> Row {
    let cells = children(tr, |name| matches!(name, "td" | "th"));
    let is_head = !cells.is_empty() && (is_in_head || cells.iter().all(|cell| name(cell) == "th"));
    Row { cells, is_head }
}

/// The children with one of the wanted names. The list of the tree itself must not stay borrowed while the converter walks over it.
fn children(node: &Node, is_wanted: impl Fn(&str) -> bool) -> Vec<Rc<Node>> {
    let children = node.children.borrow();
    children
        .iter()
        .filter(|child| is_wanted(name(child)))
        .cloned()
        .collect()
}

/// The name of an element; empty for other nodes.
fn name(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

fn is_in_cell(node: &Node) -> bool {
    std::iter::successors(parent(node), |node| parent(node)).any(|node| matches!(name(&node), "td" | "th"))
}

fn parent(node: &Node) -> Option<Rc<Node>> {
    // The tree keeps it in a cell that cannot be read in place.
    let weak = node.parent.take();
    let parent = weak.as_ref().and_then(Weak::upgrade);
    node.parent.set(weak);
    parent
}

/// The content of a cell, which takes one line and has no separators.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
