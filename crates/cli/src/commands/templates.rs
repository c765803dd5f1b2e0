//! `florilegium templates eject FOLDER`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use florilegium_publish::Theme;

use super::print;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write all templates, messages and assets into a folder, to be changed there.
    Eject {
        /// The folder; name it as `theme` under [publish] in the pipeline file.
        folder: PathBuf,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Command::Eject { folder } = &arguments.command;
    let names = Theme::eject(folder)?;
    print(&format!(
        "{} files in {}; keep those that you change, remove the others, and set\n\n\
         [publish]\ntheme = \"{}\"\n",
        names.len(),
        folder.display(),
        folder.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
