//! The report as a page that needs nothing beside it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::Serialize;

use super::table::name;
use crate::error::BatchError;
use crate::history::{Change, Outcome, RunRecord};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../templates/report");

/// What the report says, by language.
static MESSAGES: LazyLock<Result<BTreeMap<String, Value>, String>> = LazyLock::new(|| {
    let files = FILES.get_dir("messages").map(Dir::files).into_iter().flatten();
    files
        .filter_map(|file| Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?)))
        .map(|(language, text)| {
            let table: toml::Table = toml::from_str(text)
                .map_err(|error| format!("templates/report/messages/{language}.toml: {error}"))?;
            Ok((language.to_owned(), Value::from(Serde(table))))
        })
        .collect()
});

/// Size of a plot, in its own units.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 90.0;

#[derive(Debug, Serialize)]
struct Page<'a> {
    m: Value,
    lang: &'a str,
    run: &'a RunRecord,
    status: String,
    outcomes: BTreeMap<String, usize>,
    changes: BTreeMap<String, usize>,
    rows: Vec<Row<'a>>,
    plots: Vec<Plot>,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    outcome: String,
    change: String,
    #[serde(flatten)]
    question: &'a crate::history::QuestionRecord,
}

/// Bars over the last runs, each made of parts that stand on one another.
#[derive(Debug, Serialize)]
struct Plot {
    /// Key of its title.
    title: &'static str,
    width: f64,
    height: f64,
    /// The value at its top.
    top: String,
    bars: Vec<Bar>,
}

#[derive(Debug, Serialize)]
struct Bar {
    /// Number of the run.
    run: u64,
    x: f64,
    width: f64,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize)]
struct Part {
    /// Key of what it counts.
    what: &'static str,
    value: String,
    y: f64,
    height: f64,
}

/// What a plot counts of a run.
type Series = (&'static str, fn(&RunRecord) -> f64);

/// The page for a run, with plots over the last ones.
pub(super) fn page(
    run: &RunRecord,
    runs: &[RunRecord],
    language: &str,
) -> Result<String, BatchError> {
    let messages = MESSAGES.as_ref().map_err(|error| BatchError::Report(error.clone()))?;
    let known = messages.get_key_value(language).or_else(|| messages.get_key_value("en"));
    let (language, m) =
        known.ok_or_else(|| BatchError::Report(format!("no messages in {language:?}")))?;
    let all_outcomes = [
        Outcome::Answered,
        Outcome::Insufficient,
        Outcome::Failed,
        Outcome::Waiting,
        Outcome::Paused,
        Outcome::Left,
    ];
    let all_changes = [Change::New, Change::Changed, Change::Gained, Change::Lost, Change::Same];
    let page = Page {
        m: m.clone(),
        lang: language,
        status: name(&run.status),
        outcomes: all_outcomes.iter().map(|o| (name(o), run.count(*o))).collect(),
        changes: all_changes.iter().map(|c| (name(c), run.changes(*c))).collect(),
        rows: run
            .questions
            .iter()
            .map(|question| Row {
                outcome: name(&question.outcome),
                change: name(&question.change),
                question,
            })
            .collect(),
        plots: plots(runs),
        run,
    };
    let template = FILES.get_file("report.html").and_then(|file| file.contents_utf8());
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    let rendered = syntax
        .map(|syntax| environment.set_syntax(syntax))
        .and_then(|()| {
            environment.template_from_named_str("report.html", template.unwrap_or_default())
        })
        .and_then(|template| template.render(Value::from(Serde(page))));
    rendered.map_err(|error| BatchError::Report(format!("{error:#}")))
}

fn plots(runs: &[RunRecord]) -> Vec<Plot> {
    let questions: &[Series] = &[
        ("answered", |run| run.count(Outcome::Answered) as f64),
        ("insufficient", |run| run.count(Outcome::Insufficient) as f64),
        ("failed", |run| (run.count(Outcome::Failed) + run.count(Outcome::Paused)) as f64),
        ("waiting", |run| (run.count(Outcome::Waiting) + run.count(Outcome::Left)) as f64),
    ];
    let asked: &[Series] = &[("asked", |run| run.fresh() as f64)];
    let tokens: &[Series] = &[("tokens", |run| run.cost.computed_tokens as f64)];
    let seconds: &[Series] = &[
        ("synthesis", |run| run.synthesis_seconds),
        ("embedding", |run| run.built.embed_seconds),
        ("rest", |run| (run.seconds - run.synthesis_seconds - run.built.embed_seconds).max(0.0)),
    ];
    [("questions", questions), ("asked", asked), ("tokens", tokens), ("seconds", seconds)]
        .into_iter()
        .map(|(title, series)| plot(title, runs, series))
        .collect()
}

fn plot(title: &'static str, runs: &[RunRecord], series: &[Series]) -> Plot {
    let sum = |run: &RunRecord| series.iter().map(|(_, of)| of(run).max(0.0)).sum::<f64>();
    let top = runs.iter().map(sum).fold(0.0, f64::max);
    let step = WIDTH / runs.len().max(1) as f64;
    let bars = runs
        .iter()
        .enumerate()
        .map(|(at, run)| {
            let mut y = HEIGHT;
            let mut parts = Vec::new();
            for (what, of) in series {
                let value = of(run).max(0.0);
                let height = if top > 0.0 { value / top * HEIGHT } else { 0.0 };
                y -= height;
                if value > 0.0 {
                    parts.push(Part {
                        what,
                        value: rounded(value),
                        y: tidy(y),
                        height: tidy(height),
                    });
                }
            }
            let width = (step - 2.0).clamp(1.0, 24.0);
            Bar { run: run.number, x: tidy(at as f64 * step + 1.0), width: tidy(width), parts }
        })
        .collect();
    Plot { title, width: WIDTH, height: HEIGHT, top: rounded(top), bars }
}

/// A number as a plot labels it.
fn rounded(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// Two digits are enough for a place in a drawing.
fn tidy(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;

    #[test]
    fn the_page_is_whole_and_escaped_in_every_language() {
        let mut earlier = run();
        earlier.number = 6;
        for language in ["en", "fr", "el", "xx"] {
            let html = page(&run(), &[earlier.clone(), run()], language).unwrap();
            assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
            assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
            assert_eq!(html.matches("<svg").count(), 4);
            assert_eq!(html.matches("<tr class=\"question\"").count(), 2);
        }
    }

    #[test]
    fn all_languages_have_the_same_messages() {
        fn keys(path: &str, value: &toml::Value, found: &mut Vec<String>) {
            match value {
                toml::Value::Table(table) => {
                    table
                        .iter()
                        .for_each(|(key, value)| keys(&format!("{path}.{key}"), value, found));
                }
                value => {
                    assert!(value.as_str().is_some_and(|text| !text.trim().is_empty()), "{path}");
                    found.push(path.to_owned());
                }
            }
        }
        let of = |language: &str| {
            let file = FILES.get_file(format!("messages/{language}.toml")).unwrap();
            let mut found = Vec::new();
            keys(
                "",
                &toml::Value::Table(toml::from_str(file.contents_utf8().unwrap()).unwrap()),
                &mut found,
            );
            found.sort();
            found
        };
        assert!(of("en").len() > 40);
        assert_eq!(of("fr"), of("en"));
        assert_eq!(of("el"), of("en"));
    }

    #[test]
    fn the_parts_of_a_bar_stand_on_one_another_and_fill_the_highest() {
        let plot = plot("x", &[run()], &[("a", |_| 3.0), ("b", |_| 1.0)]);
        let [a, b] = &plot.bars[0].parts[..] else { panic!() };
        assert_eq!((a.y + a.height, b.y, b.y + b.height), (HEIGHT, 0.0, a.y));
        assert_eq!(plot.top, "4");
    }
}
