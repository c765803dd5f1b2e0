//! Evaluation sets: questions, texts, and which text answers which question.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::EvalError;

/// Questions, and the texts in which their answers are to be found.
#[derive(Debug, Clone)]
pub struct Set {
    /// As it is called in reports.
    pub name: String,
    /// The texts.
    pub texts: Vec<String>,
    /// Whether the texts are questions themselves: a wording is to be matched to a curated question.
    pub texts_are_questions: bool,
    /// The questions.
    pub questions: Vec<Asked>,
}

/// A question with the number of the text that answers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The question.
    pub question: String,
    /// The text.
    pub gold: usize,
}

#[derive(Deserialize)]
struct Squad {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<QuestionAnswers>,
}

#[derive(Deserialize)]
struct QuestionAnswers {
    question: String,
    #[serde(default)]
    answers: Vec<serde_json::Value>,
}

/// A line of a list of curated questions.
#[derive(Deserialize)]
struct Curated {
    id: String,
    question: String,
}

/// A line of other wordings.
#[derive(Deserialize)]
struct Wording {
    query: String,
    /// The id of the curated question; none when there is no such question.
    target: Option<String>,
}

impl Set {
    /// Reads `QUESTIONS`, or `QUESTIONS@TEXTS` when the texts are in another file: SQuAD-shaped JSON with
    /// the same paragraphs in the same order, or JSON Lines of wordings with their curated questions.
    /// Questions without an answer are left out.
    pub fn load(specification: &str) -> Result<Self, EvalError> {
        let (questions, texts) = match specification.split_once('@') {
            Some((questions, texts)) => (Path::new(questions), Some(Path::new(texts))),
            None => (Path::new(specification), None),
        };
        let stem =
            |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = match texts {
            Some(texts) => format!("{} on {}", stem(questions), stem(texts)),
            None => stem(questions),
        };
        let set = match texts {
            Some(texts) if questions.extension().is_some_and(|e| e == "jsonl") => {
                Self::of_wordings(name, questions, texts)?
            }
            _ => Self::of_squad(name, questions, texts)?,
        };
        if set.questions.is_empty() {
            let problem = "it has no question with an answer".to_owned();
            return Err(EvalError::Set { path: questions.to_owned(), line: None, problem });
        }
        Ok(set)
    }

    fn of_squad(name: String, path: &Path, texts: Option<&Path>) -> Result<Self, EvalError> {
        let asked = squad(path)?;
        let contexts = match texts {
            Some(other) => {
                let contexts = squad(other)?;
                if contexts.len() != asked.len() {
                    let problem = format!(
                        "it has {} paragraphs, {} has {}: they are not the same set in two languages",
                        asked.len(),
                        other.display(),
                        contexts.len()
                    );
                    return Err(EvalError::Set { path: path.to_owned(), line: None, problem });
                }
                contexts.into_iter().map(|paragraph| paragraph.context).collect()
            }
            None => asked.iter().map(|paragraph| paragraph.context.clone()).collect(),
        };
        let questions = asked.into_iter().enumerate().flat_map(|(gold, paragraph)| {
            let answered = paragraph.qas.into_iter().filter(|qa| !qa.answers.is_empty());
            answered.map(move |qa| Asked { question: qa.question.trim().to_owned(), gold })
        });
        Ok(Set {
            name,
            texts: contexts,
            texts_are_questions: false,
            questions: questions.collect(),
        })
    }

    fn of_wordings(name: String, path: &Path, texts: &Path) -> Result<Self, EvalError> {
        let curated: Vec<Curated> = lines(texts)?;
        let numbers: HashMap<&str, usize> =
            curated.iter().enumerate().map(|(number, c)| (c.id.as_str(), number)).collect();
        let mut questions = Vec::new();
        for (number, wording) in lines::<Wording>(path)?.into_iter().enumerate() {
            let Some(target) = wording.target else { continue };
            let Some(&gold) = numbers.get(target.as_str()) else {
                let problem = format!("{} has no question {target:?}", texts.display());
                return Err(EvalError::Set {
                    path: path.to_owned(),
                    line: Some(number + 1),
                    problem,
                });
            };
            questions.push(Asked { question: wording.query, gold });
        }
        let texts = curated.into_iter().map(|curated| curated.question).collect();
        Ok(Set { name, texts, texts_are_questions: true, questions })
    }
}

fn squad(path: &Path) -> Result<Vec<Paragraph>, EvalError> {
    let squad: Squad = serde_json::from_slice(&florilegium_files::read(path)?).map_err(|e| {
        EvalError::Set { path: path.to_owned(), line: Some(e.line()), problem: e.to_string() }
    })?;
    Ok(squad.data.into_iter().flat_map(|article| article.paragraphs).collect())
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, EvalError> {
    let bytes = florilegium_files::read(path)?;
    bytes
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(number, line)| {
            serde_json::from_slice(line).map_err(|e| EvalError::Set {
                path: path.to_owned(),
                line: Some(number + 1),
                problem: e.to_string(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    #[test]
    fn squad_leaves_out_what_has_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(
            folder.path(),
            "s.json",
            r#"{"data":[{"paragraphs":[{"context":"A","qas":[{"question":"a?","answers":[{}]},
               {"question":"no?","answers":[]}]},{"context":"B","qas":[{"question":" b? ","answers":[{}]}]}]}]}"#,
        );
        let set = Set::load(&path).unwrap();
        assert_eq!((set.name.as_str(), set.texts.len()), ("s", 2));
        assert_eq!(set.questions[1], Asked { question: "b?".into(), gold: 1 });
        assert_eq!(set.questions.len(), 2);
    }

    #[test]
    fn wordings_point_at_curated_questions() {
        let folder = tempfile::tempdir().unwrap();
        let faq =
            file(folder.path(), "faq.jsonl", "{\"id\":\"7\",\"question\":\"Q\",\"more\":1}\n");
        let ask = "{\"query\":\"q\",\"target\":\"7\"}\n{\"query\":\"x\",\"target\":null}\n";
        let asked = file(folder.path(), "w.jsonl", ask);
        let set = Set::load(&format!("{asked}@{faq}")).unwrap();
        assert!(set.texts_are_questions && set.questions.len() == 1);
        let wrong = file(folder.path(), "x.jsonl", "\n{\"query\":\"q\",\"target\":\"8\"}");
        let message = Set::load(&format!("{wrong}@{faq}")).unwrap_err().to_string();
        assert!(message.contains("\"8\""), "{message}");
    }

    #[test]
    fn what_is_no_set_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "bad.json", "{\n\"data\": 7}");
        let message = Set::load(&path).unwrap_err().to_string();
        assert!(message.contains("bad.json:2"), "{message}");
        assert!(Set::load("/nonexistent/set.json").is_err());
    }
}
