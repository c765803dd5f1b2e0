//! The `florilegium` command: one verb a subcommand. It parses, calls and prints.

mod commands;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use commands::{
    ask, audit, check, cluster, eval, explain, info, ingest, llm, models, nightly, plan, preview,
    questions, read_pdf, rollback, run, search, serve, show, store, templates, why,
};

/// Answers questions with nothing but verified quotations from an archive.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
struct Arguments {
    /// What goes to the log: error, warn, info, debug, or a filter as `info,florilegium_batch=debug`.
    #[arg(long, global = true, env = "FLORILEGIUM_LOG", default_value = "info")]
    log: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List, fetch and verify the models.
    Models(models::Arguments),
    /// Read, embed and index the archive, answer the curated questions, publish the site.
    Run(run::Arguments),
    /// A night's work: read, embed, index, plan, answer, audit, publish, report.
    Nightly(nightly::Arguments),
    /// The same on a Slurm cluster.
    Cluster(cluster::Arguments),
    /// Look at everything a run of a pipeline needs, without running it.
    Check(check::Arguments),
    /// Say what a run would do, why, and what it would cost.
    Plan(plan::Arguments),
    /// Show what the stored answer to a curated question depends on, and what differs from now.
    Why(why::Arguments),
    /// Look after what runs have kept.
    Store(store::Arguments),
    /// Read what has changed in the archive, and report on every collection.
    Ingest(ingest::Arguments),
    /// Show a passage, or a part of a document, and where it stands in its source.
    Show(show::Arguments),
    /// Find the passages nearest in meaning to a question.
    Search(search::Arguments),
    /// Answer a question with verified quotations.
    Ask(ask::Arguments),
    /// Show the road from a question to its answer: every decision, every proposal and why it was rejected.
    Explain(explain::Arguments),
    /// Check every published quotation against the original files.
    Audit(audit::Arguments),
    /// Measure how well passages are found and questions answered, and calibrate.
    Eval(eval::Arguments),
    /// Serve the published site, search and ask.
    Serve(serve::Arguments),
    /// Show the site with its drafts, and again whenever questions, templates or style change.
    Preview(preview::Arguments),
    /// Go back to the release that was published before.
    Rollback(rollback::Arguments),
    /// Write the templates, messages and styles out, to be changed.
    Templates(templates::Arguments),
    /// Read a PDF from standard input, within limits (called by this program itself).
    #[command(hide = true, name = florilegium_corpus::pdf::SUBCOMMAND)]
    ReadPdf,
    /// Check the language-model engines of a pipeline.
    Llm(llm::Arguments),
    /// For editors: check a list, see what each question got, find what readers ask.
    Questions(questions::Arguments),
    /// Show how this program was built: version, vector instructions.
    Info(info::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&arguments.log))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .without_time()
        .init();
    let done = match arguments.command {
        Command::Models(arguments) => models::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Nightly(arguments) => nightly::run(&arguments),
        Command::Cluster(arguments) => cluster::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Why(arguments) => why::run(&arguments),
        Command::Store(arguments) => store::run(&arguments),
        Command::Ingest(arguments) => ingest::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::ReadPdf => read_pdf::run(),
        Command::Search(arguments) => search::run(&arguments),
        Command::Ask(arguments) => ask::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Preview(arguments) => preview::run(&arguments),
        Command::Rollback(arguments) => rollback::run(&arguments),
        Command::Templates(arguments) => templates::run(&arguments),
        Command::Llm(arguments) => llm::run(&arguments),
        Command::Questions(arguments) => questions::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", message(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes, each said once: many a message repeats its cause.
fn message(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        let cause = cause.trim_end();
        if !message.contains(cause) {
            if !message.is_empty() {
                message += ": ";
            }
            message += cause;
        }
    }
    // Libraries that write files themselves say what happened, and not what to do.
    if message.contains("No space left on device") && !message.contains("free some space") {
        message += "; free some space on this disk";
    }
    message
}
