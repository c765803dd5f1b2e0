//! Publishing from the command line: releases and going back, retired questions, themes, previews.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Archive, florilegium, models, stderr, stdout};

#[test]
fn templates_are_ejected_once() {
    let folder = tempfile::tempdir().unwrap();
    let eject =
        || florilegium(folder.path()).args(["templates", "eject", "theme"]).output().unwrap();
    let first = eject();
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(stdout(&first).contains("theme = \"theme\""));
    for name in ["pages/base.html", "messages/fr.toml", "site/style.css", "site/florilegium.js"] {
        assert!(folder.path().join("theme").join(name).is_file(), "{name}");
    }
    let again = eject();
    assert!(
        !again.status.success() && stderr(&again).contains("another folder"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_site_is_published_changed_and_rolled_back() {
    let Some(models) = models() else { return };
    let archive = Archive::new(&models, 0.0);
    let pipeline = archive.pipeline().display().to_string();
    let run = |arguments: &[&str]| {
        let output = archive.florilegium(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        stdout(&output)
    };
    let text = fs::read_to_string(archive.pipeline()).unwrap();
    let theme = "[publish]\ntheme = \"theme\"\nbase_url = \"https://a.example/b/\"\n[questions]";
    fs::write(archive.pipeline(), text.replace("[questions]", theme)).unwrap();
    let faulty = archive.florilegium(&["run", &pipeline]);
    assert!(stderr(&faulty).contains("templates eject"), "{}", stderr(&faulty));
    fs::create_dir_all(archive.path("theme/messages")).unwrap();
    let message = "[site]\ncolophon = \"Printed on the island.\"\n";
    fs::write(archive.path("theme/messages/en.toml"), message).unwrap();

    run(&["run", &pipeline]);
    let site = archive.path("public/island");
    let page = |path: &str| fs::read_to_string(site.join(path)).unwrap();
    assert!(page("en/index.html").contains("Printed on the island."));
    assert!(page("sitemap.xml").contains("https://a.example/b/en/q/en-lighthouse-keeper/"));
    assert!(page("en/how-it-works.html").contains("island"), "figures of this archive");
    let quoted = page("en/q/en-lighthouse-keeper/index.html");
    let source = quoted.split("href=\"../../../en/s/").nth(1).expect("a link to the passage");
    let source = source.split('#').next().unwrap();
    let passage = page(&format!("en/s/{source}index.html"));
    assert!(passage.contains("<mark id=\"q") && passage.contains(":~:text="), "{passage}");

    // One question is retired: its page stays and says so.
    let list = archive.path("corpus/questions.csv");
    let csv = fs::read_to_string(&list).unwrap();
    let retired = csv.replacen("lighthouse people,published", "lighthouse people,retired", 1);
    assert_ne!(csv, retired);
    fs::write(&list, retired).unwrap();
    run(&["run", &pipeline]);
    assert!(page("en/q/en-lighthouse-keeper/index.html").contains("has been withdrawn"));
    assert!(!page("en/questions/index.html").contains("en-lighthouse-keeper"));

    let listed: Value =
        serde_json::from_str(&run(&["rollback", &pipeline, "--list", "--json"])).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert_eq!(listed[0]["current"], true);
    run(&["rollback", &pipeline]);
    assert!(page("en/questions/index.html").contains("en-lighthouse-keeper"));
    let end = archive.florilegium(&["rollback", &pipeline]);
    assert!(!end.status.success() && stderr(&end).contains("--list"), "{}", stderr(&end));
    let name = listed[0]["name"].as_str().unwrap();
    run(&["rollback", &pipeline, "--to", name]);
    assert!(!page("en/questions/index.html").contains("en-lighthouse-keeper"));

    previewed(&archive);
}

/// A preview that ends with the test.
struct Preview {
    child: Child,
    address: String,
}

impl Preview {
    fn get(&self, path: &str) -> (u16, String) {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent.get(format!("{}{path}", self.address)).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    /// Waits until a page holds some words.
    fn shows(&self, path: &str, words: &str) {
        let begun = Instant::now();
        while !self.get(path).1.contains(words) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{path} never shows {words:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Preview {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Drafts are shown, changes are seen, faults are said and mended, and browsers are told.
fn previewed(archive: &Archive) {
    let mut child = florilegium(archive.folder.path())
        .arg("preview")
        .arg(archive.pipeline())
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let preview = Preview { child, address: address.trim_end_matches('/').to_owned() };

    let (status, page) = preview.get("/en/");
    assert!(status == 200 && page.contains("/preview/reload.js"), "{page}");
    assert_eq!(preview.get("/nothing/").0, 404);
    let version: u64 = preview.get("/preview/version?after=-1").1.parse().unwrap();

    let list = archive.path("corpus/questions.csv");
    let csv = fs::read_to_string(&list).unwrap();
    let draft = "en-new,en,Who painted the lighthouse white?,,lighthouse,draft,1,,\n";
    fs::write(&list, format!("{}\n{draft}", csv.trim_end())).unwrap();
    preview.shows("/en/questions/", "Who painted the lighthouse white?");
    assert!(preview.get("/en/q/en-new/").1.contains("This is a draft"));
    let later: u64 = preview.get(&format!("/preview/version?after={version}")).1.parse().unwrap();
    assert!(later > version);

    let style = archive.path("theme/messages/en.toml");
    fs::write(&style, "[site]\ncolophon = \"Printed anew.\"\n").unwrap();
    preview.shows("/en/", "Printed anew.");
    fs::write(&style, "[site]\ncolofon = \"x\"\n").unwrap();
    preview.shows("/en/", "site.colofon");
    fs::write(&style, "[site]\ncolophon = \"Mended.\"\n").unwrap();
    preview.shows("/en/", "Mended.");
}
