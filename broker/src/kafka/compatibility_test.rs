//! The tables of `docs/kafka-compatibility.md`: APIs as they are advertised, clients as `.ci/clients` last found them,
//! published suites as `.ci/published-suites` did.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;
use tackboard_schema::kafka::API_TABLE;

use super::handlers::OFFERED;
use crate::golden;

const PAGE: &str = "docs/kafka-compatibility.md";

#[test]
fn the_page_shows_the_apis_that_are_advertised() {
    let mut table = String::from("| key | API | versions |\n|---|---|---|\n");
    for row in &API_TABLE {
        let versions = match OFFERED.contains(&row.key) {
            true => row.advertised.to_string(),
            false => "not offered".to_owned(),
        };
        let _ = write!(table, "| {} | {} | {versions}", row.key.code(), row.name);
        if OFFERED.contains(&row.key) && row.advertised.min < row.served.min {
            let _ = write!(table, "; below {} closed", row.served.min);
        }
        table += " |\n";
    }
    golden::check_section(PAGE, "apis", &table);
}

#[test]
fn the_page_shows_the_clients_that_ran() {
    let kept: Value = serde_json::from_str(include_str!("../../../docs/kafka-clients.json"))
        .expect("written by .ci/clients");
    golden::check_section(PAGE, "clients", &matrix(&kept));
}

/// One row a client, one column a scenario; below it, what a client can't do.
fn matrix(kept: &Value) -> String {
    let clients = || kept["clients"].as_object().into_iter().flatten();
    let scenarios: Vec<&str> = kept["scenarios"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut out = format!(
        "| client | package | version | {} |\n",
        scenarios.join(" | ")
    );
    let _ = writeln!(out, "|---|---|---|{}", "---|".repeat(scenarios.len()));
    for (name, row) in clients() {
        let text = |field: &str| row[field].as_str().unwrap_or("none").to_owned();
        let _ = write!(
            out,
            "| {name} | {} | {} |",
            text("package"),
            text("version")
        );
        for scenario in &scenarios {
            let found = row["scenarios"][*scenario].as_str().unwrap_or("");
            let _ = write!(out, " {found} |");
        }
        out.push('\n');
    }
    out.push('\n');
    for (name, row) in clients() {
        let without = row["without"].as_object().into_iter().flatten();
        let without: Vec<String> = without
            .map(|(what, why)| format!("{what} ({})", why.as_str().unwrap_or("")))
            .collect();
        if !without.is_empty() {
            let _ = writeln!(out, "- {name} without {}.", without.join("; "));
        }
    }
    out
}

#[test]
fn a_scenario_that_failed_and_a_client_without_a_version_are_told() {
    let kept = serde_json::json!({
        "scenarios": ["bytes", "group"],
        "clients": {"old": {
            "package": "Debian: old", "version": null, "scenarios": {"group": "failed"},
            "without": {"timestamps": "it sets none"},
        }},
    });
    let expected = "\
| client | package | version | bytes | group |
|---|---|---|---|---|
| old | Debian: old | none |  | failed |

- old without timestamps (it sets none).
";
    assert_eq!(matrix(&kept), expected);
}

#[test]
fn the_page_shows_the_suites_that_ran() {
    let kept: Value = serde_json::from_str(include_str!("../../../docs/kafka-suites.json"))
        .expect("written by .ci/published-suites");
    golden::check_section(PAGE, "suites", &suites(&kept));
}

/// One row a suite; below it, what did not pass, by what it takes.
fn suites(kept: &Value) -> String {
    let suites = || kept.as_object().into_iter().flatten();
    let mut out = String::from("| suite | package | passed | failed | left out by the suite |\n");
    out += "|---|---|---|---|---|\n";
    for (name, suite) in suites() {
        let count = |outcome: &str| match &suite["tests"][outcome] {
            Value::Array(names) => names.len(),
            Value::Object(names) => names.len(),
            _ => 0,
        };
        let _ = writeln!(
            out,
            "| {name} | {} | {} | {} | {} |",
            suite["package"].as_str().unwrap_or("none"),
            count("passed"),
            count("failed"),
            count("skipped"),
        );
    }
    out += "\n| suite | what | it takes | tests |\n|---|---|---|---|\n";
    for (name, suite) in suites() {
        for outcome in ["failed", "skipped"] {
            let mut by_reason = BTreeMap::<&str, Vec<&str>>::new();
            for (test, reason) in suite["tests"][outcome].as_object().into_iter().flatten() {
                let reason = reason.as_str().filter(|reason| !reason.is_empty());
                let reason =
                    reason.unwrap_or_else(|| panic!("{name} {test} {outcome}: nothing says why"));
                by_reason.entry(reason).or_default().push(test);
            }
            for (reason, tests) in by_reason {
                let _ = writeln!(
                    out,
                    "| {name} | {outcome} | {reason} | {} |",
                    tests.join(", ")
                );
            }
        }
    }
    out
}

#[test]
fn what_a_suite_lacks_is_told_with_the_tests_that_lack_it() {
    let kept = serde_json::json!({"old": {
        "package": "Debian: old",
        "tests": {
            "passed": ["1", "2"],
            "failed": {"3": "transactions", "4": "quotas", "5": "transactions"},
            "skipped": {"6": "TLS"},
        },
    }});
    let expected = "\
| suite | package | passed | failed | left out by the suite |
|---|---|---|---|---|
| old | Debian: old | 2 | 3 | 1 |

| suite | what | it takes | tests |
|---|---|---|---|
| old | failed | quotas | 4 |
| old | failed | transactions | 3, 5 |
| old | skipped | TLS | 6 |
";
    assert_eq!(suites(&kept), expected);
}

#[test]
#[should_panic(expected = "old 3 failed: nothing says why")]
fn a_test_that_fails_for_no_reason_is_not_shown() {
    let tests = serde_json::json!({"passed": [], "failed": {"3": ""}, "skipped": {}});
    suites(&serde_json::json!({"old": {"package": "Debian: old", "tests": tests}}));
}
