//! Paths and links in the documents lead somewhere.
//!
//! Documents drift when code moves. What can be held against the repository is: every link between pages and every
//! heading that a link names, every path from the root of the repository, the places of its table of layers, and the list of
//! decisions.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Words in backticks and in code that begin with one of these are paths from the root of the repository.
const TOP_FOLDERS: &[&str] = &[
    ".ci/", "schema/", "broker/", "client/", "loadgen/", "perf/", "config/", "docs/",
];

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let pages = pages();
    for (page, text) in &pages {
        for (line, target) in links(text) {
            if let Some(fault) = fault_of_link(page, text, target, &pages) {
                broken.push(format!("{}:{line}: {target}: {fault}", shown(page)));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn every_path_of_the_repository_that_a_page_names_exists() {
    let mut found = BTreeMap::new();
    let mut broken = Vec::new();
    for (page, text) in &pages() {
        let count: &mut usize = found.entry(shown(page)).or_default();
        for (line, word) in words_in_backticks(text)
            .into_iter()
            .chain(words_in_code(text))
        {
            for path in paths_of(word) {
                *count += 1;
                if !root().join(&path).exists() {
                    broken.push(format!("{}:{line}: {path} does not exist", shown(page)));
                }
            }
        }
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    for (page, least) in [
        ("docs/ARCHITECTURE.md", 50),
        ("docs/testing.md", 15),
        ("README.md", 3),
    ] {
        assert!(
            found[page] >= least,
            "only {} paths were found on {page}",
            found[page]
        );
    }
}

/// The paths from the root of the repository that a word names; `a/{b,c}` names two. What stands for any of several
/// (`perf/results/…`, `config/NAME`) is none.
fn paths_of(word: &str) -> Vec<String> {
    let word = word.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', ';', ':', '.']);
    let is_one = |word: &str| {
        let is_place_holder = |part: &str| {
            part.contains(['…', '*', '<', '$'])
                || part.len() > 1 && part.chars().all(char::is_uppercase)
        };
        TOP_FOLDERS.iter().any(|folder| word.starts_with(folder))
            && !word.split('/').any(is_place_holder)
    };
    if is_one(word) {
        spread(word)
    } else {
        Vec::new()
    }
}

#[test]
fn the_table_of_layers_names_every_place_that_is_checked() {
    let rules = fs::read_to_string(root().join("broker/tests/layers.rs")).expect("the rules");
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the page");
    let places = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("place: \""))
        .filter_map(|rest| rest.split('"').next());
    let missing: Vec<&str> = places
        .filter(|place| !page.contains(&format!("`{place}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "not in the table of docs/ARCHITECTURE.md: {missing:?}"
    );
}

/// The heading of the table whose rows name tests.
const SURVIVAL: &str = "### What it must survive";

#[test]
fn each_test_that_the_survival_list_names_is_a_test_of_the_file_named_before_it() {
    let page = fs::read_to_string(root().join("docs/testing.md")).expect("the page");
    let (_, list) = page.split_once(SURVIVAL).expect("the list");
    let rows = (list.lines().skip(1))
        .take_while(|line| !line.starts_with('#'))
        .filter(|line| line.starts_with("| ") && !line.starts_with("| what happens"));
    let (mut count, mut broken) = (0, Vec::new());
    for row in rows {
        let tests = row.split('|').nth(2).unwrap_or_default();
        let (mut source, mut named) = (String::new(), 0);
        for word in tests.split('`').skip(1).step_by(2) {
            if word.ends_with(".rs") {
                source = fs::read_to_string(root().join(word)).unwrap_or_default();
            } else if word.matches('_').count() > 2 {
                named += 1;
                if !source.contains(&format!("#[test]\nfn {word}() {{")) {
                    broken.push(format!("{word} is no test of the file named before it"));
                }
            }
        }
        if named == 0 {
            broken.push(format!("no test is named in: {row}"));
        }
        count += 1;
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    assert!(count >= 25, "only {count} rows were found");
}

#[test]
fn the_list_of_decisions_is_complete() {
    let folder = root().join("docs/decisions");
    let list = fs::read_to_string(folder.join("README.md")).expect("the list");
    for entry in fs::read_dir(&folder).expect("the folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        assert!(list.contains(&format!("({name})")), "{name} is not listed");
        let text = fs::read_to_string(entry.path()).expect("a page");
        let number = name.split('-').next().unwrap_or_default();
        let heading = format!("# {number}: ");
        assert!(text.starts_with(&heading), "{name} begins with {heading:?}");
    }
}

#[test]
fn headings_become_anchors_as_on_github() {
    assert_eq!(anchor("## Who may import whom"), "who-may-import-whom");
    assert_eq!(anchor("### Produce (7)"), "produce-7");
    assert_eq!(
        anchor("## Non-obvious: what has bitten us"),
        "non-obvious-what-has-bitten-us"
    );
    assert_eq!(spread("a/{b,c}/d"), ["a/b/d", "a/c/d"]);
    assert_eq!(paths_of("docs/{a,b}.md,"), ["docs/a.md", "docs/b.md"]);
    assert!(paths_of("perf/results/…").is_empty() && paths_of("other/docs/a.md").is_empty());
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the broker lies in the workspace")
}

fn shown(page: &Path) -> String {
    let path = page.strip_prefix(root()).unwrap_or(page);
    path.display().to_string()
}

/// The documents, by path.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![root().join("docs")];
    let mut files = Vec::new();
    for page in [
        "README.md",
        "perf/data/README.md",
        "perf/results/README.md",
        "schema/tests/golden/README.md",
    ] {
        files.push(root().join(page));
    }
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    for path in files {
        let text = fs::read_to_string(&path).expect("a page is readable");
        pages.insert(path, text);
    }
    pages
}

fn fault_of_link(
    page: &Path,
    text: &str,
    target: &str,
    pages: &BTreeMap<PathBuf, String>,
) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let (found, text) = if file.is_empty() {
        (page.to_owned(), Some(text))
    } else {
        let Ok(found) = folder.join(file).canonicalize() else {
            return Some("there is no such file".to_owned());
        };
        let text = pages.iter().find(|(path, _)| {
            path.canonicalize()
                .is_ok_and(|canonical| canonical == found)
        });
        (found, text.map(|(_, text)| text.as_str()))
    };
    if heading.is_empty() {
        return None;
    }
    let headings = text.into_iter().flat_map(str::lines);
    let is_there = headings
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line) == heading);
    (!is_there).then(|| format!("{} has no such heading", shown(&found)))
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        })
        .collect()
}

/// Targets of links outside code, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in lines_of_prose(text) {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("](") {
            let target = after.split(')').next().unwrap_or_default();
            found.push((line, target));
            rest = after;
        }
    }
    found
}

fn words_in_backticks(text: &str) -> Vec<(usize, &str)> {
    lines_of_prose(text)
        .flat_map(|(line, text)| {
            let odd = text.split('`').enumerate().filter(|(at, _)| at % 2 == 1);
            odd.map(move |(_, word)| (line, word))
        })
        .collect()
}

/// Words of code blocks, as commands have them.
fn words_in_code(text: &str) -> Vec<(usize, &str)> {
    let prose: Vec<usize> = lines_of_prose(text).map(|(line, _)| line).collect();
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, text)| (index + 1, text));
    lines
        .filter(|(line, _)| prose.binary_search(line).is_err())
        .flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)))
        .collect()
}

fn lines_of_prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then_some((index + 1, line))
    })
}

/// `a/{b,c}` is two paths.
fn spread(word: &str) -> Vec<String> {
    match (word.split_once('{'), word.split_once('}')) {
        (Some((before, _)), Some((inside, after))) => {
            let inside = inside.split_once('{').map_or("", |(_, inside)| inside);
            let parts = inside.split(',');
            parts.map(|part| format!("{before}{part}{after}")).collect()
        }
        _ => vec![word.to_owned()],
    }
}
