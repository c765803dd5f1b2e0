//! A reader's wording and the curated questions that are like it. Likeness is not identity ("A defeats
//! B" is not "B defeats A"): what is found here is suggested, never opened in the reader's stead.

use florilegium_files::sha256_hex_parts;
use florilegium_index::{Filter, Index, Origin, Question, Row};
use florilegium_questions::{QuestionList, Status};

use crate::error::BatchError;
use crate::library::{Library, normalise};

/// The wordings of the published questions, variants included, by likeness.
pub struct Wordings {
    index: Index,
    /// The number in the list of the question that each wording belongs to.
    owners: Vec<usize>,
}

/// A curated question that is like what was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    /// Its number in the list.
    pub question: usize,
    /// Cosine of what was asked and the nearest wording.
    pub similarity: f32,
}

impl Wordings {
    /// Opens what an earlier call made of the same list, or makes it; new wordings are embedded.
    pub fn open(library: &Library, list: &QuestionList) -> Result<Self, BatchError> {
        let published = list.questions().iter().enumerate();
        let (owners, wordings): (Vec<usize>, Vec<(&str, String)>) = published
            .filter(|(_, question)| question.status == Status::Published)
            .flat_map(|(number, question)| {
                let all = std::iter::once(&question.question).chain(&question.variants);
                all.map(move |wording| (number, (question.lang.as_str(), normalise(wording))))
            })
            .unzip();
        let parts = wordings.iter().flat_map(|(lang, text)| [lang.as_bytes(), text.as_bytes()]);
        let origin = Origin { corpus: sha256_hex_parts(parts), ..library.origin().clone() };
        let folder = library.pipeline.paths.work.join("wordings");
        if let Ok(index) = Index::open(&folder, &origin) {
            return Ok(Wordings { index, owners });
        }
        let vectors: Vec<Vec<f32>> =
            wordings.iter().map(|(_, text)| library.remember(text)).collect::<Result<_, _>>()?;
        let rows: Vec<Row<'_>> = wordings
            .iter()
            .zip(&vectors)
            .enumerate()
            .map(|(passage, ((language, text), vector))| Row {
                passage,
                collection: "questions",
                language,
                vector,
                text,
            })
            .collect();
        Ok(Wordings { index: Index::build(&folder, origin, &rows)?, owners })
    }

    /// The `k` curated questions that are most like `text`, the likest first, in any language or only
    /// in `languages`.
    pub fn nearest(
        &self,
        library: &Library,
        text: &str,
        languages: &[String],
        k: usize,
    ) -> Result<Vec<Near>, BatchError> {
        let text = normalise(text);
        let vector = library.question_vector(&text)?;
        let filter = Filter { languages: languages.to_vec(), ..Filter::default() };
        let ranking = library.pipeline.retrieval.ranking();
        let question = Question { vector: &vector, text: &text };
        // All wordings of one question may come before the first of the next.
        let hits = self.index.search(question, &filter, self.owners.len(), &ranking)?;
        let mut near: Vec<Near> = Vec::new();
        for hit in hits {
            let Some(&question) = self.owners.get(hit.passage) else { continue };
            if near.len() < k && near.iter().all(|earlier| earlier.question != question) {
                near.push(Near { question, similarity: hit.dense });
            }
        }
        Ok(near)
    }
}
