//! The pages of the published site.

use std::collections::{BTreeMap, BTreeSet};

use florilegium_edge::{EdgeIndex, Packing, ROOT};
use florilegium_files::sha256_hex;
use florilegium_fold::fold;
use florilegium_synthesis::answer::Source;
use minijinja::Value;
use minijinja::value::Serde;
use rayon::prelude::*;
use serde::Serialize;

use crate::cite::{self, Reference};
use crate::error::PublishError;
use crate::frame::Frame;
use crate::hosting::{self, Mapped};
use crate::site::{Chrome, CollectionFacts, Entry, Facts, Site, Standing, check_id};
use crate::slug;
use crate::sources::{DocumentFacts, PassageFacts, Piece, pieces};
use crate::text::{direction, link, plain, text_fragment};
use crate::view::{
    AnswerView, CiteView, Known, Place, Places, headings, short_hash, source_reference,
};

/// Questions on one page of a list.
const PER_PAGE: usize = 200;
/// Topics, and questions of each, on a start page.
const TOPICS_AT_START: usize = 12;
const QUESTIONS_AT_START: usize = 5;
/// Documents that a collection's page names.
const DOCUMENTS_NAMED: usize = 500;
/// Answers in a feed.
const IN_FEED: usize = 50;
/// Questions that a passage's page names.
const QUOTED_BY: usize = 50;

type Rendered = Vec<(String, Vec<u8>)>;

/// Renders a site: its files as pairs of path and content, in the order in which they may be written
/// over an older site: assets, the index, pages, and last the root of the index. The same site gives
/// the same bytes.
pub fn render(site: &Site) -> Result<Rendered, PublishError> {
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
    let book = Book::new(site, &chrome, default)?;
    let mut files = Files::default();
    for asset in site.theme.assets() {
        files.add(asset.path.clone(), asset.bytes.to_vec())?;
    }
    let mut index = edge(site)?.files;
    let root = index.pop().filter(|(path, _)| path == ROOT);
    files.extend(index)?;

    let answers: Vec<Rendered> =
        site.entries.par_iter().map(|entry| book.question(entry)).collect::<Result<_, _>>()?;
    for answer in answers {
        files.extend(answer)?;
    }
    let quoted: Vec<(&str, &PassageFacts)> = site
        .languages
        .iter()
        .flat_map(|language| site.passages.iter().map(move |passage| (language.as_str(), passage)))
        .filter(|(language, passage)| book.quoting.contains_key(&(*language, passage.id.as_str())))
        .collect();
    let passages: Vec<Rendered> = quoted
        .par_iter()
        .map(|(language, passage)| book.passage(language, passage))
        .collect::<Result<_, _>>()?;
    for passage in passages {
        files.extend(passage)?;
    }
    for language in &site.languages {
        files.extend(book.language(language)?)?;
    }
    let versions: Vec<(String, String)> =
        site.languages.iter().map(|tag| (tag.clone(), format!("{tag}/"))).collect();
    let frame = Frame::at(&chrome, default, "")?.versions(&chrome, &versions, "");
    let lists: Vec<List> =
        site.languages.iter().map(|language| book.beginning(language)).collect::<Result<_, _>>()?;
    let root_page = chrome.theme.render("root.html", RootPage { frame, lists })?;
    files.add("index.html", root_page.into_bytes())?;
    files.add("404.html", not_found(&chrome, default)?.into_bytes())?;

    let moved = book.moved()?;
    for (from, to) in &moved {
        let frame = Frame::at(&chrome, default, from)?.unlisted();
        let target = format!("{}{to}", frame.root);
        let page = chrome.theme.render("moved.html", MovedPage { frame, target })?;
        files.add(format!("{from}index.html"), page.into_bytes())?;
    }
    files.add("robots.txt", hosting::robots(&chrome).into_bytes())?;
    for (path, text) in hosting::sitemaps(&chrome, &book.mapped()) {
        files.add(path, text.into_bytes())?;
    }
    files.add("_headers", hosting::headers(&chrome).into_bytes())?;
    files.add("_redirects", hosting::redirects(&chrome, &moved).into_bytes())?;
    files.extend(root)?;
    Ok(files.files)
}

/// The index of the listed questions.
fn edge(site: &Site) -> Result<EdgeIndex, PublishError> {
    let entries: Vec<florilegium_edge::Entry> = site
        .entries
        .iter()
        .filter(|entry| entry.is_listed())
        .map(|entry| florilegium_edge::Entry {
            language: entry.lang.clone(),
            id: slug::of_id(&entry.id),
            question: plain(&entry.answer.question),
            variants: entry.variants.iter().map(|variant| plain(variant)).collect(),
        })
        .collect();
    Ok(EdgeIndex::build(&entries, Packing::Gzip)?)
}

/// The page for a wrong address.
pub(crate) fn not_found(chrome: &Chrome, language: &str) -> Result<String, PublishError> {
    let frame = Frame::at(chrome, language, "")?.anywhere(chrome);
    chrome.theme.render("404.html", PlainPage { frame })
}

/// A question that quotes a passage: its number among the entries, and the quotation's on the page.
type Quoting<'a> = BTreeMap<(&'a str, &'a str), Vec<(usize, usize)>>;

/// A site with everything that its pages need to know of each other.
struct Book<'a> {
    site: &'a Site,
    chrome: &'a Chrome,
    default: &'a str,
    places: Places,
    /// The quotations of each passage, by language of the question and id of the passage.
    quoting: Quoting<'a>,
    /// The topics of each language, in the order of the list.
    topics: BTreeMap<&'a str, Vec<Topic>>,
    /// The languages of questions that are the same but for the language at the beginning of the id.
    families: BTreeMap<&'a str, Vec<(String, String)>>,
}

struct Topic {
    label: String,
    slug: String,
    /// Numbers of its questions among the entries.
    entries: Vec<usize>,
}

impl<'a> Book<'a> {
    fn new(site: &'a Site, chrome: &'a Chrome, default: &'a str) -> Result<Self, PublishError> {
        let documents = slug::assign(site.passages.iter().map(|passage| passage.document.as_str()));
        let places = site
            .passages
            .iter()
            .map(|passage| {
                let document = documents.get(&passage.document).map(String::as_str);
                let path =
                    format!("s/{}/{}/", document.unwrap_or("document"), passage_slug(&passage.id));
                let pages = passage.pages.as_ref().map(|(first, last)| {
                    if first == last { plain(first) } else { plain(&format!("{first}–{last}")) }
                });
                (passage.id.clone(), Place { path, pages })
            })
            .collect();
        let mut quoting = Quoting::new();
        for (at, entry) in site.entries.iter().enumerate() {
            let quotations = entry.answer.groups.iter().flat_map(|group| &group.quotations);
            for (number, quotation) in quotations.enumerate() {
                let key = (entry.lang.as_str(), quotation.passage.as_str());
                quoting.entry(key).or_default().push((at, number + 1));
            }
        }
        let topics = site
            .languages
            .iter()
            .map(|language| (language.as_str(), topics(site, language)))
            .collect();
        let mut families: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
        for entry in &site.entries {
            if let Some(family) = family(entry) {
                families.entry(family).or_default().push((entry.lang.clone(), folder(entry)));
            }
        }
        Ok(Book { site, chrome, default, places, quoting, topics, families })
    }

    fn known(&self) -> Known<'_> {
        Known { documents: &self.chrome.documents, places: &self.places }
    }

    /// The page of a question, and the same answer in other forms beside it.
    fn question(&self, entry: &Entry) -> Result<Rendered, PublishError> {
        let path = folder(entry);
        let alone = vec![(entry.lang.clone(), path.clone())];
        let versions = family(entry).and_then(|family| self.families.get(family)).unwrap_or(&alone);
        let own = versions.iter().find(|(tag, _)| tag == self.default);
        let fallback = own.map_or(path.as_str(), |(_, path)| path);
        let frame =
            Frame::at(self.chrome, &entry.lang, &path)?.versions(self.chrome, versions, fallback);
        let frame = if entry.is_listed() { frame } else { frame.unlisted() };
        let references = self.references(entry);
        let tags = entry.tags.iter().filter(|_| entry.is_listed());
        let topics = self.topics.get(entry.lang.as_str()).map(Vec::as_slice).unwrap_or_default();
        let page = QuestionPage {
            permalink: self.chrome.address(&path),
            frame,
            answer: AnswerView::new(&entry.answer, self.known())?,
            tags: tags
                .filter_map(|tag| {
                    let folded = fold(tag);
                    let topic = topics.iter().find(|topic| fold(&topic.label) == folded)?;
                    Some(Link::to_topic(&entry.lang, topic))
                })
                .collect(),
            computed_on: plain(&entry.computed_on),
            standing: entry.standing,
            cite: references.first().map(CiteView::new),
        };
        let mut json = serde_json::to_vec_pretty(&entry.answer)
            .map_err(|error| PublishError::Template(format!("{path}answer.json: {error}")))?;
        json.push(b'\n');
        Ok(vec![
            (format!("{path}answer.json"), json),
            (
                format!("{path}answer.md"),
                self.chrome.theme.render("answer.md", &page)?.into_bytes(),
            ),
            (format!("{path}cite.bib"), cite::bibtex(&references).into_bytes()),
            (format!("{path}cite.ris"), cite::ris(&references).into_bytes()),
            (format!("{path}cite.json"), cite::csl_json(&references).into_bytes()),
            (
                format!("{path}index.html"),
                self.chrome.theme.render("question.html", &page)?.into_bytes(),
            ),
        ])
    }

    /// What an answer's page offers for citing: the answer, then each of its sources.
    fn references(&self, entry: &Entry) -> Vec<Reference> {
        let id = &self.site.id;
        let title = plain(self.chrome.title_in(&entry.lang));
        let answer = Reference {
            key: format!("{id}-{}", entry.id),
            kind: "webpage",
            title: plain(&entry.answer.question),
            container: title,
            author: None,
            date: Some(plain(&entry.computed_on)).filter(|date| !date.is_empty()),
            edition: None,
            pages: None,
            language: entry.lang.clone(),
            licence: None,
            note: Some(format!("corpus {}", short_hash(&entry.answer.corpus))),
            url: self.chrome.address(&folder(entry)),
        };
        let sources = entry.answer.sources.iter().map(|source| {
            let quotations = entry.answer.groups.iter().flat_map(|group| &group.quotations);
            let mut pages: Vec<&str> = quotations
                .filter(|quotation| quotation.source == source.number)
                .filter_map(|quotation| self.places.get(&quotation.passage)?.pages.as_deref())
                .collect();
            pages.dedup();
            let pages = Some(pages.join(", ")).filter(|pages| !pages.is_empty());
            source_reference(source, pages.as_deref(), id, self.known())
        });
        [answer].into_iter().chain(sources).collect()
    }

    /// The page of a passage: what stands around it, with what is quoted from it marked.
    fn passage(&self, language: &str, passage: &PassageFacts) -> Result<Rendered, PublishError> {
        let place = self.places.get(&passage.id).cloned().unwrap_or_default();
        let path = format!("{language}/{}", place.path);
        let in_language = |tag: &String| {
            self.quoting
                .contains_key(&(tag.as_str(), passage.id.as_str()))
                .then(|| (tag.clone(), format!("{tag}/{}", place.path)))
        };
        let versions: Vec<_> = self.site.languages.iter().filter_map(in_language).collect();
        let own = versions.iter().find(|(tag, _)| tag == self.default);
        let fallback = own.map_or(path.as_str(), |(_, path)| path);
        let quoting = self.quoting.get(&(language, passage.id.as_str()));
        let quoting = quoting.map(Vec::as_slice).unwrap_or_default();
        let mut ranges = BTreeSet::new();
        let mut asked: Vec<Asked> = Vec::new();
        let mut source: Option<Source> = None;
        let mut first = None;
        let mut before = None;
        for &(at, number) in quoting {
            let Some(entry) = self.site.entries.get(at) else { continue };
            let quotations = entry.answer.groups.iter().flat_map(|group| &group.quotations);
            let Some(quotation) = quotations.into_iter().nth(number - 1) else { continue };
            ranges.insert((quotation.range.start, quotation.range.end));
            first = first.or(Some(quotation));
            source = source.or_else(|| {
                let sources = &entry.answer.sources;
                sources.iter().find(|source| source.number == quotation.source).cloned()
            });
            let path = format!("{}#quotation-{number}", folder(entry));
            // A question that quotes it twice is named once.
            let again = before == Some(at);
            before = Some(at);
            if entry.is_listed() && !again && asked.len() < QUOTED_BY {
                asked.push(Asked { path, question: plain(&entry.answer.question) });
            }
        }
        let facts = self.chrome.documents.get(&passage.document);
        let blocks = passage
            .blocks
            .iter()
            .map(|block| {
                let inside = passage.range.start <= block.start && block.start < passage.range.end;
                BlockView {
                    heading: block.heading,
                    lines: block.lines,
                    own: inside,
                    pieces: pieces(block, &ranges),
                }
            })
            .collect();
        let address = link(&passage.url);
        let reference = source.map(|mut source| {
            source.url = address.unwrap_or_default().to_owned();
            source_reference(&source, place.pages.as_deref(), &self.site.id, self.known())
        });
        let title = facts.map(|facts| facts.title.as_str()).unwrap_or(&passage.document);
        let frame = Frame::at(self.chrome, language, &path)?;
        let collection = facts.and_then(|facts| {
            let known = &self.site.facts.collections;
            known.iter().find(|known| known.id == facts.collection)
        });
        let page = PassagePage {
            frame: frame.versions(self.chrome, &versions, fallback),
            title: plain(title),
            headings: headings(title, &passage.headings),
            language: plain(&passage.language),
            dir: direction(&passage.language),
            facts: facts.map(shown_document).unwrap_or_default(),
            collection: collection.map(|collection| Link {
                path: format!("{language}/c/{}/", slug::of_id(&collection.id)),
                label: plain(&collection.title),
                count: collection.documents,
            }),
            licence: facts
                .and_then(|facts| facts.licence.clone())
                .or_else(|| collection.map(|collection| collection.licence.clone()))
                .map(|licence| plain(&licence))
                .unwrap_or_default(),
            pages: place.pages.clone(),
            blocks,
            more: passage.more,
            url: address.map(|url| match first {
                Some(quotation) => text_fragment(url, &quotation.text),
                None => url.to_owned(),
            }),
            asked,
            cite: reference.as_ref().map(CiteView::new),
        };
        let mut files = vec![];
        if let Some(reference) = reference {
            let references = [reference];
            files.push((format!("{path}cite.bib"), cite::bibtex(&references).into_bytes()));
            files.push((format!("{path}cite.ris"), cite::ris(&references).into_bytes()));
            files.push((format!("{path}cite.json"), cite::csl_json(&references).into_bytes()));
        }
        let html = self.chrome.theme.render("passage.html", page)?;
        files.push((format!("{path}index.html"), html.into_bytes()));
        Ok(files)
    }

    /// The pages of one language that are not about one question or passage.
    fn language(&self, language: &str) -> Result<Rendered, PublishError> {
        let mut files = Vec::new();
        let mut page = |path: &str, template: &str, page: &dyn Fn(Frame) -> Value| {
            let frame = self.shared(language, path)?;
            let html = self.chrome.theme.render_value(template, page(frame))?;
            files.push((format!("{language}/{path}{}", index_of(path)), html.into_bytes()));
            Ok::<_, PublishError>(())
        };
        let topics = self.topics.get(language).map(Vec::as_slice).unwrap_or_default();

        page("", "start.html", &|frame| {
            value(StartPage {
                frame,
                topics: self.at_start(language, topics),
                total: self.listed(language).count(),
                all_topics: topics.len(),
            })
        })?;
        page("how-it-works.html", "how.html", &|frame| {
            value(HowPage { frame, facts: shown_facts(&self.site.facts), run: self.figures() })
        })?;
        page("t/", "topics.html", &|frame| {
            let topics = topics.iter().map(|topic| Link::to_topic(language, topic)).collect();
            value(TopicsPage { frame, topics })
        })?;
        page("c/", "collections.html", &|frame| {
            value(CollectionsPage { frame, collections: self.collections(language) })
        })?;
        for collection in &self.site.facts.collections {
            let path = format!("c/{}/", slug::of_id(&collection.id));
            page(&path, "collection.html", &|frame| {
                value(self.collection(frame, language, collection))
            })?;
        }
        let all: Vec<usize> = self.listed(language).collect();
        files.extend(self.pages_of_list(language, "questions/", None, &all)?);
        for topic in topics {
            let path = format!("t/{}/", topic.slug);
            let listed = self.pages_of_list(language, &path, Some(&topic.label), &topic.entries)?;
            files.extend(listed);
        }
        if let Some(feed) = self.feed(language)? {
            files.push((format!("{language}/feed.xml"), feed.into_bytes()));
        }
        Ok(files)
    }

    /// The frame of a page that every language has.
    fn shared(&self, language: &str, path: &str) -> Result<Frame, PublishError> {
        let versions: Vec<(String, String)> =
            self.site.languages.iter().map(|tag| (tag.clone(), format!("{tag}/{path}"))).collect();
        // The root is the start page for readers of no language in particular.
        let fallback =
            if path.is_empty() { String::new() } else { format!("{}/{path}", self.default) };
        let frame = Frame::at(self.chrome, language, &format!("{language}/{path}"))?;
        Ok(frame.versions(self.chrome, &versions, &fallback))
    }

    /// A list of questions, on as many pages as it needs.
    fn pages_of_list(
        &self,
        language: &str,
        path: &str,
        topic: Option<&str>,
        entries: &[usize],
    ) -> Result<Rendered, PublishError> {
        let parts: Vec<&[usize]> =
            if entries.is_empty() { vec![entries] } else { entries.chunks(PER_PAGE).collect() };
        let place = |number: usize| match number {
            0 => path.to_owned(),
            number => format!("{path}{}/", number + 1),
        };
        let mut files = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            let own = place(number);
            // A topic is a word of one language; only the first page of all questions has versions.
            let frame = if topic.is_none() && number == 0 {
                self.shared(language, &own)?
            } else {
                let address = format!("{language}/{own}");
                let alone = [(language.to_owned(), address.clone())];
                Frame::at(self.chrome, language, &address)?.versions(self.chrome, &alone, &address)
            };
            let neighbour = |number: Option<usize>| {
                let number = number.filter(|&number| number < parts.len())?;
                Some(format!("{language}/{}", place(number)))
            };
            let page = QuestionsPage {
                frame,
                topic: topic.map(plain),
                questions: part.iter().filter_map(|&at| self.item(at)).collect(),
                total: entries.len(),
                page: number + 1,
                pages: parts.len(),
                before: neighbour(number.checked_sub(1)),
                after: neighbour(Some(number + 1)),
            };
            let html = self.chrome.theme.render("questions.html", page)?;
            files.push((format!("{language}/{own}index.html"), html.into_bytes()));
        }
        Ok(files)
    }

    fn listed(&self, language: &str) -> impl Iterator<Item = usize> {
        let entries = self.site.entries.iter().enumerate();
        entries
            .filter(move |(_, entry)| entry.lang == language && entry.is_listed())
            .map(|(at, _)| at)
    }

    fn item(&self, at: usize) -> Option<Listed> {
        let entry = self.site.entries.get(at)?;
        Some(Listed {
            path: folder(entry),
            question: plain(&entry.answer.question),
            answered: entry.answer.answered,
            quotations: entry.answer.groups.iter().map(|group| group.quotations.len()).sum(),
            draft: entry.standing == Standing::Draft,
        })
    }

    /// The first questions of the first topics. A question stands under one topic only.
    fn at_start(&self, language: &str, topics: &[Topic]) -> Vec<TopicView> {
        let mut shown: BTreeSet<usize> = BTreeSet::new();
        let mut views = Vec::new();
        for topic in topics.iter().take(TOPICS_AT_START) {
            let new: Vec<usize> =
                topic.entries.iter().copied().filter(|at| !shown.contains(at)).collect();
            let first: Vec<usize> = new.into_iter().take(QUESTIONS_AT_START).collect();
            if first.is_empty() {
                continue;
            }
            shown.extend(&first);
            views.push(TopicView {
                link: Some(Link::to_topic(language, topic)),
                rest: topic.entries.len() > first.len(),
                questions: first.into_iter().filter_map(|at| self.item(at)).collect(),
            });
        }
        // Questions without a topic, as far as there is room for them.
        let others: Vec<usize> = self
            .listed(language)
            .filter(|at| self.site.entries.get(*at).is_some_and(|entry| entry.tags.is_empty()))
            .take(2 * QUESTIONS_AT_START)
            .collect();
        if !others.is_empty() {
            let questions = others.into_iter().filter_map(|at| self.item(at)).collect();
            views.push(TopicView { link: None, questions, rest: false });
        }
        views
    }

    /// What the root page shows of a language.
    fn beginning(&self, language: &str) -> Result<List, PublishError> {
        let m = self.chrome.theme.messages(language)?;
        let name = m.get_attr("site")?.get_attr("language")?.to_string();
        let total = self.listed(language).count();
        let questions =
            self.listed(language).take(QUESTIONS_AT_START).filter_map(|at| self.item(at)).collect();
        Ok(List { language: language.to_owned(), name, questions, total, m })
    }

    fn collections(&self, language: &str) -> Vec<CollectionView> {
        let all = self.site.facts.collections.iter();
        all.map(|facts| CollectionView {
            path: format!("{language}/c/{}/", slug::of_id(&facts.id)),
            facts: shown_collection(facts),
        })
        .collect()
    }

    fn collection(
        &self,
        frame: Frame,
        language: &str,
        collection: &CollectionFacts,
    ) -> CollectionPage {
        let mut first_quoted: BTreeMap<&str, &str> = BTreeMap::new();
        for passage in &self.site.passages {
            if self.quoting.contains_key(&(language, passage.id.as_str())) {
                first_quoted.entry(&passage.document).or_insert(&passage.id);
            }
        }
        let mut documents: Vec<&DocumentFacts> =
            self.site.documents.iter().filter(|facts| facts.collection == collection.id).collect();
        let unnamed = documents.len().saturating_sub(DOCUMENTS_NAMED);
        documents.truncate(DOCUMENTS_NAMED);
        CollectionPage {
            frame,
            collection: shown_collection(collection),
            documents: documents
                .into_iter()
                .map(|facts| DocumentView {
                    dir: direction(&facts.language),
                    quoted: first_quoted
                        .get(facts.id.as_str())
                        .and_then(|passage| self.places.get(*passage))
                        .map(|place| format!("{language}/{}", place.path)),
                    url: link(&facts.url).map(str::to_owned),
                    facts: shown_document(facts),
                })
                .collect(),
            unnamed,
        }
    }

    /// The newest answers, for feed readers; none where the site does not know its address.
    fn feed(&self, language: &str) -> Result<Option<String>, PublishError> {
        let frame = Frame::at(self.chrome, language, &format!("{language}/feed.xml"))?;
        let Some(own) = frame.canonical.clone() else { return Ok(None) };
        let mut newest: Vec<&Entry> = self
            .site
            .entries
            .iter()
            .filter(|entry| entry.lang == language && entry.is_listed())
            .filter(|entry| is_date(&entry.computed_on))
            .collect();
        newest.sort_by(|a, b| b.computed_on.cmp(&a.computed_on).then(a.id.cmp(&b.id)));
        newest.truncate(IN_FEED);
        let entries: Vec<FeedEntry> = newest
            .iter()
            .map(|entry| FeedEntry {
                address: self.chrome.address(&folder(entry)).unwrap_or_default(),
                question: for_xml(&entry.answer.question),
                language: for_xml(&entry.answer.language),
                answered: entry.answer.answered,
                quotations: entry.answer.counts.shown,
                updated: entry.computed_on.clone(),
            })
            .collect();
        let updated = entries.first().map(|entry| entry.updated.clone());
        let page = FeedPage {
            updated: updated.unwrap_or_else(|| "1970-01-01".to_owned()),
            home: self.chrome.address(&format!("{language}/")).unwrap_or_default(),
            title: for_xml(&frame.site_title),
            frame,
            own,
            entries,
        };
        Ok(Some(self.chrome.theme.render("feed.xml", page)?))
    }

    /// Former addresses of questions and what they are now.
    fn moved(&self) -> Result<Vec<(String, String)>, PublishError> {
        let entry = |id: &str| self.site.entries.iter().find(|entry| entry.id == id);
        let mut moved = Vec::new();
        for (from, to) in &self.site.renamed {
            check_id("former question id", from)?;
            let refuse =
                |problem: String| Err(PublishError::Renamed { from: from.clone(), problem });
            if entry(from).is_some() {
                return refuse("is the id of a question".to_owned());
            }
            let Some(target) = entry(to) else {
                return refuse(format!("leads to \"{to}\", which is no question of the site"));
            };
            let path = format!("{}/q/{}/", target.lang, slug::of_id(from));
            moved.push((path, folder(target)));
        }
        Ok(moved)
    }

    fn mapped(&self) -> Vec<Mapped> {
        let made = &self.site.facts.made_on;
        let mut mapped = vec![Mapped { path: String::new(), changed: made.clone() }];
        for language in &self.site.languages {
            for path in ["", "questions/", "t/", "c/", "how-it-works.html"] {
                let path = format!("{language}/{path}");
                mapped.push(Mapped { path, changed: made.clone() });
            }
            for collection in &self.site.facts.collections {
                let path = format!("{language}/c/{}/", slug::of_id(&collection.id));
                mapped.push(Mapped { path, changed: String::new() });
            }
            for topic in self.topics.get(language.as_str()).into_iter().flatten() {
                let path = format!("{language}/t/{}/", topic.slug);
                mapped.push(Mapped { path, changed: String::new() });
            }
        }
        for entry in self.site.entries.iter().filter(|entry| entry.is_listed()) {
            mapped.push(Mapped { path: folder(entry), changed: entry.computed_on.clone() });
        }
        for (language, passage) in self.quoting.keys() {
            if let Some(place) = self.places.get(*passage) {
                let path = format!("{language}/{}", place.path);
                mapped.push(Mapped { path, changed: String::new() });
            }
        }
        mapped
    }

    /// What became of the questions.
    fn figures(&self) -> RunFigures {
        let count = |test: &dyn Fn(&&Entry) -> bool| {
            self.site.entries.iter().filter(|entry| entry.is_listed()).filter(test).count()
        };
        RunFigures {
            questions: count(&|_| true),
            answered: count(&|entry| entry.answer.answered),
            insufficient: count(&|entry| !entry.answer.answered),
            stale: count(&|entry| entry.standing == Standing::Stale),
            quotations: self
                .site
                .entries
                .iter()
                .filter(|entry| entry.is_listed())
                .map(|entry| entry.answer.counts.shown)
                .sum(),
            rejected: self
                .site
                .entries
                .iter()
                .filter(|entry| entry.is_listed())
                .map(|entry| entry.answer.counts.rejected)
                .sum(),
        }
    }
}

/// Where an entry's page and data are, from the root of the site.
fn folder(entry: &Entry) -> String {
    format!("{}/q/{}/", entry.lang, slug::of_id(&entry.id))
}

/// What is left of an id that begins with its own language: "fr-roses" and "en-roses" are one question.
fn family(entry: &Entry) -> Option<&str> {
    entry.id.strip_prefix(&entry.lang)?.strip_prefix('-').filter(|rest| !rest.is_empty())
}

/// The name of a passage's folder: the hash in its id.
fn passage_slug(id: &str) -> String {
    let sound = |part: &str| {
        (8..=24).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    match id.rsplit_once('#') {
        Some((_, part)) if sound(part) => part.to_owned(),
        _ => sha256_hex(id.as_bytes()).chars().take(12).collect(),
    }
}

/// Tags that are equal after folding are one topic, named as it is written first.
fn topics(site: &Site, language: &str) -> Vec<Topic> {
    let mut order: Vec<(String, String, Vec<usize>)> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for (number, entry) in site.entries.iter().enumerate() {
        if entry.lang != language || !entry.is_listed() {
            continue;
        }
        for tag in &entry.tags {
            let folded = fold(tag);
            // What folds to nothing is told apart by how it is written.
            let key = if folded.is_empty() { tag.clone() } else { folded };
            let place = *at.entry(key.clone()).or_insert_with(|| {
                order.push((key, plain(tag), Vec::new()));
                order.len() - 1
            });
            if let Some((_, _, entries)) = order.get_mut(place)
                && entries.last() != Some(&number)
            {
                entries.push(number);
            }
        }
    }
    let slugs = slug::assign(order.iter().map(|(key, _, _)| key.as_str()));
    order
        .into_iter()
        .map(|(key, label, entries)| {
            let slug = slugs.get(&key).cloned().unwrap_or_default();
            Topic { label, slug, entries }
        })
        .collect()
}

fn index_of(path: &str) -> &'static str {
    if path.is_empty() || path.ends_with('/') { "index.html" } else { "" }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-').map(str::len);
    text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
        && (parts.next(), parts.next(), parts.next(), parts.next())
            == (Some(4), Some(2), Some(2), None)
}

/// XML has no way at all to write some characters.
fn for_xml(text: &str) -> String {
    plain(text).chars().filter(|c| !matches!(c, '\u{FFFE}' | '\u{FFFF}')).collect()
}

fn shown_document(facts: &DocumentFacts) -> DocumentFacts {
    let shown = |text: &Option<String>| text.as_deref().map(plain);
    DocumentFacts {
        title: plain(&facts.title),
        author: shown(&facts.author),
        date: shown(&facts.date),
        edition: shown(&facts.edition),
        licence: shown(&facts.licence),
        language: plain(&facts.language),
        ..facts.clone()
    }
}

fn shown_collection(collection: &CollectionFacts) -> CollectionFacts {
    CollectionFacts {
        title: plain(&collection.title),
        language: plain(&collection.language),
        licence: plain(&collection.licence),
        ..collection.clone()
    }
}

fn shown_facts(facts: &Facts) -> Facts {
    Facts {
        embedding_model: plain(&facts.embedding_model),
        language_model: plain(&facts.language_model),
        mode: plain(&facts.mode),
        corpus: short_hash(&facts.corpus),
        program: plain(&facts.program),
        made_on: plain(&facts.made_on),
        collections: facts.collections.iter().map(shown_collection).collect(),
        ..facts.clone()
    }
}

/// A page as its template sees it.
fn value(page: impl Serialize) -> Value {
    Value::from(Serde(page))
}

#[derive(Debug, Serialize)]
struct PlainPage {
    frame: Frame,
}

/// An address from the root of the site, with its name.
#[derive(Debug, Serialize)]
struct Link {
    path: String,
    label: String,
    /// How many things are there.
    count: usize,
}

impl Link {
    fn to_topic(language: &str, topic: &Topic) -> Self {
        Link {
            path: format!("{language}/t/{}/", topic.slug),
            label: topic.label.clone(),
            count: topic.entries.len(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    path: String,
    question: String,
    answered: bool,
    quotations: usize,
    draft: bool,
}

#[derive(Debug, Serialize)]
struct RootPage {
    frame: Frame,
    lists: Vec<List>,
}

/// The first questions in one language.
#[derive(Debug, Serialize)]
struct List {
    language: String,
    /// In the language itself.
    name: String,
    questions: Vec<Listed>,
    total: usize,
    /// Words of the list, in its own language.
    m: Value,
}

#[derive(Debug, Serialize)]
struct StartPage {
    frame: Frame,
    topics: Vec<TopicView>,
    total: usize,
    all_topics: usize,
}

#[derive(Debug, Serialize)]
struct TopicView {
    /// None for questions without a topic.
    link: Option<Link>,
    questions: Vec<Listed>,
    /// Whether the topic has more.
    rest: bool,
}

#[derive(Debug, Serialize)]
struct TopicsPage {
    frame: Frame,
    topics: Vec<Link>,
}

#[derive(Debug, Serialize)]
struct QuestionsPage {
    frame: Frame,
    topic: Option<String>,
    questions: Vec<Listed>,
    total: usize,
    page: usize,
    pages: usize,
    before: Option<String>,
    after: Option<String>,
}

#[derive(Debug, Serialize)]
struct QuestionPage {
    frame: Frame,
    answer: AnswerView,
    tags: Vec<Link>,
    computed_on: String,
    standing: Standing,
    permalink: Option<String>,
    cite: Option<CiteView>,
}

#[derive(Debug, Serialize)]
struct Asked {
    path: String,
    question: String,
}

#[derive(Debug, Serialize)]
struct BlockView {
    heading: bool,
    lines: bool,
    /// Whether it is part of the passage and not only around it.
    own: bool,
    pieces: Vec<Piece>,
}

#[derive(Debug, Serialize)]
struct PassagePage {
    frame: Frame,
    title: String,
    headings: Vec<String>,
    language: String,
    dir: &'static str,
    facts: DocumentFacts,
    collection: Option<Link>,
    licence: String,
    pages: Option<String>,
    blocks: Vec<BlockView>,
    more: [bool; 2],
    url: Option<String>,
    asked: Vec<Asked>,
    cite: Option<CiteView>,
}

#[derive(Debug, Serialize)]
struct CollectionsPage {
    frame: Frame,
    collections: Vec<CollectionView>,
}

#[derive(Debug, Serialize)]
struct CollectionView {
    path: String,
    facts: CollectionFacts,
}

#[derive(Debug, Serialize)]
struct CollectionPage {
    frame: Frame,
    collection: CollectionFacts,
    documents: Vec<DocumentView>,
    /// Documents that are not named.
    unnamed: usize,
}

#[derive(Debug, Serialize)]
struct DocumentView {
    facts: DocumentFacts,
    dir: &'static str,
    url: Option<String>,
    /// The page of the first passage quoted from it.
    quoted: Option<String>,
}

#[derive(Debug, Serialize)]
struct HowPage {
    frame: Frame,
    facts: Facts,
    run: RunFigures,
}

/// What became of the questions in the last run.
#[derive(Debug, Serialize)]
struct RunFigures {
    questions: usize,
    answered: usize,
    insufficient: usize,
    stale: usize,
    quotations: usize,
    rejected: usize,
}

#[derive(Debug, Serialize)]
struct MovedPage {
    frame: Frame,
    target: String,
}

#[derive(Debug, Serialize)]
struct FeedPage {
    frame: Frame,
    title: String,
    own: String,
    home: String,
    updated: String,
    entries: Vec<FeedEntry>,
}

#[derive(Debug, Serialize)]
struct FeedEntry {
    address: String,
    question: String,
    language: String,
    answered: bool,
    quotations: usize,
    updated: String,
}

/// The files of a site, with no path twice, whatever the case: some file systems know none.
#[derive(Default)]
struct Files {
    files: Rendered,
    paths: BTreeSet<String>,
}

impl Files {
    fn add(&mut self, path: impl Into<String>, bytes: Vec<u8>) -> Result<(), PublishError> {
        let path = path.into();
        if !self.paths.insert(path.to_lowercase()) {
            return Err(PublishError::Twice { path });
        }
        self.files.push((path, bytes));
        Ok(())
    }

    fn extend(
        &mut self,
        files: impl IntoIterator<Item = (String, Vec<u8>)>,
    ) -> Result<(), PublishError> {
        files.into_iter().try_for_each(|(path, bytes)| self.add(path, bytes))
    }
}
