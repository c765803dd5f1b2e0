//! `florilegium read-pdf`: the process in which a PDF is parsed.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use florilegium_corpus::pdf;

pub(crate) fn run() -> Result<ExitCode> {
    pdf::serve().map_err(|problem| anyhow!(problem))?;
    Ok(ExitCode::SUCCESS)
}
