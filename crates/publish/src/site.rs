//! What a site is made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use florilegium_synthesis::answer::Answer;
use serde::Serialize;

use crate::error::PublishError;
use crate::sources::{DocumentFacts, Documents, PassageFacts};
use crate::theme::Theme;

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
    /// The whole address under which the site is served, as `https://example.org/books/`. Without it
    /// there are no permalinks, no feeds and no sitemap, for these need whole addresses.
    pub base_url: Option<String>,
    /// Where the ask box leads: the live server's address, whole or from the root of the site; without
    /// one, it leads to the list of questions.
    pub live: Option<String>,
    /// The questions with their answers, in the order they are listed.
    pub entries: Vec<Entry>,
    /// Former ids of questions, and the ids they have now.
    pub renamed: BTreeMap<String, String>,
    /// What is known of the documents.
    pub documents: Vec<DocumentFacts>,
    /// The passages quoted, in their context.
    pub passages: Vec<PassageFacts>,
    /// The archive in figures, for the page that explains how it works.
    pub facts: Facts,
    /// What it looks like.
    pub theme: Arc<Theme>,
}

/// How a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Its answer is the newest.
    Current,
    /// Its answer should have been computed anew and could not be.
    Stale,
    /// No longer asked: its page stays, says so, and is in no list.
    Retired,
    /// Not yet published; shown in previews only.
    Draft,
}

/// A curated question and its answer.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Part of the page's address; a to z, digits and hyphens.
    pub id: String,
    /// Language of the page; one of the site's.
    pub lang: String,
    /// Other wordings of the question.
    pub variants: Vec<String>,
    /// Topics.
    pub tags: Vec<String>,
    /// The answer.
    pub answer: Answer,
    /// When it was computed: an ISO date, as `2026-11-30`; empty when it was not.
    pub computed_on: String,
    /// How the question stands.
    pub standing: Standing,
}

impl Entry {
    /// Whether it is in the lists and in the index.
    pub(crate) fn is_listed(&self) -> bool {
        self.standing != Standing::Retired
    }
}

/// The archive in figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// Passages kept as relevant, at most.
    pub relevant: usize,
    /// Sentences judged, at most.
    pub sentences: usize,
    /// Quotations shown, at most.
    pub quotations: usize,
    /// Probability from which a passage counts as relevant.
    pub relevant_at: f64,
    /// Probability from which the material counts as sufficient.
    pub answer_at: f64,
    /// Probability from which a quotation is shown.
    pub show_at: f64,
    /// Weight of the words against 1 for the meaning.
    pub lexical_weight: f64,
    /// Tokens that the language model's memory holds.
    pub context: usize,
    /// Servers that the language model runs on; 0 for this program's own process.
    pub servers: usize,
    /// Seconds allowed for one question.
    pub deadline_seconds: u64,
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
    /// Its id; part of its page's address.
    pub id: String,
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
    /// The whole address of the site, if it is known.
    pub base_url: Option<String>,
    /// Where the ask box leads.
    pub live: Option<String>,
    /// Whether the live server notes the questions it is asked; its pages say so.
    pub logged: bool,
    /// What is known of the documents.
    pub(crate) documents: Arc<Documents>,
    /// What it looks like.
    pub theme: Arc<Theme>,
}

impl Site {
    /// What is around the text of every page.
    pub fn chrome(&self) -> Chrome {
        let documents = self.documents.iter().map(|facts| (facts.id.clone(), facts.clone()));
        Chrome {
            title: self.title.clone(),
            languages: self.languages.clone(),
            base_path: self.base_path.clone(),
            base_url: self.base_url.clone(),
            live: self.live.clone(),
            logged: false,
            documents: Arc::new(documents.collect()),
            theme: self.theme.clone(),
        }
    }
}

impl Chrome {
    /// The same, with what is known of the documents.
    pub fn with_documents(mut self, documents: &[DocumentFacts]) -> Self {
        let documents = documents.iter().map(|facts| (facts.id.clone(), facts.clone()));
        self.documents = Arc::new(documents.collect());
        self
    }

    /// What is around pages that quote no document yet.
    pub fn new(title: BTreeMap<String, String>, languages: Vec<String>, theme: Arc<Theme>) -> Self {
        Chrome {
            title,
            languages,
            base_path: "/".to_owned(),
            base_url: None,
            live: None,
            logged: false,
            documents: Arc::default(),
            theme,
        }
    }

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
