//! What a teiHeader says about its text.

use roxmltree::Node;

use super::rules;
use crate::blocks::Content;

/// Longest licence or edition that is taken over as it stands, in characters.
const LONGEST: usize = 200;

/// Title, language, author, date, edition and licence.
pub(super) fn read(root: Node<'_, '_>, file: &str) -> Content {
    let mut content = Content::default();
    let text = child(root, "text");
    content.language =
        text.and_then(rules::language).or_else(|| rules::language(root)).map(str::to_owned);
    let Some(header) = child(root, "teiHeader") else { return content };
    let description = child(header, "fileDesc");
    let titles = description.and_then(|node| child(node, "titleStmt"));
    content.title = titles.and_then(title);
    content.meta.author = titles.and_then(|titles| {
        let authors: Vec<String> =
            children(titles, "author").map(rules::text).filter(|name| !name.is_empty()).collect();
        (!authors.is_empty()).then(|| authors.join("; "))
    });
    let profile = child(header, "profileDesc");
    let source = description.and_then(|node| child(node, "sourceDesc"));
    let creation = profile
        .and_then(|profile| child(profile, "creation"))
        .and_then(|creation| child(creation, "date"))
        .and_then(when);
    let names: Vec<String> =
        titles.into_iter().flat_map(|titles| children(titles, "title")).map(rules::text).collect();
    content.meta.date =
        creation.or_else(|| source.and_then(|source| source_date(source, &names, file)));
    let edition = description
        .and_then(|node| child(node, "editionStmt"))
        .and_then(|statement| child(statement, "edition"));
    content.meta.edition = edition
        .or_else(|| source.and_then(|source| descendant(source, "bibl")))
        .map(rules::text)
        .filter(|text| !text.is_empty() && text.chars().count() <= LONGEST);
    content.meta.licence = description
        .and_then(|node| child(node, "publicationStmt"))
        .and_then(|statement| child(statement, "availability"))
        .and_then(licence);
    if content.language.is_none() {
        let used = profile.and_then(|profile| child(profile, "langUsage"));
        let mut languages = used.into_iter().flat_map(|used| children(used, "language"));
        content.language = match (languages.next(), languages.next()) {
            (Some(language), None) => language.attribute("ident").map(str::to_owned),
            _ => None,
        };
    }
    content
}

/// The main title: the one that says so, else the first that is not a subtitle or a series.
fn title(titles: Node<'_, '_>) -> Option<String> {
    let kind = |node: Node<'_, '_>| node.attribute("type").unwrap_or_default().to_lowercase();
    let all = || children(titles, "title");
    all()
        .find(|node| kind(*node) == "main")
        .or_else(|| {
            all().find(|node| kind(*node).is_empty() && node.attribute("level") != Some("s"))
        })
        .or_else(|| all().find(|node| !matches!(kind(*node).as_str(), "sub" | "series")))
        .map(rules::text)
        .filter(|text| !text.is_empty())
}

/// The date of the source. Where several are described, the year that the titles and the name of the
/// file both say last; else the date of the one whose year one of them says last.
fn source_date(source: Node<'_, '_>, titles: &[String], file: &str) -> Option<String> {
    let dates: Vec<String> = source
        .descendants()
        .filter(|node| node.tag_name().name() == "date")
        .filter_map(when)
        .collect();
    match dates.as_slice() {
        [] => None,
        [first, rest @ ..] if rest.iter().all(|date| date == first) => Some(first.clone()),
        _ => {
            let in_titles: Vec<&str> = titles.iter().flat_map(|title| years(title)).collect();
            let in_name: Vec<&str> = years(file).collect();
            match (in_titles.last(), in_name.last()) {
                (Some(year), Some(other)) if year == other => Some((*year).to_owned()),
                _ => {
                    let mut named = in_titles.iter().chain(&in_name).rev();
                    named.find_map(|year| dates.iter().find(|date| date.starts_with(year))).cloned()
                }
            }
        }
    }
}

/// The years that a text names.
fn years(text: &str) -> impl Iterator<Item = &str> {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    numbers.filter(|digits| digits.len() == 4 && ("1000".."2100").contains(digits))
}

/// A date as its attribute or its text says it; the first of January stands for the year alone.
fn when(date: Node<'_, '_>) -> Option<String> {
    let text = date.attribute("when").map(str::to_owned).unwrap_or_else(|| rules::text(date));
    let text = text.strip_suffix("-01-01").unwrap_or(&text).trim();
    (!text.is_empty() && text.chars().count() <= LONGEST).then(|| text.to_owned())
}

fn licence(availability: Node<'_, '_>) -> Option<String> {
    let licence = child(availability, "licence").or_else(|| child(availability, "license"));
    let address = licence.and_then(|licence| licence.attribute("target"));
    address.map(str::to_owned).or_else(|| {
        let text = rules::text(licence.unwrap_or(availability));
        (!text.is_empty() && text.chars().count() <= LONGEST).then_some(text)
    })
}

fn children<'a, 'input: 'a>(
    node: Node<'a, 'input>,
    name: &'a str,
) -> impl DoubleEndedIterator<Item = Node<'a, 'input>> + 'a {
    node.children().filter(move |child| child.tag_name().name() == name)
}

fn child<'a, 'input: 'a>(node: Node<'a, 'input>, name: &'a str) -> Option<Node<'a, 'input>> {
    node.children().find(|child| child.tag_name().name() == name)
}

fn descendant<'a, 'input: 'a>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.descendants().find(|inner| inner.tag_name().name() == name)
}
