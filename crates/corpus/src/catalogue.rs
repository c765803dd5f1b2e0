//! What an archive's editors say of its documents, in a CSV: it goes before what the files say.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::document::{Collection, Document};
use crate::encoding::{self, Hints};
use crate::error::CorpusError;

/// The columns that are known.
const COLUMNS: [&str; 8] =
    ["path", "title", "author", "date", "edition", "licence", "language", "url"];

/// The rows of a collection's CSV, by the path of their document.
#[derive(Debug, Default)]
pub struct Catalogue {
    rows: HashMap<String, Row>,
}

#[derive(Debug)]
struct Row {
    line: u64,
    /// Values by column; what is empty leaves things as they are.
    values: HashMap<&'static str, String>,
}

impl Catalogue {
    /// Reads the CSV of a collection, if it has one.
    pub fn of(collection: &Collection) -> Result<Self, CorpusError> {
        match &collection.metadata {
            Some(path) => Self::load(path),
            None => Ok(Catalogue::default()),
        }
    }

    fn load(path: &Path) -> Result<Self, CorpusError> {
        let bytes =
            fs::read(path).map_err(|source| CorpusError::Io { path: path.to_owned(), source })?;
        let text = encoding::decode_html(path, &bytes, Hints::default())?.text;
        let fault = |line: u64, problem: String, remedy: &'static str| CorpusError::Content {
            path: path.to_owned(),
            line: usize::try_from(line).ok(),
            problem,
            remedy,
        };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator(&text))
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let header = reader
            .headers()
            .map_err(|error| fault(1, error.to_string(), "correct the first line"))?
            .clone();
        let mut columns = Vec::new();
        for name in &header {
            let lower = name.to_lowercase();
            let known = COLUMNS.iter().find(|column| **column == lower);
            columns.push(*known.ok_or_else(|| {
                let remedy =
                    "name the columns path, title, author, date, edition, licence, language, url";
                fault(1, format!("the column {name:?} is unknown"), remedy)
            })?);
        }
        if !columns.contains(&"path") {
            return Err(fault(
                1,
                "there is no column \"path\"".into(),
                "add it: it says which file a row is about",
            ));
        }
        let mut rows = HashMap::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(0, csv::Position::line);
                fault(line, error.to_string(), "give the row as many fields as the first line has, those with a separator in quotation marks")
            })?;
            let line = record.position().map_or(0, csv::Position::line);
            let mut values: HashMap<&'static str, String> = columns
                .iter()
                .zip(&record)
                .filter(|(_, value)| !value.is_empty())
                .map(|(column, value)| (*column, value.to_owned()))
                .collect();
            let Some(document) = values.remove("path") else {
                return Err(fault(
                    line,
                    "the row has no path".into(),
                    "say which file it is about, or remove the row",
                ));
            };
            if let Some(Row { line: first, .. }) = rows.get(&document) {
                let problem = format!("{document} has a row already, in line {first}");
                return Err(fault(line, problem, "remove one of the two"));
            }
            rows.insert(document, Row { line, values });
        }
        Ok(Catalogue { rows })
    }

    /// Lets a document be what the CSV says.
    pub fn apply(&self, document: &mut Document) {
        let Some(row) = self.rows.get(&document.path) else { return };
        for (column, value) in &row.values {
            let value = value.clone();
            match *column {
                "title" => document.title = value,
                "language" => {
                    document.language = value;
                    document.meta.language_confidence = None;
                }
                "author" => document.meta.author = Some(value),
                "date" => document.meta.date = Some(value),
                "edition" => document.meta.edition = Some(value),
                "licence" => document.meta.licence = Some(value),
                "url" => document.meta.url = Some(value),
                _ => {}
            }
        }
    }

    /// Rows that are about none of these documents: line and path, in the order of lines.
    pub fn unused<'a>(
        &'a self,
        documents: impl Iterator<Item = &'a Document>,
    ) -> Vec<(u64, &'a str)> {
        let mut rows: HashMap<&str, u64> =
            self.rows.iter().map(|(path, row)| (path.as_str(), row.line)).collect();
        for document in documents {
            rows.remove(document.path.as_str());
        }
        let mut unused: Vec<(u64, &str)> =
            rows.into_iter().map(|(path, line)| (line, path)).collect();
        unused.sort_unstable();
        unused
    }
}

/// The separator that the first line has most of.
fn separator(text: &str) -> u8 {
    let header = text.lines().next().unwrap_or_default();
    let count = |separator: &u8| header.matches(char::from(*separator)).count();
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain;

    fn load(text: &str) -> Result<Catalogue, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("texts.csv");
        fs::write(&path, text).unwrap();
        Catalogue::load(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_csv_says_goes_first() {
        let catalogue = load(
            "\u{feff}path;title;date;language;author\na.txt;\"Title; the\";1637;fr;\nb.txt;B;;;X\n",
        )
        .unwrap();
        let mut document = plain::read("Old title\n\nText.").into_document("c", "a.txt", "en");
        document.meta.author = Some("Y".into());
        catalogue.apply(&mut document);
        assert_eq!((document.title.as_str(), document.language.as_str()), ("Title; the", "fr"));
        assert_eq!(document.meta.year(), Some("1637"));
        assert_eq!(document.meta.author.as_deref(), Some("Y"), "an empty field says nothing");
        assert_eq!(catalogue.unused([&document].into_iter()), [(3, "b.txt")]);
    }

    #[test]
    fn faults_name_the_line() {
        for (text, line, problem) in [
            ("path,colour\n", "line 1", "colour"),
            ("title\nx\n", "line 1", "path"),
            ("path,title\na,b\nc\n", "line 3", "fields"),
            ("path,title\na,b\na,c\n", "line 3", "line 2"),
            ("path,title\n,b\n", "line 2", "no path"),
        ] {
            let message = load(text).unwrap_err();
            assert!(message.contains(line) && message.contains(problem), "{message}");
            assert!(message.contains("texts.csv"), "{message}");
        }
    }
}
