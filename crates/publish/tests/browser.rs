//! The published site in a real browser: tests/site/browser.mjs, with Chromium, axe-core and
//! html-validate. `FLORILEGIUM_SCREENSHOTS=FOLDER` also takes pictures of all kinds of pages.

#![allow(clippy::unwrap_used)]

#[allow(dead_code, missing_docs, reason = "shared with the other tests")]
mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use florilegium_publish::{Settings, release, render};

/// What data/setup-browser.sh has installed, if it has.
fn tools() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from)?;
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or(home.join(".cache"), PathBuf::from);
    let folder = std::env::var_os("FLORILEGIUM_BROWSER_TOOLS")
        .map_or(cache.join("florilegium/browser-tools"), PathBuf::from);
    let there = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    (folder.join("node_modules/playwright-core").is_dir() && there("node") && there("chromium"))
        .then_some(folder)
}

#[test]
fn the_site_in_a_browser() {
    let Some(tools) = tools() else {
        println!(
            "skipped: chromium, node or their packages are missing; run data/setup-browser.sh"
        );
        return;
    };
    let public = tempfile::tempdir().unwrap();
    let site = common::every_kind();
    let folder =
        release(public.path(), &site.id, &render(&site).unwrap(), &Settings::default()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/site/browser.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(folder).arg(tools);
    command.args(std::env::var_os("FLORILEGIUM_SCREENSHOTS"));
    let run = command.output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("browser tests passed"), "{said}");
}
