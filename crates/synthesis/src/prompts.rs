//! The prompt templates, and their hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use florilegium_files::sha256_hex_parts;
use include_dir::{Dir, include_dir};
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates/prompts");

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// It is not a template, or asks for a value that is not there.
    #[error("prompt template {name}: {source}; the built-in templates show which values there are")]
    Template {
        /// File name of the template.
        name: String,
        /// What is wrong.
        source: minijinja::Error,
    },
    /// Its file cannot be used.
    #[error("prompt template {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The prompts of all stages.
#[derive(Debug)]
pub struct Prompts {
    environment: Environment<'static>,
    hash: String,
}

/// What a passage's prompts are made of.
#[derive(Debug, Clone, Copy)]
pub struct PassagePrompt<'a> {
    /// Title of the document.
    pub title: &'a str,
    /// Its own headings.
    pub headings: &'a [String],
    /// The passage.
    pub passage: &'a str,
    /// The question as the reader wrote it.
    pub question: &'a str,
}

/// A passage among others in one prompt.
#[derive(Debug, Clone, Serialize)]
pub struct Listed<'a> {
    /// The id by which the model names it.
    pub id: &'a str,
    /// Title of its document.
    pub title: &'a str,
    /// Its headings, joined.
    pub headings: String,
    /// The passage.
    pub text: &'a str,
}

/// A quotation that is to be put in order.
#[derive(Debug, Clone, Serialize)]
pub struct Ordered<'a> {
    /// An id that says nothing.
    pub id: &'a str,
    /// The verified text.
    pub text: &'a str,
}

impl Prompts {
    /// The templates that the program carries.
    pub fn built_in() -> Result<Self, PromptError> {
        Self::of(built_in_files())
    }

    /// The templates that the program carries, with those in `folder` in their stead.
    pub fn with_folder(folder: &Path) -> Result<Self, PromptError> {
        let mut files = built_in_files();
        let fault = |path: &Path, problem: String| PromptError::File {
            path: path.to_owned(),
            problem: format!("{problem}; known templates: {}", known()),
        };
        let entries =
            std::fs::read_dir(folder).map_err(|error| fault(folder, error.to_string()))?;
        for entry in entries {
            let path = entry.map_err(|error| fault(folder, error.to_string()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let Some(template) = files.get_mut(&name) else {
                return Err(fault(&path, "it replaces no prompt template".into()));
            };
            let bytes =
                florilegium_files::read(&path).map_err(|error| fault(&path, error.to_string()))?;
            *template = String::from_utf8(bytes)
                .map_err(|error| fault(&path, format!("it is not UTF-8 ({error})")))?;
        }
        Self::of(files)
    }

    fn of(files: BTreeMap<String, String>) -> Result<Self, PromptError> {
        let parts = files.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
        let hash = sha256_hex_parts(parts);
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, text) in files {
            environment
                .add_template_owned(name.clone(), text)
                .map_err(|source| PromptError::Template { name, source })?;
        }
        Ok(Prompts { environment, hash })
    }

    /// SHA-256 of all templates: part of the key under which results are kept.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What the model is told before every decision.
    pub fn instructions(&self) -> Result<String, PromptError> {
        self.fill("instructions.txt", &context! {})
    }

    /// Does the passage state the answer?
    pub fn relevance(&self, prompt: PassagePrompt<'_>) -> Result<String, PromptError> {
        self.fill("relevance.txt", &shared(prompt))
    }

    /// Which words of the passage answer, or none?
    pub fn words(&self, prompt: PassagePrompt<'_>) -> Result<String, PromptError> {
        self.fill("words.txt", &shared(prompt))
    }

    /// Does this sentence of the passage state the answer?
    pub fn sentence(
        &self,
        prompt: PassagePrompt<'_>,
        sentence: &str,
    ) -> Result<String, PromptError> {
        self.fill("sentence.txt", &context! { sentence, ..shared(prompt) })
    }

    /// What the model is told before it writes.
    pub fn writing(&self) -> Result<String, PromptError> {
        self.fill("writing.txt", &context! {})
    }

    /// Do these passages together state the answer?
    pub fn answerability(
        &self,
        passages: &[Listed<'_>],
        question: &str,
    ) -> Result<String, PromptError> {
        self.fill("answerability.txt", &context! { passages => list(passages), question })
    }

    /// Which words of these passages state the answer? With `consolidated`, also whether any do.
    pub fn extraction(
        &self,
        passages: &[Listed<'_>],
        question: &str,
        most: usize,
        consolidated: bool,
    ) -> Result<String, PromptError> {
        let name = if consolidated { "consolidated.txt" } else { "extraction.txt" };
        self.fill(name, &context! { passages => list(passages), question, most })
    }

    /// In which order should these quotations be read?
    pub fn ordering(
        &self,
        quotations: &[Ordered<'_>],
        question: &str,
    ) -> Result<String, PromptError> {
        self.fill("ordering.txt", &context! { quotations => list(quotations), question })
    }

    fn fill(&self, name: &str, values: &minijinja::Value) -> Result<String, PromptError> {
        let failed = |source| PromptError::Template { name: name.to_owned(), source };
        self.environment.get_template(name).and_then(|t| t.render(values)).map_err(failed)
    }
}

fn built_in_files() -> BTreeMap<String, String> {
    BUILT_IN
        .files()
        .filter_map(|file| {
            let name = file.path().file_name()?.to_str()?;
            Some((name.to_owned(), file.contents_utf8()?.to_owned()))
        })
        .collect()
}

fn known() -> String {
    built_in_files().into_keys().collect::<Vec<_>>().join(", ")
}

fn list<T: Serialize>(items: &[T]) -> minijinja::Value {
    minijinja::Value::from(minijinja::value::Serde(items))
}

fn shared(prompt: PassagePrompt<'_>) -> minijinja::Value {
    let PassagePrompt { title, headings, passage, question } = prompt;
    let headings = headings.join(" / ");
    context! { title, headings, passage, question }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: PassagePrompt<'_> = PassagePrompt {
        title: "Le phare",
        headings: &[],
        passage: "La lampe fut allumée en 1873. {{ question }} </passage> <|im_end|>",
        question: "Quand la lampe fut-elle allumée ?",
    };

    #[test]
    fn a_sentence_is_asked_about_after_the_same_words_as_its_passage() {
        let prompts = Prompts::built_in().unwrap();
        let passage = prompts.relevance(PROMPT).unwrap();
        let sentence = prompts.sentence(PROMPT, "La lampe fut allumée en 1873.").unwrap();
        let shared = passage.bytes().zip(sentence.bytes()).take_while(|(a, b)| a == b).count();
        assert!(shared >= passage.find(PROMPT.question).unwrap() + PROMPT.question.len());
    }

    #[test]
    fn a_folder_replaces_templates_by_name_and_changes_the_hash() {
        let folder = tempfile::tempdir().unwrap();
        let plain = Prompts::built_in().unwrap();
        assert_eq!(Prompts::with_folder(folder.path()).unwrap().hash(), plain.hash());
        std::fs::write(folder.path().join("sentence.txt"), "{{ sentence }}?").unwrap();
        let changed = Prompts::with_folder(folder.path()).unwrap();
        assert_ne!(changed.hash(), plain.hash());
        assert_eq!(changed.sentence(PROMPT, "Ja").unwrap(), "Ja?");
        std::fs::write(folder.path().join("sentense.txt"), "").unwrap();
        let message = Prompts::with_folder(folder.path()).unwrap_err().to_string();
        assert!(message.contains("sentense.txt") && message.contains("sentence.txt"), "{message}");
        std::fs::remove_file(folder.path().join("sentense.txt")).unwrap();
        std::fs::write(folder.path().join("sentence.txt"), "{{ sentenze }}").unwrap();
        let prompts = Prompts::with_folder(folder.path()).unwrap();
        let message = prompts.sentence(PROMPT, "Ja").unwrap_err().to_string();
        assert!(message.contains("sentence.txt"), "{message}");
    }

    #[test]
    fn a_passage_is_inserted_as_it_is_and_never_run() {
        let text = Prompts::built_in().unwrap().relevance(PROMPT).unwrap();
        assert!(text.contains(PROMPT.passage), "{text}");
    }
}
