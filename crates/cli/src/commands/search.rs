//! `florilegium search "question"`

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use florilegium_batch::{Library, Wordings, questions};
use florilegium_index::Filter;
use florilegium_questions::check_question;

use super::{PipelineArgument, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The question.
    question: String,
    #[command(flatten)]
    pipeline: PipelineArgument,
    /// Only passages in this language (may be given several times).
    #[arg(long, env = "FLORILEGIUM_LANG")]
    lang: Vec<String>,
    /// Only this collection (may be given several times).
    #[arg(long, env = "FLORILEGIUM_COLLECTION")]
    collection: Vec<String>,
    /// How many passages.
    #[arg(short, long, env = "FLORILEGIUM_K", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1000))]
    k: u16,
    /// Search the curated questions instead of the passages.
    #[arg(long)]
    questions: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    check_question(&arguments.question)?;
    let library = arguments.pipeline.open()?;
    if arguments.questions {
        return curated(arguments, &library);
    }
    for id in &arguments.collection {
        if library.archive.collection(id).is_none() {
            let known: Vec<&str> =
                library.archive.collections().iter().map(|c| c.id.as_str()).collect();
            bail!("there is no collection {id:?}; known: {}", known.join(", "));
        }
    }
    let languages = library.languages();
    if let Some(unknown) = arguments.lang.iter().find(|lang| !languages.contains(lang)) {
        bail!("no passage is in {unknown:?}; known: {}", languages.join(", "));
    }
    let filter =
        Filter { collections: arguments.collection.clone(), languages: arguments.lang.clone() };
    let found = library.search(&arguments.question, &filter, usize::from(arguments.k))?;
    let excerpts = library.excerpts(&found)?;
    if arguments.json {
        let rows: Vec<_> = found
            .iter()
            .zip(&excerpts)
            .map(|(found, excerpt)| {
                let editions: Vec<&str> = found.editions.iter().map(|p| p.id.as_str()).collect();
                serde_json::json!({
                    "score": found.hit.fused,
                    "dense": found.hit.dense,
                    "lexical": found.hit.lexical,
                    "passage": excerpt,
                    "editions": editions,
                })
            })
            .collect();
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    for (number, (found, excerpt)) in found.iter().zip(&excerpts).enumerate() {
        let mut place = vec![excerpt.collection.as_str(), excerpt.title.as_str()];
        place.extend(excerpt.headings.iter().map(String::as_str));
        print(&format!(
            "{:>2}. {:.2}  {}\n    {}\n    {}\n\n",
            number + 1,
            found.hit.fused,
            place.join(" / "),
            excerpt.text.replace('\n', "\n    "),
            excerpt.url,
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The curated questions that are most like the one asked.
fn curated(arguments: &Arguments, library: &Library) -> Result<ExitCode> {
    let list = questions(&library.pipeline)?;
    let wordings = Wordings::open(library, &list)?;
    let k = usize::from(arguments.k);
    let near = wordings.nearest(library, &arguments.question, &arguments.lang, k)?;
    let near: Vec<_> = near
        .iter()
        .filter_map(|near| Some((near.similarity, list.questions().get(near.question)?)))
        .collect();
    if arguments.json {
        let rows = near.iter().map(|(similarity, question)| {
            serde_json::json!({ "similarity": similarity, "id": question.id,
                "lang": question.lang, "question": question.question })
        });
        print_json(&rows.collect::<Vec<_>>())?;
    } else {
        for (number, (similarity, question)) in near.iter().enumerate() {
            let place = number + 1;
            print(&format!(
                "{place:>2}. {similarity:.3}  {}  {}\n",
                question.id, question.question
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
