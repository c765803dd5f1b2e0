//! `florilegium info`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use florilegium_llm::local::system_info;

use super::{print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    let llama = system_info();
    if arguments.json {
        print_json(&serde_json::json!({ "version": version, "llama.cpp": llama }))?;
    } else {
        print(&format!("florilegium {version}\nllama.cpp: {llama}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
