//! What the pages say, by language.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use minijinja::Value;
use minijinja::value::Serde;

use crate::error::PublishError;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates/messages");

static MESSAGES: LazyLock<Result<BTreeMap<String, Value>, String>> = LazyLock::new(|| {
    FILES
        .files()
        .filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
        .map(|(language, text)| {
            let table: toml::Table = toml::from_str(text)
                .map_err(|error| format!("templates/messages/{language}.toml: {error}"))?;
            Ok((language.to_owned(), Value::from(Serde(table))))
        })
        .collect()
});

/// The messages in one language.
pub(crate) fn messages(language: &str) -> Result<Value, PublishError> {
    let messages = MESSAGES.as_ref().map_err(|error| PublishError::Template(error.clone()))?;
    messages.get(language).cloned().ok_or_else(|| PublishError::NoMessages {
        language: language.to_owned(),
        known: messages.keys().cloned().collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every string by its path, with the places to be filled in it.
    fn strings(language: &str) -> BTreeMap<String, Vec<String>> {
        let text = FILES.get_file(format!("{language}.toml")).unwrap().contents_utf8().unwrap();
        let mut strings = BTreeMap::new();
        collect("", &toml::Value::Table(toml::from_str(text).unwrap()), &mut strings);
        strings
    }

    fn collect(path: &str, value: &toml::Value, strings: &mut BTreeMap<String, Vec<String>>) {
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    collect(&format!("{path}.{key}"), value, strings);
                }
            }
            toml::Value::Array(array) => {
                for (at, value) in array.iter().enumerate() {
                    collect(&format!("{path}[{at}]"), value, strings);
                }
            }
            toml::Value::String(text) => {
                assert!(!text.trim().is_empty() || path == ".number.group", "{path} is empty");
                let mut places: Vec<String> = text
                    .split('{')
                    .skip(1)
                    .filter_map(|rest| Some(rest.split_once('}')?.0.to_owned()))
                    .collect();
                places.sort();
                strings.insert(path.to_owned(), places);
            }
            _ => {
                strings.insert(path.to_owned(), Vec::new());
            }
        }
    }

    #[test]
    fn all_languages_say_the_same_things() {
        let english = strings("en");
        assert!(english.len() > 50);
        for language in ["fr", "el"] {
            assert_eq!(strings(language), english, "{language}");
        }
    }

    #[test]
    fn a_language_without_messages_is_named_with_the_remedy() {
        let message = messages("xx").unwrap_err().to_string();
        assert!(message.contains("\"xx\"") && message.contains("el, en, fr"), "{message}");
    }
}
