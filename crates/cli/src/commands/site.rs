//! The site of a pipeline: what `run` publishes and `serve` frames its pages with.

use florilegium_batch::{Curated, Library, Pipeline};
use florilegium_corpus::Role;
use florilegium_publish::{Chrome, CollectionFacts, Entry, Facts, Site};

/// What is around the text of every page.
pub(super) fn chrome(pipeline: &Pipeline) -> Chrome {
    Chrome {
        title: pipeline.title.clone(),
        languages: pipeline.languages.clone(),
        base_path: "/".into(),
    }
}

/// The site with its curated answers. Its date is that of the newest answer, so that the same
/// answers make the same site on any day.
pub(super) fn site(library: &Library, curated: Vec<Curated>) -> Site {
    let pipeline = &library.pipeline;
    let entries: Vec<Entry> = curated
        .into_iter()
        .map(|curated| Entry {
            id: curated.question.id,
            lang: curated.question.lang,
            tags: curated.question.tags,
            answer: curated.answer,
            computed_on: curated.computed_on,
            stale: curated.stale,
        })
        .collect();
    let made_on = entries.iter().map(|entry| entry.computed_on.clone()).max().unwrap_or_default();
    Site {
        id: pipeline.id.clone(),
        title: pipeline.title.clone(),
        languages: pipeline.languages.clone(),
        base_path: "/".into(),
        entries,
        facts: facts(library, made_on),
    }
}

fn facts(library: &Library, made_on: String) -> Facts {
    let pipeline = &library.pipeline;
    let collections = library
        .archive
        .collections()
        .iter()
        .map(|collection| {
            let documents = library.archive.documents().iter();
            let documents: Vec<_> = documents.filter(|d| d.collection == collection.id).collect();
            let passages = library.archive.passages().iter();
            CollectionFacts {
                title: collection.title.clone(),
                language: collection.language.clone(),
                answers: collection.role == Role::Synthesis,
                licence: collection.licence.clone(),
                documents: documents.len(),
                passages: passages.filter(|p| p.collection == collection.id).count(),
                words: documents.iter().map(|d| d.text.split_whitespace().count()).sum(),
            }
        })
        .collect();
    Facts {
        embedding_model: pipeline.embedding.model.clone(),
        dimension: 384,
        language_model: pipeline.language_model.model.clone(),
        mode: "degraded".into(),
        passage_budget: pipeline.passages.tokens,
        retrieved: pipeline.synthesis.passages,
        collections,
        corpus: library.corpus().to_owned(),
        program: env!("CARGO_PKG_VERSION").into(),
        made_on,
    }
}
