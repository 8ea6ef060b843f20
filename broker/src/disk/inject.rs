//! Storage faults on purpose, for tests on the real binary. Only in builds with the feature `inject-faults`.
//!
//! The variable [`VARIABLE`](super::FAULTS_VARIABLE) holds rules, separated by semicolons:
//!
//! ```text
//! OPERATION PATTERN EFFECT [after=N] [times=N]
//!
//! OPERATION   write   a write of a file, whichever way it is opened
//!             sync    what waits for the medium: fdatasync, a write through O_DSYNC, and, as if it were one of a file
//!                     called `p`, a sync of the whole file system
//!             read    a read
//! PATTERN     the last parts of the file's path; a part may hold `*`: p/*-1/*.log, ledger/*, * for all
//! EFFECT      eio         fails: a write before a byte is taken, a sync after all were
//!             short=B     the write takes B bytes; shorter ones don't count. For `write` alone
//!             delay=MS    takes so many milliseconds longer
//!             stuck       never comes back
//! after=N     the first N operations that match are spared (0 unless said)
//! times=N     so many are met then (all unless said)
//! ```
//!
//! Of the rules that match, all that count the operation count it, and the first one that is due meets it. Each fault is
//! logged, of delays the first of each rule: a test counts what met a file by these lines.
//!
//! Not here: preallocation, truncation, folders, sidecar files and the metadata log, which don't pass
//! [`DataFile`](super::file::DataFile)'s reads, writes and syncs. The tests' disk without power fails all of them.

use std::{
    future::pending,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tackboard_logic::shard::interface::StorageFault;

/// What rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A write; before it.
    Write,
    /// What waits for the medium: before fdatasync, after a write through O_DSYNC.
    Sync,
    /// A read; before it.
    Read,
}

/// What an operation meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// EIO.
    Fail,
    /// A write that takes `bytes`.
    Short {
        /// Fewer than it was asked to.
        bytes: usize,
    },
    /// It takes so much longer.
    Delay(Duration),
    /// It never ends.
    Stuck,
}

#[derive(Debug)]
struct Rule {
    text: String,
    operation: Operation,
    pattern: String,
    effect: Effect,
    after: u64,
    times: u64,
    /// Operations that matched so far, on all cores.
    matched: AtomicU64,
}

/// By which path a sync of the whole file system is met.
pub const FILE_SYSTEM: &str = "p";

/// The rules of this process. Without any, nothing is met.
static RULES: OnceLock<Vec<Rule>> = OnceLock::new();

/// Takes the rules, once a process.
///
/// # Errors
/// What is wrong with which rule.
pub fn arm(text: &str) -> Result<(), String> {
    let rules = parse(text)?;
    RULES
        .set(rules)
        .map_err(|_| "the rules are set already".to_owned())
}

/// Waits for what an operation meets. Some: the write takes so many bytes and no more.
///
/// # Errors
/// The fault to report.
pub async fn suffer(effect: Option<Effect>) -> Result<Option<usize>, StorageFault> {
    match effect {
        None => Ok(None),
        Some(Effect::Fail) => Err(StorageFault::Io {
            os_error: libc::EIO,
        }),
        Some(Effect::Short { bytes }) => Ok(Some(bytes)),
        Some(Effect::Delay(time)) => {
            glommio::timer::sleep(time).await;
            Ok(None)
        }
        Some(Effect::Stuck) => pending().await,
    }
}

/// What an operation on the file at `path` meets; `length` is that of a write.
pub fn due(operation: Operation, path: &Path, length: usize) -> Option<Effect> {
    let mut found = None;
    for rule in RULES.get()? {
        if rule.operation != operation || !rule.counts(length) || !matches(&rule.pattern, path) {
            continue;
        }
        let number = rule.matched.fetch_add(1, Ordering::Relaxed);
        let nth = number.checked_sub(rule.after);
        if found.is_some() || nth.is_none_or(|nth| nth >= rule.times) {
            continue;
        }
        if nth == Some(0) || !matches!(rule.effect, Effect::Delay(_)) {
            tracing::warn!(rule = %rule.text, path = %path.display(), "a storage fault on purpose");
        }
        found = Some(rule.effect);
    }
    found
}

impl Rule {
    /// Whether an operation of `length` bytes can meet it.
    fn counts(&self, length: usize) -> bool {
        match self.effect {
            Effect::Short { bytes } => length > bytes,
            _ => true,
        }
    }
}

/// Whether the last parts of `path` are those of `pattern`.
fn matches(pattern: &str, path: &Path) -> bool {
    let mut parts = path.iter().rev();
    (pattern.rsplit('/')).all(|wanted| {
        let part = parts.next().and_then(|part| part.to_str());
        part.is_some_and(|part| part_matches(wanted.as_bytes(), part.as_bytes()))
    })
}

/// `*` stands for any bytes, also none.
fn part_matches(pattern: &[u8], part: &[u8]) -> bool {
    match pattern.split_first() {
        None => part.is_empty(),
        Some((b'*', rest)) => (0..=part.len()).any(|skip| part_matches(rest, &part[skip..])),
        Some((letter, rest)) => part
            .split_first()
            .is_some_and(|(first, part)| first == letter && part_matches(rest, part)),
    }
}

fn parse(text: &str) -> Result<Vec<Rule>, String> {
    text.split(';')
        .map(|rule| parse_rule(rule).map_err(|what| format!("\"{}\": {what}", rule.trim())))
        .collect()
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let mut words = text.split_whitespace();
    let mut next = |what: &str| words.next().ok_or(format!("{what} is missing"));
    let operation = match next("the operation")? {
        "write" => Operation::Write,
        "sync" => Operation::Sync,
        "read" => Operation::Read,
        other => return Err(format!("{other} is neither write nor sync nor read")),
    };
    let pattern = next("the pattern")?.to_owned();
    let effect = match next("the effect")? {
        "eio" => Effect::Fail,
        "stuck" => Effect::Stuck,
        other => match other.split_once('=') {
            Some(("delay", ms)) => Effect::Delay(Duration::from_millis(number(ms)?)),
            Some(("short", bytes)) if operation == Operation::Write => Effect::Short {
                bytes: number(bytes)? as usize,
            },
            _ => return Err(format!("{other} is no effect of {operation:?}")),
        },
    };
    let (mut after, mut times) = (None, None);
    for word in words {
        let slot = match word.split_once('=') {
            Some(("after", value)) => (&mut after, value),
            Some(("times", value)) => (&mut times, value),
            _ => return Err(format!("{word} is neither after=N nor times=N")),
        };
        if slot.0.replace(number(slot.1)?).is_some() {
            return Err(format!("{word} is said twice"));
        }
    }
    Ok(Rule {
        text: text.trim().to_owned(),
        operation,
        pattern,
        effect,
        after: after.unwrap_or(0),
        times: times.unwrap_or(u64::MAX),
        matched: AtomicU64::new(0),
    })
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_the_grammar_has_them() {
        let rules = parse("write p/*-1/*.log short=512 after=3 times=2; sync ledger/* delay=10");
        let rules = rules.expect("both are right");
        let [write, sync] = &rules[..] else {
            panic!("two rules: {rules:?}");
        };
        assert_eq!(write.effect, Effect::Short { bytes: 512 });
        assert_eq!((write.after, write.times), (3, 2));
        assert_eq!(
            (sync.operation, sync.pattern.as_str()),
            (Operation::Sync, "ledger/*")
        );
        assert_eq!(sync.effect, Effect::Delay(Duration::from_millis(10)));
        assert_eq!((sync.after, sync.times), (0, u64::MAX));
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for (text, fault) in [
            ("", "the operation is missing"),
            ("write *.log", "the effect is missing"),
            ("write *.log eio;", "the operation is missing"),
            ("move *.log eio", "move is neither"),
            ("sync *.log short=4", "short=4 is no effect of Sync"),
            ("sync *.log delay=2ms", "2ms is no number"),
            ("sync *.log eio after", "after is neither"),
            ("sync *.log eio after=1 after=2", "after=2 is said twice"),
            ("sync *.log eio times=-1", "-1 is no number"),
        ] {
            let told = parse(text).expect_err(text);
            assert!(told.contains(fault), "{text}: {told}");
        }
    }

    #[test]
    fn a_pattern_holds_the_last_parts_of_a_path() {
        let path = Path::new("/data/p/00ff-1/00000000000000000000.log");
        for (pattern, holds) in [
            ("*.log", true),
            ("*-1/*.log", true),
            ("p/*-1/*", true),
            ("*-2/*.log", false),
            ("*.idx", false),
            ("*", true),
            ("0*0.log", true),
            ("a/b/c/d/e/f/*", false),
        ] {
            assert_eq!(matches(pattern, path), holds, "{pattern}");
        }
    }
}
