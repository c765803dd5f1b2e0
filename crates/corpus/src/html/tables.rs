//! Which table rows are rows of data, and which only place text on a page.

use std::collections::HashSet;

use ego_tree::iter::Edge;
use ego_tree::{NodeId, Tree};
use scraper::Node;

use super::rules;

/// What was found below an element.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    text: bool,
    blocks: usize,
    /// Something that would not survive as one cell among others: a list, code, a table, a heading.
    structure: bool,
    cells_with_text: usize,
    cell_with_blocks: bool,
}

/// The rows (`tr`) that hold data. All others are read as if their cells were plain blocks: rows with
/// one filled cell, and rows with a cell that has paragraphs, lists, code or tables in it.
pub(super) fn data_rows(tree: &Tree<Node>) -> HashSet<NodeId> {
    let mut rows = HashSet::new();
    let mut open: Vec<Found> = vec![Found::default()];
    for edge in tree.root().traverse() {
        match edge {
            Edge::Open(node) => match node.value() {
                Node::Text(text) => {
                    if let Some(top) = open.last_mut() {
                        top.text |= text.chars().any(|c| !c.is_whitespace());
                    }
                }
                Node::Element(_) => open.push(Found::default()),
                _ => {}
            },
            Edge::Close(node) => {
                let Node::Element(element) = node.value() else {
                    continue;
                };
                let Some(found) = open.pop() else { continue };
                let Some(parent) = open.last_mut() else {
                    continue;
                };
                let name = element.name();
                if rules::is_left_out(element) {
                    continue;
                }
                parent.text |= found.text;
                match name {
                    "td" | "th" => {
                        if found.text {
                            parent.cells_with_text += 1;
                            // What somebody says is prose, whatever stands beside it.
                            parent.cell_with_blocks |=
                                found.blocks > 1 || found.structure || rules::is_speaker(element);
                        }
                    }
                    "tr" => {
                        if found.cells_with_text > 1 && !found.cell_with_blocks {
                            rows.insert(node.id());
                        }
                        parent.structure = true;
                    }
                    _ => {
                        parent.structure |= found.structure
                            || rules::heading_level(name).is_some()
                            || rules::is_preformatted(name)
                            || matches!(name, "ul" | "ol" | "dl" | "table" | "blockquote");
                        // Wrappers around wrappers count once: by their innermost block.
                        parent.blocks += if found.blocks > 0 {
                            found.blocks
                        } else {
                            usize::from(found.text && rules::is_block(name))
                        };
                    }
                }
            }
        }
    }
    rows
}
