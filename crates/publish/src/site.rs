//! What a site is made from.

use std::collections::BTreeMap;

use florilegium_synthesis::answer::Answer;
use serde::Serialize;

use crate::error::PublishError;

/// Everything that [`render`](crate::render) needs.
#[derive(Debug, Clone)]
pub struct Site {
    /// Name of the site in the public folder; a to z, digits and hyphens.
    pub id: String,
    /// Title by language; where a language has none, English or the first one serves.
    pub title: BTreeMap<String, String>,
    /// Languages of the pages, the default one first.
    pub languages: Vec<String>,
    /// Path under which the site is served, "/" as a rule. Only the page for wrong addresses uses
    /// it: it is shown at any depth, so that it cannot lead anywhere by a relative link.
    pub base_path: String,
    /// The published questions with their answers, in the order they are listed.
    pub entries: Vec<Entry>,
    /// The archive in figures, for the page that explains how it works.
    pub facts: Facts,
}

/// A curated question and its answer.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Part of the page's address; a to z, digits and hyphens.
    pub id: String,
    /// Language of the page; one of the site's.
    pub lang: String,
    /// Topics.
    pub tags: Vec<String>,
    /// The answer.
    pub answer: Answer,
    /// When it was computed: an ISO date, as `2026-11-30`.
    pub computed_on: String,
    /// True when it should have been computed anew and could not be.
    pub stale: bool,
}

/// The archive in figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Id of the embedding model.
    pub embedding_model: String,
    /// Numbers in a vector.
    pub dimension: usize,
    /// Id of the language model.
    pub language_model: String,
    /// "full" or "degraded".
    pub mode: String,
    /// The most tokens that a passage may have.
    pub passage_budget: usize,
    /// Passages retrieved for a question.
    pub retrieved: usize,
    /// The collections.
    pub collections: Vec<CollectionFacts>,
    /// Hash of the corpus.
    pub corpus: String,
    /// Version of the program.
    pub program: String,
    /// When the site was made: an ISO date.
    pub made_on: String,
}

/// A collection in figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CollectionFacts {
    /// Its title.
    pub title: String,
    /// BCP 47 tag.
    pub language: String,
    /// True when it feeds answers, false when it is only searched.
    pub answers: bool,
    /// Licence line.
    pub licence: String,
    /// Documents in it.
    pub documents: usize,
    /// Passages in it.
    pub passages: usize,
    /// Words in it.
    pub words: usize,
}

/// What is around the text of every page; all that the live server needs of a site.
#[derive(Debug, Clone)]
pub struct Chrome {
    /// Title by language.
    pub title: BTreeMap<String, String>,
    /// Languages of the pages, the default one first.
    pub languages: Vec<String>,
    /// Path under which the site is served, "/" as a rule.
    pub base_path: String,
}

impl Site {
    /// What is around the text of every page.
    pub fn chrome(&self) -> Chrome {
        Chrome {
            title: self.title.clone(),
            languages: self.languages.clone(),
            base_path: self.base_path.clone(),
        }
    }
}

impl Chrome {
    pub(crate) fn title_in(&self, language: &str) -> &str {
        self.title
            .get(language)
            .or_else(|| self.title.get("en"))
            .or_else(|| self.title.values().next())
            .map(String::as_str)
            .unwrap_or("Florilegium")
    }

    /// The language to speak to someone who asks for `language`: that one, or the default.
    pub(crate) fn speak<'a>(&'a self, language: &'a str) -> Result<&'a str, PublishError> {
        let known = self.languages.iter().find(|known| *known == language);
        known.or(self.languages.first()).map(String::as_str).ok_or(PublishError::NoLanguage)
    }
}

/// Refuses an id that is not safe as part of an address and of a path.
pub(crate) fn check_id(what: &'static str, id: &str) -> Result<(), PublishError> {
    let sound = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if id.is_empty() || !id.bytes().all(sound) || (what == "site id" && id == "releases") {
        return Err(PublishError::Id { what, id: id.to_owned() });
    }
    Ok(())
}
