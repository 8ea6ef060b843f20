//! The pages that describe these bytes in words say what the code does.
//!
//! Examples and the table of error codes in `docs/protocol.md` are rendered here; `UPDATE_GOLDEN=1` writes them.
//! Every table of bytes in a module's documentation stands in one of the pages, letter by letter.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tackboard_schema::frame::{ApiKey, Kind, PREFIX_LENGTH, encode_head};
use tackboard_schema::native::{HeadBuilder, HelloRequest, HelloRequestArgs};
use tackboard_schema::record_batch::{BatchBuilder, Compression, HEADER_LENGTH};
use tackboard_schema::{CorrelationId, ErrorCode, TimestampMs};

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Several tests render into one page.
static WRITING: Mutex<()> = Mutex::new(());

/// Compares what stands between two marks of a page with what should stand there.
fn assert_rendered(name: &str, mark: &str, rendered: &str) {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = page(name);
    let text = read(&path);
    let (begin, end) = (
        format!("<!-- {mark}: begin -->\n"),
        format!("<!-- {mark}: end -->"),
    );
    let (before, rest) = text
        .split_once(&begin)
        .unwrap_or_else(|| panic!("{name} has no mark {begin:?}"));
    let (found, after) = rest
        .split_once(&end)
        .unwrap_or_else(|| panic!("{name} has no mark {end:?}"));
    if found == rendered {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_GOLDEN").is_some(),
        "{name}: {mark} is stale; UPDATE_GOLDEN=1 renders it anew"
    );
    std::fs::write(&path, format!("{before}{begin}{rendered}{end}{after}")).unwrap();
}

/// Lines of 16 bytes, beginning anew at each of `breaks` with what comes there.
fn hex(bytes: &[u8], breaks: &[(usize, &str)]) -> String {
    let mut text = "```\n".to_owned();
    let mut ends = breaks
        .iter()
        .skip(1)
        .map(|(at, _)| *at)
        .chain([bytes.len()]);
    for (start, what) in breaks {
        let part = &bytes[*start..ends.next().unwrap()];
        for (index, line) in part.chunks(16).enumerate() {
            let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let what = if index == 0 { what } else { "" };
            let line = format!(
                "{:04}  {:<47}  {what}",
                start + index * 16,
                digits.join(" ")
            );
            writeln!(text, "{}", line.trim_end()).unwrap();
        }
    }
    text + "```\n"
}

#[test]
fn the_example_of_a_frame_is_what_we_send() {
    let mut heads = HeadBuilder::new();
    let head = heads.build(|builder| {
        let client_id = Some(builder.create_string("example"));
        HelloRequest::create(
            builder,
            &HelloRequestArgs {
                client_id,
                ..Default::default()
            },
        )
    });
    let mut frame = Vec::new();
    encode_head(
        &mut frame,
        Kind::Request,
        ApiKey::Hello,
        CorrelationId(1),
        head,
        0,
    );
    let prefix = [
        (0, "total length"),
        (4, "length of the head"),
        (8, "correlation id"),
        (16, "version, kind, API key"),
        (20, "CRC-32C"),
        (PREFIX_LENGTH, "head and its padding"),
    ];
    assert_rendered("protocol.md", "example of a frame", &hex(&frame, &prefix));
}

#[test]
fn the_example_of_a_record_batch_is_what_we_send() {
    let mut builder = BatchBuilder::new(TimestampMs(1_700_000_000_000));
    builder
        .append(
            TimestampMs(1_700_000_000_000),
            Some(b"key"),
            Some(b"value"),
            &[],
        )
        .unwrap();
    let batch = builder.finish(None, Compression::None);
    let fields = [
        (0, "base offset"),
        (8, "batch length"),
        (12, "partition leader epoch"),
        (16, "magic"),
        (17, "CRC-32C"),
        (21, "attributes"),
        (23, "last offset delta"),
        (27, "base timestamp"),
        (35, "greatest timestamp"),
        (43, "producer id"),
        (51, "producer epoch"),
        (53, "base sequence"),
        (57, "number of records"),
        (
            HEADER_LENGTH,
            "record: length 14, attributes, timestamp, offset",
        ),
        (65, "key"),
        (69, "value"),
        (75, "number of headers"),
    ];
    assert_rendered(
        "protocol.md",
        "example of a record batch",
        &hex(&batch, &fields),
    );
}

#[test]
fn the_table_of_error_codes_is_that_of_the_code() {
    let mut table = "| code | name | again | meaning |\n|---|---|---|---|\n".to_owned();
    for code in ErrorCode::ALL {
        let again = if code.retriable() { "yes" } else { "" };
        writeln!(
            table,
            "| {} | `{}` | {again} | {} |",
            code.code(),
            code.name(),
            code.text()
        )
        .unwrap();
    }
    assert_rendered("protocol.md", "error codes", &table);
}

#[test]
fn every_table_of_bytes_in_the_code_stands_in_the_pages() {
    let pages = read(&page("protocol.md")) + &read(&page("storage-format.md"));
    let mut found = 0;
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        for table in tables(&read(&file)) {
            found += 1;
            assert!(
                pages.contains(&table),
                "{}: no page has this table:\n{table}",
                file.display()
            );
        }
    }
    assert!(found >= 11, "only {found} tables were found");
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The tables that begin with a byte position, without the marks of the comment.
fn tables(source: &str) -> Vec<String> {
    let mut tables = Vec::new();
    let mut lines = source
        .lines()
        .map(|line| line.strip_prefix("//! ").unwrap_or(""));
    while let Some(line) = lines.next() {
        if line.starts_with("| at | type | field |") {
            let rest: Vec<&str> = lines
                .by_ref()
                .take_while(|line| line.starts_with('|'))
                .collect();
            tables.push(format!("{line}\n{}\n", rest.join("\n")));
        }
    }
    tables
}
