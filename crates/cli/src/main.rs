//! The `florilegium` command: one verb a subcommand. It parses, calls and prints.

mod commands;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use commands::{
    ask, audit, eval, info, ingest, llm, models, preview, read_pdf, rollback, run, search, serve,
    show, templates,
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
    /// Read what has changed in the archive, and report on every collection.
    Ingest(ingest::Arguments),
    /// Show a passage, or a part of a document, and where it stands in its source.
    Show(show::Arguments),
    /// Find the passages nearest in meaning to a question.
    Search(search::Arguments),
    /// Answer a question with verified quotations.
    Ask(ask::Arguments),
    /// Check every published quotation against the original files.
    Audit(audit::Arguments),
    /// Measure how well passages are found.
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
        Command::Ingest(arguments) => ingest::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::ReadPdf => read_pdf::run(),
        Command::Search(arguments) => search::run(&arguments),
        Command::Ask(arguments) => ask::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Eval(arguments) => eval::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Preview(arguments) => preview::run(&arguments),
        Command::Rollback(arguments) => rollback::run(&arguments),
        Command::Templates(arguments) => templates::run(&arguments),
        Command::Llm(arguments) => llm::run(&arguments),
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
    message
}
