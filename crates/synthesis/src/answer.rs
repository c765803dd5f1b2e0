//! The answer as a reader gets it, whatever it is rendered to: HTML, JSON or a terminal.
//!
//! Every text in it was cut from the stored canonical text by [`crate::render`]; nothing here can
//! come from a model.

use std::ops::Range;

use serde::Serialize;

/// A rendered answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The question, as it was asked.
    pub question: String,
    /// BCP 47 tag of the question.
    pub language: String,
    /// False when the documentary material is insufficient: then `groups` and `sources` are empty.
    pub answered: bool,
    /// "full" or "degraded".
    pub mode: &'static str,
    /// Verified quotations in the order they are shown, under their documents' own headings.
    pub groups: Vec<Group>,
    /// The numbered sources, in order of first appearance.
    pub sources: Vec<Source>,
    /// When insufficient: the nearest passages, which are *not* an answer.
    pub nearest: Vec<Excerpt>,
    /// What became of the material on the way.
    pub counts: Counts,
    /// Id of the language model that chose.
    pub model: String,
    /// Hash of the corpus the answer was made from.
    pub corpus: String,
}

/// Quotations that stand under one heading of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Title of the document.
    pub title: String,
    /// The document's own headings, outermost first; may be empty.
    pub headings: Vec<String>,
    /// The quotations, in the order of the text.
    pub quotations: Vec<Quotation>,
}

/// One verified quotation: a slice of a stored text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Quotation {
    /// Number of the source, from 1.
    pub source: usize,
    /// The bytes of the stored canonical text at `range`.
    pub text: String,
    /// The passage before the quotation.
    pub before: String,
    /// The passage after the quotation.
    pub after: String,
    /// Whether it begins inside a sentence: something of the sentence is left out before it.
    pub cut_before: bool,
    /// Whether it ends inside a sentence.
    pub cut_after: bool,
    /// BCP 47 tag of the text.
    pub language: String,
    /// Deep link to the place in the original.
    pub url: String,
    /// Id of the document.
    pub document: String,
    /// Id of the passage.
    pub passage: String,
    /// Bytes in the document's canonical text.
    pub range: Range<usize>,
}

/// A document that is quoted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// From 1, in order of first appearance.
    pub number: usize,
    /// Id of the document.
    pub document: String,
    /// Title of the document.
    pub title: String,
    /// Title of its collection.
    pub collection: String,
    /// BCP 47 tag.
    pub language: String,
    /// Licence line of the collection.
    pub licence: String,
    /// Link to the first place quoted from it.
    pub url: String,
}

/// A passage that was found and is shown as such.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// Id of the passage.
    pub passage: String,
    /// Title of the document.
    pub title: String,
    /// Title of the collection.
    pub collection: String,
    /// The document's own headings, outermost first.
    pub headings: Vec<String>,
    /// The passage.
    pub text: String,
    /// BCP 47 tag of the text.
    pub language: String,
    /// Licence line of the collection.
    pub licence: String,
    /// Deep link to the place in the original.
    pub url: String,
}

/// How many passages and quotations there were at each step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Counts {
    /// Passages retrieved.
    pub retrieved: usize,
    /// Passages judged directly relevant.
    pub relevant: usize,
    /// Quotations proposed.
    pub proposed: usize,
    /// Quotations that the verification rejected.
    pub rejected: usize,
    /// Quotations shown.
    pub shown: usize,
}
