//! Bad input: a message that names the file, the row or the field, and the remedy; a status that is
//! not 0; and nothing half-written.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;

use support::{Archive, florilegium, models, root, stderr};

/// A run that must fail, with these words in its message, and publish nothing.
fn fails(archive: &Archive, words: &[&str]) {
    let output = archive.florilegium(&["run", &archive.pipeline().display().to_string()]);
    let message = stderr(&output);
    assert!(!output.status.success(), "{words:?}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {message}");
    }
    assert!(!archive.path("public").exists(), "something was published: {message}");
}

/// An archive whose models need not be there, for faults that are found before a model is wanted.
fn archive() -> Archive {
    Archive::new(Path::new("/nonexistent/models"), 0.5)
}

fn edit_pipeline(archive: &Archive, from: &str, to: &str) {
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    assert!(text.contains(from));
    fs::write(archive.pipeline(), text.replacen(from, to, 1)).unwrap();
}

fn with_questions(name: &str) -> Archive {
    let archive = archive();
    let list = root().join("data/fixtures/bad").join(name);
    fs::copy(list, archive.path("corpus/questions.csv")).unwrap();
    archive
}

#[test]
fn a_missing_model_is_named_with_the_command_that_fetches_it() {
    fails(&archive(), &["multilingual-e5-small", "florilegium models fetch"]);
}

#[test]
fn a_model_that_is_not_in_the_list_is_named() {
    let archive = archive();
    edit_pipeline(&archive, "smollm2-135m-instruct-q4", "smollm3");
    fails(&archive, &["smollm3", "models.toml", "qwen2.5-coder-1.5b-instruct-q4"]);
}

#[test]
fn a_wrong_checksum_never_gets_the_final_name() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("theirs.bin"), b"not the model").unwrap();
    let list = format!(
        "[[model]]\nid = \"m\"\nkind = \"language\"\nlicence = \"CC0\"\nsize = 13\nsha256 = \"{}\"\nfile = \"m.gguf\"\n\
         [[model.source]]\nkind = \"path\"\npath = \"theirs.bin\"\n",
        "0".repeat(64)
    );
    fs::write(folder.path().join("models.toml"), list).unwrap();
    let output = florilegium(folder.path())
        .args(["models", "fetch", "--list", "models.toml", "--folder", "cache"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = stderr(&output);
    assert!(message.contains("000000") && message.contains('m'), "{message}");
    assert!(!folder.path().join("cache/m.gguf").exists());
    assert!(folder.path().join("theirs.bin").exists(), "the operator's own file is left alone");
}

#[test]
fn an_unknown_key_is_named() {
    let archive = archive();
    edit_pipeline(&archive, "[passages]", "[passages]\ncolour = \"red\"");
    fails(&archive, &["island.toml", "colour", "correct this line"]);
    let output = archive.florilegium(&["run", &archive.pipeline().display().to_string()]);
    assert_eq!(stderr(&output).matches("TOML parse error").count(), 1, "said once");
}

#[test]
fn a_missing_column_is_named() {
    fails(&with_questions("missing-column.csv"), &["questions.csv", "column"]);
}

#[test]
fn a_duplicate_id_is_named_with_its_row() {
    fails(&with_questions("duplicate-id.csv"), &["questions.csv:", "id"]);
}

#[test]
fn an_unknown_language_is_named_with_its_row() {
    fails(&with_questions("unknown-language.csv"), &["questions.csv:", "lang"]);
}

#[test]
fn an_empty_question_and_one_of_ten_thousand_characters_are_refused_in_a_list() {
    fails(&with_questions("empty-question.csv"), &["questions.csv:", "question"]);
    fails(&with_questions("long-question.csv"), &["questions.csv:", "10000", "1000"]);
}

#[test]
fn a_question_typed_empty_or_too_long_is_refused() {
    let archive = archive();
    for (question, words) in [("", "empty"), (" ?! ", "empty"), ("a\u{7}b", "U+0007")] {
        for verb in ["ask", "search"] {
            let output = archive.florilegium(&[verb, question]);
            assert!(!output.status.success());
            assert!(stderr(&output).contains(words), "{}", stderr(&output));
        }
    }
    let long = "a ".repeat(5000);
    let output = archive.florilegium(&["ask", &long]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("1000"), "{}", stderr(&output));
}

#[test]
fn asking_before_anything_was_built_says_what_to_do() {
    let output = archive().florilegium(&["ask", "Who kept the lighthouse?"]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("florilegium run"), "{}", stderr(&output));
}

#[test]
fn an_empty_corpus_folder_is_named() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.5);
    fs::remove_dir_all(archive.path("corpus/fr")).unwrap();
    fs::create_dir(archive.path("corpus/fr")).unwrap();
    fails(&archive, &["corpus/fr"]);
    fs::remove_dir(archive.path("corpus/fr")).unwrap();
    fails(&archive, &["corpus/fr"]);
}

#[test]
fn invalid_utf8_in_a_source_is_named_with_its_place() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.5);
    let bad = root().join("data/fixtures/bad/invalid-utf8/page.html");
    fs::copy(bad, archive.path("corpus/en/bad page.html")).unwrap();
    fails(&archive, &["bad page.html", "UTF-8"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    // A file where a folder should be: refused for every user, root too.
    let archive = archive();
    fs::write(archive.path("work"), b"in the way").unwrap();
    fails(&archive, &["work", "choose another path"]);
    assert_eq!(fs::read(archive.path("work")).unwrap(), b"in the way");

    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.0);
    fs::write(archive.path("public"), b"in the way").unwrap();
    let output = archive.florilegium(&["run", &archive.pipeline().display().to_string()]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("public"), "{}", stderr(&output));
    assert_eq!(fs::read(archive.path("public")).unwrap(), b"in the way");
}

#[test]
fn a_second_run_at_the_same_time_is_refused() {
    let archive = archive();
    let lock = archive.path("work/lock");
    let _held = florilegium_files::lock::Lock::take(&lock).unwrap();
    fails(&archive, &["work/lock", &std::process::id().to_string()]);
}
