//! The pipeline file: one TOML file an archive. Unknown keys are refused; every fault names the
//! file, the field and the remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use florilegium_corpus::{Collection, Role};
use florilegium_embed::Compute;
use florilegium_index::{Fusion, Ranking};
use florilegium_llm::local::Memory;
use florilegium_llm::server::Kind;
use florilegium_synthesis::Settings;
use serde::{Deserialize, Serialize};

use crate::live::LiveServer;
use crate::publication::Publishing;

/// The languages in which pages can be published: there is a message file for each.
pub const PAGE_LANGUAGES: [&str; 3] = ["en", "fr", "el"];

/// One archive, from its sources to its site.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Short name: letters, digits and hyphens. Names the release and the folder of the work.
    pub id: String,
    /// Title of the site, by language.
    pub title: BTreeMap<String, String>,
    /// Languages of the pages and questions.
    pub languages: Vec<String>,
    /// Where things are.
    pub paths: Paths,
    /// The embedding model.
    pub embedding: Embedding,
    /// The language model.
    pub language_model: LanguageModel,
    /// The small model of the degraded mode, in this process; the language model itself when not given.
    #[serde(default)]
    pub degraded_model: Option<LanguageModel>,
    /// How texts are cut into passages.
    pub passages: Passages,
    /// How passages are found.
    #[serde(default)]
    pub retrieval: Retrieval,
    /// How answers are made.
    #[serde(default)]
    pub synthesis: Settings,
    /// The questions.
    pub questions: Questions,
    /// How the live server behaves.
    #[serde(default)]
    pub server: LiveServer,
    /// When a night's work is not published, and what else governs it.
    #[serde(default)]
    pub nightly: Nightly,
    /// How work is sent to a Slurm cluster.
    #[serde(default)]
    pub cluster: Cluster,
    /// How the site is published.
    #[serde(default)]
    pub publish: Publishing,
    /// The collections, in the order in which they are listed.
    #[serde(rename = "collection")]
    pub collections: Vec<Collection>,
}

/// Where things are; relative paths start from the folder of the pipeline file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// What the run keeps: passages, vectors, index, answers.
    pub work: PathBuf,
    /// The list of models.
    pub model_list: PathBuf,
    /// Where model files are kept.
    pub models: PathBuf,
    /// Where the site is published.
    pub public: PathBuf,
    /// Folder with prompt templates that replace the built-in ones of the same name.
    #[serde(default)]
    pub prompts: Option<PathBuf>,
}

/// The embedding model, by its names in the model list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// The weights.
    pub model: String,
    /// The tokenizer.
    pub tokenizer: String,
    /// Threads; all cores when not given.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Passages embedded together and then saved: what a killed run loses at most.
    #[serde(default = "default_chunk")]
    pub chunk: usize,
    /// What computes: "cpu", or "cuda" where the program was built with that feature.
    #[serde(default)]
    pub compute: Compute,
}

/// The language model: on servers, if any are named, else in this process.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageModel {
    /// Its name in the model list.
    pub model: String,
    /// Weights and thresholds fitted for it by `florilegium eval calibrate`.
    #[serde(default)]
    pub calibration: Option<PathBuf>,
    /// Threads; all cores when not given.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Tokens its memory holds.
    #[serde(default = "default_context")]
    pub context: usize,
    /// Tokens computed in one step.
    #[serde(default = "default_batch")]
    pub batch: usize,
    /// How its memory is kept.
    #[serde(default)]
    pub memory: Memory,
    /// Megabytes beside it for the passages that are asked about most.
    #[serde(default = "default_shelf")]
    pub shelf_megabytes: usize,
    /// Whether these are kept on disk, in the folder of the work, from one run to the next.
    #[serde(default)]
    pub keep_states: bool,
    /// Whether the model forgets one question before the next, so that the same inputs give the same
    /// bytes in any order and on any number of machines; costs the tokens that questions share. Of a
    /// server this cannot be demanded.
    #[serde(default = "yes")]
    pub reproducible: bool,
    /// Layers that a graphics card computes, in a program built with the feature `cuda`.
    #[serde(default)]
    pub gpu_layers: u32,
    /// Seconds allowed for one question.
    #[serde(default = "default_deadline")]
    pub deadline_seconds: u64,
    /// Seconds without an answer from any server after which a question fails.
    #[serde(default = "default_patience")]
    pub patience_seconds: u64,
    /// Servers that serve this very model.
    #[serde(default, rename = "server")]
    pub servers: Vec<ModelServer>,
}

/// A server that serves the language model.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelServer {
    /// As `http://127.0.0.1:8080`.
    pub url: String,
    /// What it speaks: `llama.cpp`, or `openai` for vLLM, SGLang and others.
    #[serde(default)]
    pub kind: Kind,
    /// The name it must give its model; the name of the model's file when not given.
    #[serde(default)]
    pub model: Option<String>,
    /// Requests at a time, for a server that does not say.
    #[serde(default)]
    pub slots: Option<usize>,
    /// Environment variable with its API key.
    #[serde(default)]
    pub key_env: Option<String>,
    /// File with its API key.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Seconds to accept a connection.
    #[serde(default)]
    pub connect_seconds: Option<u64>,
    /// Seconds until a decision is answered.
    #[serde(default)]
    pub first_token_seconds: Option<u64>,
    /// Seconds until any answer is complete.
    #[serde(default)]
    pub whole_seconds: Option<u64>,
}

fn yes() -> bool {
    true
}

fn default_chunk() -> usize {
    512
}

fn default_context() -> usize {
    8192
}

fn default_batch() -> usize {
    512
}

fn default_deadline() -> u64 {
    300
}

fn default_shelf() -> usize {
    256
}

fn default_patience() -> u64 {
    60
}

/// How texts are cut into passages.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passages {
    /// At most this many tokens of the embedding model a passage.
    pub tokens: usize,
}

/// Which languages feed the answer to a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Languages {
    /// The question's own, when the archive has it.
    #[default]
    Question,
    /// All.
    All,
}

/// How passages are found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retrieval {
    /// Which languages feed the answer to a question.
    pub languages: Languages,
    /// How nearness in meaning and agreement in words are put together.
    pub fusion: Fusion,
    /// Weight of the words against the meaning's 1.
    pub lexical_weight: f32,
    /// At most this many passages of one document.
    pub per_document: Option<usize>,
}

impl Default for Retrieval {
    fn default() -> Self {
        let Ranking { fusion, lexical_weight, .. } = Ranking::default();
        Retrieval { languages: Languages::default(), fusion, lexical_weight, per_document: None }
    }
}

impl Retrieval {
    /// As the index wants it.
    pub fn ranking(&self) -> Ranking {
        Ranking { fusion: self.fusion, lexical_weight: self.lexical_weight, ..Ranking::default() }
    }
}

/// The questions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// The editors' list.
    pub file: PathBuf,
    /// What readers asked, as JSON Lines with `lang`, `question` and `count`: of two questions of the
    /// same priority, the one asked more often is answered first.
    #[serde(default)]
    pub asked: Option<PathBuf>,
}

/// What governs a night's work. The shares are from 0 to 1; beyond one of them, nothing is published
/// and the run says why.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Nightly {
    /// Share of the questions asked that may fail.
    pub failures: f64,
    /// Share of the answers in the last release that may turn into "insufficient".
    pub insufficient: f64,
    /// Share of the passages of the last release that may be gone.
    pub removed: f64,
    /// What is done when no language-model server can be reached.
    pub when_away: WhenAway,
}

impl Default for Nightly {
    fn default() -> Self {
        Nightly {
            failures: 0.25,
            insufficient: 0.25,
            removed: 0.25,
            when_away: WhenAway::default(),
        }
    }
}

/// What a night does when no language-model server can be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhenAway {
    /// The degraded mode answers, if the file of its model is here; else the questions wait.
    #[default]
    Degraded,
    /// The questions wait, with the answers they had.
    Wait,
}

/// How work is sent to a Slurm cluster. The folders of the pipeline must be on a file system that
/// all its machines share.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// Further lines for every job, as `--partition=gpu` or `--gres=gpu:1`.
    pub options: Vec<String>,
    /// The same, for the jobs that embed and answer only.
    pub shard_options: Vec<String>,
    /// Shell commands before the program, as `module load cuda`.
    pub setup: Vec<String>,
    /// What the program is called through, as `apptainer exec --nv florilegium.sif`.
    pub container: String,
    /// The program on the machines of the cluster; the one that submits, when not given.
    pub program: Option<String>,
    /// How often a shard that dies is submitted again.
    pub attempts: u32,
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster {
            options: Vec::new(),
            shard_options: Vec::new(),
            setup: Vec::new(),
            container: String::new(),
            program: None,
            attempts: 3,
        }
    }
}

/// Why a pipeline file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The file cannot be read.
    #[error("cannot read the pipeline file {}: {source}; give the path of a file such as pipelines/handbook.toml", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, or has a key or value that is not known.
    #[error("{}: {}; correct this line, or remove it", path.display(), source.to_string().trim_end())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What and where.
        source: Box<toml::de::Error>,
    },
    /// A value makes no sense.
    #[error("{}: {field}: {problem}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// The field.
        field: String,
        /// What is wrong and what would be right.
        problem: String,
    },
}

impl Pipeline {
    /// Reads and checks a pipeline file.
    pub fn load(path: &Path) -> Result<Self, PipelineError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PipelineError::Read { path: path.to_owned(), source })?;
        let mut pipeline: Pipeline = toml::from_str(&text).map_err(|source| {
            PipelineError::Parse { path: path.to_owned(), source: Box::new(source) }
        })?;
        pipeline.check().map_err(|(field, problem)| PipelineError::Field {
            path: path.to_owned(),
            field,
            problem,
        })?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let paths = &mut pipeline.paths;
        for path in [&mut paths.work, &mut paths.model_list, &mut paths.models, &mut paths.public]
            .into_iter()
            .chain([&mut pipeline.questions.file])
            .chain(&mut paths.prompts)
            .chain(&mut pipeline.server.question_log)
            .chain(&mut pipeline.language_model.calibration)
            .chain(pipeline.degraded_model.iter_mut().filter_map(|m| m.calibration.as_mut()))
            .chain(&mut pipeline.questions.asked)
            .chain(&mut pipeline.publish.theme)
            .chain(pipeline.language_model.servers.iter_mut().filter_map(|s| s.key_file.as_mut()))
            .chain(pipeline.collections.iter_mut().flat_map(|collection| {
                [&mut collection.path].into_iter().chain(&mut collection.metadata)
            }))
        {
            *path = tidy(&folder.join(&*path));
        }
        Ok(pipeline)
    }

    /// The collections that feed answers, by id.
    pub fn synthesis_collections(&self) -> Vec<String> {
        let feeding = |collection: &&Collection| collection.role == Role::Synthesis;
        self.collections.iter().filter(feeding).map(|collection| collection.id.clone()).collect()
    }

    fn check(&self) -> Result<(), (String, String)> {
        let fault = |field: &str, problem: String| Err((field.to_owned(), problem));
        let is_name = |text: &str| {
            !text.is_empty()
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        if !is_name(&self.id) {
            return fault("id", format!("{:?}: use a-z, 0-9 and hyphens", self.id));
        }
        if self.languages.is_empty() {
            return fault("languages", format!("name at least one of {PAGE_LANGUAGES:?}"));
        }
        for language in &self.languages {
            if !PAGE_LANGUAGES.contains(&language.as_str()) {
                return fault(
                    "languages",
                    format!("{language:?} has no message file; known: {PAGE_LANGUAGES:?}"),
                );
            }
            if !self.title.contains_key(language) {
                return fault("title", format!("there is no title in {language:?}; add one"));
            }
        }
        if !(32..=480).contains(&self.passages.tokens) {
            return fault(
                "passages.tokens",
                format!("{}: choose 32 to 480 (the model reads 512 at most)", self.passages.tokens),
            );
        }
        let retrieval = &self.retrieval;
        if !(0.0..=100.0).contains(&retrieval.lexical_weight) {
            return fault(
                "retrieval.lexical_weight",
                format!("{}: choose 0 to 100; 0.4 did best", retrieval.lexical_weight),
            );
        }
        if retrieval.per_document == Some(0) {
            return fault(
                "retrieval.per_document",
                "0: choose 1 or more, or remove the line".into(),
            );
        }
        self.server.check()?;
        self.publish.check()?;
        let settings = &self.synthesis;
        for (field, value) in [
            ("synthesis.passages", settings.passages),
            ("synthesis.relevant_passages", settings.relevant_passages),
            ("synthesis.sentences", settings.sentences),
            ("synthesis.quotations", settings.quotations),
        ] {
            if !(1..=100).contains(&value) {
                return fault(field, format!("{value}: choose 1 to 100"));
            }
        }
        for (field, value) in [
            ("synthesis.relevant_at", settings.relevant_at),
            ("synthesis.answer_at", settings.answer_at),
            ("synthesis.show_at", settings.show_at),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return fault(field, format!("{value}: a probability is between 0 and 1"));
            }
        }
        if !(512..=1 << 20).contains(&self.language_model.context) {
            return fault(
                "language_model.context",
                format!("{}: choose 512 to 1048576", self.language_model.context),
            );
        }
        if !(32..=4096).contains(&self.language_model.batch) {
            return fault(
                "language_model.batch",
                format!("{}: choose 32 to 4096", self.language_model.batch),
            );
        }
        if self.language_model.shelf_megabytes > 1 << 20 {
            return fault(
                "language_model.shelf_megabytes",
                format!("{}: choose 0 to 1048576", self.language_model.shelf_megabytes),
            );
        }
        if !(1..=65536).contains(&self.embedding.chunk) {
            return fault(
                "embedding.chunk",
                format!("{}: choose 1 to 65536", self.embedding.chunk),
            );
        }
        for (field, value) in [
            ("nightly.failures", self.nightly.failures),
            ("nightly.insufficient", self.nightly.insufficient),
            ("nightly.removed", self.nightly.removed),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return fault(field, format!("{value}: a share is between 0 and 1"));
            }
        }
        let lines = [&self.cluster.options, &self.cluster.shard_options, &self.cluster.setup];
        if lines.into_iter().flatten().any(|line| line.contains('\n')) {
            return fault("cluster", "a line break in an option; give one line an entry".into());
        }
        let mut urls = BTreeSet::new();
        for server in &self.language_model.servers {
            let field = format!("language_model.server {:?}", server.url);
            if !server.url.starts_with("http://") && !server.url.starts_with("https://") {
                return fault(&field, "url: give one such as http://127.0.0.1:8080".into());
            }
            if !urls.insert(server.url.trim_end_matches('/')) {
                return fault(&field, "the url is used twice; name each server once".into());
            }
            if server.key_env.is_some() && server.key_file.is_some() {
                return fault(&field, "give key_env or key_file, not both".into());
            }
            let limits = [server.connect_seconds, server.first_token_seconds, server.whole_seconds];
            if limits.contains(&Some(0)) || server.slots == Some(0) {
                return fault(
                    &field,
                    "limits and slots are at least 1; leave them out for the usual".into(),
                );
            }
        }
        let mut seen = BTreeSet::new();
        for collection in &self.collections {
            let field = format!("collection {:?}", collection.id);
            if !is_name(&collection.id) {
                return fault(&field, "id: use a-z, 0-9 and hyphens".into());
            }
            if !seen.insert(&collection.id) {
                return fault(&field, "the id is used twice; give each collection its own".into());
            }
        }
        if self.synthesis_collections().is_empty() {
            return fault("collection", "none has role = \"synthesis\", so nothing could ever be answered; give one that role".into());
        }
        Ok(())
    }
}

/// Removes `.` and `x/..` from a path, so that messages are readable. Symbolic links are not
/// followed, so `x/..` is only removed when `x` is a plain name.
fn tidy(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_)))
                    && !tidy.is_symlink() =>
            {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
id = "demo"
title = { en = "Demo" }
languages = ["en"]
[paths]
work = "../work"
model_list = "models.toml"
models = "models"
public = "public"
[embedding]
model = "e"
tokenizer = "t"
[language_model]
model = "l"
[passages]
tokens = 200
[questions]
file = "q.csv"
[[collection]]
id = "a"
title = "A"
path = "a"
language = "en"
role = "synthesis"
licence = "CC0"
url = "https://example.org/{path}#{anchor}"
"#;

    fn load(text: &str) -> Result<Pipeline, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("demo.toml");
        std::fs::write(&path, text).unwrap();
        Pipeline::load(&path).map_err(|e| {
            let message = e.to_string();
            assert!(message.contains("demo.toml"), "{message}");
            message
        })
    }

    #[test]
    fn paths_start_from_the_folder_of_the_file() {
        let pipeline = load(GOOD).unwrap();
        assert!(
            pipeline.questions.file.ends_with("q.csv") && pipeline.questions.file.is_absolute()
        );
        assert!(!pipeline.paths.work.to_string_lossy().contains(".."));
    }

    #[test]
    fn faults_name_the_field() {
        for (from, to, expected) in [
            ("id = \"demo\"", "id = \"demo\"\ncolour = \"red\"", "colour"),
            ("tokens = 200", "tokens = 2000", "passages.tokens"),
            ("tokens = 200", "token = 200", "token"),
            ("languages = [\"en\"]", "languages = [\"xx\"]", "languages"),
            ("languages = [\"en\"]", "languages = [\"en\", \"fr\"]", "title"),
            ("role = \"synthesis\"", "role = \"search\"", "role = \"synthesis\""),
            ("role = \"synthesis\"", "role = \"quote\"", "quote"),
            (
                "model = \"l\"",
                "model = \"l\"\n[[language_model.server]]\nurl = \"gpu:8080\"",
                "gpu:8080",
            ),
            (
                "model = \"l\"",
                "model = \"l\"\n[[language_model.server]]\nurl = \"http://a\"\nkey = \"sk\"",
                "key",
            ),
            (
                "model = \"l\"",
                "model = \"l\"\n[[language_model.server]]\nurl = \"http://a\"\n[[language_model.server]]\nurl = \"http://a/\"",
                "twice",
            ),
            ("id = \"a\"", "id = \"A B\"", "collection \"A B\""),
        ] {
            assert!(GOOD.contains(from));
            let message = load(&GOOD.replace(from, to)).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = Pipeline::load(Path::new("no/such.toml")).unwrap_err().to_string();
        assert!(message.contains("no/such.toml") && message.contains("pipelines/"), "{message}");
    }
}
