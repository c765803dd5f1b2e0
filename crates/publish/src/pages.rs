//! The pages of the published site.

use std::collections::BTreeSet;

use minijinja::Value;
use serde::Serialize;

use crate::assets::{Links, assets, links};
use crate::error::PublishError;
use crate::messages::messages;
use crate::site::{Chrome, CollectionFacts, Entry, Facts, Site, check_id};
use crate::templates;
use crate::text::plain;
use crate::view::{AnswerView, short_hash};

/// What every page has around its text.
#[derive(Debug, Serialize)]
pub(crate) struct Frame {
    m: Value,
    /// Language of the page.
    language: String,
    site_title: String,
    /// From the page to the root of the site: ends with a slash.
    root: String,
    links: Links,
    /// The other languages of the site, and this one.
    languages: Vec<LanguageLink>,
    /// The same page in all languages, for search engines.
    alternates: Vec<Alternate>,
    /// True where search engines should not keep the page.
    unlisted: bool,
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
    path: String,
}

impl Frame {
    /// `root` leads from the page to the root of the site; `path` is the place of the same page
    /// within the folder of each language, None where it exists in one language only.
    pub(crate) fn new(
        chrome: &Chrome,
        language: &str,
        root: impl Into<String>,
        path: Option<&str>,
    ) -> Result<Self, PublishError> {
        let mut languages = Vec::with_capacity(chrome.languages.len());
        for tag in &chrome.languages {
            let name = messages(tag)?.get_attr("site")?.get_attr("language")?.to_string();
            languages.push(LanguageLink {
                tag: tag.clone(),
                name,
                path: format!("{tag}/{}", path.unwrap_or_default()),
                current: tag == language,
            });
        }
        Ok(Frame {
            m: messages(language)?,
            language: language.to_owned(),
            site_title: plain(chrome.title_in(language)),
            root: root.into(),
            links: links(),
            languages,
            alternates: Vec::new(),
            unlisted: false,
        })
    }

    /// Names the same page in all languages; `default` is the one for readers of none of them.
    fn alternating(mut self, default: &str) -> Self {
        self.alternates = self
            .languages
            .iter()
            .map(|link| Alternate { tag: link.tag.clone(), path: link.path.clone() })
            .chain([Alternate { tag: "x-default".to_owned(), path: default.to_owned() }])
            .collect();
        self
    }

    /// Names the page itself as its only version.
    fn alone(mut self, path: String) -> Self {
        self.alternates = vec![Alternate { tag: self.language.clone(), path }];
        self
    }

    pub(crate) fn unlisted(mut self) -> Self {
        self.unlisted = true;
        self
    }
}

#[derive(Debug, Serialize)]
struct ListPage {
    frame: Frame,
    lists: Vec<List>,
}

/// The questions in one language.
#[derive(Debug, Serialize)]
struct List {
    language: String,
    /// In the language itself.
    name: String,
    questions: Vec<Listed>,
    /// Words of the list, in its own language.
    m: Value,
}

#[derive(Debug, Serialize)]
struct Listed {
    path: String,
    question: String,
    answered: bool,
    quotations: usize,
}

#[derive(Debug, Serialize)]
struct QuestionPage {
    frame: Frame,
    answer: AnswerView,
    tags: Vec<String>,
    computed_on: String,
    stale: bool,
}

#[derive(Debug, Serialize)]
struct HowPage {
    frame: Frame,
    facts: Facts,
}

#[derive(Debug, Serialize)]
struct PlainPage {
    frame: Frame,
}

/// Renders a site: its files as pairs of path and content, assets first. The same site gives the
/// same bytes.
pub fn render(site: &Site) -> Result<Vec<(String, Vec<u8>)>, PublishError> {
    check_id("site id", &site.id)?;
    let chrome = site.chrome();
    let default = site.languages.first().ok_or(PublishError::NoLanguage)?;
    for entry in &site.entries {
        check_id("question id", &entry.id)?;
        if !site.languages.contains(&entry.lang) {
            let (id, language) = (entry.id.clone(), entry.lang.clone());
            return Err(PublishError::QuestionLanguage { id, language });
        }
    }
    let mut files = Files::default();
    for asset in assets() {
        files.add(asset.path, asset.bytes.to_vec())?;
    }
    for language in &site.languages {
        for entry in site.entries.iter().filter(|entry| entry.lang == *language) {
            let folder = folder(entry);
            let page = question_page(&chrome, entry)?;
            let mut json = serde_json::to_vec_pretty(&entry.answer)
                .map_err(|error| PublishError::Template(format!("{folder}answer.json: {error}")))?;
            json.push(b'\n');
            files.add(format!("{folder}answer.json"), json)?;
            files.add(format!("{folder}index.html"), page.into_bytes())?;
        }
        let frame = Frame::new(&chrome, language, "../", Some("how-it-works.html"))?
            .alternating(&format!("{default}/how-it-works.html"));
        let page = HowPage { frame, facts: shown_facts(&site.facts) };
        files.page(format!("{language}/how-it-works.html"), "how.html", page)?;
        let frame = Frame::new(&chrome, language, "../", Some(""))?.alternating("");
        let page = ListPage { frame, lists: vec![list(site, language)?] };
        files.page(format!("{language}/index.html"), "start.html", page)?;
    }
    let frame = Frame::new(&chrome, default, "./", None)?.alternating("");
    let lists = site.languages.iter().map(|language| list(site, language));
    let page = ListPage { frame, lists: lists.collect::<Result<_, _>>()? };
    files.page("index.html", "root.html", page)?;
    files.add("404.html", not_found(&chrome, default)?.into_bytes())?;
    files.add(
        "robots.txt",
        b"User-agent: *\nAllow: /\nDisallow: /ask\nDisallow: /search\n".to_vec(),
    )?;
    Ok(files.files)
}

fn question_page(chrome: &Chrome, entry: &Entry) -> Result<String, PublishError> {
    let page = QuestionPage {
        frame: Frame::new(chrome, &entry.lang, "../../../", None)?.alone(folder(entry)),
        answer: AnswerView::new(&entry.answer)?,
        tags: entry.tags.iter().map(|tag| plain(tag)).collect(),
        computed_on: plain(&entry.computed_on),
        stale: entry.stale,
    };
    templates::render("question.html", page)
}

/// The page for a wrong address.
pub(crate) fn not_found(chrome: &Chrome, language: &str) -> Result<String, PublishError> {
    let base = chrome.base_path.trim_matches('/');
    let root = if base.is_empty() { "/".to_owned() } else { format!("/{base}/") };
    let frame = Frame::new(chrome, language, root, None)?.unlisted();
    templates::render("404.html", PlainPage { frame })
}

/// Where an entry's page and data are, from the root of the site.
fn folder(entry: &Entry) -> String {
    format!("{}/q/{}/", entry.lang, entry.id)
}

fn list(site: &Site, language: &str) -> Result<List, PublishError> {
    let m = messages(language)?;
    let name = m.get_attr("site")?.get_attr("language")?.to_string();
    let questions = site
        .entries
        .iter()
        .filter(|entry| entry.lang == language)
        .map(|entry| Listed {
            path: folder(entry),
            question: plain(&entry.answer.question),
            answered: entry.answer.answered,
            quotations: entry.answer.groups.iter().map(|group| group.quotations.len()).sum(),
        })
        .collect();
    Ok(List { language: language.to_owned(), name, questions, m })
}

fn shown_facts(facts: &Facts) -> Facts {
    Facts {
        embedding_model: plain(&facts.embedding_model),
        language_model: plain(&facts.language_model),
        mode: plain(&facts.mode),
        corpus: short_hash(&facts.corpus),
        program: plain(&facts.program),
        made_on: plain(&facts.made_on),
        collections: facts
            .collections
            .iter()
            .map(|collection| CollectionFacts {
                title: plain(&collection.title),
                language: plain(&collection.language),
                licence: plain(&collection.licence),
                ..collection.clone()
            })
            .collect(),
        ..facts.clone()
    }
}

/// The files of a site, with no path twice.
#[derive(Default)]
struct Files {
    files: Vec<(String, Vec<u8>)>,
    paths: BTreeSet<String>,
}

impl Files {
    fn add(&mut self, path: impl Into<String>, bytes: Vec<u8>) -> Result<(), PublishError> {
        let path = path.into();
        if !self.paths.insert(path.clone()) {
            return Err(PublishError::Twice { path });
        }
        self.files.push((path, bytes));
        Ok(())
    }

    fn page(
        &mut self,
        path: impl Into<String>,
        template: &str,
        page: impl Serialize,
    ) -> Result<(), PublishError> {
        self.add(path, templates::render(template, page)?.into_bytes())
    }
}
