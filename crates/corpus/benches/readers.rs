//! Speed of the readers: bytes of source a second, by format, on texts made here.

#![allow(missing_docs)]

use std::hint::black_box;
use std::io::{Cursor, Write};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use florilegium_corpus::document::Reading;
use florilegium_corpus::{epub, html, jsonl, markdown, plain, segment, tei};
use zip::write::{SimpleFileOptions, ZipWriter};

/// Paragraphs of a text.
const PARAGRAPHS: usize = 2000;

const PARAGRAPH: &str = "La dernière chose qu’on trouve en faisant un ouvrage est de savoir celle qu’il faut mettre la première ; et le cœur a ses raisons, dit M. Pascal, que la raison ne connaît point.\nOn le sait en mille choses : « Je dis que le cœur aime l’être universel naturellement, et soi-même naturellement, selon qu’il s’y adonne. »";

fn repeated(write: impl Fn(usize) -> String) -> String {
    (0..PARAGRAPHS).map(write).collect()
}

fn page() -> String {
    repeated(|n| {
        format!("<h2 id=h{n}>Chapitre {n}</h2><p>{PARAGRAPH}<a href='#n{n}'><sup>1</sup></a></p>\n")
    })
}

fn book() -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let package = "<package><manifest><item id='a' href='a.xhtml' media-type='application/xhtml+xml'/></manifest><spine><itemref idref='a'/></spine></package>";
    let container = "<container><rootfiles><rootfile full-path='b.opf'/></rootfiles></container>";
    for (name, text) in
        [("META-INF/container.xml", container), ("b.opf", package), ("a.xhtml", &page())]
    {
        zip.start_file(name, SimpleFileOptions::default()).expect("in memory");
        zip.write_all(text.as_bytes()).expect("in memory");
    }
    zip.finish().expect("in memory").into_inner()
}

fn readers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    group.sample_size(10);
    let mut bench = |name: &str, size: usize, read: &dyn Fn()| {
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(name, |bencher| bencher.iter(read));
    };
    let source = page();
    bench("html", source.len(), &|| drop(black_box(html::read(&source))));
    let body = repeated(|n| {
        format!(
            "<div><head>{n}</head><pb n='{n}'/><p>{}<note>Une note.</note></p></div>\n",
            PARAGRAPH.replace(' ', " <lb/>")
        )
    });
    let source = format!("<TEI><text><body>{body}</body></text></TEI>");
    bench("tei", source.len(), &|| drop(black_box(tei::read(&source, "a.xml", Reading::Original))));
    let source = repeated(|n| format!("{PARAGRAPH} {n}\n\n"));
    bench("text", source.len(), &|| drop(black_box(plain::read(&source))));
    let source = repeated(|n| format!("## {n}\n\n{PARAGRAPH}[^{n}]\n\n[^{n}]: Une *note*.\n\n"));
    bench("markdown", source.len(), &|| drop(black_box(markdown::read(&source))));
    let source = repeated(|n| format!("{}\n", serde_json::json!({ "id": n, "text": PARAGRAPH })));
    bench("jsonl", source.len(), &|| drop(black_box(jsonl::read(&source))));
    let source = book();
    bench("epub (unpacked size)", page().len(), &|| drop(black_box(epub::read(&source))));
    let document = plain::read(&repeated(|n| format!("{PARAGRAPH} {n}\n\n")))
        .into_document("c", "a.txt", "fr");
    let languages = ["fr".to_owned(), "en".to_owned()];
    bench("segment", document.text.len(), &|| {
        drop(black_box(segment(&document, &languages, &|text| text.len() / 4 + 2, 180)));
    });
}

criterion_group!(benches, readers);
criterion_main!(benches);
