//! Why a site could not be rendered or released.

use std::path::PathBuf;

use florilegium_files::FileError;

/// Why a site could not be rendered or released. Names what is concerned and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// A file could not be written or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The site is to be in a language that the pages do not speak.
    #[error(
        "there are no page texts in the language \"{language}\", there are some in {known}; choose one of these, or add templates/messages/{language}.toml and build again"
    )]
    NoMessages {
        /// The language asked for.
        language: String,
        /// The languages there are.
        known: String,
    },
    /// The site has no language at all.
    #[error("the site has no language; name at least one")]
    NoLanguage,
    /// A question is in a language that is not one of the site's.
    #[error(
        "the question \"{id}\" is in the language \"{language}\", which is not one of the site's; add the language to the site, or leave the question out"
    )]
    QuestionLanguage {
        /// Id of the question.
        id: String,
        /// Its language.
        language: String,
    },
    /// An id that cannot be part of an address.
    #[error(
        "the {what} \"{id}\" has other characters than a to z, 0 to 9 and -, or is \"releases\"; write it with these only"
    )]
    Id {
        /// What it is the id of.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// Two pages with one address.
    #[error("two pages would be written to {path}; give one of the questions another id")]
    Twice {
        /// The address.
        path: String,
    },
    /// A file name that leads out of the release.
    #[error("the path \"{path}\" leads out of the release; give one with names only, parted by /")]
    Path {
        /// The path.
        path: String,
    },
    /// A quotation that HTML cannot carry unchanged.
    #[error(
        "{document}: the quotation at bytes {start} to {end} holds the character U+0000, which no page can show; remove it from the source and read the collection again"
    )]
    Unshowable {
        /// Id of the document.
        document: String,
        /// First byte.
        start: usize,
        /// Byte after the last.
        end: usize,
    },
    /// There is something where the link to the release should go, and it is not ours.
    #[error(
        "{} is {what}, not a link made by a release; move it away, or give the site another id",
        path.display()
    )]
    NotOurs {
        /// Where the link should go.
        path: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// A folder that holds no theme.
    #[error(
        "{} has none of the folders pages/, messages/ and site/; write them with `florilegium templates eject FOLDER`, and keep what you change",
        path.display()
    )]
    NoTheme {
        /// The folder.
        path: PathBuf,
    },
    /// A file is where another should be written for the first time.
    #[error("{} is there already and is not written over; choose another folder", path.display())]
    Occupied {
        /// The file.
        path: PathBuf,
    },
    /// A former id that leads nowhere, or is in use.
    #[error(
        "the former question id \"{from}\" {problem}; correct [publish.renamed] in the pipeline file"
    )]
    Renamed {
        /// The former id.
        from: String,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no release to go back to.
    #[error("{problem}; `florilegium rollback --list` shows the releases of the site")]
    NoRelease {
        /// What is missing.
        problem: String,
    },
    /// The index of questions cannot be made.
    #[error(transparent)]
    Edge(#[from] florilegium_edge::EdgeError),
    /// A template or a message file is at fault.
    #[error("{0}; correct the template or message file and build again")]
    Template(String),
}

impl From<minijinja::Error> for PublishError {
    fn from(error: minijinja::Error) -> Self {
        // The alternate form adds the line of the template and what is around it.
        PublishError::Template(format!("{error:#}"))
    }
}
