//! PDF to blocks, in a process of its own.
//!
//! Parsers of PDF panic, loop and ask for all memory, so the file is never parsed in this process: the
//! program calls itself (`florilegium read-pdf`), which bounds its own memory and time, and sends back
//! the text of each page. A page is a place; the lines that every page repeats at its head or foot are
//! no text. A file without text is a scan, and is said to be one.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pdf_extract::{Document, PlainTextOutput, output_doc_page};
use rustix::process::{Resource, Rlimit, setrlimit};
use wait_timeout::ChildExt;

use crate::blocks::Content;
use crate::plain;

/// The subcommand that runs [`serve`].
pub const SUBCOMMAND: &str = "read-pdf";
/// Names the program to be called, when it is not this one.
pub const PROGRAM: &str = "FLORILEGIUM_PROGRAM";
/// Memory that reading one file may take, in bytes.
const MEMORY: u64 = 2 << 30;
/// Time that reading one file may take.
const TIME: Duration = Duration::from_secs(120);
/// Text that one file may have, in bytes.
const TEXT: u64 = 256 << 20;
/// What the process sends first: any other program that is called by mistake does not.
const GREETING: &str = "florilegium-pdf/1\n";
/// What ends a page in what the process sends.
const PAGE_END: char = '\u{c}';
/// A line is repeated if it stands on this many pages, and on a third of them.
const REPEATED: usize = 4;

/// Reads a file's bytes in another process, or says why it cannot be read.
pub fn read(bytes: &[u8]) -> Result<Content, String> {
    let program = match std::env::var_os(PROGRAM) {
        Some(program) => PathBuf::from(program),
        None => {
            std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?
        }
    };
    let mut command = Command::new(program);
    command.arg(SUBCOMMAND);
    let text = text_from(command, bytes, TIME)?;
    let pages = text.strip_prefix(GREETING);
    content(
        pages.ok_or("the program called to read it is no PDF reader; unset FLORILEGIUM_PROGRAM")?,
    )
}

/// Runs the process on these bytes for at most this long.
fn text_from(mut command: Command, bytes: &[u8], time: Duration) -> Result<String, String> {
    let failed = |what: &str, error: io::Error| format!("cannot {what} the PDF reader: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed("start", error))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // All three pipes at once, or a full one would stop the process.
        scope.spawn(move || {
            // A process that has gone away says why by its end.
            let _ = stdin.map(|mut stdin| stdin.write_all(bytes));
        });
        let text = scope.spawn(move || all_of(stdout, TEXT));
        let message = scope.spawn(move || all_of(stderr, 1 << 16));
        let ended = child.wait_timeout(time).map_err(|error| failed("wait for", error));
        if !matches!(ended, Ok(Some(_))) {
            // It may just have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let text = text.join().unwrap_or_default();
        let message = message.join().unwrap_or_default();
        match ended? {
            None => Err(format!("reading it took more than {} s", time.as_secs())),
            Some(status) if status.success() => {
                String::from_utf8(text).map_err(|_| "the PDF reader gave no text".to_owned())
            }
            Some(status) => {
                let message = String::from_utf8_lossy(&message);
                let last = message.lines().rev().find(|line| !line.trim().is_empty());
                Err(match last {
                    Some(line) => format!("it cannot be read: {}", line.trim()),
                    None => format!("reading it failed ({status})"),
                })
            }
        }
    })
}

fn all_of(pipe: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What was read before an error is judged like any other text.
        let _ = pipe.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

/// The other process: reads a PDF from standard input, writes its pages to standard output.
pub fn serve() -> Result<(), String> {
    let limit = Rlimit { current: Some(MEMORY), maximum: Some(MEMORY) };
    setrlimit(Resource::As, limit).map_err(|error| format!("cannot limit memory: {error}"))?;
    let seconds = Some(TIME.as_secs());
    setrlimit(Resource::Cpu, Rlimit { current: seconds, maximum: seconds })
        .map_err(|error| format!("cannot limit time: {error}"))?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let pages = pages(&bytes)?;
    let mut out = io::stdout().lock();
    out.write_all(GREETING.as_bytes()).map_err(|error| error.to_string())?;
    for page in pages {
        let page = page.replace(PAGE_END, "\n");
        out.write_all(page.as_bytes()).map_err(|error| error.to_string())?;
        out.write_all(&[PAGE_END as u8]).map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())
}

/// The text of each page. May panic, hang or ask for much memory: only for [`serve`] and tests.
fn pages(bytes: &[u8]) -> Result<Vec<String>, String> {
    let mut document = Document::load_mem(bytes).map_err(|error| error.to_string())?;
    if document.is_encrypted() {
        document
            .decrypt("")
            .map_err(|_| "it is encrypted; save it without a password".to_owned())?;
    }
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let text = |page: u32| {
        let mut text = String::new();
        output_doc_page(&document, &mut PlainTextOutput::new(&mut text), page)
            .map_err(|error| format!("page {page}: {error}"))?;
        Ok(text)
    };
    pages.into_iter().map(text).collect()
}

/// The blocks of a text whose pages end in form feeds.
fn content(text: &str) -> Result<Content, String> {
    let pages: Vec<&str> = text.split_terminator(PAGE_END).collect();
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    if letters == 0 {
        return Err(format!(
            "its {} pages hold no text: it is a scan; run a text recognition (OCR) over it first",
            pages.len()
        ));
    }
    let repeated = repeated(&pages);
    let pages: Vec<(String, String)> = pages
        .iter()
        .enumerate()
        .map(|(index, page)| (format!("{}", index + 1), without(page, &repeated)))
        .collect();
    let mut content = plain::read_pages(&pages);
    // What is thin for its pages may be a scan with a printed stamp on it.
    if letters < pages.len() * 20 {
        let message = format!(
            "{letters} letters on {} pages: it may be a scan for the most part",
            pages.len()
        );
        content.warnings.push(message.into());
    }
    Ok(content)
}

/// The lines that stand first or last on many pages, digits aside: running heads and page numbers.
fn repeated(pages: &[&str]) -> HashMap<String, usize> {
    let mut lines: HashMap<String, usize> = HashMap::new();
    for page in pages {
        let mut edges: Vec<String> = edges(page).map(|(_, line)| bare(line)).collect();
        edges.sort_unstable();
        edges.dedup();
        for line in edges {
            *lines.entry(line).or_default() += 1;
        }
    }
    lines.retain(|_, count| *count >= REPEATED.max(pages.len() / 3));
    lines
}

/// The first and the last two lines of a page that are not blank, with their numbers.
fn edges(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<(usize, &str)> =
        page.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let count = lines.len();
    lines
        .into_iter()
        .enumerate()
        .filter(move |(at, _)| *at < 2 || at + 2 >= count)
        .map(|(_, line)| line)
}

/// A line as it is compared: without digits and spaces.
fn bare(line: &str) -> String {
    line.chars().filter(|c| !c.is_numeric() && !c.is_whitespace()).collect()
}

/// The page without the repeated lines at its edges.
fn without(page: &str, repeated: &HashMap<String, usize>) -> String {
    let left_out: Vec<usize> = edges(page)
        .filter(|(_, line)| repeated.contains_key(&bare(line)))
        .map(|(number, _)| number)
        .collect();
    let kept = page.lines().enumerate().filter(|(number, _)| !left_out.contains(number));
    kept.map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
