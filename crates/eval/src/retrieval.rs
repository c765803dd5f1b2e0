//! Retrieval, measured: the index of the product, filled with the texts of a set.

use std::collections::HashMap;
use std::path::Path;

use florilegium_batch::Vectors;
use florilegium_embed::Embedder;
use florilegium_files::{sha256_hex, sha256_hex_parts};
use florilegium_index::{Filter, Fusion, Hit, Index, Origin, Question, Ranking};
use serde::{Deserialize, Serialize};

use crate::error::EvalError;
use crate::measure::Measures;
use crate::sets::Set;

/// Texts looked at for each question.
const DEPTH: usize = 200;

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Identity of the embedding model.
    pub model: String,
    /// Weight of the words.
    pub lexical_weight: f32,
    /// A row for each set and way of fusing.
    pub rows: Vec<Row>,
}

/// One set, searched in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The set.
    pub set: String,
    /// How the scores were put together.
    pub fusion: Fusion,
    /// Texts.
    pub texts: usize,
    /// Questions.
    pub questions: usize,
    /// How well they were found.
    pub measures: Measures,
}

/// Measures one set in every way of fusing. `vectors` keeps what was embedded; the index lies in
/// `folder` while it is needed. `progress` hears of every question.
pub fn retrieval(
    set: &Set,
    embedder: &Embedder,
    vectors: &mut Vectors,
    folder: &Path,
    lexical_weight: f32,
    progress: &mut dyn FnMut(),
) -> Result<Vec<Row>, EvalError> {
    let pieces = pieces(set, embedder);
    embed(set, &pieces, embedder, vectors)?;
    let texts: Vec<&str> = pieces.iter().map(|(_, text)| *text).collect();
    let rows: Vec<florilegium_index::Row<'_>> = texts
        .iter()
        .enumerate()
        .map(|(passage, text)| florilegium_index::Row {
            passage,
            collection: "set",
            language: "any",
            vector: vectors.get(&key(set.texts_are_questions, text)).unwrap_or_default(),
            text,
        })
        .collect();
    let origin = Origin {
        corpus: sha256_hex_parts(texts.iter().map(|text| text.as_bytes())),
        model: embedder.model_hash().to_owned(),
        dimension: embedder.dimension(),
    };
    let index = Index::build(folder, origin, &rows)?;
    let asked: Vec<Vec<f32>> = set
        .questions
        .iter()
        .map(|asked| {
            progress();
            match vectors.get(&key(true, &asked.question)) {
                Some(vector) => Ok(vector.to_vec()),
                None => embedder.question(&asked.question),
            }
        })
        .collect::<Result<_, _>>()?;
    for (question, vector) in set.questions.iter().zip(&asked) {
        vectors.put(key(true, &question.question), vector.clone());
    }
    vectors.save()?;

    let mut rows = Vec::new();
    for fusion in [Fusion::Dense, Fusion::Lexical, Fusion::Reciprocal, Fusion::Standardised] {
        // Reciprocal ranks as they are published: both sides count the same.
        let lexical_weight = if fusion == Fusion::Reciprocal { 1.0 } else { lexical_weight };
        let ranking = Ranking { fusion, lexical_weight, ..Ranking::default() };
        let mut ranks = Vec::with_capacity(set.questions.len());
        for (question, vector) in set.questions.iter().zip(&asked) {
            let searched = Question { vector, text: &question.question };
            let hits = index.search(searched, &Filter::default(), DEPTH, &ranking)?;
            ranks.push(rank(&hits, &pieces, question.gold));
        }
        rows.push(Row {
            set: set.name.clone(),
            fusion,
            texts: set.texts.len(),
            questions: set.questions.len(),
            measures: Measures::of(&ranks),
        });
    }
    Ok(rows)
}

/// The rank of the gold text among distinct texts: a text in two pieces counts once.
fn rank(hits: &[Hit], pieces: &[(usize, &str)], gold: usize) -> Option<usize> {
    let mut seen: Vec<usize> = Vec::new();
    for hit in hits {
        let text = pieces.get(hit.passage)?.0;
        if !seen.contains(&text) {
            seen.push(text);
        }
        if text == gold {
            return Some(seen.len());
        }
    }
    None
}

/// The texts in pieces that the model reads whole: a text that is too long is halved, at a space.
fn pieces<'a>(set: &'a Set, embedder: &Embedder) -> Vec<(usize, &'a str)> {
    let mut pieces = Vec::new();
    for (number, text) in set.texts.iter().enumerate() {
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
                None => pieces.push((number, text)),
            }
        }
    }
    pieces
}

fn embed(
    set: &Set,
    pieces: &[(usize, &str)],
    embedder: &Embedder,
    vectors: &mut Vectors,
) -> Result<(), EvalError> {
    let mut new: HashMap<String, &str> = HashMap::new();
    for (_, text) in pieces {
        let key = key(set.texts_are_questions, text);
        if vectors.get(&key).is_none() {
            new.insert(key, text);
        }
    }
    let (keys, texts): (Vec<String>, Vec<&str>) = new.into_iter().unzip();
    let computed = if set.texts_are_questions {
        texts.iter().map(|text| embedder.question(text)).collect::<Result<Vec<_>, _>>()?
    } else {
        embedder.passages(&texts, &mut |_, _| {})?
    };
    for (key, vector) in keys.into_iter().zip(computed) {
        vectors.put(key, vector);
    }
    Ok(())
}

fn key(is_question: bool, text: &str) -> String {
    let kind = if is_question { "query" } else { "passage" };
    format!("{kind}:{}", sha256_hex(text.as_bytes()))
}
