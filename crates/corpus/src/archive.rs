//! Everything one archive holds, with look-ups by id.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::document::{Collection, Document, Passage};
use crate::editions::{self, Near};

/// The documents and passages of all collections, in a fixed order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Archive {
    collections: Vec<Collection>,
    documents: Vec<Document>,
    passages: Vec<Passage>,
    #[serde(skip)]
    document_at: HashMap<String, usize>,
    #[serde(skip)]
    passage_at: HashMap<String, usize>,
    /// Found when they are first asked for.
    #[serde(skip)]
    near: OnceLock<Near>,
}

impl Archive {
    /// Puts an archive together. The order given is kept: a passage's position is its number in
    /// the index.
    pub fn new(
        collections: Vec<Collection>,
        documents: Vec<Document>,
        passages: Vec<Passage>,
    ) -> Self {
        Archive { collections, documents, passages, ..Self::default() }.with_look_ups()
    }

    /// Builds the look-ups, which are not stored. Call it after reading a stored archive.
    pub fn with_look_ups(mut self) -> Self {
        let number = |(at, id): (usize, &String)| (id.clone(), at);
        self.document_at = self.documents.iter().map(|d| &d.id).enumerate().map(number).collect();
        self.passage_at = self.passages.iter().map(|p| &p.id).enumerate().map(number).collect();
        self
    }

    /// Takes it apart: documents and passages.
    pub fn into_parts(self) -> (Vec<Document>, Vec<Passage>) {
        (self.documents, self.passages)
    }

    /// The collections, as the pipeline file lists them.
    pub fn collections(&self) -> &[Collection] {
        &self.collections
    }

    /// All documents, by collection and path.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// All passages, by document and place.
    pub fn passages(&self) -> &[Passage] {
        &self.passages
    }

    /// The collection with this id.
    pub fn collection(&self, id: &str) -> Option<&Collection> {
        self.collections.iter().find(|collection| collection.id == id)
    }

    /// The document with this id.
    pub fn document(&self, id: &str) -> Option<&Document> {
        self.document_at.get(id).and_then(|&at| self.documents.get(at))
    }

    /// The passage with this id.
    pub fn passage(&self, id: &str) -> Option<&Passage> {
        self.passage_at.get(id).and_then(|&at| self.passages.get(at))
    }

    /// The position of the passage with this id.
    pub(crate) fn passage_number(&self, id: &str) -> Option<usize> {
        self.passage_at.get(id).copied()
    }

    /// The near passages of each.
    pub(crate) fn near(&self) -> &Near {
        self.near.get_or_init(|| editions::near(self))
    }

    /// The text of a passage: a slice of its document's canonical text.
    pub fn text(&self, passage: &Passage) -> Option<&str> {
        self.document(&passage.document).and_then(|document| document.slice(&passage.range))
    }
}
