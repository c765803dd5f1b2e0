//! Answers as templates see them.
//!
//! Only two kinds of text go through here: quotations and passages, which stay exactly as they are,
//! and everything else, which passes [`plain`] or [`link`].

use std::collections::BTreeMap;

use florilegium_files::sha256_hex;
use florilegium_synthesis::answer::{Answer, Counts, Excerpt, Group, Quotation, Source};
use serde::Serialize;

use crate::cite::{self, Reference};
use crate::error::PublishError;
use crate::slug;
use crate::sources::{DocumentFacts, Documents};
use crate::text::{direction, link, plain, text_fragment};

/// Characters of a corpus hash that a page shows.
const SHORT_HASH: usize = 12;

/// What is known of passages that have a page of their own, by id.
pub(crate) type Places = BTreeMap<String, Place>;

/// Where a passage's page is, and where the passage stands in print.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Path of the page, below the folder of a language.
    pub(crate) path: String,
    /// As "12" or "12–13".
    pub(crate) pages: Option<String>,
}

/// What an answer's page may know beside the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) documents: &'a Documents,
    pub(crate) places: &'a Places,
}

/// An answer, and what the page says around it.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerView {
    pub(crate) question: String,
    pub(crate) language: String,
    pub(crate) dir: &'static str,
    pub(crate) answered: bool,
    pub(crate) full: bool,
    pub(crate) groups: Vec<GroupView>,
    pub(crate) sources: Vec<SourceView>,
    pub(crate) nearest: Vec<ExcerptView>,
    pub(crate) counts: Counts,
    pub(crate) model: String,
    pub(crate) corpus: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct GroupView {
    /// None where the group above has the same.
    title: Option<String>,
    headings: Vec<String>,
    language: String,
    dir: &'static str,
    quotations: Vec<QuotationView>,
}

#[derive(Debug, Serialize)]
pub(crate) struct QuotationView {
    /// Number of the quotation on the page, from 1.
    number: usize,
    source: usize,
    text: String,
    before: String,
    after: String,
    language: String,
    dir: &'static str,
    /// The original, with a directive that marks the quotation in it.
    url: Option<String>,
    /// Its place on the page of its passage, below the folder of the language.
    place: Option<String>,
    pages: Option<String>,
    /// Whether it is only a part of a sentence.
    cut: bool,
    document: String,
    start: usize,
    end: usize,
}

#[derive(Debug, Serialize)]
pub(crate) struct SourceView {
    number: usize,
    title: String,
    collection: String,
    language: String,
    dir: &'static str,
    licence: String,
    url: Option<String>,
    author: Option<String>,
    date: Option<String>,
    edition: Option<String>,
    /// Path of the collection's page, below the folder of the language.
    collection_path: Option<String>,
    /// The page of the first passage quoted from it, where its references are.
    place: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ExcerptView {
    passage: String,
    title: String,
    collection: String,
    headings: Vec<String>,
    text: String,
    language: String,
    dir: &'static str,
    licence: String,
    url: Option<String>,
}

impl AnswerView {
    pub(crate) fn new(answer: &Answer, known: Known<'_>) -> Result<Self, PublishError> {
        let mut number = 0;
        let mut groups = Vec::with_capacity(answer.groups.len());
        let mut document = None;
        for group in &answer.groups {
            let first = group.quotations.first().map(|quotation| quotation.document.as_str());
            let continued = document == first && first.is_some();
            groups.push(GroupView::new(group, continued, &mut number, known)?);
            document = first;
        }
        Ok(AnswerView {
            question: plain(&answer.question),
            language: plain(&answer.language),
            dir: direction(&answer.language),
            answered: answer.answered,
            full: answer.mode == "full",
            groups,
            sources: answer
                .sources
                .iter()
                .map(|source| SourceView::new(source, answer, known))
                .collect(),
            nearest: excerpts(&answer.nearest),
            counts: answer.counts,
            model: plain(&answer.model),
            corpus: short_hash(&answer.corpus),
        })
    }
}

impl SourceView {
    fn new(source: &Source, answer: &Answer, known: Known<'_>) -> Self {
        let facts = known.documents.get(&source.document);
        let fact = |of: fn(&DocumentFacts) -> &Option<String>| {
            facts.and_then(|facts| of(facts).as_deref()).map(plain)
        };
        let quotations = answer.groups.iter().flat_map(|group| &group.quotations);
        let place = quotations
            .filter(|quotation| quotation.source == source.number)
            .find_map(|quotation| known.places.get(&quotation.passage));
        SourceView {
            number: source.number,
            title: plain(&source.title),
            collection: plain(&source.collection),
            language: plain(&source.language),
            dir: direction(&source.language),
            licence: fact(|facts| &facts.licence).unwrap_or_else(|| plain(&source.licence)),
            url: link(&source.url).map(str::to_owned),
            author: fact(|facts| &facts.author),
            date: fact(|facts| &facts.date),
            edition: fact(|facts| &facts.edition),
            collection_path: facts.map(|facts| format!("c/{}/", slug::of_id(&facts.collection))),
            place: place.map(|place| place.path.clone()),
        }
    }
}

/// The source as something to cite; `pages` are those of one passage.
pub(crate) fn source_reference(
    source: &Source,
    pages: Option<&str>,
    site: &str,
    known: Known<'_>,
) -> Reference {
    let facts = known.documents.get(&source.document);
    let fact =
        |of: fn(&DocumentFacts) -> &Option<String>| facts.and_then(|facts| of(facts).clone());
    let key = sha256_hex(source.document.as_bytes());
    Reference {
        key: format!("{site}-{}", key.get(..10).unwrap_or(&key)),
        kind: "document",
        title: plain(&source.title),
        container: plain(&source.collection),
        author: fact(|facts| &facts.author).as_deref().map(plain),
        date: fact(|facts| &facts.date).as_deref().map(plain),
        edition: fact(|facts| &facts.edition).as_deref().map(plain),
        pages: pages.map(plain),
        language: plain(&source.language),
        licence: Some(
            fact(|facts| &facts.licence).as_deref().map_or_else(|| plain(&source.licence), plain),
        ),
        note: None,
        url: link(&source.url).map(str::to_owned),
    }
}

/// What a page offers for citing: a line to copy, and files.
#[derive(Debug, Serialize)]
pub(crate) struct CiteView {
    line: String,
}

impl CiteView {
    pub(crate) fn new(reference: &Reference) -> Self {
        CiteView { line: cite::line(reference) }
    }
}

impl GroupView {
    fn new(
        group: &Group,
        continued: bool,
        number: &mut usize,
        known: Known<'_>,
    ) -> Result<Self, PublishError> {
        let quotations = group
            .quotations
            .iter()
            .map(|quotation| {
                *number += 1;
                QuotationView::new(quotation, *number, known)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let language = group
            .quotations
            .first()
            .map(|quotation| plain(&quotation.language))
            .unwrap_or_default();
        Ok(GroupView {
            title: (!continued).then(|| plain(&group.title)),
            headings: headings(&group.title, &group.headings),
            dir: direction(&language),
            language,
            quotations,
        })
    }
}

impl QuotationView {
    fn new(quotation: &Quotation, number: usize, known: Known<'_>) -> Result<Self, PublishError> {
        let texts = [&quotation.text, &quotation.before, &quotation.after];
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(PublishError::Unshowable {
                document: quotation.document.clone(),
                start: quotation.range.start,
                end: quotation.range.end,
            });
        }
        let place = known.places.get(&quotation.passage);
        Ok(QuotationView {
            number,
            place: place.map(|place| format!("{}#q{}", place.path, quotation.range.start)),
            pages: place.and_then(|place| place.pages.clone()),
            source: quotation.source,
            text: quotation.text.clone(),
            before: quotation.before.clone(),
            after: quotation.after.clone(),
            language: plain(&quotation.language),
            dir: direction(&quotation.language),
            url: link(&quotation.url).map(|url| text_fragment(url, &quotation.text)),
            cut: quotation.cut_before || quotation.cut_after,
            document: quotation.document.clone(),
            start: quotation.range.start,
            end: quotation.range.end,
        })
    }
}

/// Passages that are shown as such.
pub(crate) fn excerpts(excerpts: &[Excerpt]) -> Vec<ExcerptView> {
    let view = |excerpt: &Excerpt| ExcerptView {
        passage: plain(&excerpt.passage),
        title: plain(&excerpt.title),
        collection: plain(&excerpt.collection),
        headings: headings(&excerpt.title, &excerpt.headings),
        text: excerpt.text.clone(),
        language: plain(&excerpt.language),
        dir: direction(&excerpt.language),
        licence: plain(&excerpt.licence),
        url: link(&excerpt.url).map(str::to_owned),
    };
    excerpts.iter().map(view).collect()
}

/// The headings, without a first one that says the same as the title above it.
pub(crate) fn headings(title: &str, headings: &[String]) -> Vec<String> {
    let repeated = headings.first().is_some_and(|first| first == title);
    headings.iter().skip(usize::from(repeated)).map(|heading| plain(heading)).collect()
}

/// A hash as a page shows it.
pub(crate) fn short_hash(hash: &str) -> String {
    plain(hash).chars().take(SHORT_HASH).collect()
}
