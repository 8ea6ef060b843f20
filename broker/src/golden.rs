//! Files in the repository that are rendered from code, and the check that they still agree.

use std::path::Path;

/// Compares a file, named from the root of the repository, with what the code renders.
/// `UPDATE_GOLDEN=1` writes it instead.
#[track_caller]
pub(crate) fn check(path: &str, rendered: &str) {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(full.parent().expect("a file has a folder"))
            .expect("folder can be made");
        std::fs::write(&full, rendered).expect("file can be written");
        return;
    }
    let kept = std::fs::read_to_string(&full).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(rendered.lines())
        .position(|(left, right)| left != right);
    assert!(
        kept == rendered,
        "{path} is not as rendered (first difference at line {}); \
         UPDATE_GOLDEN=1 cargo test -p tackboard-broker rewrites it",
        differs.unwrap_or_else(|| kept.lines().count().min(rendered.lines().count())) + 1
    );
}

/// The same for a part of a file that is written by hand otherwise: what stands between
/// `<!-- NAME: rendered -->` and `<!-- /NAME -->`.
#[track_caller]
pub(crate) fn check_section(path: &str, name: &str, rendered: &str) {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let page = std::fs::read_to_string(full).expect("the page exists");
    let (begin, end) = (
        format!("<!-- {name}: rendered -->\n"),
        format!("<!-- /{name} -->\n"),
    );
    let (before, rest) = page.split_once(&begin).expect("the section begins");
    let (_, after) = rest.split_once(&end).expect("the section ends");
    check(path, &format!("{before}{begin}{rendered}{end}{after}"));
}
