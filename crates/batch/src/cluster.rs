//! The same run on a Slurm cluster: jobs that embed and answer side by side, and one that publishes.
//!
//! ```text
//! embed (an array) -> plan -> answer (an array) -> publish
//! ```
//!
//! Everything goes through the folder of the work, which all machines share. What is embedded
//! together, and what the model is asked about a question, does not depend on how the work is
//! divided, so that the results are the bytes of a run on one machine. A part that dies, is put back
//! into the queue or runs twice does no harm: what it finished is found, the rest is done again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use florilegium_files::lock::Lock;
use florilegium_files::record::{self, Format};
use florilegium_files::{FileError, sha256_hex, write_atomic};
use florilegium_llm::{Cost, LlmError};
use florilegium_synthesis::StageFailed;
use serde::{Deserialize, Serialize};

use crate::error::BatchError;
use crate::history::{History, Rates};
use crate::ingest::{Built, Frozen, embed_frozen, freeze};
use crate::library::Library;
use crate::night::{Night, Options, lock, night};
use crate::pipeline::Pipeline;
use crate::plan::{Action, Plan, frequencies, plan};
use crate::run::questions;
use crate::stop;
use crate::store::load_if_whole;

const JOB: Format = Format { magic: *b"FLORCJOB", version: 1 };
const SHARES: Format = Format { magic: *b"FLORCSHR", version: 1 };
const DONE: Format = Format { magic: *b"FLORCDON", version: 1 };

/// A run on a cluster.
#[derive(Debug, Clone)]
pub struct ClusterRun {
    /// Its number.
    pub number: u64,
    /// Its folder: scripts, logs, and what its parts tell one another.
    pub folder: PathBuf,
    job: Job,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Job {
    shards: u32,
    /// What is to be embedded, as it was when the run was submitted.
    frozen: Frozen,
    built: Built,
}

/// What became of a question in a part of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShardTold {
    /// Whether the model was asked.
    pub fresh: bool,
    /// What it cost.
    pub cost: Cost,
    /// Seconds.
    pub seconds: f64,
    /// Why it failed.
    pub error: Option<String>,
}

/// A kind of job, and its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Embeds a share of the new passages.
    Embed,
    /// Indexes, plans and divides the questions.
    Plan,
    /// Answers a share of the questions.
    Answer,
    /// Publishes and reports; submits again what died.
    Publish,
}

impl Stage {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Embed => "embed",
            Stage::Plan => "plan",
            Stage::Answer => "answer",
            Stage::Publish => "publish",
        }
    }

    fn is_array(self) -> bool {
        matches!(self, Stage::Embed | Stage::Answer)
    }
}

impl ClusterRun {
    /// Reads what has changed and writes down a run of `shards` parts: `file` is the pipeline file,
    /// `program` this program, as the machines of the cluster find them.
    pub fn prepare(
        pipeline: &Pipeline,
        file: &Path,
        program: &Path,
        shards: u32,
    ) -> Result<Self, BatchError> {
        let (_lock, _) = lock(pipeline)?;
        // Before any job is submitted.
        questions(pipeline)?;
        let (frozen, built) = freeze(pipeline)?;
        let root = pipeline.paths.work.join("cluster");
        let listed = fs::read_dir(&root).into_iter().flatten().flatten();
        let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        let number = numbers.max().unwrap_or(0) + 1;
        let folder = root.join(format!("{number:06}"));
        let run = ClusterRun { number, folder, job: Job { shards: shards.max(1), frozen, built } };
        for stage in [Stage::Embed, Stage::Plan, Stage::Answer, Stage::Publish] {
            let script = run.script(pipeline, file, program, stage);
            write_atomic(&run.script_path(stage), script.as_bytes())?;
        }
        florilegium_files::create_dir(&run.folder.join("log"))?;
        record::write(&run.folder.join("job"), JOB, &run.job)?;
        Ok(run)
    }

    /// Opens a run that has been prepared.
    pub fn open(pipeline: &Pipeline, number: u64) -> Result<Self, BatchError> {
        let folder = pipeline.paths.work.join("cluster").join(format!("{number:06}"));
        let job = record::load(&folder.join("job"), JOB)?;
        Ok(ClusterRun { number, folder, job })
    }

    /// How many parts it has.
    pub fn shards(&self) -> u32 {
        self.job.shards
    }

    /// How many passages are to be embedded.
    pub fn to_embed(&self) -> usize {
        self.job.frozen.passages()
    }

    /// The script of a stage.
    pub fn script_path(&self, stage: Stage) -> PathBuf {
        self.folder.join(format!("{}.sh", stage.name()))
    }

    fn script(&self, pipeline: &Pipeline, file: &Path, program: &Path, stage: Stage) -> String {
        let settings = &pipeline.cluster;
        let mut script = String::from("#!/bin/sh\n");
        let log = if stage.is_array() { "-%a" } else { "" };
        let log = self.folder.join("log").join(format!("{}{log}.log", stage.name()));
        let _ = writeln!(script, "#SBATCH --job-name={}-{}", pipeline.id, stage.name());
        let _ = writeln!(script, "#SBATCH --output=\"{}\"", log.display());
        // A job that is put back into the queue goes on where it was; its log too.
        script += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
        let own = if stage.is_array() { settings.shard_options.as_slice() } else { &[] };
        for option in settings.options.iter().chain(own) {
            let _ = writeln!(script, "#SBATCH {option}");
        }
        script += "set -eu\n";
        for line in &settings.setup {
            let _ = writeln!(script, "{line}");
        }
        let program = settings.program.clone().unwrap_or_else(|| program.display().to_string());
        let container = if settings.container.is_empty() {
            String::new()
        } else {
            format!("{} ", settings.container)
        };
        let shard = if stage.is_array() { " --shard \"$SLURM_ARRAY_TASK_ID\"" } else { "" };
        let _ = writeln!(
            script,
            "exec {container}{} cluster {} {} --number {}{shard}",
            quoted(&program),
            stage.name(),
            quoted(&file.display().to_string()),
            self.number
        );
        script
    }

    /// Submits the whole run. Gives the numbers of its jobs by stage.
    pub fn submit(&self) -> Result<Vec<(Stage, String)>, BatchError> {
        let all: Vec<u32> = (0..self.job.shards).collect();
        let mut jobs = Vec::new();
        if self.to_embed() > 0 {
            jobs.push((Stage::Embed, self.sbatch(Stage::Embed, &all, None)?));
        }
        // What a dead part has not embedded, the next stage does itself.
        let embedded = jobs.last().map(|(_, job)| format!("afterany:{job}"));
        let planned = self.sbatch(Stage::Plan, &[], embedded.as_deref())?;
        let answer = self.sbatch(Stage::Answer, &all, Some(&format!("afterok:{planned}")))?;
        let publish = self.sbatch(Stage::Publish, &[], Some(&format!("afterany:{answer}")))?;
        jobs.extend([(Stage::Plan, planned), (Stage::Answer, answer), (Stage::Publish, publish)]);
        Ok(jobs)
    }

    fn sbatch(
        &self,
        stage: Stage,
        shards: &[u32],
        dependency: Option<&str>,
    ) -> Result<String, BatchError> {
        let mut command = Command::new("sbatch");
        command.arg("--parsable");
        if !shards.is_empty() {
            let list: Vec<String> = shards.iter().map(u32::to_string).collect();
            command.arg(format!("--array={}", list.join(",")));
        }
        if let Some(dependency) = dependency {
            // A job that can never start should not wait for ever.
            command.arg(format!("--dependency={dependency}")).arg("--kill-on-invalid-dep=yes");
        }
        command.arg(self.script_path(stage));
        let output = command.output().map_err(|error| BatchError::Slurm(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || said.is_empty() {
            let problem = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(BatchError::Slurm(problem));
        }
        // On a federation: number;cluster.
        Ok(said.split(';').next().unwrap_or_default().to_owned())
    }

    /// Embeds one share of the new passages. Gives how many there were.
    pub fn embed(&self, pipeline: &Pipeline, shard: u32) -> Result<usize, BatchError> {
        let _lock = self.lock(Stage::Embed, shard)?;
        if self.is_done(Stage::Embed, shard) {
            return Ok(0);
        }
        let count = embed_frozen(pipeline, &self.job.frozen, shard, self.job.shards)?;
        record::write(
            &self.done_path(Stage::Embed, shard),
            DONE,
            &BTreeMap::<String, ShardTold>::new(),
        )?;
        Ok(count)
    }

    /// Embeds what dead parts have left, indexes, plans, and divides the questions.
    pub fn plan(&self, pipeline: Pipeline) -> Result<Plan, BatchError> {
        let (_lock, _) = lock(&pipeline)?;
        for shard in 0..self.job.shards {
            if self.to_embed() > 0 && !self.is_done(Stage::Embed, shard) {
                tracing::warn!("part {shard} of the embedding has died; doing it here");
                self.embed(&pipeline, shard)?;
            }
        }
        let list = questions(&pipeline)?;
        let history = History::new(&pipeline.paths.work);
        let frequencies = frequencies(pipeline.questions.asked.as_deref(), &list)?;
        let (library, built) = Library::build(pipeline)?;
        let rates = history.rates(&library.language_identity())?;
        let plan = plan(&library, &list, &built, rates, history.next(), &frequencies)?;
        library.fold()?;
        record::write(&self.folder.join("shares"), SHARES, &shares(&plan, self.job.shards))?;
        Ok(plan)
    }

    /// Answers one share of the questions. Gives how many were answered.
    pub fn answer(&self, pipeline: Pipeline, shard: u32) -> Result<usize, BatchError> {
        let _lock = self.lock(Stage::Answer, shard)?;
        if self.is_done(Stage::Answer, shard) {
            return Ok(0);
        }
        let shares: BTreeMap<String, u32> = record::load(&self.folder.join("shares"), SHARES)?;
        let list = questions(&pipeline)?;
        let own: Vec<_> = list
            .questions()
            .iter()
            .filter(|question| shares.get(&question.id) == Some(&shard))
            .collect();
        let mut told = BTreeMap::new();
        if !own.is_empty() {
            let library = Library::open_to_answer(pipeline)?;
            for (done, question) in own.iter().enumerate() {
                if stop::requested() {
                    return Err(BatchError::Stopped { done, total: own.len() });
                }
                let start = Instant::now();
                let asked = library.ask(&question.question, &question.lang, &question.collections);
                let mut one = ShardTold::default();
                match asked {
                    Ok(answered) => {
                        one.fresh = answered.fresh;
                        if answered.fresh {
                            one.cost = answered.stored.synthesis.trace.cost;
                        }
                    }
                    // Without a model every question would fail: that is this part's failure.
                    Err(
                        error @ BatchError::Stage(StageFailed::Engine {
                            source: LlmError::Missing(_),
                            ..
                        }),
                    ) => return Err(error),
                    Err(error @ (BatchError::Stage(_) | BatchError::Llm(_))) => {
                        tracing::warn!("{}: {error}", question.id);
                        one.error = Some(error.to_string());
                    }
                    Err(error) => return Err(error),
                }
                one.seconds = start.elapsed().as_secs_f64();
                told.insert(question.id.clone(), one);
            }
        }
        record::write(&self.done_path(Stage::Answer, shard), DONE, &told)?;
        Ok(told.len())
    }

    /// The parts that have died, to be submitted again; none when all is done, or has been tried as
    /// often as the settings allow.
    pub fn resubmit_dead(&self, pipeline: &Pipeline) -> Result<Vec<u32>, BatchError> {
        let dead: Vec<u32> =
            (0..self.job.shards).filter(|shard| !self.is_done(Stage::Answer, *shard)).collect();
        let path = self.folder.join("attempts");
        let attempts: u32 = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().unwrap_or(u32::MAX),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 1,
            Err(error) => return Err(FileError::io("read", path, error).into()),
        };
        if dead.is_empty() || attempts >= pipeline.cluster.attempts {
            return Ok(Vec::new());
        }
        write_atomic(&path, (attempts + 1).to_string().as_bytes())?;
        let again = self.sbatch(Stage::Answer, &dead, None)?;
        self.sbatch(Stage::Publish, &[], Some(&format!("afterany:{again}")))?;
        Ok(dead)
    }

    /// Puts the parts together, up to publication.
    pub fn merge(&self, pipeline: Pipeline) -> Result<Night, BatchError> {
        let mut told = BTreeMap::new();
        let mut dead = Vec::new();
        for shard in 0..self.job.shards {
            match load_if_whole::<BTreeMap<String, ShardTold>>(
                &self.done_path(Stage::Answer, shard),
                DONE,
            )? {
                Some(own) => told.extend(own),
                None => dead.push(shard.to_string()),
            }
        }
        let options = Options { answer_nothing: true, shards: Some(told), ..Options::default() };
        let mut night = night(pipeline, options)?;
        if !dead.is_empty() {
            night.record.notes.push(format!(
                "the parts {} of cluster run {} died, each time they were submitted; their logs are in {}",
                dead.join(", "),
                self.number,
                self.folder.join("log").display()
            ));
        }
        Ok(night)
    }

    fn lock(&self, stage: Stage, shard: u32) -> Result<Lock, BatchError> {
        Ok(Lock::take(&self.folder.join(format!("lock-{}-{shard}", stage.name())))?)
    }

    fn done_path(&self, stage: Stage, shard: u32) -> PathBuf {
        self.folder.join("done").join(format!("{}-{shard}", stage.name()))
    }

    fn is_done(&self, stage: Stage, shard: u32) -> bool {
        let path = self.done_path(stage, shard);
        matches!(load_if_whole::<BTreeMap<String, ShardTold>>(&path, DONE), Ok(Some(_)))
    }
}

/// Divides the questions to be answered by the hash of their inputs, so that the estimated costs of
/// the parts are nearly equal: the dearest first, each to the part that has the least so far.
fn shares(plan: &Plan, shards: u32) -> BTreeMap<String, u32> {
    let mut todo: Vec<(f64, String, &str)> = plan
        .questions
        .iter()
        .filter(|question| question.action == Action::Answer)
        .map(|question| {
            let cost = cost(question.passage_tokens, &question.lang, &plan.rates);
            (cost, sha256_hex(question.key.as_bytes()), question.id.as_str())
        })
        .collect();
    todo.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    let mut loads = vec![0.0_f64; shards.max(1) as usize];
    let mut shares = BTreeMap::new();
    for (cost, hash, id) in todo {
        // Among equals, the hash decides.
        let start = usize::from_str_radix(hash.get(..8).unwrap_or("0"), 16).unwrap_or(0);
        let count = loads.len();
        let least = (0..count)
            .map(|step| (start + step) % count)
            .min_by(|&one, &other| loads[one].total_cmp(&loads[other]))
            .unwrap_or(0);
        loads[least] += cost;
        shares.insert(id.to_owned(), u32::try_from(least).unwrap_or(0));
    }
    shares
}

fn cost(passage_tokens: usize, language: &str, rates: &Rates) -> f64 {
    let usual = passage_tokens.max(1) as f64;
    rates.estimate(language, passage_tokens).map_or(usual, |estimate| estimate.tokens.max(1.0))
}

/// A word of a shell command, whatever is in it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Planned;

    fn plan(costs: &[usize]) -> Plan {
        let questions = costs.iter().enumerate().map(|(number, tokens)| Planned {
            id: format!("q{number}"),
            lang: "en".into(),
            action: Action::Answer,
            reasons: Vec::new(),
            key: number.to_string(),
            passages: Vec::new(),
            passage_tokens: *tokens,
            estimate: None,
            number,
        });
        Plan {
            built: Built::default(),
            questions: questions.collect(),
            rates: Rates::default(),
            estimate: None,
        }
    }

    proptest! {
        #[test]
        fn every_question_has_one_share_and_no_share_is_much_larger(
            costs in prop::collection::vec(1_usize..1000, 0..60),
            shards in 1_u32..9,
        ) {
            let shares = shares(&plan(&costs), shards);
            prop_assert_eq!(shares.len(), costs.len());
            let mut loads = vec![0; shards as usize];
            for (number, cost) in costs.iter().enumerate() {
                loads[shares[&format!("q{number}")] as usize] += cost;
            }
            let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
            let dearest = costs.iter().max().copied().unwrap_or(0);
            prop_assert!(most - least <= dearest, "{loads:?}");
        }

        #[test]
        fn the_order_of_the_list_changes_no_share(
            costs in prop::collection::vec(1_usize..1000, 1..30),
        ) {
            let forward = plan(&costs);
            let mut backward = plan(&costs);
            backward.questions.reverse();
            prop_assert_eq!(shares(&forward, 4), shares(&backward, 4));
        }

        #[test]
        fn a_quoted_word_is_one_word_to_a_shell(text in "[ -~é]{0,30}") {
            let output = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(&text))])
                .output()
                .unwrap();
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
