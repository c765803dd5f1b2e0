//! Reading and checking the list.

use std::collections::HashMap;
use std::path::Path;

use florilegium_fold::fold;
use serde::Serialize;

use crate::alike::alike;
use crate::check::{LIMIT, QuestionProblem, check_question, is_control};
use crate::fault::{Fault, Faults, QuestionErrors};
use crate::table::Kind;

/// A list larger than this is taken for another file.
const LARGEST_FILE: u64 = 64 << 20;

pub(crate) const REQUIRED: [&str; 3] = ["id", "lang", "question"];
pub(crate) const COLUMNS: [&str; 9] =
    ["id", "lang", "question", "variants", "tags", "status", "priority", "note", "collections"];

/// Whether a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not yet: nothing is computed or published.
    Draft,
    /// Computed and published.
    Published,
    /// No longer listed.
    Retired,
}

/// One question of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Unique in the list; a to z, digits and hyphens.
    pub id: String,
    /// One of the archive's languages.
    pub lang: String,
    /// The question as readers see it, in NFC.
    pub question: String,
    /// Other wordings of it. Those equal to it after folding are dropped: they add nothing.
    pub variants: Vec<String>,
    /// Topics.
    pub tags: Vec<String>,
    /// Whether it is shown.
    pub status: Status,
    /// Larger is sooner.
    pub priority: i64,
    /// For the editors.
    pub note: String,
    /// Ids of the collections that are asked; empty means all that feed answers.
    pub collections: Vec<String>,
}

/// What the archive knows, against which the list is checked.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a, S: AsRef<str> = String> {
    /// The languages questions may have.
    pub languages: &'a [S],
    /// The ids of the collections.
    pub collections: &'a [S],
}

/// A sound question list, in file order. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct QuestionList {
    questions: Vec<Question>,
    /// By language and folded wording, variants included.
    #[serde(skip)]
    wordings: HashMap<(String, String), usize>,
    #[serde(skip)]
    warnings: Vec<Fault>,
}

impl QuestionList {
    /// Reads a list, or finds every fault in it.
    pub fn load<S: AsRef<str>>(path: &Path, known: &Known<'_, S>) -> Result<Self, QuestionErrors> {
        let mut faults = Faults::new(path.to_owned());
        match bytes(path) {
            Ok(bytes) => Self::parse(&bytes, known, faults),
            Err((problem, remedy)) => {
                faults.file(problem, remedy);
                Err(faults.into_errors())
            }
        }
    }

    fn parse<S: AsRef<str>>(
        bytes: &[u8],
        known: &Known<'_, S>,
        mut faults: Faults,
    ) -> Result<Self, QuestionErrors> {
        let questions = read(bytes, known, &mut faults);
        if questions.is_empty() && faults.is_empty() {
            faults.file("the list holds no question", "add a row below the header");
        }
        let wordings = wordings(&questions, &mut faults);
        if faults.is_empty() {
            let warnings = warnings(&questions, faults.path());
            let questions = questions.into_iter().map(|(_, question)| question).collect();
            Ok(QuestionList { questions, wordings, warnings })
        } else {
            Err(faults.into_errors())
        }
    }

    /// What an editor should look at, and which is no fault: questions that are nearly the same.
    pub fn warnings(&self) -> &[Fault] {
        &self.warnings
    }

    /// The questions, in file order.
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The published question that `text` is a wording of: equal, after folding, to it or to one of
    /// its variants. Mere likeness does not count.
    pub fn find(&self, lang: &str, text: &str) -> Option<&Question> {
        let at = self.wordings.get(&(lang.to_owned(), fold(text)))?;
        self.questions.get(*at).filter(|question| question.status == Status::Published)
    }
}

/// Questions with the rows they stand in.
type Numbered = Vec<(usize, Question)>;

fn bytes(path: &Path) -> Result<Vec<u8>, (String, &'static str)> {
    let refused = |error: std::io::Error| {
        (format!("the question list cannot be read: {error}"), "check the path and its permissions")
    };
    let length = std::fs::metadata(path).map_err(refused)?.len();
    if length > LARGEST_FILE {
        let problem = format!("the file has {length} bytes, the limit is {LARGEST_FILE}");
        return Err((problem, "check that this is the question list, or split it"));
    }
    std::fs::read(path).map_err(refused)
}

fn read<S: AsRef<str>>(bytes: &[u8], known: &Known<'_, S>, faults: &mut Faults) -> Numbered {
    let kind = Kind::of(faults.path(), bytes);
    let Some(table) = kind.read(bytes, faults) else { return Vec::new() };
    let mut questions = Vec::with_capacity(table.rows.len());
    for (at, (number, _)) in table.rows.iter().enumerate() {
        let cell = |name: &str| table.cell(at, name);
        let mut checker = Checker { row: *number, faults, cell };
        questions.push((*number, checker.question(known)));
    }
    questions
}

/// Questions that are nearly the same as one before them.
fn warnings(questions: &Numbered, path: &Path) -> Vec<Fault> {
    let mut warned = Faults::new(path.to_owned());
    let shown_ones: Vec<&(usize, Question)> =
        questions.iter().filter(|(_, question)| question.status != Status::Retired).collect();
    let texts: Vec<(&str, &str)> =
        shown_ones.iter().map(|(_, q)| (q.lang.as_str(), q.question.as_str())).collect();
    for (first, second) in alike(&texts) {
        let (Some((row, one)), Some((second, other))) =
            (shown_ones.get(first), shown_ones.get(second))
        else {
            continue;
        };
        warned.cell(
            *second,
            "question",
            format!(
                "\"{}\" is nearly the question of row {row} ({})",
                shown(&other.question),
                one.id
            ),
            "if they ask the same, make one a variant of the other",
        );
    }
    warned.into_warnings()
}

/// Checks the cells of one row. `cell` gives the trimmed value, None where there is no such column.
struct Checker<'a, F: Fn(&str) -> Option<String>> {
    row: usize,
    faults: &'a mut Faults,
    cell: F,
}

impl<F: Fn(&str) -> Option<String>> Checker<'_, F> {
    fn question<S: AsRef<str>>(&mut self, known: &Known<'_, S>) -> Question {
        let mut question = Question {
            id: self.id(),
            lang: self.lang(known.languages),
            question: self.wording(),
            variants: self.variants(),
            tags: self.items("tags"),
            status: self.status(),
            priority: self.priority(),
            note: self.note(),
            collections: self.collections(known.collections),
        };
        let mut seen = vec![fold(&question.question)];
        question.variants.retain(|variant| {
            let folded = fold(variant);
            let new = !seen.contains(&folded);
            seen.push(folded);
            new
        });
        question
    }

    fn value(&self, column: &str) -> String {
        (self.cell)(column).unwrap_or_default()
    }

    fn fault(&mut self, column: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.faults.cell(self.row, column, problem, remedy);
    }

    fn id(&mut self) -> String {
        let Some(id) = (self.cell)("id") else { return String::new() };
        if id.is_empty() {
            self.fault("id", "the id is empty", "give the question a short unique id");
        } else if !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            self.fault(
                "id",
                format!("the id \"{}\" has other characters than a to z, 0 to 9 and -", shown(&id)),
                "write it with these only, for example how-to-install",
            );
        } else if id.len() > 100 {
            self.fault(
                "id",
                format!("the id has {} characters, the limit is 100", id.len()),
                "shorten it",
            );
        }
        id
    }

    fn lang<S: AsRef<str>>(&mut self, languages: &[S]) -> String {
        let Some(lang) = (self.cell)("lang") else { return String::new() };
        if !languages.iter().any(|known| known.as_ref() == lang) {
            let problem = if lang.is_empty() {
                "the language is empty".to_owned()
            } else {
                format!("the language \"{}\" is not one of this archive's", shown(&lang))
            };
            self.fault("lang", problem, format!("use one of: {}", join(languages)));
        }
        lang
    }

    fn wording(&mut self) -> String {
        let Some(text) = (self.cell)("question") else { return String::new() };
        self.check("question", &text);
        text
    }

    fn variants(&mut self) -> Vec<String> {
        let variants = split(&self.value("variants"), |c| c == '|');
        for variant in &variants {
            self.check("variants", variant);
        }
        variants
    }

    fn check(&mut self, column: &str, text: &str) {
        match check_question(text) {
            Ok(()) => {}
            Err(QuestionProblem::Empty) if text.is_empty() => {
                self.fault(column, "the question is empty", "write it, or remove the row");
            }
            Err(QuestionProblem::Empty) => self.fault(
                column,
                format!("\"{}\" holds nothing but punctuation", shown(text)),
                "write it out in words, or remove it",
            ),
            Err(QuestionProblem::TooLong { characters }) => self.fault(
                column,
                format!("a wording has {characters} characters, the limit is {LIMIT}"),
                "shorten it",
            ),
            Err(QuestionProblem::Control { character }) => self.control(column, character),
        }
    }

    fn control(&mut self, column: &str, character: char) {
        self.fault(
            column,
            format!("the invisible control character U+{:04X}", u32::from(character)),
            "remove it, or type the text anew",
        );
    }

    fn status(&mut self) -> Status {
        match self.value("status").to_lowercase().as_str() {
            "" | "published" => Status::Published,
            "draft" => Status::Draft,
            "retired" => Status::Retired,
            other => {
                let problem = format!("the status \"{}\" is not known", shown(other));
                self.fault("status", problem, "use one of: draft, published, retired");
                Status::Draft
            }
        }
    }

    fn priority(&mut self) -> i64 {
        let value = self.value("priority");
        if value.is_empty() {
            return 0;
        }
        value.parse().unwrap_or_else(|_| {
            let problem = format!("the priority \"{}\" is not a whole number", shown(&value));
            self.fault("priority", problem, "write digits only, or leave it empty");
            0
        })
    }

    fn note(&mut self) -> String {
        let note = self.value("note");
        // Paragraphs and tabs are ordinary in a note.
        if let Some(c) = note.chars().find(|&c| is_control(c) && c != '\n' && c != '\t') {
            self.control("note", c);
        }
        note
    }

    fn items(&mut self, column: &str) -> Vec<String> {
        let value = self.value(column);
        if let Some(c) = value.chars().find(|&c| is_control(c)) {
            self.control(column, c);
        }
        split(&value, |c: char| c.is_whitespace() || matches!(c, '|' | ',' | ';'))
    }

    fn collections<S: AsRef<str>>(&mut self, collections: &[S]) -> Vec<String> {
        let items = self.items("collections");
        for item in &items {
            if !collections.iter().any(|known| known.as_ref() == item) {
                self.fault(
                    "collections",
                    format!("the collection \"{}\" is not one of this archive's", shown(item)),
                    format!("use one of: {}", join(collections)),
                );
            }
        }
        items
    }
}

/// Finds ids and wordings that are there twice; gives the place of each wording.
fn wordings(questions: &Numbered, faults: &mut Faults) -> HashMap<(String, String), usize> {
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut wordings: HashMap<(String, String), usize> = HashMap::new();
    for (at, (row, question)) in questions.iter().enumerate() {
        if !question.id.is_empty()
            && let Some(first) = ids.get(question.id.as_str())
        {
            faults.cell(
                *row,
                "id",
                format!("the id \"{}\" is already in row {first}", shown(&question.id)),
                "give one of the two another id",
            );
        }
        ids.entry(&question.id).or_insert(*row);
        let variants = question.variants.iter().map(|variant| ("variants", variant));
        for (column, wording) in [("question", &question.question)].into_iter().chain(variants) {
            let folded = fold(wording);
            if folded.is_empty() {
                continue;
            }
            let key = (question.lang.clone(), folded);
            match wordings.get(&key).and_then(|&first| questions.get(first)) {
                Some((first, _)) if first != row => faults.cell(
                    *row,
                    column,
                    format!(
                        "\"{}\" is the same question as in row {first}: case, accents and punctuation do not count",
                        shown(wording)
                    ),
                    "remove one of the two, or word it differently",
                ),
                _ => {
                    wordings.insert(key, at);
                }
            }
        }
    }
    wordings
}

fn split(value: &str, separators: fn(char) -> bool) -> Vec<String> {
    value.split(separators).map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn join<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}

/// A value as a message may show it: short and without invisible characters.
pub(crate) fn shown(value: &str) -> String {
    let mut shown: String = value.chars().filter(|&c| !is_control(c)).take(60).collect();
    if value.chars().count() > 60 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
