//! `florilegium models list|fetch|verify`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use florilegium_models::{FetchOptions, Model, ModelList, Status, fetch};

use super::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The list of models.
    #[arg(long, global = true, env = "FLORILEGIUM_MODEL_LIST", default_value = "data/models.toml")]
    list: PathBuf,
    /// Where model files are kept.
    #[arg(long, global = true, env = "FLORILEGIUM_MODELS", default_value = "data/cache/models")]
    folder: PathBuf,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the models: licence, size, whether they are here.
    List,
    /// Fetch models; all of the list when none is named.
    Fetch {
        /// Ids of models.
        ids: Vec<String>,
        /// Use no network.
        #[arg(long, env = "FLORILEGIUM_OFFLINE")]
        offline: bool,
    },
    /// Read the model files and compare their checksums; all that are here when none is named.
    Verify {
        /// Ids of models.
        ids: Vec<String>,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let list = ModelList::load(&arguments.list)?;
    match &arguments.command {
        Command::List => show(arguments, &list),
        Command::Fetch { ids, offline } => {
            let options =
                FetchOptions { offline: *offline, progress: !arguments.json, ..Default::default() };
            for model in chosen(&list, ids)? {
                let path = fetch(model, &arguments.folder, &options)?;
                print(&format!("{}: {}\n", model.id, path.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Verify { ids } => verify(arguments, &list, ids),
    }
}

fn show(arguments: &Arguments, list: &ModelList) -> Result<ExitCode> {
    if arguments.json {
        let rows: Vec<_> = list
            .models()
            .iter()
            .map(|model| {
                serde_json::json!({
                    "id": model.id,
                    "licence": model.licence,
                    "bytes": model.size,
                    "sha256": model.sha256,
                    "status": word(&model.status(&arguments.folder)),
                })
            })
            .collect();
        print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let width = list.models().iter().map(|model| model.id.len()).max().unwrap_or(0);
    for model in list.models() {
        print(&format!(
            "{:width$}  {:>8.1} MB  {:<12}  {}\n",
            model.id,
            model.size as f64 / 1e6,
            model.licence,
            word(&model.status(&arguments.folder)),
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(arguments: &Arguments, list: &ModelList, ids: &[String]) -> Result<ExitCode> {
    let mut wrong = 0;
    let mut checked = 0;
    for model in chosen(list, ids)? {
        let status = model.verify(&arguments.folder)?;
        let missing = matches!(status, Status::Missing);
        if missing && ids.is_empty() {
            continue;
        }
        checked += 1;
        wrong += usize::from(!matches!(status, Status::Present));
        print(&format!("{}: {}\n", model.id, word(&status)))?;
    }
    if wrong > 0 {
        bail!(
            "{wrong} of {checked} model files are missing or wrong; run `florilegium models fetch`"
        );
    }
    if checked == 0 {
        bail!("no model file is in {}; run `florilegium models fetch`", arguments.folder.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen<'a>(list: &'a ModelList, ids: &[String]) -> Result<Vec<&'a Model>> {
    if ids.is_empty() {
        return Ok(list.models().iter().collect());
    }
    ids.iter().map(|id| Ok(list.get(id)?)).collect()
}

fn word(status: &Status) -> String {
    match status {
        Status::Present => "present".into(),
        Status::Missing => "missing".into(),
        Status::Wrong(fault) => format!("wrong: {fault}"),
    }
}
