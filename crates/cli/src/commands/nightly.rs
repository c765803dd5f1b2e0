//! `florilegium nightly PIPELINE`: a night's work, to be left alone.
//!
//! Exit status: 0 all well; 1 failed or not published; 2 published, but something failed, waits or is
//! left for the next run.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use florilegium_batch::{
    History, Night, NightOptions, Pipeline, Publication, RunRecord, RunStatus, night, questions,
    summary, write_report,
};
use florilegium_publish::{release, render};
use jiff::civil::Time;
use jiff::{ToSpan, ZonedDateTime};

use super::audit::Auditor;
use super::{print, print_json, site, stop_on_signals};

/// Audit and publication are never expected to take longer than this.
const LONGEST_PUBLICATION: f64 = 900.0;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pipeline file of the archive.
    #[arg(env = "FLORILEGIUM_PIPELINE")]
    pipeline: PathBuf,
    /// Take no new question that would not be ready by this time of day (local), as 06:00; publish
    /// what there is.
    #[arg(long, value_name = "HH:MM", value_parser = time_of_day, env = "FLORILEGIUM_DEADLINE")]
    deadline: Option<Time>,
    /// Publish even if more has failed or changed than the pipeline file allows.
    #[arg(long, env = "FLORILEGIUM_PUBLISH_ANYWAY")]
    publish_anyway: bool,
    /// Also try questions that are left alone because they failed lately.
    #[arg(long, env = "FLORILEGIUM_TRY_ALL")]
    try_all: bool,
    /// Print the report as JSON instead of its summary.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pipeline = Pipeline::load(&arguments.pipeline)?;
    stop_on_signals("stopping after this question, which is kept; once more to stop at once")?;
    let deadline = arguments.deadline.map(|time| until(time, &ZonedDateTime::now())).transpose()?;
    let last = History::new(&pipeline.paths.work).last(1)?;
    let publication = last.first().map_or(0.0, |run| run.publish_seconds);
    let options = NightOptions {
        deadline: deadline.map(|left| {
            let publication = Duration::from_secs_f64(publication.clamp(0.0, LONGEST_PUBLICATION));
            Instant::now() + left.saturating_sub(publication)
        }),
        try_all: arguments.try_all,
        ..NightOptions::default()
    };
    finish(night(pipeline, options)?, arguments.publish_anyway, arguments.json)
}

/// Audits and publishes a night's work, writes its report, and prints it.
pub(super) fn finish(mut night: Night, publish_anyway: bool, json: bool) -> Result<ExitCode> {
    let start = Instant::now();
    let list = questions(&night.library.pipeline)?;
    let site = site::site(&night.library, std::mem::take(&mut night.curated), &list)?;
    let files = render(&site)?;
    let mut auditor = Auditor::new(&night.library.pipeline);
    for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".html")) {
        auditor.page(path, &String::from_utf8_lossy(bytes));
    }
    let audit = auditor.audit;
    let mut publication = Publication {
        audited: audit.checked,
        audit_failures: audit.failed.iter().map(ToString::to_string).collect(),
        ..Publication::default()
    };
    let refusals = std::mem::take(&mut night.refusals);
    let held = !refusals.is_empty() && !publish_anyway;
    if held {
        night.record.notes.extend(refusals);
        night.record.notes.push(
            "not published: look into it, then publish with --publish-anyway if it is right".into(),
        );
    } else {
        let anyway = |refusal| format!("published all the same, as asked: {refusal}");
        night.record.notes.extend(refusals.into_iter().map(anyway));
    }
    if !publication.audit_failures.is_empty() {
        // What is not in the sources is never published, whatever is asked.
        night.record.notes.push(
            "not published: quotations do not stand in the original files, which may have changed while the run read them; run again".into(),
        );
    } else if !held {
        let folder = {
            let pipeline = &night.library.pipeline;
            release(&pipeline.paths.public, &site.id, &files, &site::settings(pipeline))?
        };
        publication.release = Some(folder.display().to_string());
    }
    publication.seconds = start.elapsed().as_secs_f64();
    let pipeline = night.library.pipeline.clone();
    let record = night.finish(&publication)?;
    let folder = write_report(&pipeline, &record)?;
    if json {
        print_json(&record)?;
    } else {
        print(&summary(&record))?;
        print(&format!("report: {}\n", folder.join("report.html").display()))?;
    }
    Ok(status(&record))
}

fn status(record: &RunRecord) -> ExitCode {
    match record.status {
        RunStatus::Published => ExitCode::SUCCESS,
        RunStatus::Incomplete => ExitCode::from(2),
        RunStatus::KeptBack => ExitCode::FAILURE,
    }
}

fn time_of_day(text: &str) -> Result<Time, String> {
    let wrong = || format!("{text:?} is no time of day; give hours and minutes, as 06:00");
    let (hours, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let number = |digits: &str| {
        let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten().ok_or_else(wrong)
    };
    Time::new(number(hours)?, number(minutes)?, number(seconds)?, 0).map_err(|_| wrong())
}

/// How long it is from now to the next time that clocks show `time`.
fn until(time: Time, now: &ZonedDateTime) -> Result<Duration> {
    let today = now.date().to_datetime(time).to_zoned_datetime(now.time_zone().clone());
    let mut at = today.context("this time of day does not exist here today")?;
    if at <= *now {
        at = at.checked_add(1.day()).context("this time of day does not exist tomorrow")?;
    }
    let left = now.duration_until(&at);
    let Ok(left) = Duration::try_from(left) else { bail!("{time} is not ahead") };
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_the_next_time_that_clocks_show_it() {
        let now: ZonedDateTime = "2026-11-30T23:30:00+01:00[Europe/Paris]".parse().unwrap();
        let seconds = |text: &str| until(time_of_day(text).unwrap(), &now).unwrap().as_secs();
        assert_eq!(seconds("06:00"), 6 * 3600 + 1800);
        assert_eq!(seconds("23:31"), 60);
        assert_eq!(seconds("23:30"), 24 * 3600);
        // The night in which clocks are set back has one hour more.
        let autumn: ZonedDateTime = "2026-10-24T23:00:00+02:00[Europe/Paris]".parse().unwrap();
        let night = until(time_of_day("06:00").unwrap(), &autumn).unwrap();
        assert_eq!(night.as_secs(), 8 * 3600);
    }

    #[test]
    fn what_is_no_time_of_day_is_refused_with_an_example() {
        for text in ["6", "25:00", "06:60", "six:00", "", "06:00:00:00", "-1:00", "006:00"] {
            assert!(time_of_day(text).unwrap_err().contains("as 06:00"), "{text}");
        }
    }
}
