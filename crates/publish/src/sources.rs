//! What the pages need of the archive beside the answers: what is known of the documents quoted, and
//! the passages quoted in what stands around them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use florilegium_corpus::{Archive, BlockKind, Document, Passage};
use florilegium_synthesis::answer::Answer;
use serde::Serialize;

/// Bytes shown before and after a passage, about.
const AROUND: usize = 1_800;

/// What is known of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DocumentFacts {
    /// Its id.
    pub id: String,
    /// Id of its collection.
    pub collection: String,
    /// Title.
    pub title: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was printed or written, as the source puts it.
    pub date: Option<String>,
    /// Which edition it is.
    pub edition: Option<String>,
    /// BCP 47 tag.
    pub language: String,
    /// Its licence, where it is not the collection's.
    pub licence: Option<String>,
    /// Its address.
    pub url: String,
}

/// A passage that is quoted, in what stands around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassageFacts {
    /// Its id.
    pub id: String,
    /// Id of its document.
    pub document: String,
    /// The document's own headings above it, outermost first.
    pub headings: Vec<String>,
    /// BCP 47 tag.
    pub language: String,
    /// Bytes in the document's canonical text.
    pub range: Range<usize>,
    /// The text shown: the passage and what stands around it.
    pub blocks: Vec<ContextBlock>,
    /// Whether the document has more before, and after.
    pub more: [bool; 2],
    /// First and last printed page.
    pub pages: Option<(String, String)>,
    /// Deep link to the original.
    pub url: String,
}

/// A stretch of a document's canonical text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextBlock {
    /// Whether it is a heading.
    pub heading: bool,
    /// Whether its line ends count: verse, code.
    pub lines: bool,
    /// First byte in the canonical text.
    pub start: usize,
    /// The text.
    pub text: String,
}

/// What is known of all documents, and the passages that the answers quote.
pub fn sources<'a>(
    archive: &Archive,
    answers: impl IntoIterator<Item = &'a Answer>,
) -> (Vec<DocumentFacts>, Vec<PassageFacts>) {
    let documents = archive.documents().iter().map(|document| facts(archive, document)).collect();
    let quoted: BTreeSet<&str> = answers
        .into_iter()
        .flat_map(|answer| &answer.groups)
        .flat_map(|group| &group.quotations)
        .map(|quotation| quotation.passage.as_str())
        .collect();
    let numbers: HashMap<&str, usize> = archive
        .passages()
        .iter()
        .enumerate()
        .map(|(at, passage)| (passage.id.as_str(), at))
        .collect();
    let passages = quoted
        .into_iter()
        .filter_map(|id| {
            let at = *numbers.get(id)?;
            let passage = archive.passages().get(at)?;
            in_context(archive, passage, at)
        })
        .collect();
    (documents, passages)
}

fn facts(archive: &Archive, document: &Document) -> DocumentFacts {
    let collection = archive.collection(&document.collection);
    DocumentFacts {
        id: document.id.clone(),
        collection: document.collection.clone(),
        title: document.title.clone(),
        author: document.meta.author.clone(),
        date: document.meta.date.clone(),
        edition: document.meta.edition.clone(),
        language: document.language.clone(),
        licence: document.meta.licence.clone(),
        url: collection.map(|collection| collection.link_to(document, None)).unwrap_or_default(),
    }
}

fn in_context(archive: &Archive, passage: &Passage, at: usize) -> Option<PassageFacts> {
    let document = archive.document(&passage.document)?;
    let collection = archive.collection(&passage.collection)?;
    // Neighbouring passages, whole, as long as they do not fill the page.
    let near = |passage: &&Passage| passage.document == document.id;
    let before = archive.passages().get(..at)?.iter().rev().take_while(near);
    let start = before
        .map(|other| other.range.start)
        .take_while(|start| passage.range.start - start <= AROUND)
        .last()
        .unwrap_or(passage.range.start);
    let after = archive.passages().get(at + 1..)?.iter().take_while(near);
    let end = after
        .map(|other| other.range.end)
        .take_while(|end| end - passage.range.end <= AROUND)
        .last()
        .unwrap_or(passage.range.end);
    let first = document.blocks.partition_point(|block| block.range.end <= start);
    let blocks: Vec<ContextBlock> = document
        .blocks
        .get(first..)?
        .iter()
        .take_while(|block| block.range.start < end)
        .filter_map(|block| {
            let range = block.range.start.max(start)..block.range.end.min(end);
            Some(ContextBlock {
                heading: matches!(block.kind, BlockKind::Heading(_)),
                lines: matches!(block.kind, BlockKind::Preformatted | BlockKind::Verse),
                start: range.start,
                text: document.slice(&range)?.to_owned(),
            })
        })
        .collect();
    Some(PassageFacts {
        id: passage.id.clone(),
        document: document.id.clone(),
        headings: passage.headings.clone(),
        language: passage.language.clone(),
        range: passage.range.clone(),
        more: [first > 0 || start > 0, end < document.text.len()],
        blocks,
        pages: document.place(&passage.range).and_then(|place| place.pages),
        url: collection.link_to(document, passage.anchor.as_deref()),
    })
}

/// Documents by id.
pub(crate) type Documents = BTreeMap<String, DocumentFacts>;

/// A piece of a context block: quoted or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) quoted: bool,
    /// Set on the first piece of a quotation: what its element is called.
    pub(crate) id: Option<String>,
}

/// Cuts a block where quotations begin and end. Those that overlap are one mark.
pub(crate) fn pieces(block: &ContextBlock, quoted: &BTreeSet<(usize, usize)>) -> Vec<Piece> {
    let end = block.start + block.text.len();
    let inside = |at: usize| block.start <= at && at <= end;
    let mut cuts: BTreeSet<usize> = [block.start, end].into();
    for (from, to) in quoted {
        cuts.extend([*from, *to].into_iter().filter(|at| inside(*at)));
    }
    let cuts: Vec<usize> = cuts.into_iter().collect();
    let mut pieces: Vec<Piece> = Vec::new();
    for pair in cuts.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        // A range that cuts a character apart is not one of ours; the text is shown all the same.
        let Some(text) = block.text.get(from - block.start..to - block.start) else {
            return vec![Piece { text: block.text.clone(), quoted: false, id: None }];
        };
        let is_quoted = quoted.iter().any(|(start, end)| *start <= from && to <= *end);
        let begins = quoted.iter().find(|(start, _)| *start == from && is_quoted);
        let id = begins.map(|(start, _)| format!("q{start}"));
        match pieces.last_mut() {
            Some(last) if last.quoted == is_quoted && id.is_none() => last.text.push_str(text),
            _ => pieces.push(Piece { text: text.to_owned(), quoted: is_quoted, id }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(start: usize, text: &str) -> ContextBlock {
        ContextBlock { heading: false, lines: false, start, text: text.to_owned() }
    }

    #[test]
    fn quotations_are_marked_in_their_block() {
        let pieces = pieces(&block(10, "one two three"), &[(14, 17), (20, 99)].into());
        let shown: Vec<(&str, bool)> =
            pieces.iter().map(|piece| (piece.text.as_str(), piece.quoted)).collect();
        assert_eq!(shown, [("one ", false), ("two", true), (" th", false), ("ree", true)]);
        assert_eq!(pieces[1].id.as_deref(), Some("q14"));
    }

    proptest! {
        #[test]
        fn no_letter_is_lost(
            text in "\\PC{0,40}",
            start in 0usize..20,
            ranges in prop::collection::btree_set((0usize..80, 0usize..80), 0..5),
        ) {
            let block = block(start, &text);
            let shown: String = pieces(&block, &ranges).into_iter().map(|piece| piece.text).collect();
            prop_assert_eq!(shown, text);
        }
    }
}
