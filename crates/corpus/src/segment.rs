//! Documents to passages.
//!
//! A passage is a run of whole sentences under one heading path whose text, counted as it will be
//! embedded, is within the budget. Every block but headings is in exactly one passage, or, if it is
//! longer than the budget, in several that follow one another. Where a run of blocks needs more than
//! one passage, the cuts are those that cost least: few passages, cuts between blocks rather than
//! inside one, no crumbs, an introduction together with the first thing that it introduces, a term
//! together with its definition.
//!
//! A sentence longer than the budget is cut at its clauses, at worst between words, and a word longer
//! than the budget between characters; nothing is ever dropped.

use std::collections::HashMap;
use std::ops::Range;

use florilegium_files::sha256_hex;
use unicode_segmentation::UnicodeSegmentation;

use crate::document::{Block, BlockKind, Document, Passage};
use crate::language;
use crate::sentence;

/// Passages of fewer tokens are crumbs: too little to be found by or judged on.
const CRUMB: usize = 25;
/// What a cut inside a block costs, in passages.
const INSIDE_BLOCK: f64 = 1.2;
/// What a cut costs between an introduction and what it introduces.
const AFTER_INTRODUCTION: f64 = 0.9;
/// What a crumb costs.
const IS_CRUMB: f64 = 1.5;
/// What an empty passage would cost; one half full costs a quarter of it.
const EMPTINESS: f64 = 0.5;

/// Cuts a document into passages of at most `budget` tokens, as counted by `count`.
///
/// The count should include whatever is added to every text (special tokens, a prefix). A budget
/// too small for one character is exceeded by passages of one character, and by nothing else.
///
/// A passage is in one language. `languages` are those that the archive has: a block that is plainly
/// in another one of them than its document starts a passage of its own.
pub fn segment(
    document: &Document,
    languages: &[String],
    count: &(dyn Fn(&str) -> usize + Sync),
    budget: usize,
) -> Vec<Passage> {
    let languages = language::of_blocks(document, languages);
    let counter = Counter { document, languages: &languages, count, budget, overhead: count("") };
    let mut passages = Vec::new();
    let mut ids: HashMap<String, usize> = HashMap::new();
    for run in runs(&document.blocks, &languages) {
        let units: Vec<Unit> =
            run.clone().flat_map(|index| counter.units(&document.blocks[index], index)).collect();
        for group in counter.group(&units) {
            counter.fit(&units[group], &mut |units, tokens| {
                let language = &languages[units[0].block];
                passages.push(passage(document, language, units, tokens, &mut ids));
            });
        }
    }
    passages
}

/// Runs of blocks that may share a passage: under the same headings, with none in between, in one
/// language, notes and text apart.
fn runs(blocks: &[Block], languages: &[String]) -> Vec<Range<usize>> {
    let is_heading = |block: &Block| matches!(block.kind, BlockKind::Heading(_));
    let is_note = |block: &Block| block.kind == BlockKind::Note;
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        if is_heading(block) {
            continue;
        }
        match runs.last_mut() {
            Some(run)
                if run.end == index
                    && blocks[run.start].headings == block.headings
                    && languages[run.start] == languages[index]
                    && is_note(&blocks[run.start]) == is_note(block) =>
            {
                run.end = index + 1;
            }
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// What is never cut again: a sentence, a clause of one that is too long, a row, lines of code.
#[derive(Debug, Clone)]
struct Unit {
    range: Range<usize>,
    /// Index of its block.
    block: usize,
    /// It can be quoted as a sentence.
    quotable: bool,
    /// It is a part of a sentence that is too long.
    part: bool,
    /// What it adds to the tokens of a passage.
    weight: usize,
    /// It is the last one of its block.
    ends_block: bool,
    /// What follows belongs with it.
    introduces: bool,
}

/// Counts tokens in one document.
struct Counter<'a> {
    document: &'a Document,
    /// Of each block.
    languages: &'a [String],
    count: &'a (dyn Fn(&str) -> usize + Sync),
    budget: usize,
    /// Tokens of the empty text.
    overhead: usize,
}

impl Counter<'_> {
    fn text(&self, range: &Range<usize>) -> &str {
        self.document.slice(range).unwrap_or_default()
    }

    fn tokens(&self, range: &Range<usize>) -> usize {
        (self.count)(self.text(range))
    }

    fn fits(&self, range: &Range<usize>) -> bool {
        self.tokens(range) <= self.budget
    }

    fn weight(&self, range: &Range<usize>) -> usize {
        self.tokens(range).saturating_sub(self.overhead).max(1)
    }

    /// The units of a block.
    fn units(&self, block: &Block, index: usize) -> Vec<Unit> {
        let text = self.text(&block.range);
        let shift =
            |range: Range<usize>| range.start + block.range.start..range.end + block.range.start;
        let prose = matches!(
            block.kind,
            BlockKind::Paragraph | BlockKind::Item | BlockKind::Note | BlockKind::Verse
        );
        let ranges: Vec<Range<usize>> = match block.kind {
            BlockKind::Preformatted if !self.fits(&block.range) => {
                let mut at = 0;
                text.split_inclusive('\n')
                    .map(|line| {
                        at += line.len();
                        shift(sentence::trim(text, at - line.len()..at))
                    })
                    .filter(|range| !range.is_empty())
                    .collect()
            }
            BlockKind::Preformatted | BlockKind::Row | BlockKind::Heading(_) => {
                vec![sentence::trim(&self.document.text, block.range.clone())]
            }
            _ => sentence::sentences(text, &self.languages[index]).into_iter().map(shift).collect(),
        };
        let mut units: Vec<Unit> = ranges
            .into_iter()
            .flat_map(|range| {
                let pieces = self.pieces(range);
                let part = pieces.len() > 1;
                pieces.into_iter().map(move |piece| (piece, part))
            })
            .map(|(range, part)| Unit {
                weight: self.weight(&range),
                quotable: prose && is_quotable(self.text(&range)),
                part,
                range,
                block: index,
                ends_block: false,
                introduces: false,
            })
            .collect();
        if let Some(last) = units.last_mut() {
            last.ends_block = true;
            last.introduces = self.introduces(block, index);
        }
        units
    }

    /// Whether the block that follows belongs with this one.
    fn introduces(&self, block: &Block, index: usize) -> bool {
        let next = self.document.blocks.get(index + 1);
        let term = block.element.rsplit('/').find(|segment| segment.starts_with(['d', 'l']));
        self.text(&block.range).ends_with(':')
            || term.is_some_and(|segment| segment.starts_with("dt["))
            || block.element.rsplit('/').next().is_some_and(|last| last.starts_with("speaker["))
            || next.is_some_and(|next| self.text(&next.range).starts_with('→'))
    }

    /// The range itself if it is within the budget; else its clauses, as many together as fit.
    fn pieces(&self, range: Range<usize>) -> Vec<Range<usize>> {
        if self.fits(&range) {
            return vec![range];
        }
        let words = self.words(&range);
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < words.len() {
            let mut to = from + 1;
            let mut sum = self.overhead + words[from].1;
            while to < words.len() && sum + words[to].1 <= self.budget {
                sum += words[to].1;
                to += 1;
            }
            if to < words.len() {
                // The best place to cut, in the second half of what fits.
                let middle = from + (to - from).div_ceil(2);
                let best = (middle..=to).max_by_key(|at| (self.cut_rank(&words[at - 1].0), *at));
                to = best.unwrap_or(to);
            }
            self.fit_words(&words[from..to], &mut pieces);
            from = to;
        }
        pieces
    }

    /// Pushes the words as one piece, or halved until each is within the budget: counts need not add up.
    fn fit_words(&self, words: &[(Range<usize>, usize)], pieces: &mut Vec<Range<usize>>) {
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return;
        };
        let range = first.0.start..last.0.end;
        if words.len() == 1 || self.fits(&range) {
            pieces.push(range);
        } else {
            let (left, right) = words.split_at(words.len() / 2);
            self.fit_words(left, pieces);
            self.fit_words(right, pieces);
        }
    }

    /// How good a place to cut the end of this word is.
    fn cut_rank(&self, word: &Range<usize>) -> u8 {
        match self.text(word).chars().next_back() {
            Some(';' | ':' | '·' | '—' | '–' | '.' | '!' | '?' | '…' | '؛') => 2,
            Some(',' | ')' | ']' | '»' | '”' | '،' | '、') => 1,
            _ => 0,
        }
    }

    /// The words of a range with their weights; a word over the budget in parts that are within.
    fn words(&self, range: &Range<usize>) -> Vec<(Range<usize>, usize)> {
        let text = self.text(range);
        let mut words = Vec::new();
        let mut at = range.start;
        for part in text.split_inclusive([' ', '\n']) {
            let word = at..at + part.trim_end_matches([' ', '\n']).len();
            at += part.len();
            if !word.is_empty() {
                self.halve(word, &mut words);
            }
        }
        words
    }

    fn halve(&self, word: Range<usize>, words: &mut Vec<(Range<usize>, usize)>) {
        // Not recursive: a word may be as long as a file.
        let mut waiting = vec![word];
        while let Some(word) = waiting.pop() {
            let tokens = self.tokens(&word);
            let cut = if tokens <= self.budget { None } else { middle(self.text(&word)) };
            match cut {
                None => words.push((word, tokens.saturating_sub(self.overhead).max(1))),
                Some(cut) => {
                    waiting.push(word.start + cut..word.end);
                    waiting.push(word.start..word.start + cut);
                }
            }
        }
    }

    /// Cuts units into groups at the places that cost least together.
    fn group(&self, units: &[Unit]) -> Vec<Range<usize>> {
        // best[end]: least cost of the units before `end`, and where the last group then begins.
        let mut best: Vec<(f64, usize)> = Vec::with_capacity(units.len() + 1);
        best.push((0.0, 0));
        for end in 1..=units.len() {
            let mut least = (f64::INFINITY, end - 1);
            let mut tokens = self.overhead;
            for start in (0..end).rev() {
                tokens += units[start].weight;
                if tokens > self.budget && start + 1 < end {
                    break;
                }
                let cost = best[start].0 + self.cost(units, start, end, tokens);
                if cost < least.0 {
                    least = (cost, start);
                }
            }
            best.push(least);
        }
        let mut groups = Vec::new();
        let mut end = units.len();
        while end > 0 {
            let start = best[end].1;
            groups.push(start..end);
            end = start;
        }
        groups.reverse();
        groups
    }

    fn cost(&self, units: &[Unit], start: usize, end: usize, tokens: usize) -> f64 {
        let filled = (tokens as f64 / self.budget.max(1) as f64).min(1.0);
        let mut cost = 1.0 + EMPTINESS * (1.0 - filled) * (1.0 - filled);
        if end < units.len() {
            let last = &units[end - 1];
            if !last.ends_block {
                cost += INSIDE_BLOCK;
            } else if last.introduces {
                cost += AFTER_INTRODUCTION;
            }
        }
        if tokens < CRUMB && end - start < units.len() {
            cost += IS_CRUMB;
        }
        cost
    }

    /// Gives the units as one passage with its tokens, or, where the count of the whole is more than
    /// the sum of its parts, halved.
    fn fit(&self, units: &[Unit], give: &mut dyn FnMut(&[Unit], usize)) {
        let (Some(first), Some(last)) = (units.first(), units.last()) else {
            return;
        };
        let tokens = self.tokens(&(first.range.start..last.range.end));
        if tokens <= self.budget || units.len() == 1 {
            give(units, tokens);
            return;
        }
        let half = units.len() / 2;
        let between = (1..units.len()).filter(|at| units[at - 1].ends_block);
        let cut = between.min_by_key(|at| at.abs_diff(half)).unwrap_or(half);
        let (left, right) = units.split_at(cut);
        self.fit(left, give);
        self.fit(right, give);
    }
}

/// The boundary between characters (as readers see them) nearest to the middle, if there is one inside.
fn middle(text: &str) -> Option<usize> {
    let half = text.len() / 2;
    let mut last = None;
    for (at, _) in text.grapheme_indices(true).skip(1) {
        if at >= half {
            return match last {
                Some(before) if half - before < at - half => Some(before),
                _ => Some(at),
            };
        }
        last = Some(at);
    }
    last
}

/// Whether a sentence says something: signs, numbers and bare addresses do not.
fn is_quotable(text: &str) -> bool {
    text.split_whitespace()
        .any(|word| word.chars().any(char::is_alphabetic) && !word.contains("://"))
}

fn passage(
    document: &Document,
    language: &str,
    units: &[Unit],
    tokens: usize,
    ids: &mut HashMap<String, usize>,
) -> Passage {
    let start = units.first().map_or(0, |unit| unit.range.start);
    let end = units.last().map_or(0, |unit| unit.range.end);
    let block = units.first().and_then(|unit| document.blocks.get(unit.block));
    let text_hash = sha256_hex(document.slice(&(start..end)).unwrap_or_default().as_bytes());
    let short = text_hash.get(..12).unwrap_or(&text_hash);
    let seen = ids.entry(short.to_owned()).or_default();
    *seen += 1;
    let quotable = || units.iter().filter(|unit| unit.quotable);
    let again = if *seen > 1 { format!("-{seen}") } else { String::new() };
    Passage {
        id: format!("{}#{short}{again}", document.id),
        document: document.id.clone(),
        collection: document.collection.clone(),
        language: language.to_owned(),
        range: start..end,
        sentences: quotable().map(|unit| unit.range.clone()).collect(),
        parts: quotable().enumerate().filter(|(_, unit)| unit.part).map(|(at, _)| at).collect(),
        headings: block.map(|block| block.headings.clone()).unwrap_or_default(),
        anchor: block.and_then(|block| block.anchor.clone()),
        text_hash,
        tokens,
    }
}

#[cfg(test)]
mod tests;
