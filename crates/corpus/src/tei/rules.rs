//! What a TEI element is for.

use roxmltree::{Node, NodeId};

use crate::canonical;
use crate::document::Reading;

const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// Elements that hold no text of the work.
const LEFT_OUT: &[&str] = &[
    "teiHeader",
    "facsimile",
    "sourceDoc",
    "standOff",
    "xenoData",
    "figDesc",
    "index",
    "interp",
    "interpGrp",
    "spanGrp",
    "linkGrp",
    "listChange",
    "witDetail",
    "certainty",
    "metamark",
    "del",
    "rt",
    "rp",
    "fs",
    "graphic",
    "media",
];

/// Elements that hold a line of text or a paragraph.
const PARAGRAPHS: &[&str] = &[
    "p",
    "ab",
    "head",
    "l",
    "speaker",
    "dateline",
    "salute",
    "signed",
    "byline",
    "titlePart",
    "docAuthor",
    "docDate",
    "docImprint",
    "docEdition",
    "trailer",
    "castItem",
    "row",
    "item",
    "entry",
    "entryFree",
    "u",
    "opener",
    "closer",
    "imprimatur",
];

/// Elements that hold others that do.
const CONTAINERS: &[&str] = &[
    "TEI",
    "teiCorpus",
    "TEI.2",
    "text",
    "group",
    "front",
    "body",
    "back",
    "div",
    "div0",
    "div1",
    "div2",
    "div3",
    "div4",
    "div5",
    "div6",
    "div7",
    "lg",
    "sp",
    "list",
    "table",
    "figure",
    "epigraph",
    "argument",
    "postscript",
    "titlePage",
    "docTitle",
    "castList",
    "castGroup",
    "listBibl",
    "floatingText",
    "set",
    "prologue",
    "epilogue",
    "performance",
    "noteGrp",
];

/// Elements that stand on lines of their own where they are not in a paragraph.
const EITHER: &[&str] =
    &["quote", "q", "cit", "stage", "bibl", "biblStruct", "biblFull", "label", "said", "formula"];

pub(super) fn id<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    node.attribute((XML, "id")).or_else(|| node.attribute("id")).filter(|id| !id.is_empty())
}

pub(super) fn language<'a>(node: Node<'a, '_>) -> Option<&'a str> {
    node.attribute((XML, "lang")).or_else(|| node.attribute("lang"))
}

pub(super) fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
}

pub(super) fn is_paragraph(name: &str) -> bool {
    PARAGRAPHS.contains(&name)
}

pub(super) fn is_division(name: &str) -> bool {
    name.strip_prefix("div").is_some_and(|rest| rest.is_empty() || rest.parse::<u8>().is_ok())
}

/// Whether the next paragraph may go on with this one.
pub(super) fn may_go_on(name: &str) -> bool {
    matches!(name, "p" | "ab")
}

/// Whether the element stands on lines of its own.
pub(super) fn is_block(node: Node<'_, '_>, name: &str, parent: &str, inline: bool) -> bool {
    if EITHER.contains(&name) {
        let holds_blocks = || {
            node.children().take(64).any(|child| {
                let name = child.tag_name().name();
                is_paragraph(name) || CONTAINERS.contains(&name)
            })
        };
        return !inline || parent == "list" || holds_blocks();
    }
    is_paragraph(name) || CONTAINERS.contains(&name)
}

/// The level of a heading: of a `head` by its divisions, of a paragraph by what it is called.
pub(super) fn heading(
    node: Node<'_, '_>,
    name: &str,
    parent: &str,
    divisions: usize,
) -> Option<u8> {
    if name == "head" {
        let heads =
            is_division(parent) || matches!(parent, "text" | "front" | "body" | "back" | "group");
        return heads.then(|| u8::try_from(divisions).unwrap_or(6).clamp(1, 6));
    }
    if !matches!(name, "p" | "ab") {
        return None;
    }
    renditions(node).find_map(|word| match word {
        "title" | "head" | "heading" => Some(1),
        _ => {
            let digit = ["h", "level_", "level-", "level", "heading"]
                .iter()
                .find_map(|prefix| word.strip_prefix(prefix)?.parse::<u8>().ok())?;
            (1..=6).contains(&digit).then_some(digit)
        }
    })
}

/// Whether this paragraph is the title of the whole.
pub(super) fn is_title(node: Node<'_, '_>) -> bool {
    node.tag_name().name() == "p" && renditions(node).any(|word| word == "title")
}

fn renditions<'a>(node: Node<'a, '_>) -> impl Iterator<Item = &'a str> {
    ["rendition", "rend", "type"]
        .into_iter()
        .filter_map(move |name| node.attribute(name))
        .flat_map(str::split_whitespace)
        .map(|word| word.trim_start_matches('#'))
}

/// Whether it calls itself the mark of a note.
pub(super) fn calls_itself_mark(node: Node<'_, '_>, name: &str) -> bool {
    matches!(name, "hi" | "ref" | "ptr" | "seg" | "anchor")
        && renditions(node).any(|word| {
            let word = word.to_lowercase();
            [
                "footnote-index",
                "footnote-mark",
                "noteanchor",
                "note-mark",
                "footnotemark",
                "noteref",
            ]
            .contains(&word.as_str())
        })
}

/// What a mark says, without the signs around it.
pub(super) fn label(node: Node<'_, '_>) -> String {
    let text = text(node);
    let bare =
        text.trim_matches(|c: char| matches!(c, '(' | ')' | '[' | ']' | '.') || c.is_whitespace());
    bare.to_owned()
}

/// All text in an element, canonical.
pub(super) fn text(node: Node<'_, '_>) -> String {
    let text: String =
        node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect();
    canonical::line(&text)
}

/// The number of a page as it is printed: `— 297 —` is 297.
pub(super) fn page_number(node: Node<'_, '_>) -> Option<String> {
    let text = text(node);
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    (!bare.is_empty() && bare.chars().count() <= 12).then(|| bare.to_owned())
}

/// The page that a milestone begins, as in editions of Plato and Aristotle.
pub(super) fn milestone_page(node: Node<'_, '_>) -> Option<String> {
    let of = |name| node.attribute(name).unwrap_or_default().to_lowercase();
    let (unit, edition) = (of("unit"), of("ed") + &of("resp"));
    let is_page = unit.contains("page")
        || unit.contains("stephanus")
        || unit.contains("bekker")
        || (unit == "section" && (edition.contains("steph") || edition.contains("bekker")));
    node.attribute("n").filter(|_| is_page).map(str::to_owned)
}

/// The one child that is read, where an element gives several wordings of the same words.
pub(super) fn only(node: Node<'_, '_>, name: &str, reading: Reading) -> Option<NodeId> {
    let wanted: &[&str] = match (name, reading) {
        ("choice", Reading::Original) => &["orig", "sic", "abbr"],
        ("choice", Reading::Edited) => &["reg", "corr", "expan"],
        ("app", _) => &["lem", "rdg"],
        _ => return None,
    };
    let elements = || node.children().filter(Node::is_element);
    let of = |name: &&str| elements().find(|child| child.tag_name().name() == *name);
    wanted.iter().find_map(of).or_else(|| elements().next()).map(|child| child.id())
}
