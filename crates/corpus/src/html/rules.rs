//! What an element is for: what is text, what is navigation, what is a note, what makes a block.

use scraper::node::Element;

/// Elements whose content is never text of the page.
const NO_TEXT: &[&str] = &[
    "script", "style", "template", "noscript", "nav", "head", "iframe", "object", "embed",
    "applet", "svg", "canvas", "audio", "video", "map", "select", "datalist", "button", "textarea",
    "input", "noframes", "frameset", // Readings spliced into a word would split it.
    "rt", "rp",
];

/// Roles of what surrounds a text.
const NO_TEXT_ROLES: &[&str] = &[
    "navigation",
    "banner",
    "contentinfo",
    "search",
    "doc-toc",
    "doc-index",
    "doc-backlink",
    "doc-pagebreak",
];

/// Classes of what surrounds a text: DocBook, Publican, Sphinx, MediaWiki and their like.
const NO_TEXT_CLASSES: &[&str] = &[
    "docnav",
    "navheader",
    "navfooter",
    "toc",
    "revhistory",
    "breadcrumb",
    "breadcrumbs",
    "headerlink",
    "mw-editsection",
    "mw-jump-link",
    "sphinxsidebar",
    "footnote-backref",
    "footnote-back",
];

/// What a DocBook title page says about the book and not about its subject.
const TITLE_PAGE_CLASSES: &[&str] = &[
    "legalnotice",
    "copyright",
    "revhistory",
    "authorgroup",
    "edition",
    "producttitle",
    "pubdate",
    "releaseinfo",
];

/// Elements that stand on lines of their own.
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "center",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "html",
    "legend",
    "li",
    "listing",
    "main",
    "menu",
    "ol",
    "optgroup",
    "option",
    "p",
    "plaintext",
    "pre",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
    "xmp",
];

/// Classes of `div`s that hold a part of a text under a title of its own.
const SECTION_CLASSES: &[&str] = &[
    "book",
    "part",
    "chapter",
    "appendix",
    "preface",
    "section",
    "sect1",
    "sect2",
    "sect3",
    "sect4",
    "sect5",
    "simplesect",
    "refsect1",
    "refsect2",
    "glossary",
    "bibliography",
    "abstract",
    "sidebar",
    "note",
    "tip",
    "warning",
    "caution",
    "important",
    "admonition",
    "example",
    "table",
    "figure",
    "informaltable",
    "procedure",
    "qandaset",
];

/// Whether the element has this class.
pub(super) fn has_class(element: &Element, class: &str) -> bool {
    element.classes().any(|c| c == class)
}

fn any_class(element: &Element, classes: &[&str]) -> bool {
    element.classes().any(|class| classes.contains(&class))
}

fn attribute_has(element: &Element, name: &str, values: &[&str]) -> bool {
    element
        .attr(name)
        .is_some_and(|value| value.split_ascii_whitespace().any(|word| values.contains(&word)))
}

/// Whether the element and all that is in it are left out, wherever it stands.
pub(super) fn is_left_out(element: &Element) -> bool {
    NO_TEXT.contains(&element.name())
        || element.attr("hidden").is_some()
        || element.attr("aria-hidden").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        || attribute_has(element, "role", NO_TEXT_ROLES)
        || attribute_has(element, "epub:type", &["toc", "pagebreak", "index", "landmarks"])
        || element.classes().any(|class| NO_TEXT_CLASSES.contains(&class) || class.starts_with("list-of-"))
        // Publican puts an offer to download the book above every page.
        || (element.name() == "div" && element.attr("id") == Some("banner"))
        || element.attr("style").is_some_and(is_invisible)
}

/// Whether an inline style hides the element.
fn is_invisible(style: &str) -> bool {
    style.split(';').any(|declaration| {
        let mut parts = declaration.splitn(2, ':').map(|part| part.trim().to_ascii_lowercase());
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let value = value.trim_end_matches("!important").trim_end();
        (name == "display" && value == "none") || (name == "visibility" && value == "hidden")
    })
}

/// Whether a title page's element says something about the book and not about its subject.
pub(super) fn is_book_matter(element: &Element) -> bool {
    any_class(element, TITLE_PAGE_CLASSES)
}

/// Whether the element stands on lines of its own.
pub(super) fn is_block(name: &str) -> bool {
    BLOCKS.contains(&name)
}

/// Whether line breaks count in it.
pub(super) fn is_preformatted(name: &str) -> bool {
    matches!(name, "pre" | "listing" | "xmp" | "plaintext")
}

/// The level of a heading element.
pub(super) fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', digit @ b'1'..=b'6'] => Some(digit - b'0'),
        _ => None,
    }
}

/// Whether headings in it end with it.
pub(super) fn is_section(element: &Element) -> bool {
    match element.name() {
        "section" | "article" | "aside" | "table" | "figure" | "blockquote" => true,
        "div" | "dl" => any_class(element, SECTION_CLASSES),
        _ => false,
    }
}

/// Whether it sets a note, a tip or a warning apart from the text.
pub(super) fn is_admonition(element: &Element) -> bool {
    element.name() == "div"
        && any_class(element, &["note", "tip", "warning", "caution", "important", "admonition"])
}

/// Whether it is a figure, whose title is a caption: text, and no heading of anything.
pub(super) fn is_figure(element: &Element) -> bool {
    element.name() == "figure" || has_class(element, "figure")
}

/// Whether it is the title of the section it stands in, where that is not said by `h1` to `h6`.
pub(super) fn is_title(element: &Element) -> bool {
    element.name() == "caption"
        || (matches!(element.name(), "p" | "div")
            && any_class(element, &["title", "admonition-title", "admonition_header"]))
}

/// Whether it names who speaks, in a play or a dialogue set as a table.
pub(super) fn is_speaker(element: &Element) -> bool {
    attribute_has(element, "epub:type", &["z3998:persona"])
        || any_class(element, &["persona", "speaker"])
}

/// Whether it holds one footnote.
pub(super) fn is_note(element: &Element) -> bool {
    matches!(element.name(), "div" | "aside" | "section" | "li" | "p" | "dd" | "blockquote")
        && (any_class(element, &["footnote", "endnote"])
            || attribute_has(element, "role", &["doc-footnote", "doc-endnote"])
            || attribute_has(element, "epub:type", &["footnote", "endnote", "rearnote"]))
}

/// Whether it holds footnotes, one an item.
pub(super) fn is_note_list(element: &Element) -> bool {
    any_class(element, &["footnotes", "endnotes"])
        || attribute_has(element, "role", &["doc-endnotes"])
        || attribute_has(element, "epub:type", &["footnotes", "endnotes", "rearnotes"])
}

/// Whether it calls itself the mark of a footnote.
pub(super) fn is_note_mark(element: &Element) -> bool {
    matches!(element.name(), "a" | "sup" | "span")
        && (any_class(
            element,
            &["footnote", "footnoteref", "footnote-ref", "footnote-reference", "noteref"],
        ) || attribute_has(element, "role", &["doc-noteref"])
            || attribute_has(element, "epub:type", &["noteref"])
            || (element.name() == "sup" && has_class(element, "reference")))
}

/// Where a link to a fragment leads, in this page or another.
pub(super) fn link(element: &Element) -> Option<&str> {
    if element.name() != "a" {
        return None;
    }
    element.attr("href").filter(|href| href.split_once('#').is_some_and(|(_, id)| !id.is_empty()))
}

/// The fragment of a link inside the page.
pub(super) fn fragment(link: &str) -> Option<&str> {
    link.strip_prefix('#')
}

/// The page of the printed book that begins here, if the element says so.
pub(super) fn page(element: &Element) -> Option<String> {
    let is_break = attribute_has(element, "epub:type", &["pagebreak"])
        || attribute_has(element, "role", &["doc-pagebreak"]);
    let label =
        || element.attr("title").or_else(|| element.attr("aria-label")).or(element.attr("id"));
    let label = is_break.then(label)??.trim();
    let label =
        label.trim_start_matches(|c: char| !c.is_ascii_digit() && c != 'i' && c != 'v' && c != 'x');
    (!label.is_empty()).then(|| label.to_owned())
}

/// Whether this is what a footnote's mark looks like: a number, a letter or a sign, bracketed or not.
pub(super) fn looks_like_mark(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')', '.']).trim();
    let count = text.chars().count();
    (1..=4).contains(&count)
        && (text.chars().all(|c| c.is_ascii_digit())
            || text.chars().all(|c| matches!(c, '*' | '†' | '‡' | '§' | '¶' | '#'))
            || (count == 1 && text.chars().all(|c| c.is_ascii_lowercase()))
            || text.chars().all(|c| matches!(c, 'i' | 'v' | 'x')))
}

/// Whether this is what the way back from a footnote looks like.
pub(super) fn looks_like_way_back(text: &str) -> bool {
    looks_like_mark(text)
        || text
            .trim()
            .chars()
            .all(|c| matches!(c, '↩' | '↑' | '^' | '⏎' | '←' | '\u{fe0e}' | '\u{fe0f}'))
}

/// Whether a tool made this id, so that it may be another one after the next build.
pub(super) fn is_generated(id: &str) -> bool {
    let digits = |rest: &str, least: usize| {
        rest.len() >= least
            && rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'))
    };
    let after = |prefix: &str, least: usize| {
        id.strip_prefix(prefix).is_some_and(|rest| digits(rest, least))
    };
    let id_after_note =
        id.strip_prefix("ftn.").is_some_and(|rest| !rest.is_empty() && is_generated(rest));
    after("idm", 1)
        || after("idp", 1)
        || after("id-", 1)
        || after("id", 4)
        || after("AEN", 1)
        || after("_Toc", 4)
        || after("toc", 1)
        || id_after_note
        || id.strip_prefix('d').is_some_and(|rest| {
            rest.split_once('e').is_some_and(|(a, b)| digits(a, 1) && digits(b, 1))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids() {
        for id in
            ["idm185", "id-1.9.17.2", "ftn.idm2569", "AEN123", "d0e1234", "_Toc12345", "id2534512"]
        {
            assert!(is_generated(id), "{id}");
        }
        for id in
            ["sect.apt-get", "laptops", "id", "idea", "ch1", "ftn.apx-ps-net", "id-cards", "de"]
        {
            assert!(!is_generated(id), "{id}");
        }
    }

    #[test]
    fn marks() {
        for text in ["1", "[13]", "[a]", "*", "††", "(2)", "iv", "3."] {
            assert!(looks_like_mark(text), "{text}");
        }
        for text in ["", "12345", "the", "[]", "B", "2e"] {
            assert!(!looks_like_mark(text), "{text}");
        }
    }

    #[test]
    fn invisible() {
        assert!(is_invisible("color: red; DISPLAY : none !important"));
        assert!(is_invisible("visibility:hidden"));
        assert!(!is_invisible("display:block"));
    }
}
