//! The words of passages, and how well they match those of a question: BM25 (Robertson and Zaragoza,
//! The Probabilistic Relevance Framework, 2009) by tantivy, over folded words and their beginnings.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use florilegium_fold::words;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::Column;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{DocId, Score, Searcher, SegmentOrdinal, SegmentReader, TantivyDocument, Term};

use crate::error::IndexError;

/// Raised when the same text gives other terms.
pub(crate) const TERMS: &str = "words and beginnings/1";
/// Letters of a word's beginning. Cutting words off after five letters is the plainest stemming, and
/// does as well as better ones in most European languages (McNamee, Nicholas and Mayfield, 2009).
const BEGINNING: usize = 5;
/// Ends a beginning, so that it differs from the word of five letters. Folding leaves none in a word.
const CUT: char = '*';
/// Distinct terms of a question that are looked up: more than any question has.
const MOST_TERMS: usize = 1024;
/// Bytes of memory for the writer.
const MEMORY: usize = 64 << 20;

const PASSAGE: &str = "passage";
const WORDS: &str = "words";

/// Where the passages' words are kept.
pub(crate) struct Lexical {
    searcher: Searcher,
    words: Field,
}

/// The terms by which a text is found: its words, and the beginnings of the longer ones.
fn terms(text: &str) -> Vec<String> {
    words(text).into_iter().flat_map(|word| beginning(&word).into_iter().chain([word])).collect()
}

/// The beginning of a word that is not a short one or a number.
fn beginning(word: &str) -> Option<String> {
    let is_cut = word.chars().count() >= BEGINNING && !word.contains(|c: char| c.is_numeric());
    is_cut.then(|| word.chars().take(BEGINNING).chain([CUT]).collect())
}

/// One term a word, the same for all forms of it; each once.
fn keys(text: &str) -> HashSet<String> {
    words(text).into_iter().map(|word| beginning(&word).unwrap_or(word)).collect()
}

fn schema() -> (Schema, Field, Field) {
    let mut schema = Schema::builder();
    let passage = schema.add_u64_field(PASSAGE, FAST);
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::WithFreqs);
    let words = schema.add_text_field(WORDS, TextOptions::default().set_indexing_options(indexing));
    (schema.build(), passage, words)
}

/// Writes the words of passages into the new folder `path`.
pub(crate) fn write<'a>(
    path: &Path,
    texts: impl Iterator<Item = (usize, &'a str)>,
) -> Result<(), IndexError> {
    let (schema, passage, field) = schema();
    let index = tantivy::Index::create_in_dir(path, schema)?;
    // One thread: the same passages give the same segments.
    let mut writer = index.writer_with_num_threads(1, MEMORY)?;
    for (number, text) in texts {
        let tokens = terms(text)
            .into_iter()
            .enumerate()
            .map(|(position, text)| Token { position, text, ..Token::default() })
            .collect();
        let mut document = TantivyDocument::default();
        document.add_u64(passage, number as u64);
        document.add_pre_tokenized_text(field, PreTokenizedString { text: String::new(), tokens });
        writer.add_document(document)?;
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    Ok(())
}

impl Lexical {
    /// Opens the folder `path`, if it is whole and holds `passages`.
    pub(crate) fn open(path: &Path, passages: usize) -> Result<Self, IndexError> {
        let damaged = |problem: String| IndexError::Damaged { path: path.to_owned(), problem };
        let index = tantivy::Index::open_in_dir(path).map_err(|e| damaged(e.to_string()))?;
        let torn = index.validate_checksum().map_err(|e| damaged(e.to_string()))?;
        if let Some(file) = torn.iter().min() {
            return Err(damaged(format!("{} is not as it was written", file.display())));
        }
        let words = index.schema().get_field(WORDS).map_err(|e| damaged(e.to_string()))?;
        let searcher = index.reader().map_err(|e| damaged(e.to_string()))?.searcher();
        if searcher.num_docs() != passages as u64 {
            return Err(damaged(format!(
                "it holds {} passages, the manifest lists {passages}",
                searcher.num_docs()
            )));
        }
        Ok(Lexical { searcher, words })
    }

    /// The BM25 score of every passage that shares a term with the question and that `allowed` lets
    /// through.
    pub(crate) fn scores(
        &self,
        question: &str,
        allowed: Allowed,
    ) -> Result<Vec<(usize, f32)>, IndexError> {
        let mut terms = terms(question);
        terms.sort_unstable();
        terms.dedup();
        terms.truncate(MOST_TERMS);
        let clauses: Vec<(Occur, Box<dyn Query>)> = terms
            .iter()
            .map(|term| {
                let term = Term::from_field_text(self.words, term);
                let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
                (Occur::Should, Box::new(query) as Box<dyn Query>)
            })
            .collect();
        Ok(self.searcher.search(&BooleanQuery::new(clauses), &allowed)?)
    }
}

impl Lexical {
    /// How much of the question each text takes up: the share of its words that stand in the text too,
    /// in any form, each counted by its rarity in the archive (inverse document frequency, Spärck
    /// Jones, 1972). Between 0 and 1; 0 for a question without words.
    pub(crate) fn coverage(&self, question: &str, texts: &[&str]) -> Result<Vec<f32>, IndexError> {
        let documents = self.searcher.num_docs() as f64;
        let mut rarities = Vec::new();
        for key in keys(question) {
            let term = Term::from_field_text(self.words, &key);
            let with_term = self.searcher.doc_freq(&term)? as f64;
            let rarity = (1.0 + (documents - with_term + 0.5) / (with_term + 0.5)).ln();
            rarities.push((key, rarity));
        }
        // Summed in one order, so that equal questions give equal numbers.
        rarities.sort_by(|a, b| a.0.cmp(&b.0));
        let whole: f64 = rarities.iter().map(|(_, rarity)| rarity).sum();
        let share = |text: &&str| {
            let keys = keys(text);
            let common = rarities.iter().filter(|(key, _)| keys.contains(key));
            let taken: f64 = common.map(|(_, rarity)| rarity).sum();
            if whole > 0.0 { (taken / whole) as f32 } else { 0.0 }
        };
        Ok(texts.iter().map(share).collect())
    }
}

/// Which passages may be found: the shard of each passage, and whether a shard is wanted.
#[derive(Clone)]
pub(crate) struct Allowed {
    pub(crate) shard_of: Arc<[u32]>,
    pub(crate) wanted: Arc<[bool]>,
}

impl Allowed {
    fn lets_through(&self, passage: usize) -> bool {
        let shard = self.shard_of.get(passage).and_then(|&shard| self.wanted.get(shard as usize));
        shard.copied().unwrap_or(false)
    }
}

impl Collector for Allowed {
    type Fruit = Vec<(usize, f32)>;
    type Child = InSegment;

    fn for_segment(
        &self,
        _: SegmentOrdinal,
        segment: &SegmentReader,
    ) -> tantivy::Result<Self::Child> {
        let passages = segment.fast_fields().u64(PASSAGE)?;
        Ok(InSegment { passages, allowed: self.clone(), scores: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        true
    }

    fn merge_fruits(&self, fruits: Vec<Self::Fruit>) -> tantivy::Result<Self::Fruit> {
        Ok(fruits.concat())
    }
}

pub(crate) struct InSegment {
    passages: Column<u64>,
    allowed: Allowed,
    scores: Vec<(usize, f32)>,
}

impl SegmentCollector for InSegment {
    type Fruit = Vec<(usize, f32)>;

    fn collect(&mut self, document: DocId, score: Score) {
        if let Some(passage) = self.passages.first(document) {
            let passage = passage as usize;
            if self.allowed.lets_through(passage) {
                self.scores.push((passage, score));
            }
        }
    }

    fn harvest(self) -> Self::Fruit {
        self.scores
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_of_a_word_share_its_beginning() {
        assert_eq!(terms("Règles, règle"), ["regle*", "regles", "regle*", "regle"]);
        assert_eq!(terms("chat 199045"), ["chat", "199045"]);
    }
}
