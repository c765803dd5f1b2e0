//! `florilegium check PIPELINE`: a pipeline, looked at without running it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use florilegium_batch::{Checked, Pipeline, Verdict, check};
use florilegium_publish::{Facts, Site, render};

use super::site::theme;
use super::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Also ask the language-model servers.
    #[arg(long, env = "FLORILEGIUM_ONLINE")]
    online: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    let mut findings = check(&pipeline, arguments.online);
    findings.push(pages(&pipeline));
    if arguments.json {
        print_json(&findings)?;
    } else {
        for finding in &findings {
            let mark = match finding.verdict {
                Verdict::Good => "ok       ",
                Verdict::Warning => "warning  ",
                Verdict::Bad => "BAD      ",
                Verdict::Unchecked => "unchecked",
            };
            print(&format!("{mark} {}: {}\n", finding.what, finding.message))?;
        }
    }
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let bad = count(Verdict::Bad);
    if !arguments.json {
        print(&format!(
            "{}: {bad} bad, {} warnings, {} could not be checked\n",
            arguments.pipeline.display(),
            count(Verdict::Warning),
            count(Verdict::Unchecked)
        ))?;
    }
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the page templates can be filled in the languages of the site.
fn pages(pipeline: &Pipeline) -> Checked {
    let filled = theme(pipeline).and_then(|theme| {
        let site = Site {
            id: pipeline.id.clone(),
            title: pipeline.title.clone(),
            languages: pipeline.languages.clone(),
            base_path: "/".into(),
            base_url: None,
            live: None,
            entries: Vec::new(),
            renamed: BTreeMap::new(),
            documents: Vec::new(),
            passages: Vec::new(),
            facts: Facts::default(),
            theme,
        };
        Ok(render(&site)?.len())
    });
    let (verdict, message) = match filled {
        Ok(files) => (Verdict::Good, format!("templates are sound, {files} files without answers")),
        Err(error) => (Verdict::Bad, format!("{error:#}")),
    };
    Checked { verdict, what: "pages".into(), message }
}
