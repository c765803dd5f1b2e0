//! The part of the pipeline file that says how the site is published.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How the site is published.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Publishing {
    /// The whole address under which readers find the site, as `https://example.org/books/`; without it
    /// there are no permalinks, no feeds and no sitemap.
    pub base_url: Option<String>,
    /// Where the ask box leads: a live server's address, whole (`https://live.example.org/ask`) or from
    /// the root of the site (`ask`). Without it, the box finds curated questions only.
    pub live: Option<String>,
    /// How readers find the current release.
    pub layout: Layout,
    /// Releases kept, the current one included.
    pub keep: usize,
    /// Whether `.gz`, `.br` and `.zst` are written beside the files.
    pub packed: bool,
    /// Folder with templates, messages and assets of the archive's own.
    pub theme: Option<PathBuf>,
    /// Former ids of questions, and the ids they have now.
    pub renamed: BTreeMap<String, String>,
}

/// How readers find the current release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Through a symbolic link, switched in one step.
    #[default]
    Link,
    /// In a folder whose files are replaced one by one.
    InPlace,
}

impl Default for Publishing {
    fn default() -> Self {
        Publishing {
            base_url: None,
            live: None,
            layout: Layout::Link,
            keep: 3,
            packed: true,
            theme: None,
            renamed: BTreeMap::new(),
        }
    }
}

impl Publishing {
    /// The field at fault, and what would be right.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        let fault = |field: &str, problem: String| Err((format!("publish.{field}"), problem));
        let is_sound = |text: &str| {
            !text.chars().any(|c| c.is_whitespace() || c.is_control() || "\"'<>\\;".contains(c))
        };
        let is_whole = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if let Some(url) = &self.base_url
            && (!is_whole(url) || !is_sound(url) || url.contains(['?', '#']))
        {
            return fault(
                "base_url",
                format!("{url:?}: give one such as https://example.org/books/"),
            );
        }
        if let Some(live) = &self.live
            && (live.is_empty() || !is_sound(live) || (live.contains(':') && !is_whole(live)))
        {
            return fault(
                "live",
                format!("{live:?}: give one such as ask, or https://live.example.org/ask"),
            );
        }
        if !(1..=1000).contains(&self.keep) {
            return fault("keep", format!("{}: choose 1 to 1000", self.keep));
        }
        Ok(())
    }

    /// The path of `base_url`, "/" if it has none.
    pub fn base_path(&self) -> String {
        let path = self.base_url.as_deref().and_then(|url| {
            let (_, rest) = url.split_once("://")?;
            let (_, path) = rest.split_once('/')?;
            Some(format!("/{path}"))
        });
        path.unwrap_or_else(|| "/".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_name_the_field() {
        for (text, field) in [
            ("base_url = \"example.org\"", "base_url"),
            ("base_url = \"https://example.org/?q\"", "base_url"),
            ("live = \"javascript:alert(1)\"", "live"),
            ("live = \"https://a b\"", "live"),
            ("live = \"\"", "live"),
            ("keep = 0", "keep"),
        ] {
            let publication: Publishing = toml::from_str(text).unwrap();
            let (named, problem) = publication.check().unwrap_err();
            assert_eq!(named, format!("publish.{field}"), "{problem}");
        }
        let unknown = toml::from_str::<Publishing>("colour = 1").unwrap_err().to_string();
        assert!(unknown.contains("colour"), "{unknown}");
    }

    #[test]
    fn the_path_of_the_address() {
        let path = |url: &str| {
            Publishing { base_url: Some(url.to_owned()), ..Publishing::default() }.base_path()
        };
        assert_eq!(path("https://a.example"), "/");
        assert_eq!(path("https://a.example/"), "/");
        assert_eq!(path("https://a.example/books/old/"), "/books/old/");
        assert_eq!(Publishing::default().base_path(), "/");
    }
}
