//! What comes into the pipeline: a question, and the passages found for it.

use florilegium_corpus::Passage;

/// A retrieved passage.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The passage.
    pub passage: &'a Passage,
    /// Title of its document.
    pub title: &'a str,
    /// Its text: a slice of the stored canonical text.
    pub text: &'a str,
    /// Cosine of question and passage.
    pub similarity: f32,
}

/// The question that is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// As the reader wrote it.
    pub text: &'a str,
    /// BCP 47 tag.
    pub language: &'a str,
}

/// How like the question a sentence is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// Cosine of both.
    pub similarity: f32,
    /// Share of the question's words, weighed by their rarity, that stand in the sentence, or in the
    /// title and headings above it.
    pub coverage: f32,
}

/// Computes the likeness of the question and each of some sentences, which stand under some headings.
pub type Compare<'a> = &'a dyn Fn(&[&str], &str) -> Result<Vec<Likeness>, String>;
