//! The pages: what they show, exactly that, and nothing that a hostile source could add.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, missing_docs, reason = "shared with the example")]
mod common;

use std::collections::BTreeMap;

use florilegium_publish::{
    AskPage, Notice, PublishError, Site, answer_text, ask_page, not_found_page, render,
    search_page, shown_quotations,
};
use florilegium_questions::check_question;
use florilegium_synthesis::answer::Answer;

fn pages(site: &Site) -> BTreeMap<String, String> {
    let files = render(site).unwrap().into_iter();
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
        entry.stale = true;
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
            assert_eq!(linkless(page), linkless(&harmless[path]), "{path}: {text}");
            assert!(!page.contains("href=\"javascript"), "{path}");
            assert!(!page.contains("<script"), "{path}");
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
            if let Some(id) = href.strip_prefix('#') {
                assert!(page.contains(&format!("id=\"{id}\"")), "{path}: {href}");
                continue;
            }
            let target = resolve(path, href);
            assert!(pages.contains_key(&target), "{path}: {href} leads to {target}");
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
fn start_pages_name_each_other() {
    let pages = pages(&common::site());
    for (path, root) in [("index.html", "./"), ("fr/index.html", "../"), ("el/index.html", "../")] {
        for (tag, target) in [("en", "en/"), ("fr", "fr/"), ("el", "el/"), ("x-default", "")] {
            let link = format!("hreflang=\"{tag}\" href=\"{root}{target}\"");
            assert!(pages[path].contains(&link), "{path}: {link}");
        }
    }
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
fn pages_ask_for_nothing_from_elsewhere_and_carry_no_script_or_inline_style() {
    for (path, page) in pages(&common::site()) {
        for forbidden in ["<script", " style=", "<style", " src=", "<img", "<iframe"] {
            assert!(!page.contains(forbidden), "{path}: {forbidden}");
        }
        if path.ends_with(".css") {
            assert!(page.len() < 30_000);
        }
    }
}
