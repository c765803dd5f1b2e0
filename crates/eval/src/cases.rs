//! Questions with the passages they are to be answered from, and what is known about their answers.
//!
//! Three ways to a case: a set that gives its passages (NoMIRACL: JSON Lines with `passages`), a set
//! whose paragraph is given (SQuAD 2.0, where the question may have no answer in it), and a set whose
//! paragraphs are searched; there, a question is made unanswerable by holding its article out.

use std::collections::HashMap;
use std::path::Path;

use florilegium_batch::Vectors;
use florilegium_corpus::{Passage, sentence};
use florilegium_embed::Embedder;
use florilegium_files::{sha256_hex, sha256_hex_parts};
use florilegium_index::{Filter, Index, Origin, Question, Ranking, dot};
use serde::Deserialize;

use crate::error::EvalError;

/// Questions of a kind taken from one paragraph that is given with them.
const PER_PARAGRAPH: usize = 3;

/// How the cases of a set are chosen.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Passages a question gets.
    pub passages: usize,
    /// At most this many answerable questions a set, and as many unanswerable ones.
    pub sample: usize,
    /// At most this many questions whose article is held out, for sets that have no others.
    pub held_out: usize,
    /// Whether SQuAD-shaped sets give each question its own paragraph.
    pub given: bool,
}

/// A question with its passages.
#[derive(Debug, Clone)]
pub struct Case {
    /// Set and number of the question in it.
    pub id: String,
    /// The set.
    pub set: String,
    /// BCP 47 tag.
    pub language: String,
    /// The question.
    pub question: String,
    /// Whether the set says that it can be answered, and its article is not held out.
    pub answerable: bool,
    /// The answers the set gives, if it gives any.
    pub answers: Vec<String>,
    /// Passages in the order of retrieval.
    pub texts: Vec<Text>,
    /// Vector of the question.
    pub vector: Vec<f32>,
}

/// One passage of a case.
#[derive(Debug, Clone)]
pub struct Text {
    /// As the pipeline takes it; the document is the text itself.
    pub passage: Passage,
    /// Title.
    pub title: String,
    /// The text.
    pub text: String,
    /// Cosine of question and passage.
    pub similarity: f32,
    /// Whether it is the paragraph that the answer was taken from.
    pub gold: bool,
}

/// The cases of a set, and the index that was searched, whose rarity of words counts.
pub struct Cases {
    /// The cases, in an order that does not depend on the sample's size.
    pub cases: Vec<Case>,
    /// Every text of the set that was looked at.
    pub index: Index,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    lang: String,
    question: String,
    answerable: bool,
    passages: Vec<String>,
}

#[derive(Deserialize)]
struct Squad {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    #[serde(default)]
    title: String,
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
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

/// A question before its passages are found.
struct Open {
    id: String,
    language: String,
    question: String,
    answerable: bool,
    answers: Vec<String>,
    /// Its own passages, titles first, or nothing when they are to be found.
    given: Option<Vec<(String, String)>>,
    /// Article and paragraph.
    gold: Option<(usize, usize)>,
    held_out: bool,
}

/// Texts that can be found: article, paragraph, title, text.
type Searchable = (usize, usize, String, String);

/// Loads a set and finds the passages for a sample of its questions. `folder` holds the index while
/// it is needed; `vectors` keeps what was embedded.
pub fn cases(
    path: &Path,
    sampling: Sampling,
    embedder: &Embedder,
    vectors: &mut Vectors,
    folder: &Path,
) -> Result<Cases, EvalError> {
    let set = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = florilegium_files::read(path)?;
    let (open, searchable) = if path.extension().is_some_and(|e| e == "jsonl") {
        (of_lines(path, &bytes)?, Vec::new())
    } else {
        of_squad(path, &set, &bytes, sampling)?
    };
    let chosen = sample(open, sampling);
    let answerless = |wanted: bool| chosen.iter().filter(|o| o.answerable == wanted).count();
    if answerless(true) == 0 {
        let problem = "it has no question that can be answered".to_owned();
        return Err(EvalError::Set { path: path.to_owned(), line: None, problem });
    }

    // What is indexed: the texts that are searched, or else all that were given.
    let mut texts: Vec<Searchable> = searchable;
    if texts.is_empty() {
        let mut known: HashMap<&str, ()> = HashMap::new();
        let given = chosen.iter().flat_map(|open| open.given.iter().flatten());
        for (title, text) in given {
            if known.insert(text, ()).is_none() {
                texts.push((0, 0, title.clone(), text.clone()));
            }
        }
    }
    let pieces: Vec<Vec<String>> = texts.iter().map(|(.., text)| pieces(text, embedder)).collect();
    let flat: Vec<&str> = pieces.iter().flatten().map(String::as_str).collect();
    embed(&flat, embedder, vectors)?;
    let mut owner: Vec<usize> = Vec::new();
    for (number, pieces) in pieces.iter().enumerate() {
        owner.extend(pieces.iter().map(|_| number));
    }
    let rows: Vec<florilegium_index::Row<'_>> = flat
        .iter()
        .enumerate()
        .map(|(passage, text)| florilegium_index::Row {
            passage,
            collection: "set",
            language: "any",
            vector: vectors.get(&key(text)).unwrap_or_default(),
            text,
        })
        .collect();
    let origin = Origin {
        corpus: sha256_hex_parts(flat.iter().map(|text| text.as_bytes())),
        model: embedder.model_hash().to_owned(),
        dimension: embedder.dimension(),
    };
    let index = Index::build(folder, origin, &rows)?;
    drop(rows);

    let mut cases = Vec::with_capacity(chosen.len());
    for open in chosen {
        let vector = embedder.question(&open.question)?;
        let likeness = |text: &str| {
            let of = |piece: &String| vectors.get(&key(piece)).map(|v| dot(v, &vector));
            self::pieces(text, embedder).iter().filter_map(of).fold(0.0, f32::max)
        };
        let found: Vec<(String, String, f32, bool)> = match &open.given {
            Some(given) => {
                let mut given: Vec<_> = given
                    .iter()
                    .map(|(title, text)| (title.clone(), text.clone(), likeness(text), false))
                    .collect();
                // The order of the set is not the order of this product's search.
                given.sort_by(|a, b| b.2.total_cmp(&a.2));
                if given.len() == 1 {
                    given[0].3 = open.answerable;
                }
                given.truncate(sampling.passages);
                given
            }
            None => {
                let asked = Question { vector: &vector, text: &open.question };
                let depth = sampling.passages * 4 + 40;
                let hits = index.search(asked, &Filter::default(), depth, &Ranking::default())?;
                let mut found: Vec<(usize, f32)> = Vec::new();
                for hit in hits {
                    let Some(&number) = owner.get(hit.passage) else { continue };
                    let held_out = open.held_out
                        && open.gold.is_some_and(|(article, _)| texts[number].0 == article);
                    if !held_out && !found.iter().any(|(seen, _)| *seen == number) {
                        found.push((number, hit.dense));
                    }
                }
                found.truncate(sampling.passages);
                found
                    .into_iter()
                    .map(|(number, similarity)| {
                        let (article, paragraph, title, text) = &texts[number];
                        let gold = open.gold == Some((*article, *paragraph));
                        (title.clone(), text.clone(), similarity, gold)
                    })
                    .collect()
            }
        };
        let texts = found
            .into_iter()
            .map(|(title, text, similarity, gold)| Text {
                passage: passage(&text, &open.language),
                title,
                text,
                similarity,
                gold,
            })
            .collect();
        cases.push(Case {
            id: open.id,
            set: set.clone(),
            language: open.language,
            question: open.question,
            answerable: open.answerable,
            answers: open.answers,
            texts,
            vector,
        });
    }
    vectors.save()?;
    Ok(Cases { cases, index })
}

fn of_lines(path: &Path, bytes: &[u8]) -> Result<Vec<Open>, EvalError> {
    bytes
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| !line.trim_ascii().is_empty())
        .map(|(number, line)| {
            let line: Line = serde_json::from_slice(line).map_err(|e| EvalError::Set {
                path: path.to_owned(),
                line: Some(number + 1),
                problem: e.to_string(),
            })?;
            let given = line.passages.iter().map(|passage| match passage.split_once(": ") {
                Some((title, text)) => (title.to_owned(), text.to_owned()),
                None => (String::new(), passage.clone()),
            });
            Ok(Open {
                id: line.id,
                language: line.lang,
                question: line.question.trim().to_owned(),
                answerable: line.answerable,
                answers: Vec::new(),
                given: Some(given.collect()),
                gold: None,
                held_out: false,
            })
        })
        .collect()
}

fn of_squad(
    path: &Path,
    set: &str,
    bytes: &[u8],
    sampling: Sampling,
) -> Result<(Vec<Open>, Vec<Searchable>), EvalError> {
    let squad: Squad = serde_json::from_slice(bytes).map_err(|e| EvalError::Set {
        path: path.to_owned(),
        line: Some(e.line()),
        problem: e.to_string(),
    })?;
    // As `xquad.el` or `squad2.en`.
    let language = set.rsplit_once('.').map_or("en", |(_, language)| language);
    let mut open = Vec::new();
    let mut searchable = Vec::new();
    for (a, article) in squad.data.iter().enumerate() {
        let title = article.title.replace('_', " ");
        for (p, paragraph) in article.paragraphs.iter().enumerate() {
            searchable.push((a, p, title.clone(), paragraph.context.trim().to_owned()));
            for (q, qa) in paragraph.qas.iter().enumerate() {
                let one = |held_out: bool| Open {
                    id: format!("{set}:{a}.{p}.{q}{}", if held_out { "-held-out" } else { "" }),
                    language: language.to_owned(),
                    question: qa.question.trim().to_owned(),
                    answerable: !qa.answers.is_empty() && !held_out,
                    answers: qa.answers.iter().map(|answer| answer.text.clone()).collect(),
                    given: sampling
                        .given
                        .then(|| vec![(title.clone(), paragraph.context.trim().to_owned())]),
                    gold: Some((a, p)),
                    held_out,
                };
                open.push(one(false));
                if !sampling.given && !qa.answers.is_empty() {
                    open.push(one(true));
                }
            }
        }
    }
    let searchable = if sampling.given { Vec::new() } else { searchable };
    Ok((open, searchable))
}

/// The first of each kind in the order of a hash: the same whatever the size of the sample, so that a
/// larger one keeps what was decided for a smaller one. Questions with their own paragraph come
/// paragraph by paragraph, at most [`PER_PARAGRAPH`] of a kind: its tokens are computed once.
fn sample(mut open: Vec<Open>, sampling: Sampling) -> Vec<Open> {
    open.sort_by_cached_key(|open| sha256_hex(open.id.as_bytes()));
    if sampling.given {
        let mut taken: HashMap<(Option<(usize, usize)>, bool), usize> = HashMap::new();
        open.retain(|open| {
            let count = taken.entry((open.gold, open.answerable)).or_default();
            *count += 1;
            *count <= PER_PARAGRAPH
        });
        let hash = |open: &Open| open.gold.map(|gold| sha256_hex(format!("{gold:?}").as_bytes()));
        open.sort_by_cached_key(hash);
    }
    let (mut answerable, mut unanswerable, mut held_out) = (0, 0, 0);
    open.retain(|open| {
        let (count, most) = match (open.held_out, open.answerable) {
            (true, _) => (&mut held_out, sampling.held_out),
            (false, true) => (&mut answerable, sampling.sample),
            (false, false) => (&mut unanswerable, sampling.sample),
        };
        *count += 1;
        *count <= most
    });
    open
}

/// A text as a passage of a document that is nothing else.
fn passage(text: &str, language: &str) -> Passage {
    let text_hash = sha256_hex(text.as_bytes());
    let id: String = text_hash.chars().take(16).collect();
    Passage {
        document: id.clone(),
        id,
        collection: "set".into(),
        language: language.to_owned(),
        range: 0..text.len(),
        sentences: sentence::sentences(text, language),
        parts: Vec::new(),
        headings: Vec::new(),
        anchor: None,
        text_hash,
        tokens: 0,
    }
}

/// A text in pieces that the model reads whole: one that is too long is halved, at a space.
pub(crate) fn pieces(text: &str, embedder: &Embedder) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest = vec![text.trim()];
    while let Some(text) = rest.pop() {
        let middle = text.len() / 2;
        let spaces = text.char_indices().filter(|(_, c)| c.is_whitespace());
        let nearest = spaces.map(|(at, _)| at).min_by_key(|at| at.abs_diff(middle));
        match nearest.filter(|_| embedder.count_tokens(text) > embedder.max_tokens()) {
            Some(at) => {
                let (first, second) = text.split_at(at);
                rest.extend([second.trim(), first.trim()]);
            }
            None => pieces.push(text.to_owned()),
        }
    }
    pieces
}

fn embed(texts: &[&str], embedder: &Embedder, vectors: &mut Vectors) -> Result<(), EvalError> {
    let mut new: Vec<&str> =
        texts.iter().copied().filter(|text| vectors.get(&key(text)).is_none()).collect();
    new.sort_unstable();
    new.dedup();
    let computed = embedder.passages(&new, &mut |_, _| {})?;
    for (text, vector) in new.into_iter().zip(computed) {
        vectors.put(key(text), vector);
    }
    Ok(())
}

fn key(text: &str) -> String {
    format!("passage:{}", sha256_hex(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUAD: &str = r#"{"data":[{"title":"A_b","paragraphs":[{"context":" One. Two. ","qas":[
        {"question":"q1?","answers":[{"text":"One"}]},{"question":"q2?","answers":[]}]}]}]}"#;

    fn sampling(given: bool, sample: usize) -> Sampling {
        Sampling { passages: 5, sample, held_out: 1, given }
    }

    #[test]
    fn a_question_is_made_unanswerable_by_holding_its_article_out() {
        let path = Path::new("s.fr.json");
        let (open, texts) = of_squad(path, "s.fr", SQUAD.as_bytes(), sampling(false, 9)).unwrap();
        assert_eq!(texts, [(0, 0, "A b".to_owned(), "One. Two.".to_owned())]);
        let of = |open: &Open| (open.id.clone(), open.answerable, open.held_out);
        let all: Vec<_> = open.iter().map(of).collect();
        assert_eq!(all.len(), 3);
        assert!(all.contains(&("s.fr:0.0.0".into(), true, false)));
        assert!(all.contains(&("s.fr:0.0.0-held-out".into(), false, true)));
        assert!(open.iter().all(|open| open.language == "fr"));
        let (given, texts) = of_squad(path, "s.fr", SQUAD.as_bytes(), sampling(true, 9)).unwrap();
        assert!(texts.is_empty() && given.len() == 2 && given[0].given.is_some());
    }

    #[test]
    fn a_larger_sample_keeps_the_smaller_one() {
        let open = |count: usize| {
            let one = |n: usize| Open {
                id: n.to_string(),
                language: "en".into(),
                question: String::new(),
                answerable: n.is_multiple_of(2),
                answers: Vec::new(),
                given: None,
                gold: None,
                held_out: false,
            };
            let chosen = sample((0..50).map(one).collect(), sampling(false, count));
            chosen.into_iter().map(|open| open.id).collect::<Vec<_>>()
        };
        let (few, many) = (open(3), open(9));
        assert_eq!((few.len(), many.len()), (6, 18));
        assert!(few.iter().all(|id| many.contains(id)));
    }

    #[test]
    fn a_line_that_is_no_case_is_named() {
        let error = of_lines(Path::new("n.jsonl"), b"\n{\"id\":\"1\"}").err().unwrap();
        assert!(error.to_string().contains("n.jsonl:2"), "{error}");
    }
}
