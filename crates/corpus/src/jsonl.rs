//! JSON Lines to documents: one object a line, as databases export them.

use std::collections::HashSet;

use serde::Deserialize;

use crate::blocks::{Content, Fault};
use crate::document::{Format, Metadata};
use crate::{canonical, html, markdown, plain};

/// One line.
#[derive(Debug, Deserialize)]
struct Record {
    id: Option<serde_json::Value>,
    title: Option<String>,
    text: String,
    url: Option<String>,
    #[serde(alias = "language")]
    lang: Option<String>,
    author: Option<String>,
    date: Option<serde_json::Value>,
    edition: Option<String>,
    #[serde(alias = "license")]
    licence: Option<String>,
    format: Option<Format>,
}

/// Reads all records: their ids, unique in the file, and what they hold. The text of a record is plain
/// text, unless its `format` is `html` or `markdown`.
pub fn read(text: &str) -> Result<Vec<(String, Content)>, Fault> {
    let mut records = Vec::new();
    let mut seen = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let fault = |problem: String| Fault { line: number, problem };
        let record: Record =
            serde_json::from_str(line).map_err(|error| fault(error.to_string()))?;
        let id = match &record.id {
            Some(serde_json::Value::String(id)) => canonical::line(id),
            Some(serde_json::Value::Number(id)) => id.to_string(),
            Some(_) => return Err(fault("its id is neither a string nor a number".into())),
            None => String::new(),
        };
        let id = if id.is_empty() { format!("line-{number}") } else { id };
        if !seen.insert(id.clone()) {
            return Err(fault(format!("its id {id:?} is that of an earlier line")));
        }
        let mut content = match record.format {
            None | Some(Format::Text) => plain::read(&record.text),
            Some(Format::Html) => html::read(&record.text),
            Some(Format::Markdown) => markdown::read(&record.text),
            Some(_) => {
                return Err(fault("its format is none of text, html and markdown".into()));
            }
        };
        // Every byte of a record stands in its line.
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        content.map.lines = vec![(0, number)];
        for block in &mut content.blocks {
            block.element = format!("record[{id}]/{}", block.element);
        }
        content.title = record.title.map(|title| canonical::line(&title)).or(content.title);
        content.language = record.lang.or(content.language);
        let date = match record.date {
            Some(serde_json::Value::String(date)) => Some(date),
            Some(serde_json::Value::Number(date)) => Some(date.to_string()),
            _ => None,
        };
        content.meta = Metadata {
            author: record.author,
            date,
            edition: record.edition,
            licence: record.licence,
            url: record.url,
            ..content.meta
        };
        records.push((id, content));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_documents() {
        let records = read(concat!(
            "{\"id\": 7, \"title\": \"T\", \"text\": \"One\\ntwo.\\n\\nThree.\", \"lang\": \"en\", \"date\": 1637, \"url\": \"https://x.org/7\"}\n",
            "\n",
            "{\"text\": \"<p>A<p>B\", \"format\": \"html\", \"extra\": [1]}\n",
        ))
        .unwrap();
        assert_eq!(records[0].0, "7");
        assert_eq!(records[0].1.text, "One two.\n\nThree.");
        assert_eq!(records[0].1.meta.year(), Some("1637"));
        assert_eq!(records[1].0, "line-3");
        assert_eq!(records[1].1.text, "A\n\nB");
        assert_eq!(records[1].1.map.lines, [(0, 3)]);
    }

    #[test]
    fn faults_name_the_line() {
        for (text, line, problem) in [
            ("{\"text\": \"a\"}\n{\"id\": 1}", 2, "text"),
            ("{\"text\": \"a\"", 1, "EOF"),
            ("{\"id\":1,\"text\":\"a\"}\n{\"id\":\"1\",\"text\":\"a\"}", 2, "earlier"),
            ("{\"id\":[],\"text\":\"a\"}", 1, "neither"),
            ("{\"format\":\"pdf\",\"text\":\"a\"}", 1, "none of"),
        ] {
            let fault = read(text).unwrap_err();
            assert_eq!(fault.line, line);
            assert!(fault.problem.contains(problem), "{fault:?}");
        }
    }
}
