//! Writes a sample site, and the pages of a live server, into the folder given, for looking at.

use std::error::Error;
use std::path::PathBuf;

use florilegium_publish::{AskPage, Notice, Settings, ask_page, release, render, search_page};

#[allow(dead_code, missing_docs, reason = "shared with the tests, which use more of it")]
#[path = "../tests/common/mod.rs"]
mod common;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: sample_site FOLDER")?;
    let site = common::site();
    let mut files = render(&site)?;

    let chrome = site.chrome();
    let english = common::english();
    let none = common::unanswered("Does the moon matter?", "en");
    let page = AskPage {
        language: "en",
        question: &english.question,
        problem: None,
        answer: None,
        excerpts: &none.nearest,
        notice: Some(Notice::Preparing),
        computed_on: "2026-11-30",
    };
    let answered = AskPage { answer: Some(&english), notice: None, ..page };
    files.push(("ask-preparing.html".to_owned(), ask_page(&chrome, &page)?.into_bytes()));
    files.push(("ask-answered.html".to_owned(), ask_page(&chrome, &answered)?.into_bytes()));
    let search = search_page(&chrome, "en", "ponds", &none.nearest)?;
    files.push(("search.html".to_owned(), search.into_bytes()));

    println!(
        "{}",
        release(&PathBuf::from(folder), &site.id, &files, &Settings::default())?.display()
    );
    Ok(())
}
