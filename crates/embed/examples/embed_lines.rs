//! Reads lines from standard input and writes the vector of each as a JSON array on a line of its
//! own; says on standard error how many tokens a second that took.
//!
//! ```text
//! embed_lines WEIGHTS TOKENIZER [--query] [--quantized] [--threads N] < lines > vectors
//! ```

use std::error::Error;
use std::io::{BufWriter, Read, Write};
use std::time::Instant;

use florilegium_embed::{Arithmetic, EmbedConfig, Embedder};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    let (mut query, mut arithmetic, mut threads) = (false, Arithmetic::default(), None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--query" => query = true,
            "--quantized" => arithmetic = Arithmetic::Quantized,
            "--threads" => threads = Some(arguments.next().ok_or("--threads N")?.parse()?),
            _ => files.push(argument),
        }
    }
    let [weights, tokenizer] = files.as_slice() else {
        return Err(
            "usage: embed_lines WEIGHTS TOKENIZER [--query] [--quantized] [--threads N]".into()
        );
    };
    let started = Instant::now();
    let config = EmbedConfig { threads, arithmetic, ..EmbedConfig::new(weights, tokenizer) };
    let embedder = Embedder::open(&config)?;
    eprintln!("opened in {:.2} s", started.elapsed().as_secs_f64());

    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let lines: Vec<&str> = text.lines().collect();
    let started = Instant::now();
    let tokens: usize = lines.iter().map(|line| embedder.count_tokens(line)).sum();
    eprintln!("counted {tokens} tokens in {:.2} s", started.elapsed().as_secs_f64());
    let started = Instant::now();
    let vectors = if query {
        lines.iter().map(|line| embedder.question(line)).collect::<Result<Vec<_>, _>>()?
    } else {
        embedder.passages(&lines, &mut |_, _| {})?
    };
    let seconds = started.elapsed().as_secs_f64();
    eprintln!(
        "{} texts, {tokens} tokens in {seconds:.2} s: {:.1} texts/s, {:.0} tokens/s",
        lines.len(),
        lines.len() as f64 / seconds,
        tokens as f64 / seconds
    );
    let mut out = BufWriter::new(std::io::stdout().lock());
    for vector in vectors {
        serde_json::to_writer(&mut out, &vector)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}
