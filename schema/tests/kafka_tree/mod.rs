//! Compares structures of different crates by what `Debug` shows of them.
//!
//! Names of types don't count, nor do wrappers of one value, nor the order of fields.

use std::{collections::BTreeMap, iter::Peekable, str::CharIndices};

/// What is shown.
#[derive(Debug, PartialEq)]
enum Tree {
    Fields(BTreeMap<String, Tree>),
    List(Vec<Tree>),
    /// Anything else, as it is shown.
    Leaf(String),
}

/// Every field of `ours` must be one of `theirs`, with the same value.
pub fn assert_within(ours: &str, theirs: &str) {
    compare("", &tree(ours), &tree(theirs));
}

fn compare(path: &str, ours: &Tree, theirs: &Tree) {
    match (ours, theirs) {
        (Tree::Fields(ours), Tree::Fields(theirs)) => {
            for (name, value) in ours {
                let path = format!("{path}.{name}");
                let other = theirs.get(name);
                compare(
                    &path,
                    value,
                    other.unwrap_or_else(|| panic!("{path} in {theirs:?}")),
                );
            }
        }
        (Tree::List(ours), Tree::List(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{path}");
            for (index, (one, other)) in ours.iter().zip(theirs).enumerate() {
                compare(&format!("{path}[{index}]"), one, other);
            }
        }
        _ => assert_eq!(ours, theirs, "{path}"),
    }
}

fn tree(shown: &str) -> Tree {
    let mut reader = Reader {
        text: shown,
        at: shown.char_indices().peekable(),
    };
    let tree = reader.tree();
    assert_eq!(reader.at.next(), None, "{shown}");
    tree
}

struct Reader<'a> {
    text: &'a str,
    at: Peekable<CharIndices<'a>>,
}

impl Reader<'_> {
    fn take(&mut self, wanted: char) -> bool {
        while self.at.next_if(|(_, found)| *found == ' ').is_some() {}
        self.at.next_if(|(_, found)| *found == wanted).is_some()
    }

    /// Letters, digits and what numbers and ids are made of.
    fn word(&mut self) -> String {
        let is_part = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
        let mut word = String::new();
        while let Some((_, letter)) = self.at.next_if(|(_, letter)| is_part(*letter)) {
            word.push(letter);
        }
        word
    }

    fn tree(&mut self) -> Tree {
        if self.take('[') {
            return Tree::List(self.until(']', Reader::tree));
        }
        if self.take('{') {
            // The map of unknown tagged fields; there are none.
            assert!(self.take('}'));
            return Tree::Fields(BTreeMap::new());
        }
        let begin = self.at.peek().map_or(self.text.len(), |(at, _)| *at);
        let word = self.word();
        if (word.is_empty() || word == "b") && self.take('"') {
            self.string();
            let end = self.at.peek().map_or(self.text.len(), |(at, _)| *at);
            return Tree::Leaf(self.text[begin..end].to_owned());
        }
        assert!(!word.is_empty(), "{}", &self.text[begin..]);
        if self.take('(') {
            let mut inner = self.until(')', Reader::tree);
            assert_eq!(inner.len(), 1);
            return inner.remove(0);
        }
        if self.take('{') {
            let fields = self.until('}', |reader| {
                reader.take(' ');
                let name = reader.word();
                assert!(reader.take(':'), "{name}");
                (name, reader.tree())
            });
            return Tree::Fields(fields.into_iter().collect());
        }
        // Ids are shown with and without dashes.
        Tree::Leaf(match word.len() {
            36 => word.replace('-', ""),
            _ => word,
        })
    }

    fn until<T>(&mut self, end: char, read: fn(&mut Self) -> T) -> Vec<T> {
        let mut found = Vec::new();
        while !self.take(end) {
            found.push(read(self));
            self.take(',');
        }
        found
    }

    /// The rest of a string, with its quote.
    fn string(&mut self) {
        loop {
            match self.at.next().expect("a string ends").1 {
                '"' => return,
                '\\' => drop(self.at.next()),
                _ => {}
            }
        }
    }
}

#[test]
fn differences_are_seen() {
    let ours = r#"A { name: "x, \"{", of: [1, -2], bytes: Some(b"\0"), id: Id(00ff), no: None }"#;
    assert_within(ours, ours);
    assert_within(r#"A { of: [1, -2] }"#, ours);
    for (from, to) in [
        ("x, ", "y, "),
        ("-2", "2"),
        ("-2]", "-2, 3]"),
        (r#"b"\0""#, r#"b"\x01""#),
        ("00ff", "00fe"),
        ("None", "Some(0)"),
        ("of:", "off:"),
    ] {
        let theirs = ours.replacen(from, to, 1);
        assert_ne!(ours, theirs);
        let seen = std::panic::catch_unwind(|| assert_within(ours, &theirs));
        assert!(seen.is_err(), "{theirs}");
    }
}
