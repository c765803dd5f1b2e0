//! From sources to a served site, with the real embedding model and a real language model.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::Stdio;

use serde_json::Value;
use support::{Archive, Server, florilegium, models, stderr, stdout, tree};

#[test]
fn an_archive_is_read_answered_published_and_audited() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.0);
    let pipeline = archive.pipeline().display().to_string();

    let first = archive.florilegium(&["run", &pipeline, "--json"]);
    assert!(first.status.success(), "{}", stderr(&first));
    let report: Value = serde_json::from_str(&stdout(&first)).unwrap();
    assert_eq!(report["report"]["questions"], 6);
    assert_eq!(report["report"]["computed"], 6);
    assert_eq!(report["report"]["documents"], 12);
    assert!(report["report"]["cost"]["computed_tokens"].as_u64() > Some(0));
    let site = fs::canonicalize(archive.path("public/island")).unwrap();
    let published = tree(&site);

    // Nothing changed: no model work, and the same bytes.
    let second = archive.florilegium(&["run", &pipeline]);
    let text = stdout(&second);
    assert!(second.status.success(), "{}", stderr(&second));
    assert!(text.contains("no model work: 6 answers kept"), "{text}");
    assert!(text.contains("no passage embedded"), "{text}");
    assert_eq!(fs::canonicalize(archive.path("public/island")).unwrap(), site);
    assert_eq!(tree(&site), published);

    // Every quotation on the pages is in the originals.
    let audit = archive.florilegium(&["audit", &pipeline, "--json"]);
    assert!(audit.status.success(), "{}", stdout(&audit));
    let audit: Value = serde_json::from_str(&stdout(&audit)).unwrap();
    assert!(audit["checked"].as_u64() >= Some(6), "{audit}");
    assert_eq!(audit["failed"].as_array().map(Vec::len), Some(0));

    // One byte altered in one source that is quoted: the audit names it, and fails.
    let document = quoted_document(&published);
    let (source, quotation) = document;
    let path = archive.path("corpus").join(source.strip_prefix("island-").unwrap());
    alter_one_byte(&path, &quotation);
    let audit = archive.florilegium(&["audit", &pipeline]);
    assert!(!audit.status.success());
    assert!(stdout(&audit).contains(&source), "{}", stdout(&audit));
    assert!(!stdout(&audit).contains(" 0 failed"), "{}", stdout(&audit));
}

/// A document that a page quotes, and a word of the quotation that is plain ASCII.
fn quoted_document(published: &[(std::path::PathBuf, Vec<u8>)]) -> (String, String) {
    for (name, bytes) in published {
        if name.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let answer: Value = serde_json::from_slice(bytes).unwrap();
        let quotation = &answer["groups"][0]["quotations"][0];
        let (Some(document), Some(text)) =
            (quotation["document"].as_str(), quotation["text"].as_str())
        else {
            continue;
        };
        let word = text
            .split_whitespace()
            .find(|word| word.len() > 3 && word.bytes().all(|b| b.is_ascii_alphabetic()));
        if let Some(word) = word {
            return (document.to_owned(), word.to_owned());
        }
    }
    panic!("no page quotes anything");
}

/// Changes the case of the first letter of every occurrence of `word`.
fn alter_one_byte(path: &std::path::Path, word: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(word), "{} has no {word:?}", path.display());
    let mut altered = word.as_bytes().to_vec();
    altered[0] ^= 0x20;
    fs::write(path, text.replace(word, std::str::from_utf8(&altered).unwrap())).unwrap();
}

#[test]
fn insufficient_material_is_said_and_never_filled() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 1.0);
    let pipeline = archive.pipeline().display().to_string();
    let run = archive.florilegium(&["run", &pipeline, "--json"]);
    assert!(run.status.success(), "{}", stderr(&run));
    let report: Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert_eq!(report["report"]["insufficient"], 6);
    let ask = archive.florilegium(&[
        "ask",
        "Who kept the lighthouse?",
        "--lang",
        "en",
        "--json",
        "--trace",
    ]);
    let answer: Value = serde_json::from_str(&stdout(&ask)).unwrap();
    assert_eq!(answer["answer"]["answered"], false);
    assert_eq!(answer["answer"]["groups"].as_array().map(Vec::len), Some(0));
    assert!(answer["answer"]["nearest"].as_array().is_some_and(|near| !near.is_empty()));
    assert!(answer["trace"]["passages"].as_array().is_some_and(|passages| passages.len() == 4));
}

#[test]
fn a_run_that_is_killed_goes_on_where_it_stopped() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.0);
    let mut killed = 0;
    for milliseconds in [300, 900, 1500, 2500, 4000, 6000] {
        let mut child = florilegium(archive.folder.path())
            .arg("run")
            .arg(archive.pipeline())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        killed += usize::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert!(killed > 0, "the run was over before it could be killed");
    let pipeline = archive.pipeline().display().to_string();
    let run = archive.florilegium(&["run", &pipeline, "--json"]);
    assert!(run.status.success(), "{}", stderr(&run));
    let report: Value = serde_json::from_str(&stdout(&run)).unwrap();
    let computed = report["report"]["computed"].as_u64().unwrap();
    let reused = report["report"]["reused"].as_u64().unwrap();
    assert_eq!(computed + reused, 6);
    let audit = archive.florilegium(&["audit", &pipeline]);
    assert!(audit.status.success(), "{}", stdout(&audit));
}

#[test]
fn the_site_search_and_ask_are_served() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.0);
    let pipeline = archive.pipeline().display().to_string();
    let early = archive.florilegium(&["serve", &pipeline, "--listen", "127.0.0.1:0"]);
    assert!(!early.status.success());
    assert!(stderr(&early).contains("florilegium run"), "{}", stderr(&early));
    let run = archive.florilegium(&["run", &pipeline]);
    assert!(run.status.success(), "{}", stderr(&run));

    let server = Server::start(&archive);
    let (status, page) = server.get("/");
    assert!(status == 200 && page.contains("Morvane"), "{page}");
    assert_eq!(server.get("/no-such-page").0, 404);
    assert_eq!(server.get("/..%2f..%2fisland.toml").0, 404);
    let (status, found) = server.get("/api/search?q=lighthouse&lang=en&k=3");
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(status, 200);
    assert_eq!(found["passages"].as_array().map(Vec::len), Some(3));
    assert!(found["passages"].as_array().unwrap().iter().all(|p| p["language"] == "en"));
    for bad in [
        "/api/search?q=",
        "/api/search?q=%3F%3F",
        "/api/search?q=a&k=0",
        "/api/search?q=a&collection=none",
        "/api/search?q=a&colour=red",
        "/api/ask?q=",
        &format!("/api/ask?q={}", "a".repeat(5000)),
    ] {
        let (status, body) = server.get(bad);
        assert_eq!(status, 400, "{bad}: {body}");
    }
    let (status, answer) =
        server.get("/api/ask?q=How%20tall%20is%20the%20lighthouse%3F&lang=en&wait=60");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, &answer["status"]), (200, &Value::from("answered")));
    // Once it is kept, the page shows it at once.
    let (status, page) = server.get("/ask?q=How%20tall%20is%20the%20lighthouse%3F&lang=en");
    assert!(status == 200 && page.contains("class=\"quotation\""), "{page}");

    // The port is taken: it says so, and what to do.
    let port = server.address.rsplit(':').next().unwrap();
    let second =
        archive.florilegium(&["serve", &pipeline, "--listen", &format!("127.0.0.1:{port}")]);
    assert!(!second.status.success());
    let message = stderr(&second);
    assert!(message.contains("already in use") && message.contains("--listen"), "{message}");
}
