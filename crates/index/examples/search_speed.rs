//! Speed and recall of the index over synthetic vectors; `benches/run.sh` compares it with FAISS's own
//! Python package on the same index file.
//!
//! `search_speed COUNT FOLDER` makes an index of COUNT vectors in FOLDER and prints one line of JSON.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use florilegium_index::{Filter, Fusion, Index, Origin, Question, Ranking, Row};
use rayon::prelude::*;

const DIMENSION: usize = 384;
const QUESTIONS: usize = 200;
/// Vectors in a cluster, on average.
const CLUSTER: usize = 100;

/// SplitMix64: the same vectors every time, whatever the threads.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Nearly normal: the sum of four uniform numbers.
    fn normal(&mut self) -> f32 {
        let bits = self.next();
        let part = |at: u32| ((bits >> (16 * at)) & 0xFFFF) as f32 / 65_535.0;
        (part(0) + part(1) + part(2) + part(3) - 2.0) * 1.732
    }
}

/// A unit vector near one of the centres. Sentence vectors are clustered, and all lie in one cone.
fn vector(seed: u64, clusters: usize) -> Vec<f32> {
    let mut own = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95));
    let mut centre = Random(own.next() % clusters as u64 + 1);
    let mut vector: Vec<f32> =
        (0..DIMENSION).map(|_| 1.0 + centre.normal() + 0.7 * own.normal()).collect();
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|x| *x /= norm);
    vector
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "search_speed COUNT FOLDER";
    let count: usize = arguments.next().ok_or(usage)?.parse()?;
    let folder = arguments.next().ok_or(usage)?;
    let folder = Path::new(&folder);
    let clusters = count.div_ceil(CLUSTER);
    let vectors: Vec<Vec<f32>> =
        (0..count as u64).into_par_iter().map(|seed| vector(seed, clusters)).collect();
    let text = |seed: u64| {
        let mut random = Random(seed);
        // The square makes some words common and most rare, as in a language.
        let word = |n: u64| {
            let share = (n % 10_000) as f64 / 10_000.0;
            (share * share * 50_000.0) as u64
        };
        (0..40).map(|_| format!("w{} ", word(random.next()))).collect::<String>()
    };
    let texts: Vec<String> = (0..count as u64).into_par_iter().map(text).collect();
    let rows: Vec<Row<'_>> = vectors
        .iter()
        .zip(&texts)
        .enumerate()
        .map(|(passage, (vector, text))| Row {
            passage,
            collection: "c",
            language: "en",
            vector,
            text,
        })
        .collect();
    let origin = Origin { corpus: count.to_string(), model: "m".into(), dimension: DIMENSION };
    let start = Instant::now();
    let built = Index::build(folder, origin.clone(), &rows)?;
    let build_seconds = start.elapsed().as_secs_f64();
    let kind = built.kinds().next().map(|(_, _, kind)| kind.to_string()).unwrap_or_default();
    drop(built);

    let questions: Vec<Vec<f32>> =
        (0..QUESTIONS as u64).map(|at| vector(u64::MAX - at, clusters)).collect();
    let start = Instant::now();
    let index = Index::open(folder, &origin)?;
    let dense = Ranking { fusion: Fusion::Dense, pool: 10, ..Ranking::default() };
    let ask = |number: usize, ranking: &Ranking| {
        let text = texts[number * 7 % count].split_at(40).0;
        let question = Question { vector: &questions[number], text };
        index.search(question, &Filter::default(), 10, ranking)
    };
    ask(0, &dense)?;
    let open_seconds = start.elapsed().as_secs_f64();
    let time = |ranking: &Ranking| -> Result<f64, Box<dyn Error>> {
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            for number in 0..QUESTIONS {
                ask(number, ranking)?;
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best / QUESTIONS as f64 * 1e3)
    };
    let dense_ms = time(&dense)?;
    let fused_ms = time(&Ranking::default())?;

    let mut found = 0;
    for (number, question) in questions.iter().enumerate() {
        let mut truth: Vec<(usize, f32)> = vectors
            .par_iter()
            .map(|vector| vector.iter().zip(question).map(|(a, b)| a * b).sum())
            .enumerate()
            .collect();
        truth.select_nth_unstable_by(10, |a, b| b.1.total_cmp(&a.1));
        let hits = ask(number, &dense)?;
        found += hits.iter().filter(|h| truth[..10].iter().any(|t| t.0 == h.passage)).count();
    }
    let mut file = std::fs::File::create(folder.join("questions.f32"))?;
    for x in questions.iter().flatten() {
        file.write_all(&x.to_le_bytes())?;
    }
    let resident = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = resident.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!(
        "{{\"count\": {count}, \"kind\": \"{kind}\", \"build_s\": {build_seconds:.1}, \
         \"open_to_first_answer_s\": {open_seconds:.3}, \"dense_ms\": {dense_ms:.3}, \
         \"fused_ms\": {fused_ms:.3}, \"recall_at_10\": {:.4}, \"peak\": \"{}\"}}",
        found as f64 / (QUESTIONS * 10) as f64,
        resident.split_whitespace().skip(1).collect::<Vec<_>>().join(" "),
    );
    Ok(())
}
