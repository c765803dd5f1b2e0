//! What every page has around its text.

use minijinja::Value;
use serde::Serialize;

use crate::error::PublishError;
use crate::site::Chrome;
use crate::text::{link, plain};
use crate::theme::Links;

/// What every page has around its text.
#[derive(Debug, Serialize)]
pub(crate) struct Frame {
    pub(crate) m: Value,
    /// Language of the page.
    pub(crate) language: String,
    pub(crate) site_title: String,
    /// From the page to the root of the site: ends with a slash.
    pub(crate) root: String,
    pub(crate) links: Links,
    /// The other languages of the site, and this one.
    languages: Vec<LanguageLink>,
    /// The same page in all languages, itself included, for search engines.
    alternates: Vec<Alternate>,
    /// The page's own whole address.
    pub(crate) canonical: Option<String>,
    /// Where the ask box leads, and whether a server answers there.
    ask: String,
    live: bool,
    /// True where search engines should not keep the page.
    unlisted: bool,
    /// Whether the site has feeds.
    feeds: bool,
}

#[derive(Debug, Serialize)]
struct LanguageLink {
    tag: String,
    /// In the language itself.
    name: String,
    /// From the root of the site.
    path: String,
    current: bool,
}

#[derive(Debug, Serialize)]
struct Alternate {
    tag: String,
    address: String,
}

impl Frame {
    /// The frame of the page at `path`, an address from the root of the site. Its languages lead to the
    /// start pages until [`Frame::versions`] says better.
    pub(crate) fn at(chrome: &Chrome, language: &str, path: &str) -> Result<Self, PublishError> {
        let root = match path.matches('/').count() {
            0 => "./".to_owned(),
            depth => "../".repeat(depth),
        };
        let mut languages = Vec::with_capacity(chrome.languages.len());
        for tag in &chrome.languages {
            let messages = chrome.theme.messages(tag)?;
            let name = messages.get_attr("site")?.get_attr("language")?.to_string();
            let current = tag == language;
            languages.push(LanguageLink {
                tag: tag.clone(),
                name,
                path: format!("{tag}/"),
                current,
            });
        }
        let live = chrome.live.as_deref().and_then(link);
        let ask = match live {
            Some(address) if address.contains("://") => address.to_owned(),
            Some(path) => format!("{root}{}", path.trim_start_matches('/')),
            None => format!("{root}{language}/questions/"),
        };
        Ok(Frame {
            m: chrome.theme.messages(language)?,
            language: language.to_owned(),
            site_title: plain(chrome.title_in(language)),
            links: chrome.theme.links().clone(),
            languages,
            alternates: Vec::new(),
            canonical: chrome.address(path),
            live: live.is_some(),
            ask,
            root,
            unlisted: false,
            feeds: chrome.base_url.is_some(),
        })
    }

    /// Names the versions of the page by language, itself included, and which one readers of none of
    /// these languages should get.
    pub(crate) fn versions(
        mut self,
        chrome: &Chrome,
        versions: &[(String, String)],
        default: &str,
    ) -> Self {
        let address = |path: &str| match chrome.address(path) {
            Some(address) => address,
            None => format!("{}{path}", self.root),
        };
        let named = versions.iter().map(|(tag, path)| (tag.as_str(), path.as_str()));
        self.alternates = named
            .chain([("x-default", default)])
            .map(|(tag, path)| Alternate { tag: tag.to_owned(), address: address(path) })
            .collect();
        for link in &mut self.languages {
            if let Some((_, path)) = versions.iter().find(|(tag, _)| *tag == link.tag) {
                link.path = path.clone();
            }
        }
        self
    }

    /// Shown at any depth, so that its links start from the root of the host.
    pub(crate) fn anywhere(mut self, chrome: &Chrome) -> Self {
        let base = chrome.base_path.trim_matches('/');
        let root = if base.is_empty() { "/".to_owned() } else { format!("/{base}/") };
        if let Some(path) = self.ask.strip_prefix(&self.root) {
            self.ask = format!("{root}{path}");
        }
        self.root = root;
        self.unlisted()
    }

    pub(crate) fn unlisted(mut self) -> Self {
        self.unlisted = true;
        self.canonical = None;
        self
    }
}

impl Chrome {
    /// The whole address of a page, if the site knows its own.
    pub(crate) fn address(&self, path: &str) -> Option<String> {
        let base = self.base_url.as_deref()?.trim_end_matches('/');
        Some(format!("{base}/{path}"))
    }
}
