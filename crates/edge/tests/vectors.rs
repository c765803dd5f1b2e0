//! The same vectors for the two readers: `data/fixtures/edge/vectors.json` and the index `v1` beside
//! it. A change of the format that forgets its version, or a difference between the readers, fails here.
//! `FLORILEGIUM_WRITE_VECTORS=1` writes them anew.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use florilegium_edge::{EdgeIndex, Entry, FORMAT_VERSION, Packing, Reader};
use florilegium_fold::fold;
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folder() -> PathBuf {
    root().join("data/fixtures/edge")
}

fn entries() -> Vec<Entry> {
    let text = fs::read_to_string(folder().join("questions.json")).unwrap();
    let list: Vec<Value> = serde_json::from_str(&text).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entry = |value: &Value| Entry {
        language: text(&value["language"]),
        id: text(&value["id"]),
        question: text(&value["question"]),
        variants: value["variants"].as_array().unwrap().iter().map(text).collect(),
    };
    list.iter().map(entry).collect()
}

fn vectors(index: &EdgeIndex) -> Value {
    let asked: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("asked.json")).unwrap()).unwrap();
    let files = index.files.clone();
    let reader = Reader::open(move |path: &str| {
        files.iter().find(|(known, _)| known == path).map(|(_, bytes)| bytes.clone())
    })
    .unwrap();
    let answers: Vec<Value> = asked["asked"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            let (language, text) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
            let exact = reader.exact(language, text).unwrap();
            let suggested = reader.suggest(language, text, 5).unwrap();
            json!({
                "language": language,
                "text": text,
                "exact": exact.map(|found| format!("{}/{}", found.language, found.id)),
                // In thousandths: the last digits of a logarithm are not promised by anyone.
                "suggested": suggested.iter().map(|suggestion| {
                    json!([suggestion.found.id, (suggestion.likeness * 1e3).round()])
                }).collect::<Vec<_>>(),
            })
        })
        .collect();
    let folds: Vec<Value> = asked["fold"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| json!([text, fold(text.as_str().unwrap())]))
        .collect();
    json!({ "version": FORMAT_VERSION, "id": index.id, "fold": folds, "answers": answers })
}

#[test]
fn the_index_and_its_answers_are_those_of_the_fixture() {
    let index = EdgeIndex::build(&entries(), Packing::Gzip).unwrap();
    let vectors = vectors(&index);
    let path = folder().join("vectors.json");
    let stored = folder().join("v1");
    if std::env::var_os("FLORILEGIUM_WRITE_VECTORS").is_some() {
        let _ = fs::remove_dir_all(&stored);
        for (name, bytes) in &index.files {
            let file = stored.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        }
        fs::write(&path, serde_json::to_string_pretty(&vectors).unwrap() + "\n").unwrap();
    }
    let expected: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(vectors, expected);
    for (name, bytes) in &index.files {
        let stored = stored.join(name);
        let same = fs::read(&stored).ok().as_ref() == Some(bytes);
        assert!(same, "{name} has changed: raise FORMAT_VERSION, here and in the script");
    }
}

#[test]
fn the_script_gives_the_same_answers() {
    let Ok(node) = Command::new("node").arg("--version").output() else {
        println!("skipped: there is no node; install the package nodejs");
        return;
    };
    assert!(node.status.success());
    let run = Command::new("node").arg(root().join("tests/site/edge.mjs")).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("answers are the same"), "{said}");
}
