//! The pages: what they show, exactly that, and nothing that a hostile source could add.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, missing_docs, reason = "shared with the example")]
mod common;

use std::collections::BTreeMap;

use florilegium_publish::{
    AskPage, Notice, PublishError, Site, Standing, answer_text, ask_page, not_found_page, render,
    search_page, shown_quotations,
};
use florilegium_questions::check_question;
use florilegium_synthesis::answer::Answer;

fn pages(site: &Site) -> BTreeMap<String, String> {
    let files = render(site).unwrap().into_iter().filter(|(path, _)| !path.ends_with(".flx"));
    files.map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap())).collect()
}

fn quotations(answer: &Answer) -> impl Iterator<Item = &florilegium_synthesis::answer::Quotation> {
    answer.groups.iter().flat_map(|group| &group.quotations)
}

#[test]
fn the_files_of_a_site() {
    let files = render(&common::site()).unwrap();
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let first_page = paths.iter().position(|path| path.ends_with(".html")).unwrap();
    assert!(paths[..2].iter().all(|path| path.starts_with("assets/")) && first_page >= 2);
    for path in [
        "index.html",
        "404.html",
        "robots.txt",
        "en/index.html",
        "fr/index.html",
        "el/index.html",
        "fr/how-it-works.html",
        "en/q/prune-roses/index.html",
        "en/q/prune-roses/answer.json",
        "el/q/elia/index.html",
    ] {
        assert!(paths.contains(&path), "{path} is missing from {paths:?}");
    }
}

#[test]
fn the_same_site_gives_the_same_bytes() {
    assert_eq!(render(&common::site()).unwrap(), render(&common::site()).unwrap());
}

#[test]
fn an_answer_page_looks_like_this() {
    let pages = pages(&common::site());
    // The hash in an asset's name changes with every change of the style.
    let page = without_hashes(&pages["en/q/prune-roses/index.html"]);
    insta::assert_snapshot!("answer", page);
    insta::assert_snapshot!("insufficient", without_hashes(&pages["el/q/selini/index.html"]));
}

fn without_hashes(page: &str) -> String {
    let mut clean = String::new();
    for (at, part) in page.split("assets/").enumerate() {
        let part = if at == 0 {
            part.to_owned()
        } else {
            let mut pieces = part.splitn(3, '.');
            let (name, rest) = (pieces.next().unwrap(), pieces.nth(1).unwrap());
            format!("assets/{name}.HASH.{rest}")
        };
        clean.push_str(&part);
    }
    clean
}

#[test]
fn an_answer_in_a_terminal_looks_like_this() {
    insta::assert_snapshot!("terminal", answer_text(&common::english()).unwrap());
    insta::assert_snapshot!(
        "terminal_insufficient",
        answer_text(&common::unanswered("Et la lune ?", "fr")).unwrap()
    );
    let mut hostile = common::english();
    hostile.groups[0].quotations[0].text = "a\u{1b}[2Jb\rc".to_owned();
    hostile.question = "\u{1b}]0;x\u{7}?".to_owned();
    hostile.language = "xx".to_owned();
    let text = answer_text(&hostile).unwrap();
    assert!(text.contains("a[2Jbc") && text.contains("Sources"));
    assert!(!text.contains(['\u{1b}', '\r', '\u{7}']));
}

#[test]
fn every_quotation_is_on_its_page_byte_for_byte() {
    let site = common::site();
    let pages = pages(&site);
    for entry in &site.entries {
        let page = &pages[&format!("{}/q/{}/index.html", entry.lang, entry.id)];
        let shown = shown_quotations(page).unwrap();
        assert_eq!(shown.len(), quotations(&entry.answer).count());
        for (shown, quotation) in shown.iter().zip(quotations(&entry.answer)) {
            assert_eq!(shown.text, quotation.text);
            assert_eq!(shown.document, quotation.document);
            assert_eq!(shown.start..shown.end, quotation.range);
        }
        let json: serde_json::Value =
            serde_json::from_str(&pages[&format!("{}/q/{}/answer.json", entry.lang, entry.id)])
                .unwrap();
        assert_eq!(json, serde_json::to_value(&entry.answer).unwrap());
    }
}

const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "</script></p></blockquote><script src=//evil.example></script>",
    "\"]]> onmouseover=\"alert(1)\" <![CDATA[",
    "javascript:alert(1)",
    "left \u{202E}thgir\u{2066} to",
    "&lt;b&gt; &amp;amp; &#39; {{ 7 * 7 }} {% raw %}",
    "<p>a</p></blockquote>\r\n\r\nb<!-- c",
    "'><img src=x onerror=alert(1)> \u{7f}",
];

fn hostile_site(text: &str) -> Site {
    let mut site = common::site();
    site.title.values_mut().for_each(|title| *title = text.to_owned());
    for entry in &mut site.entries {
        entry.tags = vec![text.to_owned()];
        entry.computed_on = text.to_owned();
        entry.standing = Standing::Stale;
        let answer = &mut entry.answer;
        for field in
            [&mut answer.question, &mut answer.language, &mut answer.model, &mut answer.corpus]
        {
            *field = text.to_owned();
        }
        for group in &mut answer.groups {
            group.title = text.to_owned();
            group.headings = vec![text.to_owned(), format!("{text}2")];
            for quotation in &mut group.quotations {
                for field in [
                    &mut quotation.text,
                    &mut quotation.before,
                    &mut quotation.after,
                    &mut quotation.language,
                    &mut quotation.url,
                    &mut quotation.document,
                ] {
                    *field = text.to_owned();
                }
                // The whole of the passage's block, so that it is marked whatever its length.
                quotation.range = 100..100 + text.len();
            }
        }
        for source in &mut answer.sources {
            for field in [
                &mut source.title,
                &mut source.collection,
                &mut source.language,
                &mut source.licence,
                &mut source.url,
            ] {
                *field = text.to_owned();
            }
        }
        for excerpt in &mut answer.nearest {
            for field in [
                &mut excerpt.passage,
                &mut excerpt.title,
                &mut excerpt.collection,
                &mut excerpt.text,
                &mut excerpt.language,
                &mut excerpt.licence,
                &mut excerpt.url,
            ] {
                *field = text.to_owned();
            }
            excerpt.headings = vec![text.to_owned()];
        }
    }
    for facts in &mut site.documents {
        for field in [&mut facts.title, &mut facts.language, &mut facts.url] {
            *field = text.to_owned();
        }
        for field in [&mut facts.author, &mut facts.date, &mut facts.edition, &mut facts.licence] {
            *field = Some(text.to_owned());
        }
    }
    for passage in &mut site.passages {
        for field in [&mut passage.language, &mut passage.url] {
            *field = text.to_owned();
        }
        passage.headings = vec![text.to_owned()];
        passage.pages = Some((text.to_owned(), "b".to_owned()));
        passage.blocks[0].text = text.to_owned();
        passage.blocks[0].start = 100;
        passage.range = 100..100 + text.len();
    }
    for entry in &mut site.entries {
        entry.variants = vec![text.replace(['\t', '\n', '\r'], " ")];
    }
    let facts = &mut site.facts;
    for field in [
        &mut facts.embedding_model,
        &mut facts.language_model,
        &mut facts.mode,
        &mut facts.corpus,
        &mut facts.program,
        &mut facts.made_on,
    ] {
        *field = text.to_owned();
    }
    for collection in &mut facts.collections {
        for field in [&mut collection.title, &mut collection.language, &mut collection.licence] {
            *field = text.to_owned();
        }
    }
    site
}

/// Every tag of a page, in order, with its attributes' names.
fn tags(page: &str) -> Vec<String> {
    let mut tags = Vec::new();
    for rest in page.split('<').skip(1) {
        let tag = rest.split_once('>').map(|(tag, _)| tag).unwrap_or(rest);
        // What is between quotation marks is a value.
        let names: String = tag.split('"').step_by(2).collect::<Vec<_>>().join("\"");
        tags.push(names);
    }
    tags
}

#[test]
fn hostile_text_adds_no_tag_and_no_attribute() {
    let harmless = pages(&hostile_site("harmless"));
    for text in HOSTILE {
        let site = hostile_site(text);
        let hostile = pages(&site);
        for (path, page) in &hostile {
            if !path.ends_with(".html") {
                continue;
            }
            // Links that are no links are left out; apart from them the tags are the same.
            let linkless = |page: &str| -> Vec<String> {
                let mut tags = tags(page);
                tags.retain(|tag| !tag.contains("rel=") && tag != "/a");
                tags
            };
            // A topic's address is made of its name.
            let topic = format!("{}/t/harmless/index.html", &path[..2]);
            let other = harmless.get(path).unwrap_or_else(|| &harmless[&topic]);
            assert_eq!(linkless(page), linkless(other), "{path}: {text}");
            assert!(!page.contains("href=\"javascript") && !page.contains("href=\" "), "{path}");
            assert_eq!(page.matches("<script").count(), 1, "{path}");
            assert!(page.contains("<script type=\"module\" src=\""), "{path}");
            if text.contains("{{") {
                assert!(page.contains("{{ 7 * 7 }}"), "{path}: a text was rendered as a template");
            }
        }
        for entry in &site.entries {
            let page = &hostile[&format!("{}/q/{}/index.html", entry.lang, entry.id)];
            for (shown, quotation) in
                shown_quotations(page).unwrap().iter().zip(quotations(&entry.answer))
            {
                assert_eq!(shown.text, quotation.text);
                assert_eq!(shown.document, quotation.document);
            }
        }
    }
}

#[test]
fn overrides_stay_in_quotations_and_nowhere_else() {
    let site = hostile_site("left \u{202E}thgir");
    let page = pages(&site)["en/q/prune-roses/index.html"].clone();
    for line in page.lines().filter(|line| line.contains('\u{202E}')) {
        assert!(line.contains("<blockquote") || line.contains("class=\"context\""), "{line}");
    }
    assert!(page.contains("<title>left thgir"));
}

#[test]
fn a_quotation_that_html_cannot_carry_is_refused() {
    let mut site = common::site();
    site.entries[0].answer.groups[0].quotations[0].text = "a\0b".to_owned();
    let error = render(&site).unwrap_err();
    assert!(matches!(error, PublishError::Unshowable { .. }));
    assert!(error.to_string().contains("en/roses"), "{error}");
}

#[test]
fn bad_sites_are_refused_by_name() {
    let message = |change: fn(&mut Site)| {
        let mut site = common::site();
        change(&mut site);
        render(&site).unwrap_err().to_string()
    };
    assert!(message(|site| site.entries[0].id = "../x".to_owned()).contains("\"../x\""));
    assert!(message(|site| site.id = "releases".to_owned()).contains("releases"));
    assert!(
        message(|site| site.entries[1].id = "prune-roses".to_owned()).contains("en/q/prune-roses/")
    );
    assert!(
        message(|site| site.entries[0].lang = "de".to_owned()).contains("not one of the site's")
    );
    assert!(message(|site| site.languages.push("de".to_owned())).contains("messages/de.toml"));
    assert!(message(|site| site.languages.clear()).contains("no language"));
}

/// Every link within the site leads to a file of it, and every fragment to an element.
#[test]
fn links_within_the_site_lead_somewhere() {
    let pages = pages(&common::site());
    for (path, page) in pages.iter().filter(|(path, _)| path.ends_with(".html")) {
        for part in page.split(" href=\"").skip(1) {
            let href = part.split_once('"').unwrap().0;
            if href.starts_with("https://books.example/") {
                continue;
            }
            // The live server's pages are not among the files.
            if let Some(path) = href.strip_prefix("https://gardens.example/") {
                let index = if path.is_empty() || path.ends_with('/') { "index.html" } else { "" };
                assert!(pages.contains_key(&format!("{path}{index}")), "{path}");
                continue;
            }
            if let Some(id) = href.strip_prefix('#') {
                assert!(page.contains(&format!("id=\"{id}\"")), "{path}: {href}");
                continue;
            }
            let (address, fragment) = href.split_once('#').unwrap_or((href, ""));
            let target = resolve(path, address);
            assert!(pages.contains_key(&target), "{path}: {href} leads to {target}");
            if !fragment.is_empty() {
                assert!(pages[&target].contains(&format!("id=\"{fragment}\"")), "{path}: {href}");
            }
        }
    }
}

fn resolve(page: &str, href: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    let rest = match href.strip_prefix('/') {
        Some(rest) => {
            parts.clear();
            rest
        }
        None => href,
    };
    for part in rest.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop().expect("a link that leads out of the site");
            }
            part => parts.push(part),
        }
    }
    if href.ends_with('/') {
        parts.push("index.html");
    }
    parts.join("/")
}

#[test]
fn every_page_names_its_versions_itself_included() {
    let mut site = common::site();
    let pages = pages(&site);
    for (path, page) in pages.iter().filter(|(path, _)| path.ends_with(".html")) {
        if path == "404.html" {
            assert!(!page.contains("hreflang=\"x-default\"") && page.contains("noindex"));
            continue;
        }
        let own =
            format!("https://gardens.example/{}", path.strip_suffix("index.html").unwrap_or(path));
        assert!(page.contains(&format!("<link rel=\"canonical\" href=\"{own}\">")), "{path}");
        if path != "index.html" {
            let itself = format!("hreflang=\"{}\" href=\"{own}\"", &path[..2]);
            assert!(page.contains(&itself), "{path}: {itself}");
        }
        assert_eq!(page.matches("hreflang=\"x-default\"").count(), 1, "{path}");
    }
    assert!(
        pages["fr/index.html"].contains("hreflang=\"x-default\" href=\"https://gardens.example/\"")
    );

    // Without a whole address the same links are relative, and nothing that needs one is there.
    site.base_url = None;
    let pages = self::pages(&site);
    assert!(pages["fr/index.html"].contains("hreflang=\"el\" href=\"../el/\""));
    assert!(!pages.contains_key("sitemap.xml") && !pages.contains_key("fr/feed.xml"));
    assert!(!pages["en/q/prune-roses/index.html"].contains("permalink"));
}

#[test]
fn questions_whose_ids_differ_in_their_language_only_are_versions_of_each_other() {
    let mut site = common::site();
    site.entries[0].id = "en-roses".to_owned();
    site.entries[2].id = "fr-roses".to_owned();
    let pages = pages(&site);
    for (own, other) in [("en", "fr"), ("fr", "en")] {
        let page = &pages[&format!("{own}/q/{own}-roses/index.html")];
        let link = format!(
            "hreflang=\"{other}\" href=\"https://gardens.example/{other}/q/{other}-roses/\""
        );
        assert!(page.contains(&link), "{page}");
        let switch = format!("<a href=\"../../../{other}/q/{other}-roses/\" lang=\"{other}\"");
        assert!(page.contains(&switch), "{page}");
        assert!(
            page.contains("hreflang=\"x-default\" href=\"https://gardens.example/en/q/en-roses/\"")
        );
    }
}

#[test]
fn a_retired_question_keeps_its_page_and_leaves_the_lists() {
    let mut site = common::site();
    site.entries[0].standing = Standing::Retired;
    let pages = pages(&site);
    let page = &pages["en/q/prune-roses/index.html"];
    assert!(page.contains("has been withdrawn") && page.contains("noindex"));
    assert_eq!(shown_quotations(page).unwrap().len(), 4, "its answer stays");
    let own = "q/prune-roses/";
    for (path, text) in pages.iter().filter(|(path, _)| !path.starts_with("en/q/prune-roses/")) {
        assert!(!text.contains(own), "{path} still leads to it");
    }
    let files: BTreeMap<String, Vec<u8>> = render(&site).unwrap().into_iter().collect();
    let reader = florilegium_edge::Reader::open(|path: &str| files.get(path).cloned()).unwrap();
    let question = &site.entries[0].answer.question;
    assert_eq!(reader.exact("en", question).unwrap(), None);
    assert!(reader.exact("en", &site.entries[1].answer.question).unwrap().is_some());
}

#[test]
fn a_question_that_is_no_longer_answerable_says_so_in_all_forms() {
    let site = common::every_kind();
    let pages = pages(&site);
    let page = &pages["en/q/withdrawn/index.html"];
    assert!(
        page.contains("texts that it quoted have changed")
            && !page.contains("How this answer was made")
    );
    assert!(!pages["en/q/withdrawn/answer.md"].contains("\n> "));
}

#[test]
fn a_former_id_leads_to_the_question() {
    let site = common::every_kind();
    let pages = pages(&site);
    let page = &pages["en/q/old-name/index.html"];
    assert!(page.contains("content=\"0; url=../../../en/q/prune-roses/\""), "{page}");
    assert_eq!(pages["_redirects"], "/en/q/old-name/ /en/q/prune-roses/ 301\n");
    for (from, to, expected) in [
        ("moon", "prune-roses", "is the id of a question"),
        ("old", "none", "\"none\""),
        ("../x", "moon", "../x"),
    ] {
        let mut site = common::site();
        site.renamed.insert(from.to_owned(), to.to_owned());
        let message = render(&site).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn odd_topics_have_pages_of_their_own() {
    let mut site = common::site();
    let tags = ["Été", "ete", "C", "C++", "?!", "東京", "con", "AUX", &"ω".repeat(200), "a/../b"];
    site.entries[0].tags = tags.map(str::to_owned).to_vec();
    let pages = pages(&site);
    let topics: Vec<&String> = pages
        .keys()
        .filter(|path| path.starts_with("en/t/") && path.ends_with("/index.html"))
        .collect();
    // "Été" and "ete" are one topic; two more pages are the index and the other entries' topic.
    assert_eq!(topics.len(), tags.len() - 1 + 2, "{topics:?}");
    let lower: std::collections::BTreeSet<String> =
        topics.iter().map(|path| path.to_lowercase()).collect();
    assert_eq!(lower.len(), topics.len());
    assert!(topics.iter().all(|path| path.len() < 120), "{topics:?}");
    for name in ["con", "aux"] {
        assert!(!pages.contains_key(&format!("en/t/{name}/index.html")));
    }
    assert!(pages["en/q/prune-roses/index.html"].contains(">C++</a>"));
}

#[test]
fn ids_that_some_systems_reserve_are_published_under_others() {
    let mut site = common::site();
    site.entries[0].id = "con".to_owned();
    let pages = pages(&site);
    assert!(!pages.contains_key("en/q/con/index.html"));
    assert!(
        pages.keys().any(|path| path.starts_with("en/q/con-x") && path.ends_with("/index.html"))
    );
}

#[test]
fn a_passage_shows_the_quoted_words_marked_and_nothing_is_lost() {
    let site = common::site();
    let pages = pages(&site);
    let mut seen = 0;
    for passage in &site.passages {
        let found = pages.iter().find(|(path, page)| {
            path.contains("/s/")
                && path.ends_with("index.html")
                && page.contains(&passage.url.replace("#place", "#place:~:text="))
        });
        let Some((path, page)) = found else { continue };
        let marked: Vec<&str> = page.split("<mark id=").skip(1).collect();
        assert!(!marked.is_empty(), "{path}");
        seen += marked.len();
        assert!(page.contains("p class=\"block\""), "{path}");
        for file in ["cite.bib", "cite.ris", "cite.json"] {
            assert!(pages.contains_key(&path.replace("index.html", file)), "{path} {file}");
        }
    }
    assert!(seen >= 3, "{seen}");
    assert!(pages.values().any(|page| page.contains("<dd><bdi>12–13</bdi></dd>")));
}

#[test]
fn feeds_and_sitemaps_are_well_formed_whatever_they_hold() {
    for text in HOSTILE.into_iter().chain(["harmless", "a\u{FFFE}b\u{1}c"]) {
        let mut site = hostile_site(text);
        site.entries.iter_mut().for_each(|entry| entry.computed_on = "2026-11-30".to_owned());
        let pages = pages(&site);
        let mut read = 0;
        for (path, xml) in pages.iter().filter(|(path, _)| path.ends_with(".xml")) {
            let tree =
                roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{path}: {error}"));
            read += 1;
            if path == "en/feed.xml" {
                let entries = tree.descendants().filter(|node| node.has_tag_name("entry"));
                assert_eq!(entries.count(), 2);
            }
        }
        assert_eq!(read, 4);
    }
}

#[test]
fn references_and_markdown_obey_nothing_that_is_quoted() {
    for text in HOSTILE {
        let pages = pages(&hostile_site(text));
        let folder = "en/q/prune-roses/";
        let markdown = pages[&format!("{folder}answer.md")].replace("\\<", "");
        for tag in ["<script", "<img", "<p>"] {
            assert!(!markdown.contains(tag), "{markdown}");
        }
        let csl: serde_json::Value =
            serde_json::from_str(&pages[&format!("{folder}cite.json")]).unwrap();
        assert!(csl.as_array().unwrap().len() > 1);
        for line in pages[&format!("{folder}cite.ris")].lines() {
            assert_eq!(line.get(2..6), Some("  - "), "{line}");
        }
    }
}

#[test]
fn style_and_script_together_are_small() {
    let files = render(&common::site()).unwrap();
    let size: usize = files
        .iter()
        .filter(|(path, _)| {
            path.starts_with("assets/") && (path.ends_with(".css") || path.ends_with(".js"))
        })
        .map(|(_, bytes)| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, bytes).unwrap();
            encoder.finish().unwrap().len()
        })
        .sum();
    assert!(size < 30_000, "{size} bytes");
}

#[test]
fn the_page_for_wrong_addresses_works_at_any_depth() {
    let mut site = common::site();
    site.base_path = "/books/gardens".to_owned();
    let page = pages(&site)["404.html"].clone();
    assert!(page.contains("href=\"/books/gardens/assets/style."));
    assert!(!page.contains("href=\"../") && !page.contains("href=\"./"));
}

#[test]
fn live_pages() {
    let chrome = common::site().chrome();
    let none = common::unanswered("Does the moon matter?", "en");
    let english = common::english();
    let blank = AskPage {
        language: "fr",
        question: "",
        problem: None,
        answer: None,
        excerpts: &[],
        notice: None,
        computed_on: "",
    };
    let page = |page: AskPage<'_>| ask_page(&chrome, &page).unwrap();

    assert!(page(blank).contains("<h1 dir=\"auto\">Interroger le fonds</h1>"));
    assert!(page(AskPage { language: "xx", ..blank }).contains("<html lang=\"en\">"));

    let answered = page(AskPage { question: &english.question, answer: Some(&english), ..blank });
    assert_eq!(shown_quotations(&answered).unwrap().len(), 4);
    assert!(!answered.contains("answer.json"));

    let busy = page(AskPage {
        language: "el",
        question: "<script>",
        excerpts: &none.nearest,
        notice: Some(Notice::Busy),
        ..blank
    });
    assert!(busy.contains("class=\"excerpt\"") && busy.contains("Πάρα πολλές"));
    assert!(!busy.contains("<script>"));
    assert_eq!(shown_quotations(&busy).unwrap(), [], "a passage is no quotation of an answer");

    let long = "x".repeat(10_000);
    let problem = check_question(&long).unwrap_err();
    let refused = page(AskPage { question: &long, problem: Some(&problem), ..blank });
    assert!(refused.contains("10\u{202f}000") && refused.contains("1\u{202f}000"));
    assert!(refused.len() < 10_000, "a question over the limit is not repeated in full");

    let found = search_page(&chrome, "en", "ponds", &none.nearest).unwrap();
    assert!(found.contains("They are not an answer"));
    assert!(search_page(&chrome, "en", "ponds", &[]).unwrap().contains("No passage was found"));
    assert!(not_found_page(&chrome, "fr").unwrap().contains("Cette page n’existe pas"));
}

#[test]
fn pages_ask_for_nothing_from_elsewhere_and_carry_nothing_inline() {
    for (path, page) in pages(&common::site()) {
        if !path.ends_with(".html") {
            continue;
        }
        for forbidden in
            [" style=", "<style", "<img", "<iframe", " onclick", " onload", "src=\"http"]
        {
            assert!(!page.contains(forbidden), "{path}: {forbidden}");
        }
        assert_eq!(page.matches("<script").count(), page.matches("></script>").count(), "{path}");
    }
}
