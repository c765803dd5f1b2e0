//! Answers as templates see them.
//!
//! Only two kinds of text go through here: quotations and passages, which stay exactly as they are,
//! and everything else, which passes [`plain`] or [`link`].

use florilegium_synthesis::answer::{Answer, Counts, Excerpt, Group, Quotation};
use serde::Serialize;

use crate::error::PublishError;
use crate::text::{direction, link, plain};

/// Characters of a corpus hash that a page shows.
const SHORT_HASH: usize = 12;

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
    url: Option<String>,
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
    pub(crate) fn new(answer: &Answer) -> Result<Self, PublishError> {
        let mut number = 0;
        let mut groups = Vec::with_capacity(answer.groups.len());
        let mut document = None;
        for group in &answer.groups {
            let first = group.quotations.first().map(|quotation| quotation.document.as_str());
            groups.push(GroupView::new(group, document == first && first.is_some(), &mut number)?);
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
                .map(|source| SourceView {
                    number: source.number,
                    title: plain(&source.title),
                    collection: plain(&source.collection),
                    language: plain(&source.language),
                    dir: direction(&source.language),
                    licence: plain(&source.licence),
                    url: link(&source.url).map(str::to_owned),
                })
                .collect(),
            nearest: excerpts(&answer.nearest),
            counts: answer.counts,
            model: plain(&answer.model),
            corpus: short_hash(&answer.corpus),
        })
    }
}

impl GroupView {
    fn new(group: &Group, continued: bool, number: &mut usize) -> Result<Self, PublishError> {
        let quotations = group
            .quotations
            .iter()
            .map(|quotation| {
                *number += 1;
                QuotationView::new(quotation, *number)
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
    fn new(quotation: &Quotation, number: usize) -> Result<Self, PublishError> {
        let texts = [&quotation.text, &quotation.before, &quotation.after];
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(PublishError::Unshowable {
                document: quotation.document.clone(),
                start: quotation.range.start,
                end: quotation.range.end,
            });
        }
        Ok(QuotationView {
            number,
            source: quotation.source,
            text: quotation.text.clone(),
            before: quotation.before.clone(),
            after: quotation.after.clone(),
            language: plain(&quotation.language),
            dir: direction(&quotation.language),
            url: link(&quotation.url).map(str::to_owned),
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
fn headings(title: &str, headings: &[String]) -> Vec<String> {
    let repeated = headings.first().is_some_and(|first| first == title);
    headings.iter().skip(usize::from(repeated)).map(|heading| plain(heading)).collect()
}

/// A hash as a page shows it.
pub(crate) fn short_hash(hash: &str) -> String {
    plain(hash).chars().take(SHORT_HASH).collect()
}
