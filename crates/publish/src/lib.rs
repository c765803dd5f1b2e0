//! Static pages from answers, and their release.
//!
//! [`render`] turns a [`Site`] into files without touching the disk; the same site gives the same
//! bytes. [`release`] puts the files into a new folder and switches a link to it, so that a reader
//! sees the old site or the new one and never a mixture. [`ask_page`] and [`search_page`] are the
//! pages of the live server, made from the same templates.
//!
//! A quotation is put into a page in one place only, `_quotation.html`, and is escaped, nothing
//! else; [`shown_quotations`] reads it back for an audit. [`answer_text`] is for terminals.

mod assets;
mod audit;
mod error;
mod live;
mod messages;
mod pages;
mod release;
mod site;
mod templates;
mod terminal;
mod text;
mod view;

pub use audit::{ShownQuotation, shown_quotations};
pub use error::PublishError;
pub use live::{AskPage, Notice, ask_page, not_found_page, search_page};
pub use pages::render;
pub use release::{MARKER, RELEASES_KEPT, release};
pub use site::{Chrome, CollectionFacts, Entry, Facts, Site};
pub use terminal::answer_text;
