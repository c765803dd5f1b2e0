//! EPUB 2 and 3 to blocks: the pages of the spine in its order, read as HTML.
//!
//! The order of files in the zip means nothing. What the book's navigation says stands above a page is
//! above its headings here; a page without headings of its own gets those of the navigation.

use std::collections::HashMap;
use std::path::Path;

use percent_encoding::percent_decode_str;
use roxmltree::{Document as Xml, Node};

use crate::blocks::{Content, Remark};
use crate::document::{BlockKind, Metadata};
use crate::encoding::Hints;
use crate::pack::{LARGEST, Zip};
use crate::{canonical, encoding, html, tei};

/// Longest statement of rights that is taken over, in characters.
const LONGEST: usize = 200;

/// Reads a book, or says what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Content, String> {
    let mut zip = Zip::open(bytes, LARGEST)?;
    let container = xml_text(&mut zip, "META-INF/container.xml")?;
    let package_path = {
        let xml = parsed(&container, "META-INF/container.xml")?;
        let root = elements(&xml, "rootfile").find_map(|node| node.attribute("full-path"));
        root.ok_or("META-INF/container.xml names no package")?.to_owned()
    };
    let package = xml_text(&mut zip, &package_path)?;
    let xml = parsed(&package, &package_path)?;
    let book = Book::of(&xml, &package_path)?;
    let mut content = book.content(&xml);
    let navigation = match &book.navigation {
        Some(path) => navigation(&mut zip, path),
        None => Ok(Vec::new()),
    };
    let navigation = navigation.unwrap_or_else(|problem| {
        content.warnings.push(format!("the navigation cannot be read: {problem}").into());
        Vec::new()
    });
    for path in &book.spine {
        // The page of contents is a way through the book, and no part of it.
        if Some(path) == book.navigation.as_ref() {
            continue;
        }
        let page = zip.read(path)?;
        let page = encoding::decode_html(Path::new(path), &page, Hints::default())
            .map_err(|error| error.to_string())?;
        content.warnings.extend(
            page.warnings.into_iter().map(|warning| Remark {
                message: format!("{path}: {}", warning.message),
                ..warning
            }),
        );
        append_page(&mut content, path, &page.text, &navigation);
    }
    if content.title.is_none() {
        content.title = navigation.first().map(|entry| entry.label.clone());
    }
    // The book's title heads everything: it is no part of a heading path.
    let title = content.title.clone().unwrap_or_default();
    for block in &mut content.blocks {
        block.headings.retain(|heading| !same(heading, &title));
    }
    Ok(content)
}

/// What the package file says.
struct Book {
    /// Paths in the zip, in reading order.
    spine: Vec<String>,
    navigation: Option<String>,
}

impl Book {
    fn of(xml: &Xml<'_>, package: &str) -> Result<Book, String> {
        let items: HashMap<&str, Node<'_, '_>> =
            elements(xml, "item").filter_map(|item| Some((item.attribute("id")?, item))).collect();
        let path = |item: &Node<'_, '_>| Some(resolve(package, item.attribute("href")?).0);
        let has = |item: &Node<'_, '_>, property: &str| {
            let properties = item.attribute("properties").unwrap_or_default();
            properties.split_whitespace().any(|word| word == property)
        };
        let spine = elements(xml, "spine").next().ok_or("the package has no spine")?;
        let mut pages = Vec::new();
        for reference in elements(xml, "itemref") {
            let id = reference.attribute("idref").unwrap_or_default();
            let item = items.get(id).ok_or_else(|| {
                format!("the spine names {id:?}, which the manifest does not have")
            })?;
            let kind = item.attribute("media-type").unwrap_or_default();
            if kind.contains("html") || kind.contains("dtbook") || kind.is_empty() {
                pages.extend(path(item));
            }
        }
        let nav = elements(xml, "item").find(|item| has(item, "nav"));
        let ncx = || spine.attribute("toc").and_then(|id| items.get(id).copied());
        let navigation = nav.or_else(ncx).as_ref().and_then(path);
        Ok(Book { spine: pages, navigation })
    }

    fn content(&self, xml: &Xml<'_>) -> Content {
        let of = |name: &str| {
            let texts = elements(xml, name)
                .filter(|node| {
                    node.parent().is_some_and(|parent| parent.tag_name().name() == "metadata")
                })
                .map(|node| canonical::line(node.text().unwrap_or_default()));
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>()
        };
        let authors = of("creator");
        let day = |date: &String| date.split('T').next().unwrap_or_default().to_owned();
        Content {
            title: of("title").into_iter().next(),
            language: of("language").into_iter().next(),
            meta: Metadata {
                author: (!authors.is_empty()).then(|| authors.join("; ")),
                date: of("date").first().map(day),
                // A page of legal text is no line beside a quotation.
                licence: of("rights")
                    .into_iter()
                    .next()
                    .filter(|text| text.chars().count() <= LONGEST),
                ..Metadata::default()
            },
            ..Content::default()
        }
    }
}

/// A place that the navigation names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    path: String,
    fragment: Option<String>,
    label: String,
    /// Labels above it.
    above: Vec<String>,
}

/// The entries of an EPUB 3 navigation page or an EPUB 2 NCX, in order.
fn navigation(zip: &mut Zip<'_>, path: &str) -> Result<Vec<Entry>, String> {
    let text = xml_text(zip, path)?;
    // HTML entities are not XML's.
    let text = text.replace("&nbsp;", "\u{a0}");
    let xml = parsed(&text, path)?;
    let is_toc = |node: &Node<'_, '_>| {
        node.attributes().any(|attribute| attribute.name() == "type" && attribute.value() == "toc")
    };
    let root = elements(&xml, "navMap").next();
    let root = root
        .or_else(|| elements(&xml, "nav").find(is_toc))
        .or_else(|| elements(&xml, "nav").next());
    let Some(root) = root else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    // Labels of the open points, with their depth in the tree.
    let mut open: Vec<(usize, String)> = Vec::new();
    for node in
        root.descendants().filter(|node| matches!(node.tag_name().name(), "navPoint" | "li"))
    {
        let depth = node.ancestors().count();
        open.retain(|(other, _)| *other < depth);
        let (target, label) = if node.tag_name().name() == "li" {
            let link =
                node.children().find(|child| matches!(child.tag_name().name(), "a" | "span"));
            (link.and_then(|link| link.attribute("href")), link)
        } else {
            let inner = |name: &str| node.children().find(|child| child.tag_name().name() == name);
            (inner("content").and_then(|content| content.attribute("src")), inner("navLabel"))
        };
        let label: String = label
            .into_iter()
            .flat_map(|label| label.descendants())
            .filter(|node| node.is_text())
            .filter_map(|node| node.text())
            .collect();
        let label = canonical::line(&label);
        if let Some(target) = target {
            let (path, fragment) = resolve(path, target);
            let above = open.iter().map(|(_, label)| label.clone()).collect();
            entries.push(Entry { path, fragment, label: label.clone(), above });
        }
        open.push((depth, label));
    }
    Ok(entries)
}

/// Appends a page with its place in the navigation above its headings.
fn append_page(content: &mut Content, path: &str, page: &str, navigation: &[Entry]) {
    let mut read = html::read(page);
    if read.blocks.is_empty() && page.contains("<nav") {
        // A chapter that calls itself navigation is the book's text all the same.
        read = html::read(&page.replace("<nav", "<div").replace("</nav", "</div"));
        if !read.blocks.is_empty() {
            let message = format!("{path}: its text is marked as navigation; read all the same");
            content.warnings.push(message.into());
        }
    }
    let entries: Vec<&Entry> = navigation.iter().filter(|entry| entry.path == path).collect();
    let has_headings = read.blocks.iter().any(|block| matches!(block.kind, BlockKind::Heading(_)));
    // The page's title is above its text too, since the page is only a part of the document.
    let own_title = read.title.take().filter(|title| {
        read.blocks.iter().any(|block| {
            matches!(block.kind, BlockKind::Heading(_))
                && read.text.get(block.range.clone()).is_some_and(|text| same(text, title))
        })
    });
    let mut above: Vec<String> = match entries.first() {
        Some(entry) => entry.above.iter().chain([&entry.label]).cloned().collect(),
        None => own_title.into_iter().collect(),
    };
    for block in &mut read.blocks {
        // The navigation's entry for a place in the middle of a page without headings.
        if !has_headings
            && let Some(anchor) = &block.anchor
            && let Some(entry) =
                entries.iter().rev().find(|entry| entry.fragment.as_ref() == Some(anchor))
        {
            above = entry.above.iter().chain([&entry.label]).cloned().collect();
        }
        let text = read.text.get(block.range.clone()).unwrap_or_default();
        let is_heading = matches!(block.kind, BlockKind::Heading(_));
        let own = is_heading && above.last().is_some_and(|label| same(label, text));
        let mut headings = above[..above.len() - usize::from(own)].to_vec();
        let inner = block.headings.iter().filter(|heading| !above.iter().any(|a| same(a, heading)));
        headings.extend(inner.cloned());
        block.headings = headings;
        block.element = format!("{path}:{}", block.element);
    }
    content.append(read, |id| {
        let (target, fragment) = if let Some(fragment) = id.strip_prefix('#') {
            (path.to_owned(), Some(fragment.to_owned()))
        } else {
            resolve(path, id)
        };
        format!("{target}#{}", fragment.unwrap_or_default())
    });
}

/// The same words, whatever the spaces.
fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// Where a link in the file at `from` leads: a path in the zip and a fragment.
fn resolve(from: &str, link: &str) -> (String, Option<String>) {
    let (path, fragment) = match link.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment.to_owned())),
        None => (link, None),
    };
    if path.is_empty() {
        return (from.to_owned(), fragment);
    }
    let path = percent_decode_str(path).decode_utf8_lossy();
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    (parts.join("/"), fragment)
}

fn xml_text(zip: &mut Zip<'_>, path: &str) -> Result<String, String> {
    let bytes = zip.read(path)?;
    let text = encoding::decode_html(Path::new(path), &bytes, Hints::default())
        .map_err(|error| error.to_string())?;
    Ok(text.text)
}

fn parsed<'a>(text: &'a str, path: &str) -> Result<Xml<'a>, String> {
    tei::parse(text).map_err(|fault| format!("{path}, line {}: {}", fault.line, fault.problem))
}

fn elements<'a, 'input>(
    xml: &'a Xml<'input>,
    name: &'a str,
) -> impl Iterator<Item = Node<'a, 'input>> + 'a {
    xml.descendants().filter(move |node| node.tag_name().name() == name)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::{MEMBERS, samples, with_member};
