//! What a site looks like and says: templates, messages, style and script.
//!
//! They are compiled in. An archive may put files of its own over any of them, in a folder laid out as
//! the project is: `pages/`, `messages/`, `site/`. [`Theme::eject`] writes them out to begin from.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use florilegium_files::{FileError, sha256_hex, write_atomic};
use include_dir::{Dir, include_dir};
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use crate::error::PublishError;

mod filters;

static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates/pages");
static MESSAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates/messages");
static SITE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../site");

/// The folders of a theme, and what is compiled in for each.
const FOLDERS: [(&str, &Dir<'_>); 3] =
    [("pages", &PAGES), ("messages", &MESSAGES), ("site", &SITE)];

static BUILT_IN: LazyLock<Result<Arc<Theme>, String>> =
    LazyLock::new(|| Theme::build(None).map(Arc::new).map_err(|error| error.to_string()));

/// Templates, messages and assets.
#[derive(Debug)]
pub struct Theme {
    environment: Environment<'static>,
    messages: BTreeMap<String, Value>,
    assets: Vec<Asset>,
    links: Links,
}

/// A style, script or picture. Its name carries a hash of its content, so that it may be cached for
/// ever.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Path in the site.
    pub(crate) path: String,
    pub(crate) bytes: Cow<'static, [u8]>,
}

/// Where the pages find their assets, from the root of the site.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Links {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

impl Theme {
    /// The one that is compiled in.
    pub fn built_in() -> Result<Arc<Self>, PublishError> {
        // Built once; the error is one of this project's own files.
        BUILT_IN.clone().map_err(PublishError::Template)
    }

    /// The one that is compiled in, with the files in `folder` put over its own. A file there that
    /// takes the place of none is an asset or template that the others may name.
    pub fn load(folder: &Path) -> Result<Arc<Self>, PublishError> {
        let mut known = 0;
        for (name, _) in FOLDERS {
            known += usize::from(folder.join(name).is_dir());
        }
        if known == 0 {
            return Err(PublishError::NoTheme { path: folder.to_owned() });
        }
        Theme::build(Some(folder)).map(Arc::new)
    }

    /// Writes all files into `folder`, for changing; refuses to write over a file that is there.
    pub fn eject(folder: &Path) -> Result<Vec<String>, PublishError> {
        let all: Vec<(String, &[u8])> = FOLDERS
            .iter()
            .flat_map(|(name, dir)| {
                dir.files().filter_map(move |file| {
                    Some((format!("{name}/{}", file.path().to_str()?), file.contents()))
                })
            })
            .collect();
        for (name, _) in &all {
            let path = folder.join(name);
            if path.symlink_metadata().is_ok() {
                return Err(PublishError::Occupied { path });
            }
        }
        for (name, bytes) in &all {
            write_atomic(&folder.join(name), bytes)?;
        }
        Ok(all.into_iter().map(|(name, _)| name).collect())
    }

    fn build(folder: Option<&Path>) -> Result<Self, PublishError> {
        let mut environment =
            filters::environment().map_err(|error| PublishError::Template(format!("{error:#}")))?;
        for (name, bytes) in files("pages", &PAGES, folder)? {
            let path = || named(folder, "templates/pages", "pages", &name);
            let source = text(&bytes, path)?;
            environment
                .add_template_owned(name.clone(), source)
                .map_err(|error| PublishError::Template(format!("{}: {error:#}", path())))?;
        }
        let mut messages = BTreeMap::new();
        for (name, bytes) in files("messages", &MESSAGES, None)? {
            let Some(language) = name.strip_suffix(".toml") else { continue };
            let path = || format!("templates/messages/{name}");
            let mut table = table(&bytes, path)?;
            if let Some(folder) = folder {
                let own = folder.join("messages").join(&name);
                if let Some(bytes) = read(&own)? {
                    let path = || own.display().to_string();
                    let changes = self::table(&bytes, path)?;
                    overlay(&mut table, changes, "").map_err(|problem| {
                        PublishError::Template(format!("{}: {problem}", own.display()))
                    })?;
                }
            }
            messages.insert(language.to_owned(), Value::from(Serde(table)));
        }
        let mut assets = Vec::new();
        let mut links = Links::default();
        for (name, bytes) in files("site", &SITE, folder)? {
            let path = format!("assets/{}", hashed(&name, &bytes));
            match name.as_str() {
                "style.css" => links.style = path.clone(),
                "florilegium.js" => links.script = path.clone(),
                "icon.svg" => links.icon = path.clone(),
                _ => {}
            }
            assets.push(Asset { path, bytes });
        }
        assets.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Theme { environment, messages, assets, links })
    }

    /// Renders a template.
    pub(crate) fn render(&self, name: &str, page: impl Serialize) -> Result<String, PublishError> {
        self.render_value(name, Value::from(Serde(page)))
    }

    /// Renders a template from what [`Value`] holds already.
    pub(crate) fn render_value(&self, name: &str, page: Value) -> Result<String, PublishError> {
        Ok(self.environment.get_template(name)?.render(page)?)
    }

    /// The messages in one language.
    pub(crate) fn messages(&self, language: &str) -> Result<Value, PublishError> {
        self.messages.get(language).cloned().ok_or_else(|| PublishError::NoMessages {
            language: language.to_owned(),
            known: self.messages.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    pub(crate) fn assets(&self) -> &[Asset] {
        &self.assets
    }

    pub(crate) fn links(&self) -> &Links {
        &self.links
    }
}

/// The files of one folder by name, those of the theme in the place of those compiled in.
fn files(
    name: &str,
    dir: &'static Dir<'static>,
    folder: Option<&Path>,
) -> Result<BTreeMap<String, Cow<'static, [u8]>>, PublishError> {
    let built_in = dir.files().filter_map(|file| {
        Some((file.path().to_str()?.to_owned(), Cow::Borrowed(file.contents())))
    });
    let mut files: BTreeMap<_, _> = built_in.collect();
    let Some(folder) = folder.map(|folder| folder.join(name)).filter(|folder| folder.is_dir())
    else {
        return Ok(files);
    };
    let listed = fs::read_dir(&folder).map_err(|error| FileError::io("list", &folder, error))?;
    for entry in listed.flatten() {
        let name = entry.file_name();
        // Editors leave hidden files and copies beside what they edit.
        let Some(name) =
            name.to_str().filter(|name| !name.starts_with('.') && !name.ends_with('~'))
        else {
            continue;
        };
        if let Some(bytes) = read(&entry.path())? {
            files.insert(name.to_owned(), Cow::Owned(bytes));
        }
    }
    Ok(files)
}

/// A file's bytes; none where there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, PublishError> {
    if !path.is_file() {
        return Ok(None);
    }
    Ok(Some(florilegium_files::read(path)?))
}

fn text(bytes: &[u8], path: impl Fn() -> String) -> Result<String, PublishError> {
    String::from_utf8(bytes.to_vec())
        .map_err(|error| PublishError::Template(format!("{}: {error}", path())))
}

fn table(bytes: &[u8], path: impl Fn() -> String) -> Result<toml::Table, PublishError> {
    toml::from_str(&text(bytes, &path)?)
        .map_err(|error| PublishError::Template(format!("{}: {error}", path())))
}

/// Where a file is that has a fault.
fn named(folder: Option<&Path>, built_in: &str, own: &str, name: &str) -> String {
    let path = folder.map(|folder| folder.join(own).join(name)).filter(|path| path.is_file());
    path.map_or_else(|| format!("{built_in}/{name}"), |path| path.display().to_string())
}

/// Puts some messages in the place of others. A key that there is none for is a slip of the pen.
fn overlay(table: &mut toml::Table, changes: toml::Table, at: &str) -> Result<(), String> {
    for (key, change) in changes {
        let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match (table.get_mut(&key), change) {
            (None, _) => return Err(format!("there is no message {at}; correct the key")),
            (Some(toml::Value::Table(known)), toml::Value::Table(change)) => {
                overlay(known, change, &at)?;
            }
            (Some(known), change) if known.type_str() == change.type_str() => *known = change,
            (Some(known), change) => {
                let (is, should) = (change.type_str(), known.type_str());
                return Err(format!("the message {at} is of the type {is}, it should be {should}"));
            }
        }
    }
    Ok(())
}

fn hashed(name: &str, bytes: &[u8]) -> String {
    let hash = sha256_hex(bytes);
    let hash = hash.get(..8).unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem}.{hash}.{ending}"),
        None => format!("{name}.{hash}"),
    }
}

#[cfg(test)]
mod tests;
