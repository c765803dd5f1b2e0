//! Counts words document by document: `words FOLDER LANGUAGE [braces]`. For comparing with counts made
//! by other means (`data/checks/words.py`).

use std::error::Error;

use florilegium_corpus::{Collection, Role, read_collection};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, language, rest @ ..] = arguments.as_slice() else {
        return Err("usage: words FOLDER LANGUAGE [braces]".into());
    };
    let collection = Collection {
        id: "c".into(),
        title: "C".into(),
        path: folder.into(),
        language: language.clone(),
        role: Role::Search,
        licence: String::new(),
        url: String::new(),
        exclude: vec![],
        format: None,
        encoding: None,
        reading: Default::default(),
        braces: rest.iter().any(|word| word == "braces"),
        metadata: None,
    };
    let (documents, report) = read_collection(&collection)?;
    for document in &documents {
        println!("{}\t{}", document.path, words(&document.text));
    }
    for warning in &report.warnings {
        eprintln!("{}: {:?}: {}", warning.path, warning.line, warning.message);
    }
    Ok(())
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}
