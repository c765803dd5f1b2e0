//! Rule 6: what the reader sees is cut from the stored source text, by byte range.
//!
//! A [`Synthesis`] holds places, not words. Here, and only here, places become words, and every word
//! comes from a [`florilegium_corpus`] document. Numbers, groups and links are made by this code;
//! headings are the documents' own (rule 7).

use florilegium_corpus::{Archive, Collection, Document, Passage};
use florilegium_files::sha256_hex;

use crate::answer::{Answer, Excerpt, Group, Quotation, Source};
use crate::synthesis::{Synthesis, Verified};

/// Why a synthesis cannot be shown: the archive no longer holds what it points at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A document, passage or collection is gone.
    #[error("{what} {id} is no longer in the archive; the answer must be computed again")]
    Gone {
        /// "document", "passage" or "collection".
        what: &'static str,
        /// Its id.
        id: String,
    },
    /// The text at the quotation's place is not the one that was verified.
    #[error(
        "{document}, bytes {start}..{end}: the text there has changed since it was verified; the answer must be computed again"
    )]
    Changed {
        /// Id of the document.
        document: String,
        /// First byte.
        start: usize,
        /// The byte after the last.
        end: usize,
    },
}

/// Renders a synthesis from the archive.
pub fn render(synthesis: &Synthesis, archive: &Archive) -> Result<Answer, RenderError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut sources: Vec<Source> = Vec::new();
    let mut last: Option<&Passage> = None;
    for verified in &synthesis.quotations {
        let (document, passage, collection) = look_up(archive, &verified.passage)?;
        let url = collection.link_to(document, passage.anchor.as_deref());
        let number = match sources.iter().find(|source| source.document == document.id) {
            Some(source) => source.number,
            None => {
                sources.push(Source {
                    number: sources.len() + 1,
                    document: document.id.clone(),
                    title: document.title.clone(),
                    collection: collection.title.clone(),
                    language: document.language.clone(),
                    licence: collection.licence.clone(),
                    url: url.clone(),
                });
                sources.len()
            }
        };
        let quotation = cut(verified, document, passage, number, url)?;
        let same_heading = last.is_some_and(|last| {
            last.document == passage.document && last.headings == passage.headings
        });
        last = Some(passage);
        match groups.last_mut() {
            Some(group) if same_heading => group.quotations.push(quotation),
            _ => groups.push(Group {
                title: document.title.clone(),
                headings: passage.headings.clone(),
                quotations: vec![quotation],
            }),
        }
    }
    let answered = !groups.is_empty();
    let nearest = if answered { Vec::new() } else { excerpts(&synthesis.retrieved, archive)? };
    Ok(Answer {
        question: synthesis.question.clone(),
        language: synthesis.language.clone(),
        answered,
        mode: synthesis.mode.name(),
        groups,
        sources,
        nearest,
        counts: synthesis.counts,
        model: synthesis.model.clone(),
        corpus: synthesis.corpus.clone(),
    })
}

/// Passages as they are shown in a list of results.
pub fn excerpts(passages: &[String], archive: &Archive) -> Result<Vec<Excerpt>, RenderError> {
    passages
        .iter()
        .map(|id| {
            let (document, passage, collection) = look_up(archive, id)?;
            let gone = || RenderError::Gone { what: "passage", id: id.clone() };
            Ok(Excerpt {
                passage: passage.id.clone(),
                title: document.title.clone(),
                collection: collection.title.clone(),
                headings: passage.headings.clone(),
                text: document.slice(&passage.range).ok_or_else(gone)?.to_owned(),
                language: passage.language.clone(),
                licence: collection.licence.clone(),
                url: collection.link_to(document, passage.anchor.as_deref()),
            })
        })
        .collect()
}

/// Cuts a quotation and what stands around it out of its document.
fn cut(
    verified: &Verified,
    document: &Document,
    passage: &Passage,
    source: usize,
    url: String,
) -> Result<Quotation, RenderError> {
    let range = verified.range.clone();
    let inside = passage.range.start <= range.start && range.end <= passage.range.end;
    let text = document.slice(&range).filter(|text| {
        inside
            && document.id == verified.document
            && sha256_hex(text.as_bytes()) == verified.text_hash
    });
    let changed = || RenderError::Changed {
        document: verified.document.clone(),
        start: range.start,
        end: range.end,
    };
    let text = text.ok_or_else(changed)?;
    let around = |range| document.slice(&range).map(str::to_owned).ok_or_else(changed);
    Ok(Quotation {
        source,
        text: text.to_owned(),
        before: around(passage.range.start..range.start)?,
        after: around(range.end..passage.range.end)?,
        cut_before: verified.cut_before,
        cut_after: verified.cut_after,
        language: passage.language.clone(),
        url,
        document: document.id.clone(),
        passage: passage.id.clone(),
        range,
    })
}

/// A passage with its document and collection.
fn look_up<'a>(
    archive: &'a Archive,
    id: &str,
) -> Result<(&'a Document, &'a Passage, &'a Collection), RenderError> {
    let gone = |what, id: &str| RenderError::Gone { what, id: id.to_owned() };
    let passage = archive.passage(id).ok_or_else(|| gone("passage", id))?;
    let document =
        archive.document(&passage.document).ok_or_else(|| gone("document", &passage.document))?;
    let collection = archive
        .collection(&passage.collection)
        .ok_or_else(|| gone("collection", &passage.collection))?;
    Ok((document, passage, collection))
}
