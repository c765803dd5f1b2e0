//! An archive in a folder of its own, made from the small corpus in three languages.

#![allow(dead_code)] // Each test file uses a part of it.

pub mod night;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The root of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project")
}

/// The folder with the models, when those the tests need are there.
pub fn models() -> Option<PathBuf> {
    let folder = std::env::var_os("FLORILEGIUM_MODELS")
        .map(PathBuf::from)
        .unwrap_or_else(|| root().join("data/cache/models"));
    let needed = [
        "e5-small-q4.bin",
        "multilingual-e5-small-tokenizer.json",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
    ];
    let missing: Vec<&str> =
        needed.into_iter().filter(|name| !folder.join(name).is_file()).collect();
    if missing.is_empty() {
        return Some(folder);
    }
    println!("skipped: {} has no {}; run `make test`", folder.display(), missing.join(", "));
    None
}

/// A small archive with a pipeline file.
pub struct Archive {
    pub folder: tempfile::TempDir,
}

impl Archive {
    /// Copies the corpus and writes the pipeline file. `answer_at` is the threshold above which the
    /// material counts as sufficient: the small model of the tests judges poorly, so that 0 and 1
    /// are the values with a known result.
    pub fn new(models: &Path, answer_at: f64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        copy(&root().join("data/fixtures/trilingual"), &folder.path().join("corpus"));
        let archive = Archive { folder };
        let collections: String = ["en", "fr", "el"]
            .map(|lang| {
                format!(
                    "[[collection]]\nid = \"island-{lang}\"\ntitle = \"Morvane ({lang})\"\n\
                     path = \"corpus/{lang}\"\nlanguage = \"{lang}\"\nrole = \"synthesis\"\n\
                     licence = \"CC0\"\nurl = \"https://example.org/{lang}/{{path}}#{{anchor}}\"\n"
                )
            })
            .concat();
        let pipeline = format!(
            "id = \"island\"\ntitle = {{ en = \"Morvane\", fr = \"Morvane\", el = \"Morvane\" }}\n\
             languages = [\"en\", \"fr\", \"el\"]\n\
             [paths]\nwork = \"work\"\nmodel_list = \"{list}\"\nmodels = \"{models}\"\npublic = \"public\"\n\
             [embedding]\nmodel = \"multilingual-e5-small-q4\"\ntokenizer = \"multilingual-e5-small-tokenizer\"\nthreads = 1\n\
             [language_model]\nmodel = \"smollm2-135m-instruct-q4\"\nthreads = 1\n\
             [passages]\ntokens = 120\n\
             [synthesis]\npassages = 4\nrelevant_passages = 2\nsentences = 2\nrelevant_at = 0.0\nanswer_at = {answer_at:?}\nshow_at = {answer_at:?}\n\
             [questions]\nfile = \"corpus/questions.csv\"\n{collections}",
            list = root().join("data/models.toml").display(),
            models = models.display(),
        );
        fs::write(archive.pipeline(), pipeline).expect("write");
        archive
    }

    /// Adds to the pipeline file, before its collections.
    pub fn add(&self, section: &str) {
        let text = fs::read_to_string(self.pipeline()).expect("read");
        let (head, collections) = text.split_once("[[collection]]").expect("a collection");
        let text = format!("{head}{section}\n[[collection]]{collections}");
        fs::write(self.pipeline(), text).expect("write");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn pipeline(&self) -> PathBuf {
        self.path("island.toml")
    }

    /// Runs a command of florilegium on this archive's pipeline.
    pub fn florilegium(&self, arguments: &[&str]) -> Output {
        florilegium(self.folder.path())
            .env("FLORILEGIUM_PIPELINE", self.pipeline())
            .args(arguments)
            .output()
            .expect("florilegium")
    }
}

/// A server that ends with the test.
pub struct Server {
    child: Child,
    /// As `http://127.0.0.1:1234`.
    pub address: String,
}

impl Server {
    /// Starts it on a free port.
    pub fn start(archive: &Archive) -> Self {
        let mut child = florilegium(archive.folder.path())
            .arg("serve")
            .arg(archive.pipeline())
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("the server"))
            .read_line(&mut line)
            .expect("the server");
        let address = line.split_whitespace().find(|word| word.starts_with("http://"));
        let address = address.unwrap_or_else(|| panic!("{line}")).trim_end_matches('/').to_owned();
        Server { child, address }
    }

    /// Status and body.
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut response = self.response(path);
        (response.status().as_u16(), response.body_mut().read_to_string().expect("a body"))
    }

    /// The whole response.
    pub fn response(&self, path: &str) -> ureq::http::Response<ureq::Body> {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        agent.get(format!("{}{path}", self.address)).call().expect("a response")
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The program, in a folder.
pub fn florilegium(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_florilegium"));
    command.current_dir(folder).env_remove("FLORILEGIUM_PIPELINE").env_remove("FLORILEGIUM_LANG");
    command
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copy");
        }
    }
}

/// All files below a folder with their contents, in order.
pub fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below").to_owned();
                files.push((name, fs::read(&path).expect("read")));
            }
        }
    }
    files.sort();
    files
}
