//! Nightly runs of a small archive, and what must be the same bytes after each of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::{Archive, florilegium, stderr, stdout, tree};

/// Every run of these tests is on this day, so that the bytes do not depend on it.
pub const DAY: &str = "1796083200";

pub const QUESTIONS: [(&str, &str, i64); 8] = [
    ("keeper", "Who was the first woman to keep the lighthouse of Morvane?", 5),
    ("height", "How tall is the lighthouse?", 1),
    ("ferry", "How long does the ferry take?", 9),
    ("loan", "How long may a book of the library be kept?", 3),
    ("fire", "When did the archives burn?", 4),
    ("lens", "Who made the lens of the lighthouse?", 2),
    ("ticket", "What does a ticket for the ferry cost?", 8),
    ("opening", "When is the library open?", 7),
];

/// The English part of the small archive with eight questions, made cheap to answer.
pub fn small(models: &Path) -> Archive {
    let archive = Archive::new(models, 0.0);
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let (start, _) = text.split_once("[[collection]]\nid = \"island-fr\"").unwrap();
    let text = start
        .replace("tokens = 120", "tokens = 64")
        .replace("\npassages = 4\nrelevant_passages = 2", "\npassages = 2\nrelevant_passages = 1")
        .replace("threads = 1\n[language_model]", "threads = 1\nchunk = 8\n[language_model]")
        .replace("languages = [\"en\", \"fr\", \"el\"]", "languages = [\"en\"]");
    fs::write(archive.pipeline(), text).unwrap();
    write_questions(&archive, &QUESTIONS);
    archive
}

pub fn write_questions(archive: &Archive, questions: &[(&str, &str, i64)]) {
    let mut text = String::from("id,lang,question,priority\n");
    for (id, question, priority) in questions {
        text += &format!("{id},en,{question},{priority}\n");
    }
    fs::write(archive.path("corpus/questions.csv"), text).unwrap();
}

pub fn command(archive: &Archive, arguments: &[&str]) -> Command {
    let mut command = florilegium(archive.folder.path());
    command
        .env("SOURCE_DATE_EPOCH", DAY)
        .env("FLORILEGIUM_PIPELINE", archive.pipeline())
        .env("TZ", "UTC")
        .args(arguments);
    command
}

pub fn nightly(archive: &Archive, more: &[&str]) -> Output {
    command(archive, &["nightly", "--json"]).args(more).output().unwrap()
}

/// A night that ends well, and its report.
pub fn good_night(archive: &Archive) -> Value {
    let output = nightly(archive, &[]);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", stdout(&output), stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

pub fn fresh(report: &Value) -> Vec<String> {
    let questions = report["questions"].as_array().unwrap().iter();
    questions.filter(|q| q["fresh"] == true).map(|q| q["id"].as_str().unwrap().to_owned()).collect()
}

/// What must be the same bytes: the store and the release. The words of the index are left out
/// (tantivy names its files at random), and so is what tells how a night went.
pub fn kept(archive: &Archive) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut kept = BTreeMap::new();
    for room in ["answers", "latest", "decisions", "vectors", "index", "failures"] {
        let folder = archive.path("work").join(room);
        if folder.is_dir() {
            let files = tree(&folder).into_iter().filter(|(name, _)| !is_words(name));
            kept.extend(files.map(|(name, bytes)| (Path::new(room).join(name), bytes)));
        }
    }
    let site = fs::canonicalize(archive.path("public/island")).unwrap();
    kept.extend(tree(&site).into_iter().map(|(name, bytes)| (Path::new("site").join(name), bytes)));
    kept
}

pub fn is_words(name: &Path) -> bool {
    name.components().any(|part| part.as_os_str().to_string_lossy().starts_with("words-"))
}

pub fn assert_same(
    one: &BTreeMap<PathBuf, Vec<u8>>,
    other: &BTreeMap<PathBuf, Vec<u8>>,
    what: &str,
) {
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{what}");
    for (name, bytes) in one {
        assert!(other[name] == *bytes, "{what}: {} differs", name.display());
    }
}

/// The answers that are there, and which file each is: one that is written again is another file.
pub fn answers(archive: &Archive) -> BTreeMap<String, (u64, i64)> {
    let folder = archive.path("work/answers");
    let mut answers = BTreeMap::new();
    for (name, _) in if folder.is_dir() { tree(&folder) } else { Vec::new() } {
        let name_only = name.file_name().unwrap().to_string_lossy().into_owned();
        if !name_only.starts_with('.') {
            let metadata = fs::metadata(folder.join(&name)).unwrap();
            answers.insert(name_only, (metadata.ino(), metadata.mtime_nsec()));
        }
    }
    answers
}
