//! What a run would do, and why: for each question, whether the answer to these very inputs is kept,
//! and if not, which of them differ from those of the answer it got last.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use florilegium_files::FileError;
use florilegium_questions::{Question, QuestionList, Status};
use serde::Serialize;

use crate::error::BatchError;
use crate::history::{Estimate, Failures, History, Rates};
use crate::ingest::Built;
use crate::library::{Library, normalise};
use crate::night::lock;
use crate::pipeline::Pipeline;
use crate::progress;
use crate::run::questions;
use crate::store::InputsRecord;

/// Said of a question whose inputs have changed to such as have been answered before.
pub(crate) const KEPT: &str = "the answer to these inputs is kept from an earlier run";

/// What is to be done about a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Its answer is kept.
    Keep,
    /// The model is asked.
    Answer,
    /// It failed before and is left alone this night.
    Pause,
}

/// A question of the plan.
#[derive(Debug, Clone, Serialize)]
pub struct Planned {
    /// Its id.
    pub id: String,
    /// Its language.
    pub lang: String,
    /// What is to be done.
    pub action: Action,
    /// Why; empty when nothing has changed.
    pub reasons: Vec<String>,
    /// Key of the answer to its inputs.
    pub key: String,
    /// Ids of the passages retrieved for it, the best first.
    pub passages: Vec<String>,
    /// Tokens of its passages, as the embedding model counts them.
    pub passage_tokens: usize,
    /// What it will cost; none when nothing is to be done, or there is no run to go by.
    pub estimate: Option<Estimate>,
    /// Its number in the list.
    #[serde(skip)]
    pub number: usize,
}

/// What a run would do.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// What reading, embedding and indexing did: what is planned depends on it, so that it is done
    /// before, and not again by the run.
    pub built: Built,
    /// The published questions in the order in which they will be taken.
    pub questions: Vec<Planned>,
    /// What earlier runs have cost.
    pub rates: Rates,
    /// What the run will cost the language model; none without an earlier run to go by.
    pub estimate: Option<Estimate>,
}

impl Plan {
    /// How many questions have this action.
    pub fn count(&self, action: Action) -> usize {
        self.questions.iter().filter(|question| question.action == action).count()
    }
}

/// How often readers asked each curated question, by id.
pub type Frequencies = HashMap<String, u64>;

/// Plans a run over a library that has been built. `run` is its number.
pub fn plan(
    library: &Library,
    list: &QuestionList,
    built: &Built,
    rates: Rates,
    run: u64,
    frequencies: &Frequencies,
) -> Result<Plan, BatchError> {
    let failures = Failures::open(&library.pipeline.paths.work)?;
    let published: Vec<(usize, &Question)> = list
        .questions()
        .iter()
        .enumerate()
        .filter(|(_, question)| question.status == Status::Published)
        .collect();
    let bar = progress::bar(published.len() as u64, "planning", "questions");
    let mut questions = Vec::with_capacity(published.len());
    for (number, question) in published {
        let (planned, answered_on) = plan_one(library, question, number, &rates, &failures, run)?;
        questions.push((planned, question.priority, answered_on));
        bar.inc(1);
    }
    bar.finish_and_clear();
    // The most wanted first: what the editors say, then what readers ask, then what has waited longest
    // (never answered is longest of all); the list's order otherwise.
    questions.sort_by(|(one, one_priority, one_day), (other, other_priority, other_day)| {
        let asked = |planned: &Planned| frequencies.get(&planned.id).copied().unwrap_or(0);
        other_priority
            .cmp(one_priority)
            .then_with(|| asked(other).cmp(&asked(one)))
            .then_with(|| one_day.cmp(other_day))
            .then_with(|| one.number.cmp(&other.number))
    });
    let questions: Vec<Planned> = questions.into_iter().map(|(planned, ..)| planned).collect();
    let todo = || questions.iter().filter(|question| question.action == Action::Answer);
    let estimate =
        todo().map(|question| question.estimate).try_fold(Estimate::default(), |sum, next| {
            let next = next?;
            Some(Estimate { tokens: sum.tokens + next.tokens, seconds: sum.seconds + next.seconds })
        });
    library.save_vectors()?;
    Ok(Plan { built: built.clone(), questions, rates, estimate })
}

/// Reads, embeds and indexes what has changed, and plans the next run. What it does on the way is kept.
pub fn plan_night(pipeline: Pipeline) -> Result<Plan, BatchError> {
    let (_lock, _) = lock(&pipeline)?;
    let list = questions(&pipeline)?;
    let history = History::new(&pipeline.paths.work);
    let frequencies = frequencies(pipeline.questions.asked.as_deref(), &list)?;
    let (library, built) = Library::build(pipeline)?;
    let rates = history.rates(&library.language_identity())?;
    let plan = plan(&library, &list, &built, rates, history.next(), &frequencies)?;
    library.fold()?;
    Ok(plan)
}

/// Plans one question; gives also the day on which it was answered last, empty for never.
fn plan_one(
    library: &Library,
    question: &Question,
    number: usize,
    rates: &Rates,
    failures: &Failures,
    run: u64,
) -> Result<(Planned, String), BatchError> {
    library.remember(&question.question)?;
    let looked = library.look(&question.question, &question.lang, &question.collections)?;
    let store = &library.store;
    let last_key = store.latest_key(&question.id)?;
    let here = store.get(&looked.key)?;
    let last = match &last_key {
        Some(key) if *key == looked.key => here.clone(),
        Some(key) => store.get(key)?,
        None => None,
    };
    let reasons = match (&last_key, &last) {
        (Some(key), _) if *key == looked.key && here.is_some() => Vec::new(),
        (None, _) => vec!["new question".to_owned()],
        (Some(_), None) => {
            vec!["its answer is missing, damaged, or of an older format".to_owned()]
        }
        (Some(_), Some(last)) => differences(&last.inputs, &looked.inputs),
    };
    let paused = failures.pauses(&question.id, &looked.key, run);
    let action = match paused {
        _ if here.is_some() => Action::Keep,
        Some(_) => Action::Pause,
        None => Action::Answer,
    };
    let mut reasons = reasons;
    if let (Action::Pause, Some(failure)) = (action, paused) {
        reasons.push(format!(
            "failed {} times, the last on {}; tried again in run {}: {}",
            failure.times, failure.on, failure.again, failure.reason
        ));
    }
    if action == Action::Keep && !reasons.is_empty() {
        reasons.push(KEPT.to_owned());
    }
    let passage_tokens = looked.passage_tokens();
    let estimate = match action {
        Action::Answer => rates.estimate(&question.lang, passage_tokens),
        Action::Keep | Action::Pause => None,
    };
    let planned = Planned {
        id: question.id.clone(),
        lang: question.lang.clone(),
        action,
        reasons,
        passages: looked.inputs.passages.iter().map(|passage| passage.id.clone()).collect(),
        key: looked.key,
        passage_tokens,
        estimate,
        number,
    };
    Ok((planned, last.map(|last| last.computed_on).unwrap_or_default()))
}

/// What differs between the inputs of two answers, each difference a phrase.
pub fn differences(old: &InputsRecord, new: &InputsRecord) -> Vec<String> {
    let mut reasons = Vec::new();
    for (what, old, new) in [
        ("question", &old.question, &new.question),
        ("language", &old.language, &new.language),
        ("model", &old.model, &new.model),
        ("embedding model", &old.embedding, &new.embedding),
        ("way of making answers", &old.method, &new.method),
    ] {
        if old != new {
            reasons.push(format!("{what} changed: {old:?}, now {new:?}"));
        }
    }
    if old.prompts != new.prompts {
        let short = |hash: &str| hash.get(..8).unwrap_or(hash).to_owned();
        reasons.push(format!(
            "prompts changed: {}, now {}",
            short(&old.prompts),
            short(&new.prompts)
        ));
    }
    reasons.extend(setting_differences(&old.settings, &new.settings));
    reasons.extend(passage_differences(old, new));
    if reasons.is_empty() && old != new {
        reasons.push("its inputs changed".to_owned());
    }
    reasons
}

/// The settings that differ, by their paths.
fn setting_differences(old: &str, new: &str) -> Vec<String> {
    let flat = |text: &str| {
        let mut flat = BTreeMap::new();
        flatten("", &serde_json::from_str(text).unwrap_or_default(), &mut flat);
        flat
    };
    let (old, new) = (flat(old), flat(new));
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let shown = |value: Option<&String>| value.map_or("unset", String::as_str).to_owned();
    names
        .into_iter()
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| {
            format!(
                "setting {name} changed: {}, now {}",
                shown(old.get(name)),
                shown(new.get(name))
            )
        })
        .collect()
}

fn flatten(path: &str, value: &serde_json::Value, flat: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, flat);
            }
        }
        value => {
            flat.insert(path.to_owned(), value.to_string());
        }
    }
}

fn passage_differences(old: &InputsRecord, new: &InputsRecord) -> Option<String> {
    if old.passages == new.passages {
        return None;
    }
    let ids = |record: &InputsRecord| -> Vec<String> {
        record.passages.iter().map(|passage| passage.id.clone()).collect()
    };
    let (old_ids, new_ids) = (ids(old), ids(new));
    let (was, is): (HashSet<&String>, HashSet<&String>) =
        (old_ids.iter().collect(), new_ids.iter().collect());
    let added = is.difference(&was).count();
    let gone = was.difference(&is).count();
    let top = new_ids.len();
    Some(match (added, gone) {
        (0, 0) if old_ids != new_ids => {
            format!("passage order changed: the same {top} passages, ranked otherwise")
        }
        (0, 0) => "titles or headings of its passages changed".to_owned(),
        (0, gone) => format!("passage set changed: {gone} gone, {top} are left"),
        (added, gone) => format!(
            "passage set changed: {added} new {} in the top {top}, {gone} gone",
            if added == 1 { "passage" } else { "passages" }
        ),
    })
}

/// Reads how often readers asked the curated questions: JSON Lines with `lang`, `question` and, if
/// there is one, `count`, in a file or in all files of a folder (the live server writes one a day).
/// Lines that are none are counted in the log; no file is no requests.
pub fn frequencies(path: Option<&Path>, list: &QuestionList) -> Result<Frequencies, FileError> {
    #[derive(serde::Deserialize)]
    struct Line {
        lang: String,
        question: String,
        count: Option<u64>,
    }
    let mut frequencies = Frequencies::new();
    let Some(path) = path else { return Ok(frequencies) };
    let mut bytes = Vec::new();
    let mut files: Vec<PathBuf> = match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![path.to_owned()],
    };
    files.sort();
    for file in files {
        match florilegium_files::read(&file) {
            Err(error) if error.is_not_found() => {}
            read => bytes.extend(read?),
        }
        bytes.push(b'\n');
    }
    let mut bad = 0;
    for line in String::from_utf8_lossy(&bytes).lines().filter(|line| !line.trim().is_empty()) {
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            bad += 1;
            continue;
        };
        if let Some(question) = list.find(&line.lang, &normalise(&line.question)) {
            let count = frequencies.entry(question.id.clone()).or_default();
            *count = u64::saturating_add(*count, line.count.unwrap_or(1));
        }
    }
    if bad > 0 {
        tracing::warn!("{}: {bad} lines are no requests and were left out", path.display());
    }
    Ok(frequencies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PassageRecord;

    fn passage(id: &str) -> PassageRecord {
        PassageRecord { id: id.into(), ..PassageRecord::default() }
    }

    fn inputs(passages: &[&str]) -> InputsRecord {
        InputsRecord {
            settings: r#"{"answer_at":0.5,"weights":{"bias":1.0}}"#.into(),
            passages: passages.iter().map(|id| passage(id)).collect(),
            ..InputsRecord::default()
        }
    }

    #[test]
    fn each_difference_is_a_phrase() {
        let old = inputs(&["a", "b", "c"]);
        let against = |new: &InputsRecord| differences(&old, new);
        assert_eq!(against(&old), Vec::<String>::new());
        assert_eq!(
            against(&inputs(&["a", "d", "e"])),
            ["passage set changed: 2 new passages in the top 3, 2 gone"]
        );
        assert_eq!(against(&inputs(&["a", "b"])), ["passage set changed: 1 gone, 2 are left"]);
        assert_eq!(
            against(&inputs(&["b", "a", "c"])),
            ["passage order changed: the same 3 passages, ranked otherwise"]
        );
        let mut titled = old.clone();
        titled.passages[0].title = "new".into();
        assert_eq!(against(&titled), ["titles or headings of its passages changed"]);
        let mut set = old.clone();
        set.settings = r#"{"answer_at":0.6,"weights":{"bias":1.0},"more":1}"#.into();
        assert_eq!(
            against(&set),
            ["setting answer_at changed: 0.5, now 0.6", "setting more changed: unset, now 1"]
        );
        let mut model = old.clone();
        model.model = "other".into();
        model.prompts = "0123456789".into();
        assert_eq!(
            against(&model),
            ["model changed: \"\", now \"other\"", "prompts changed: , now 01234567"]
        );
    }
}
