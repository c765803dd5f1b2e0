//! Reads an index: the same way, file by file, as a browser does.

use std::collections::HashMap;

use florilegium_fold::fold;
use serde::de::DeserializeOwned;

use crate::format::{
    self, EdgeError, Exact, Language, Part, ROOT_PART, Root, Texts, Words, take_number,
};
use crate::likeness::{allowed, distance, shared_pairs};
use crate::terms::{hash, shard_of, terms};
use crate::writer::ROOT;

/// Where the files come from: the bytes at a path of the site, or none.
pub trait Fetch {
    /// The file at `path`.
    fn fetch(&self, path: &str) -> Option<Vec<u8>>;
}

impl<F: Fn(&str) -> Option<Vec<u8>>> Fetch for F {
    fn fetch(&self, path: &str) -> Option<Vec<u8>> {
        self(path)
    }
}

/// A curated question that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// BCP 47 tag.
    pub language: String,
    /// Its id.
    pub id: String,
    /// As it is shown.
    pub question: String,
}

/// A curated question that is like what was typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The question.
    pub found: Found,
    /// How like it is, 0 to 1.
    pub likeness: f64,
}

/// Terms of what was typed that are looked up.
const MOST_TERMS: usize = 12;
/// Words that one term may stand for while it is being typed.
const MOST_COMPLETIONS: usize = 40;
/// Questions whose texts are compared.
const COMPARED: usize = 8;
/// What a term counts that is only the beginning of a word; what is taken off for each change in it; what
/// a word counts that is like it where the term itself is known.
const COMPLETION: f64 = 0.8;
const PER_CHANGE: f64 = 0.25;
const OTHER_FORM: f64 = 0.6;
/// What is asked must share this part of its weight with a suggestion.
const LEAST: f64 = 0.2;

/// An index that is read as it is needed.
pub struct Reader<F> {
    files: F,
    root: Root,
    id: [u8; 8],
}

impl<F: Fetch> Reader<F> {
    /// Opens an index.
    pub fn open(files: F) -> Result<Self, EdgeError> {
        let missing = || EdgeError::Missing { path: ROOT.to_owned() };
        let bytes = files.fetch(ROOT).ok_or_else(missing)?;
        let (id, root) = format::open(ROOT, ROOT_PART, &bytes)?;
        Ok(Reader { files, root, id })
    }

    /// The id of the index, in hexadecimal.
    pub fn id(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.id))
    }

    fn part<T: DeserializeOwned>(&self, part: Part, name: &str) -> Result<T, EdgeError> {
        let path = format!("edge/{}/{name}.flx", self.id());
        let bytes =
            self.files.fetch(&path).ok_or_else(|| EdgeError::Missing { path: path.clone() })?;
        let (id, value) = format::open(&path, part, &bytes)?;
        if id == self.id { Ok(value) } else { Err(EdgeError::Mixed { path }) }
    }

    /// The question of which `text` is a wording: equal, after folding, to it or to a variant; in
    /// `language` if there is one, else in another.
    pub fn exact(&self, language: &str, text: &str) -> Result<Option<Found>, EdgeError> {
        let folded = fold(text);
        if folded.is_empty() {
            return Ok(None);
        }
        let hash = hash(&folded);
        let shard = shard_of(hash, self.root.exact_bits);
        let exact: Exact =
            self.part(Part { kind: 2, language: 0, shard }, &format!("e-{shard}"))?;
        let pairs = exact.hashes.iter().zip(&exact.owners);
        let owners = pairs.filter(|(known, _)| **known == hash).map(|(_, owner)| *owner);
        let mut found: Vec<Found> = Vec::new();
        for owner in owners {
            let Some(other) = self.root.languages.get((owner >> 24) as usize) else { continue };
            let line = self.line((owner >> 24) as u8, other, owner & 0xff_ffff)?;
            if line.wordings.iter().any(|wording| fold(wording) == folded) {
                found.push(line.into_found(&other.tag));
            }
        }
        let own = found.iter().position(|found| found.language == language);
        Ok(match own {
            Some(at) => Some(found.swap_remove(at)),
            None if found.is_empty() => None,
            None => Some(found.swap_remove(0)),
        })
    }

    /// The questions in `language` that are most like `text`, the likest first. The last word counts as
    /// one that may still be being typed.
    pub fn suggest(
        &self,
        language: &str,
        text: &str,
        count: usize,
    ) -> Result<Vec<Suggestion>, EdgeError> {
        let at = self.root.languages.iter().position(|known| known.tag == language);
        let Some((at, known)) = at.and_then(|at| Some((at, self.root.languages.get(at)?))) else {
            return Ok(Vec::new());
        };
        let folded = fold(text);
        let mut asked: Vec<String> = Vec::new();
        for term in terms(&folded) {
            if !asked.contains(&term) && asked.len() < MOST_TERMS {
                asked.push(term);
            }
        }
        let unfinished = text.chars().next_back().is_some_and(|c| !c.is_whitespace());
        let mut scores: HashMap<u32, f64> = HashMap::new();
        let mut weight_of_all = 0.0;
        for (number, term) in asked.iter().enumerate() {
            let last = unfinished && number + 1 == asked.len();
            let (weight, matches) = self.matches(at as u8, known, term, last)?;
            weight_of_all += weight;
            for (question, score) in matches {
                *scores.entry(question).or_default() += score;
            }
        }
        let mut best: Vec<(u32, f64)> = scores.into_iter().collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        best.retain(|(_, score)| *score >= LEAST * weight_of_all);
        best.truncate(COMPARED.max(count));
        let mut suggestions = Vec::with_capacity(best.len());
        for (question, score) in best {
            let line = self.line(at as u8, known, question)?;
            let pairs = line.wordings.iter().map(|wording| shared_pairs(&folded, &fold(wording)));
            let nearest = pairs.fold(0.0, f64::max);
            let likeness = 0.5 * score / weight_of_all + 0.5 * nearest;
            suggestions.push(Suggestion { found: line.into_found(&known.tag), likeness });
        }
        // Equally like ones stay in the order of their shared words, then of the list.
        suggestions.sort_by(|a, b| b.likeness.total_cmp(&a.likeness));
        suggestions.truncate(count);
        Ok(suggestions)
    }

    /// What a term weighs, and the questions that it stands in or is like a word of.
    fn matches(
        &self,
        language: u8,
        known: &Language,
        term: &str,
        unfinished: bool,
    ) -> Result<(f64, HashMap<u32, f64>), EdgeError> {
        let mut scores: HashMap<u32, f64> = HashMap::new();
        let mut own_weight = None;
        let mut any = false;
        let letters: Vec<char> = term.chars().collect();
        for (number, form) in forms(&letters).iter().enumerate() {
            // The shards of other beginnings are fetched only for a word that is not known.
            if number > 0 && (any || letters.len() < 4) {
                break;
            }
            let Some(shard) = shard_of_word(known, form) else { break };
            let words: Words =
                self.part(Part { kind: 3, language, shard }, &format!("w-{}-{shard}", known.tag))?;
            let known_word = words.words.split('\n').any(|word| word == term);
            let other_form = if known_word { OTHER_FORM } else { 1.0 };
            let mut postings = words.postings.as_slice();
            let mut completions = 0;
            for word in words.words.split('\n') {
                let Some(list) = take_list(&mut postings) else { break };
                let factor = if word == term {
                    any = true;
                    own_weight = Some(weight(known.questions, list.len()));
                    // What is like a common word is no sign of anything.
                    if list.is_empty() && !unfinished {
                        return Ok((0.0, HashMap::new()));
                    }
                    1.0
                } else {
                    let completes = unfinished
                        && letters.len() > 1
                        && completions < MOST_COMPLETIONS
                        && word.starts_with(term);
                    completions += usize::from(completes);
                    let word: Vec<char> = word.chars().collect();
                    let changes = distance(&letters, &word, allowed(letters.len()));
                    let like = changes.map_or(0.0, |changes| 1.0 - PER_CHANGE * changes as f64);
                    let like = like * other_form;
                    any |= (like > 0.0 || completes) && !list.is_empty();
                    if completes { like.max(COMPLETION) } else { like }
                };
                let score = factor * weight(known.questions, list.len());
                if factor > 0.0 {
                    for question in list {
                        let best = scores.entry(question).or_default();
                        *best = best.max(score);
                    }
                }
            }
        }
        // A word that is not known weighs as much as the best that it may have meant.
        let best = scores.values().copied().fold(0.0, f64::max);
        Ok((own_weight.unwrap_or(0.0).max(best), scores))
    }

    fn line(&self, language: u8, known: &Language, question: u32) -> Result<Line, EdgeError> {
        let shard = question / self.root.block.max(1);
        let name = format!("t-{}-{shard}", known.tag);
        let texts: Texts = self.part(Part { kind: 4, language, shard }, &name)?;
        let line = texts.lines.split('\n').nth((question % self.root.block.max(1)) as usize);
        let mut fields = line.unwrap_or_default().split('\t').map(str::to_owned);
        let (Some(id), wordings) = (fields.next(), fields.collect::<Vec<_>>()) else {
            return Ok(Line::default());
        };
        Ok(Line { id, wordings })
    }
}

/// A question as its text shard has it.
#[derive(Default)]
struct Line {
    id: String,
    wordings: Vec<String>,
}

impl Line {
    fn into_found(self, language: &str) -> Found {
        let question = self.wordings.into_iter().next().unwrap_or_default();
        Found { language: language.to_owned(), id: self.id, question }
    }
}

/// A word, and what it would be if its beginning were wrong: the first letter added by mistake, the
/// first two exchanged. The other letters do not change the shard, as a rule.
fn forms(letters: &[char]) -> [String; 3] {
    let without: String = letters.iter().skip(1).collect();
    let mut exchanged = letters.to_vec();
    if exchanged.len() > 1 {
        exchanged.swap(0, 1);
    }
    [letters.iter().collect(), without, exchanged.into_iter().collect()]
}

/// The shard in which a word stands, if it stands in any.
fn shard_of_word(language: &Language, word: &str) -> Option<u32> {
    if language.first_words.is_empty() {
        return None;
    }
    let after = language.first_words.split('\n').take_while(|first| *first <= word).count();
    Some(after.saturating_sub(1) as u32)
}

/// The questions of the next word.
fn take_list(postings: &mut &[u8]) -> Option<Vec<u32>> {
    let count = take_number(postings)?;
    let mut list = Vec::new();
    let mut before: u32 = 0;
    for _ in 0..count {
        before = before.checked_add(take_number(postings)?)?;
        list.push(before);
    }
    Some(list)
}

/// What a word weighs: the rarer, the more. One without postings is too common to weigh anything.
fn weight(questions: u32, occurrences: usize) -> f64 {
    if occurrences == 0 { 0.0 } else { (1.0 + f64::from(questions) / occurrences as f64).ln() }
}
