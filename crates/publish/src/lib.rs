//! Static pages from answers, and their release.
//!
//! [`render`] turns a [`Site`] into files without touching the disk; the same site gives the same
//! bytes. [`release()`] puts the files into a new folder and switches a link to it, so that a reader
//! sees the old site or the new one and never a mixture. [`ask_page`] and [`search_page`] are the
//! pages of the live server, made from the same templates.
//!
//! A quotation is put into a page in one place only, `_quotation.html`, and is escaped, nothing
//! else; [`shown_quotations`] reads it back for an audit. [`answer_text`] is for terminals.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod audit;
mod cite;
mod error;
mod frame;
mod hosting;
mod live;
mod pages;
mod release;
mod site;
mod slug;
mod sources;
mod terminal;
mod text;
mod theme;
mod view;

pub use audit::{ShownQuotation, shown_quotations};
pub use error::PublishError;
pub use hosting::{content_security_policy, is_immutable};
pub use live::{AskPage, Notice, ask_page, not_found_page, search_page};
pub use pages::render;
pub use release::{
    Layout, MARKER, RELEASES_KEPT, Released, SUMS, Settings, release, releases, rollback,
};
pub use site::{Chrome, CollectionFacts, Entry, Facts, Site, Standing};
pub use sources::{ContextBlock, DocumentFacts, PassageFacts, sources};
pub use terminal::answer_text;
pub use theme::Theme;
