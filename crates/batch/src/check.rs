//! A pipeline, looked at without running it.

use std::fs;
use std::path::Path;

use florilegium_corpus::{Catalogue, list_files};
use florilegium_models::{ModelList, Status};
use florilegium_synthesis::Prompts;
use serde::Serialize;

use crate::engine::configured_engines;
use crate::pipeline::Pipeline;
use crate::run::questions;

/// What was found about one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is as it should be.
    Good,
    /// An editor or operator should look at it.
    Warning,
    /// A run would fail, or do something else than is meant.
    Bad,
    /// It could not be checked.
    Unchecked,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// What was found.
    pub verdict: Verdict,
    /// The key of the pipeline file, as a rule.
    pub what: String,
    /// In words, with the remedy.
    pub message: String,
}

/// Looks at everything a run of this pipeline needs. Servers are asked only if `online`. Writes nothing
/// but an empty file, removed at once, where a run will write.
pub fn check(pipeline: &Pipeline, online: bool) -> Vec<Checked> {
    let mut findings = Findings(Vec::new());
    findings.folder("paths.work", &pipeline.paths.work);
    findings.folder("paths.public", &pipeline.paths.public);
    findings.models(pipeline);
    findings.collections(pipeline);
    findings.questions(pipeline);
    match Prompts::built_in() {
        Ok(prompts) => {
            let hash = prompts.hash().get(..12).unwrap_or_default();
            findings.add(Verdict::Good, "prompts", format!("templates are sound, hash {hash}"));
        }
        Err(error) => findings.add(Verdict::Bad, "prompts", error.to_string()),
    }
    findings.servers(pipeline, online);
    findings.cluster(pipeline);
    findings.0
}

struct Findings(Vec<Checked>);

impl Findings {
    fn add(&mut self, verdict: Verdict, what: &str, message: impl Into<String>) {
        self.0.push(Checked { verdict, what: what.to_owned(), message: message.into() });
    }

    /// A folder that a run writes to, or the nearest one above it that is there.
    fn folder(&mut self, what: &str, path: &Path) {
        let there = path.ancestors().find(|path| path.is_dir());
        let there = there.filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let probe = there.join(format!(".florilegium-check-{}", std::process::id()));
        let written = florilegium_files::write_atomic(&probe, b"");
        let _ = fs::remove_file(&probe);
        match written {
            Ok(()) if there == path => self.add(Verdict::Good, what, path.display().to_string()),
            Ok(()) => self.add(Verdict::Good, what, format!("{} will be made", path.display())),
            Err(error) => self.add(Verdict::Bad, what, error.to_string()),
        }
    }

    fn models(&mut self, pipeline: &Pipeline) {
        let list = match ModelList::load(&pipeline.paths.model_list) {
            Ok(list) => list,
            Err(error) => return self.add(Verdict::Bad, "paths.model_list", error.to_string()),
        };
        let served = !pipeline.language_model.servers.is_empty();
        let degraded = pipeline.degraded_model.as_ref();
        let mut wanted = vec![
            ("embedding.model", &pipeline.embedding.model, false),
            ("embedding.tokenizer", &pipeline.embedding.tokenizer, false),
            ("language_model.model", &pipeline.language_model.model, served),
        ];
        wanted.extend(degraded.map(|model| ("degraded_model.model", &model.model, false)));
        for (what, id, elsewhere) in wanted {
            let model = match list.get(id) {
                Ok(model) => model,
                Err(error) => {
                    self.add(Verdict::Bad, what, error.to_string());
                    continue;
                }
            };
            let path = model.path(&pipeline.paths.models);
            match model.status(&pipeline.paths.models) {
                Status::Present => self.add(Verdict::Good, what, path.display().to_string()),
                _ if elsewhere => {
                    self.add(Verdict::Good, what, format!("{id} is on the servers only"));
                }
                _ => self.add(
                    Verdict::Bad,
                    what,
                    format!(
                        "{} is missing or not the right file; run `florilegium models fetch {id}`",
                        path.display()
                    ),
                ),
            }
        }
    }

    fn collections(&mut self, pipeline: &Pipeline) {
        for collection in &pipeline.collections {
            let what = format!("collection {}", collection.id);
            match list_files(collection) {
                Ok((files, _)) if files.is_empty() => self.add(
                    Verdict::Bad,
                    &what,
                    format!(
                        "{} has no file that could be read; correct path, format or exclude",
                        collection.path.display()
                    ),
                ),
                Ok((files, report)) => {
                    let left = report.skipped.len();
                    let found = format!(
                        "{} files in {}, {left} skipped",
                        files.len(),
                        collection.path.display()
                    );
                    self.add(Verdict::Good, &what, found);
                }
                Err(error) => self.add(Verdict::Bad, &what, error.to_string()),
            }
            if let Err(error) = Catalogue::of(collection) {
                self.add(Verdict::Bad, &what, error.to_string());
            }
        }
    }

    fn questions(&mut self, pipeline: &Pipeline) {
        match questions(pipeline) {
            Ok(list) => {
                let count = list.questions().len();
                let file = pipeline.questions.file.display();
                self.add(Verdict::Good, "questions.file", format!("{count} questions in {file}"));
                for warning in list.warnings() {
                    self.add(Verdict::Warning, "questions.file", warning.to_string());
                }
            }
            Err(error) => {
                for fault in error.to_string().lines() {
                    self.add(Verdict::Bad, "questions.file", fault);
                }
            }
        }
    }

    fn servers(&mut self, pipeline: &Pipeline, online: bool) {
        for server in &pipeline.language_model.servers {
            let what = format!("language_model.server {}", server.url);
            if let Some(name) = &server.key_env
                && std::env::var_os(name).is_none()
            {
                self.add(
                    Verdict::Bad,
                    &what,
                    format!("the variable {name} is not set; set it to the key"),
                );
            }
            if let Some(path) = &server.key_file
                && let Err(error) = florilegium_files::read(path)
            {
                self.add(Verdict::Bad, &what, error.to_string());
            }
            if !online {
                self.add(
                    Verdict::Unchecked,
                    &what,
                    "not asked; --online asks it whether it is there and serves this model",
                );
            }
        }
        if !online || pipeline.language_model.servers.is_empty() {
            return;
        }
        let engines = match configured_engines(pipeline) {
            Ok(engines) => engines,
            Err(error) => return self.add(Verdict::Bad, "language_model", error.to_string()),
        };
        for engine in engines.iter().filter(|engine| engine.place != "in-process") {
            let what = format!("language_model.server {}", engine.place);
            match engine.open() {
                Ok(_) => self.add(Verdict::Good, &what, "answers, and serves this model"),
                Err(error) => self.add(Verdict::Bad, &what, error.to_string()),
            }
        }
    }

    fn cluster(&mut self, pipeline: &Pipeline) {
        let cluster = &pipeline.cluster;
        if cluster.options.is_empty() && cluster.shard_options.is_empty() {
            return;
        }
        let sbatch = std::process::Command::new("sbatch").arg("--version").output();
        match sbatch {
            Ok(output) if output.status.success() => {
                let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                self.add(Verdict::Good, "cluster", version);
            }
            _ => self.add(
                Verdict::Unchecked,
                "cluster",
                "sbatch is not here; submit from a machine of the cluster",
            ),
        }
        self.add(
            Verdict::Unchecked,
            "cluster.options",
            "whether Slurm accepts them shows when a run is submitted",
        );
    }
}
