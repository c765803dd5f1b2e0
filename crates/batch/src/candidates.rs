//! What readers ask and no curated question answers yet, from the live server's question log.
//!
//! Wordings that are equal after folding are one; wordings that are nearly the same by meaning are one
//! group. A group counts when it was asked on several days: one reader's evening is no demand.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use florilegium_files::FileError;
use florilegium_index::dot;
use florilegium_questions::QuestionList;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::BatchError;
use crate::library::Library;
use crate::wordings::Wordings;

/// How candidates are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding {
    /// A group counts when it was asked on at least this many days.
    pub days: usize,
    /// Wordings with at least this cosine are one group.
    pub alike: f32,
    /// At most this many wordings are compared, those asked on most days.
    pub most: usize,
}

impl Default for Finding {
    fn default() -> Self {
        Finding { days: 2, alike: 0.94, most: 3000 }
    }
}

/// A line of the log.
#[derive(Debug, Deserialize)]
struct Line {
    day: String,
    lang: String,
    question: String,
    outcome: String,
}

/// A wording as it was asked, folded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wording {
    count: u64,
    days: BTreeSet<String>,
    outcomes: BTreeMap<String, u64>,
}

/// Wordings that mean the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// BCP 47 tag.
    pub lang: String,
    /// The wordings, folded as the log keeps them, the most asked first, with how often.
    pub wordings: Vec<(String, u64)>,
    /// How often all of them were asked.
    pub count: u64,
    /// On how many days.
    pub days: usize,
    /// What the live answers were, with how often.
    pub outcomes: BTreeMap<String, u64>,
    /// The curated question that is nearest.
    pub nearest: Option<NearestQuestion>,
}

/// A curated question near a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearestQuestion {
    /// Its id.
    pub id: String,
    /// Its wording.
    pub question: String,
    /// Cosine of the group's first wording and the question's nearest one.
    pub similarity: f32,
}

/// What a log holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Candidates {
    /// The groups, those asked on most days first.
    pub groups: Vec<Group>,
    /// Lines read.
    pub lines: u64,
    /// Lines that are no entries of the log.
    pub bad: u64,
    /// Lines that ask a curated question already.
    pub curated: u64,
    /// Wordings that were not compared because others were asked on more days.
    pub left: usize,
}

type Asked = HashMap<(String, String), Wording>;

/// Reads a log, a file or all files of a folder, and groups what is asked in it.
pub fn candidates(
    library: &Library,
    list: &QuestionList,
    wordings: &Wordings,
    log: &Path,
    finding: &Finding,
) -> Result<Candidates, BatchError> {
    let (asked, lines, bad) = read(log)?;
    let mut found = Candidates { lines, bad, ..Candidates::default() };
    let mut open: Vec<((String, String), Wording)> = Vec::new();
    for ((lang, question), wording) in asked {
        if list.find(&lang, &question).is_some() {
            found.curated += wording.count;
        } else {
            open.push(((lang, question), wording));
        }
    }
    open.sort_by(|(a, one), (b, other)| {
        let order = |w: &Wording| (std::cmp::Reverse(w.days.len()), std::cmp::Reverse(w.count));
        order(one).cmp(&order(other)).then(a.cmp(b))
    });
    found.left = open.len().saturating_sub(finding.most);
    open.truncate(finding.most);
    let vectors: Vec<Vec<f32>> = open
        .iter()
        .map(|((_, question), _)| library.question_vector(question))
        .collect::<Result<_, _>>()?;

    // The most asked of those that are left begins a group; what is like it joins.
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (number, ((lang, _), _)) in open.iter().enumerate() {
        let like = |(first, _): &&mut (usize, Vec<usize>)| {
            open[*first].0.0 == *lang && dot(&vectors[*first], &vectors[number]) >= finding.alike
        };
        match groups.iter_mut().find(like) {
            Some((_, members)) => members.push(number),
            None => groups.push((number, vec![number])),
        }
    }
    for (_, members) in groups {
        let days: BTreeSet<&String> =
            members.iter().flat_map(|&member| &open[member].1.days).collect();
        if days.len() < finding.days {
            continue;
        }
        let ((lang, first), _) = &open[members[0]];
        let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
        for (outcome, count) in members.iter().flat_map(|&member| &open[member].1.outcomes) {
            *outcomes.entry(outcome.clone()).or_default() += count;
        }
        let near = wordings.nearest(library, first, std::slice::from_ref(lang), 1)?;
        let nearest = near.first().and_then(|near| {
            let question = list.questions().get(near.question)?;
            Some(NearestQuestion {
                id: question.id.clone(),
                question: question.question.clone(),
                similarity: near.similarity,
            })
        });
        found.groups.push(Group {
            lang: lang.clone(),
            wordings: members
                .iter()
                .map(|&member| (open[member].0.1.clone(), open[member].1.count))
                .collect(),
            count: members.iter().map(|&member| open[member].1.count).sum(),
            days: days.len(),
            outcomes,
            nearest,
        });
    }
    found.groups.sort_by_key(|group| std::cmp::Reverse((group.days, group.count)));
    Ok(found)
}

fn read(log: &Path) -> Result<(Asked, u64, u64), FileError> {
    let mut files: Vec<PathBuf> = match std::fs::read_dir(log) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![log.to_owned()],
    };
    files.sort();
    let mut all: (Asked, u64, u64) = Default::default();
    for file in files {
        let bytes = florilegium_files::read(&file)?;
        let lines: Vec<&[u8]> =
            bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        let part = lines
            .par_chunks(10_000)
            .map(|lines| {
                let mut part: (Asked, u64, u64) = Default::default();
                for line in lines {
                    part.1 += 1;
                    match serde_json::from_slice::<Line>(line) {
                        Ok(line) => {
                            let wording = part.0.entry((line.lang, line.question)).or_default();
                            wording.count += 1;
                            wording.days.insert(line.day);
                            *wording.outcomes.entry(line.outcome).or_default() += 1;
                        }
                        Err(_) => part.2 += 1,
                    }
                }
                part
            })
            .reduce(Default::default, merged);
        all = merged(all, part);
    }
    Ok(all)
}

fn merged(one: (Asked, u64, u64), other: (Asked, u64, u64)) -> (Asked, u64, u64) {
    let (mut large, small) =
        if one.0.len() < other.0.len() { (other.0, one.0) } else { (one.0, other.0) };
    for (key, wording) in small {
        let entry = large.entry(key).or_default();
        entry.count += wording.count;
        entry.days.extend(wording.days);
        for (outcome, count) in wording.outcomes {
            *entry.outcomes.entry(outcome).or_default() += count;
        }
    }
    (large, one.1 + other.1, one.2 + other.2)
}

/// A cell for a spreadsheet: what it would run as a formula is written as text.
pub fn inert(text: &str) -> String {
    let runs = text.trim_start().starts_with(['=', '+', '-', '@', '\t', '\r']);
    if runs { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_counted_by_wording_and_day_and_bad_lines_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let line = |day: &str, question: &str| {
            format!(
                "{{\"day\":\"{day}\",\"lang\":\"fr\",\"question\":\"{question}\",\"outcome\":\"insufficient\"}}\n"
            )
        };
        let first = line("2026-11-30", "ou est le phare") + &line("2026-11-30", "qui");
        let second = line("2026-12-01", "ou est le phare") + "not json\n";
        std::fs::write(folder.path().join("2026-11-30.jsonl"), first).unwrap();
        std::fs::write(folder.path().join("2026-12-01.jsonl"), second).unwrap();
        let (asked, lines, bad) = read(folder.path()).unwrap();
        assert_eq!((asked.len(), lines, bad), (2, 4, 1));
        let phare = &asked[&("fr".to_owned(), "ou est le phare".to_owned())];
        assert_eq!((phare.count, phare.days.len(), phare.outcomes["insufficient"]), (2, 2, 2));
        assert!(read(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_formula_is_written_as_text() {
        assert_eq!(inert("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
        assert_eq!(inert(" @SUM(1)"), "' @SUM(1)");
        assert_eq!(inert("plain = text"), "plain = text");
    }
}
