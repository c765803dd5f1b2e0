//! The site of a pipeline: what `run` publishes and `serve` frames its pages with.

use std::sync::Arc;

use anyhow::Result;
use florilegium_batch::{Curated, Layout, Library, Pipeline};
use florilegium_corpus::{Archive, Collection, Role};
use florilegium_publish::{Chrome, CollectionFacts, Entry, Facts, Settings, Site, Standing, Theme};
use florilegium_questions::{Question, QuestionList, Status};
use florilegium_synthesis::answer::{Answer, Counts};
use florilegium_synthesis::render;

/// What the pages look like: the archive's own theme, or the program's.
pub(super) fn theme(pipeline: &Pipeline) -> Result<Arc<Theme>> {
    Ok(match &pipeline.publish.theme {
        Some(folder) => Theme::load(folder)?,
        None => Theme::built_in()?,
    })
}

/// How the site is released.
pub(super) fn settings(pipeline: &Pipeline) -> Settings {
    let publish = &pipeline.publish;
    Settings { layout: layout(pipeline), keep: publish.keep, packed: publish.packed }
}

/// Where readers find the site.
pub(super) fn layout(pipeline: &Pipeline) -> florilegium_publish::Layout {
    match pipeline.publish.layout {
        Layout::Link => florilegium_publish::Layout::Link,
        Layout::InPlace => florilegium_publish::Layout::InPlace,
    }
}

/// What is around the text of the live server's pages. It answers itself, at `ask`.
pub(super) fn chrome(library: &Library) -> Result<Chrome> {
    let pipeline = &library.pipeline;
    let chrome = Chrome::new(pipeline.title.clone(), pipeline.languages.clone(), theme(pipeline)?);
    let (documents, _) = florilegium_publish::sources(&library.archive, []);
    let mut chrome = chrome.with_documents(&documents);
    chrome.live = Some("ask".to_owned());
    chrome.logged = pipeline.server.question_log.is_some();
    Ok(chrome)
}

/// The site with its curated answers. Its date is that of the newest answer, so that the same
/// answers make the same site on any day.
pub(super) fn site(library: &Library, curated: Vec<Curated>, list: &QuestionList) -> Result<Site> {
    let mut entries: Vec<Entry> = curated
        .into_iter()
        .map(|curated| Entry {
            answer: curated.answer,
            computed_on: curated.computed_on,
            standing: if curated.stale { Standing::Stale } else { Standing::Current },
            ..unanswered(&curated.question, Standing::Current)
        })
        .collect();
    for question in list.questions().iter().filter(|question| question.status == Status::Retired) {
        // One that was never published has no page that could be missed.
        if library.store.latest(&question.id)?.is_some() {
            entries.push(kept(library, question, Standing::Retired)?);
        }
    }
    assembled(library, entries, theme(&library.pipeline)?)
}

/// The site as the last runs left it, drafts included: nothing is computed.
pub(super) fn kept_site(library: &Library, list: &QuestionList, theme: Arc<Theme>) -> Result<Site> {
    let mut entries = Vec::new();
    for question in list.questions() {
        let standing = match question.status {
            Status::Draft => Standing::Draft,
            Status::Published => Standing::Current,
            Status::Retired => Standing::Retired,
        };
        entries.push(kept(library, question, standing)?);
    }
    assembled(library, entries, theme)
}

/// A question with the last answer that was made for it. An answer whose sources have changed is not
/// shown any more.
fn kept(library: &Library, question: &Question, standing: Standing) -> Result<Entry> {
    let entry = unanswered(question, standing);
    let Some(stored) = library.store.latest(&question.id)? else { return Ok(entry) };
    Ok(match render(&stored.synthesis, &library.archive) {
        Ok(answer) => Entry { answer, computed_on: stored.computed_on, ..entry },
        Err(_) => entry,
    })
}

fn unanswered(question: &Question, standing: Standing) -> Entry {
    Entry {
        id: question.id.clone(),
        lang: question.lang.clone(),
        variants: question.variants.clone(),
        tags: question.tags.clone(),
        answer: Answer {
            question: question.question.clone(),
            language: question.lang.clone(),
            answered: false,
            mode: "degraded",
            groups: Vec::new(),
            sources: Vec::new(),
            nearest: Vec::new(),
            counts: Counts::default(),
            model: String::new(),
            corpus: String::new(),
        },
        computed_on: String::new(),
        standing,
    }
}

fn assembled(library: &Library, entries: Vec<Entry>, theme: Arc<Theme>) -> Result<Site> {
    let pipeline = &library.pipeline;
    let made_on = entries.iter().map(|entry| entry.computed_on.clone()).max().unwrap_or_default();
    let answers = entries.iter().map(|entry| &entry.answer);
    let (documents, passages) = florilegium_publish::sources(&library.archive, answers);
    Ok(Site {
        id: pipeline.id.clone(),
        title: pipeline.title.clone(),
        languages: pipeline.languages.clone(),
        base_path: pipeline.publish.base_path(),
        base_url: pipeline.publish.base_url.clone(),
        live: pipeline.publish.live.clone(),
        renamed: pipeline.publish.renamed.clone(),
        facts: facts(library, made_on),
        entries,
        documents,
        passages,
        theme,
    })
}

fn facts(library: &Library, made_on: String) -> Facts {
    let pipeline = &library.pipeline;
    let collections = library.archive.collections().iter();
    let collections = collections.map(|facts| collection(&library.archive, facts)).collect();
    let synthesis = &pipeline.synthesis;
    Facts {
        embedding_model: pipeline.embedding.model.clone(),
        dimension: 384,
        language_model: pipeline.language_model.model.clone(),
        mode: library.configured_mode().name().into(),
        passage_budget: pipeline.passages.tokens,
        retrieved: synthesis.passages,
        relevant: synthesis.relevant_passages,
        sentences: synthesis.sentences,
        quotations: synthesis.quotations,
        relevant_at: synthesis.relevant_at,
        answer_at: synthesis.answer_at,
        show_at: synthesis.show_at,
        lexical_weight: f64::from(pipeline.retrieval.lexical_weight),
        context: pipeline.language_model.context,
        servers: pipeline.language_model.servers.len(),
        deadline_seconds: pipeline.language_model.deadline_seconds,
        collections,
        corpus: library.corpus().to_owned(),
        program: env!("CARGO_PKG_VERSION").into(),
        made_on,
    }
}

fn collection(archive: &Archive, collection: &Collection) -> CollectionFacts {
    let documents: Vec<_> =
        archive.documents().iter().filter(|d| d.collection == collection.id).collect();
    let passages = archive.passages().iter().filter(|p| p.collection == collection.id);
    CollectionFacts {
        id: collection.id.clone(),
        title: collection.title.clone(),
        language: collection.language.clone(),
        answers: collection.role == Role::Synthesis,
        licence: collection.licence.clone(),
        documents: documents.len(),
        passages: passages.count(),
        words: documents.iter().map(|d| d.text.split_whitespace().count()).sum(),
    }
}
