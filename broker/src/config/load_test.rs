use std::io::Write as _;

use super::*;
use crate::config::DirectIo;
use tackboard_schema::{Acks, Durability};

fn host() -> Host {
    Host {
        cpus: vec![0, 1],
        memory_bytes: 8 << 30,
        file_system_bytes: 100 << 30,
        open_files_max: 20_000,
    }
}

fn load_text(text: &str, sets: &[&str]) -> Result<Config, Faults> {
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(text.as_bytes()).expect("write");
    let sources = Sources {
        file: Some(file.path().to_owned()),
        data_dir: None,
        sets: sets.iter().map(|set| (*set).to_owned()).collect(),
    };
    load_for(&sources, |_| host())
}

fn load_sets(sets: &[&str]) -> Result<Config, Faults> {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    load_for(
        &Sources {
            sets,
            ..Sources::default()
        },
        |_| host(),
    )
}

fn only_fault(result: Result<Config, Faults>) -> Fault {
    let faults = result.expect_err("is refused").faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults.into_iter().next().expect("one")
}

#[test]
fn without_any_source_all_is_default() {
    let config = load_sets(&[]).expect("defaults are valid");
    assert_eq!(config.cores, [0, 1]);
    assert_eq!(config.native_bind.to_string(), "127.0.0.1:7400");
    assert_eq!(config.http_bind.map(|http| http.port()), Some(8400));
    assert_eq!(
        (config.acks_default, config.acks_min),
        (Acks::All, Acks::Count(0))
    );
    assert_eq!(config.durability_default, Durability::Fsync);
    assert_eq!(config.segment_bytes, 128 << 20);
    assert_eq!(config.segment_age.as_secs(), 12 * 3600);
    assert_eq!(
        config.retention.map(|retention| retention.as_secs()),
        Some(7 * 86_400)
    );
    assert_eq!(config.batch_bytes_max, 1_048_588);
    assert_eq!(config.memory.total_bytes, 2 << 30);
    assert_eq!(config.reserve_bytes, 1 << 30);
    assert_eq!(config.direct_io, DirectIo::Require);
}

#[test]
fn the_rendered_file_says_what_the_defaults_say() {
    let from_file =
        load_text(&crate::config::render::file(), &[]).expect("the rendered file is valid");
    let defaults = load_sets(&[]).expect("defaults are valid");
    assert_eq!(format!("{from_file:?}"), format!("{defaults:?}"));
}

#[test]
fn the_example_of_one_node_is_valid() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/one-node.toml");
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let config = load_for(&sources, |_| host()).expect("valid");
    assert_eq!(
        config.native_core_advertised_host.as_deref(),
        Some("broker-1.example.org")
    );
}

#[test]
fn dotted_keys_and_tables_name_the_same_settings() {
    let config = load_text(
        "acks.default = 1\n[durability]\ndefault = \"interval\"\ninterval = \"20 ms\"\n[log]\nsegment.bytes = \"4 MiB\"\n",
        &[],
    )
    .expect("valid");
    assert_eq!(config.acks_default, Acks::Count(1));
    assert_eq!(config.durability_default, Durability::Interval);
    assert_eq!(config.durability_interval.as_millis(), 20);
    assert_eq!(config.segment_bytes, 4 << 20);
}

#[test]
fn later_sources_win() {
    let config = load_text(
        "cores = [0]\nacks.default = 1\n",
        &["cores=[1]", "acks.default=all"],
    );
    let config = config.expect("valid");
    assert_eq!(config.cores, [1]);
    assert_eq!(config.acks_default, Acks::All);
}

#[test]
fn every_fault_is_reported_at_once_with_its_line() {
    let text = "\
log.segment.bytes = \"12\"
acks.default = 4

retension.ms = \"7 d\"
[native]
bind = 7400
colour = \"red\"
";
    let faults =
        load_text(text, &["durability.default=maybe", "nonsense"]).expect_err("is refused");
    let lines: Vec<&str> = faults
        .faults
        .iter()
        .map(|fault| fault.subject.as_str())
        .collect();
    assert_eq!(
        lines,
        [
            "log.segment.bytes = \"12\"",
            "acks.default = 4",
            "retension.ms",
            "native.bind = 7400",
            "native.colour",
            "durability.default = maybe",
            "nonsense",
        ]
    );
    let shown = faults.to_string();
    assert!(
        shown.starts_with("the configuration has 7 faults, nothing was started:"),
        "{shown}"
    );
    for expected in [
        "\n  line 1  log.segment.bytes = \"12\"      expected a size from 1 MiB to 2 GiB, e.g. \"128 MiB\"",
        "\n  line 2  acks.default = 4              more than default.replication.factor = 1",
        "\n  line 4  retension.ms                  no such setting; did you mean log.retention.ms?",
        "\n  line 6  native.bind = 7400            expected an address and port, e.g. \"127.0.0.1:7400\"",
        "\n  line 7  native.colour                 no such setting; all of them: tackboard config render",
        "\n  --set   durability.default = maybe    expected \"fsync\", \"interval\" or \"written\"",
        "\n  --set   nonsense                      expected KEY=VALUE, e.g. --set acks.default=all",
    ] {
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            squeezed(&shown).contains(&squeezed(expected)),
            "{expected}\n---\n{shown}"
        );
    }
}

#[test]
fn broken_toml_is_a_fault_with_its_line_and_the_rest_is_still_checked() {
    let faults = load_text("broker.id = 7\nacks.default = \ncores = \"some\"\n", &[]);
    let faults = faults.expect_err("is refused").faults;
    assert!(
        faults.iter().any(|fault| fault.origin == Origin::Line(2)),
        "{faults:?}"
    );
    assert!(
        faults
            .iter()
            .any(|fault| fault.subject == "cores = \"some\""),
        "{faults:?}"
    );
}

#[test]
fn connections_are_as_many_as_open_files_allow_unless_they_are_set() {
    let connections = |sets: &[&str]| load_sets(sets).expect("valid").connections_max;
    assert_eq!(connections(&[]), 3_904);
    assert_eq!(connections(&["cores=[0]"]), 8_872);
    assert_eq!(connections(&["native.connections_max=50000"]), 50_000);
}

#[test]
fn one_slip_of_the_pen_is_one_fault() {
    let whole = "\
# How the broker of the example runs.
cores = [0, 1]
acks.default = \"all\"
log.roll.ms = \"1 d\"

[native]
bind = \"0.0.0.0:7400\"
advertised = \"example.org:7400\"
core_bind = '127.0.0.1:7401'

[storage]
reserve_bytes = \"2 GiB\"
";
    load_text(whole, &[]).expect("is valid");
    for (at, mark) in whole.match_indices(['"', '\'', '[', ']', '=', ',']) {
        let text = format!("{}{}", &whole[..at], &whole[at + mark.len()..]);
        let faults = load_text(&text, &[]).expect_err("is refused").faults;
        let line = whole[..at].matches('\n').count() + 1;
        assert_eq!(faults.len(), 1, "without {mark} of line {line}: {faults:?}");
        let Origin::Line(told) = faults[0].origin else {
            panic!("{faults:?}");
        };
        // A list that is not closed shows where the next line does not go on with it.
        assert!((line..=line + 1).contains(&told), "{line}: {faults:?}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let sources = Sources {
        file: Some("/no/such/broker.toml".into()),
        ..Sources::default()
    };
    let faults = load_for(&sources, |_| host()).expect_err("is refused");
    let shown = faults.to_string();
    assert!(
        shown.contains("/no/such/broker.toml") && shown.contains("cannot be read"),
        "{shown}"
    );
}

#[test]
fn contradictions_name_both_settings() {
    let cases: &[(&[&str], &str, &str)] = &[
        (
            &["acks.min=all", "acks.default=1"],
            "acks.default = 1",
            "acks.min = all",
        ),
        (
            &["acks.min=all", "acks.default=0"],
            "acks.default = 0",
            "acks.min = all",
        ),
        (
            &["default.replication.factor=3"],
            "default.replication.factor = 3",
            "one broker",
        ),
        (
            &["min.insync.replicas=2"],
            "min.insync.replicas = 2",
            "default.replication.factor = 1",
        ),
        (
            &["message.max.bytes=32 MiB"],
            "native.frame_bytes_max",
            "message.max.bytes = 32 MiB",
        ),
        (
            &["log.segment.bytes=1 MiB"],
            "log.segment.bytes = 1 MiB",
            "message.max.bytes = 1048588",
        ),
        (
            &["log.roll.ms=8 d"],
            "log.roll.ms = 8 d",
            "log.retention.ms",
        ),
        (&["cores=[0, 9]"], "cores = [0, 9]", "may run on 0, 1"),
        (&["cores=[1, 1]"], "cores = [1, 1]", "twice"),
        (
            &["native.bind=0.0.0.0:7400"],
            "native.bind = 0.0.0.0:7400",
            "native.advertised",
        ),
        (
            &["http.bind=127.0.0.1:7402"],
            "http.bind = 127.0.0.1:7402",
            "7401 to 7402",
        ),
        (
            &["http.bind=127.0.0.1:7400"],
            "http.bind = 127.0.0.1:7400",
            "native.bind",
        ),
        (
            &["native.core_bind=127.0.0.1:65535"],
            "native.core_bind = 127.0.0.1:65535",
            "65536",
        ),
    ];
    for (sets, subject, problem) in cases {
        let fault = only_fault(load_sets(sets));
        assert!(fault.subject.starts_with(subject), "{sets:?}: {fault:?}");
        assert!(fault.problem.contains(problem), "{sets:?}: {fault:?}");
    }
}

#[test]
fn a_faulty_value_hides_no_other_fault_and_causes_no_follow_up() {
    let fault = only_fault(load_sets(&["acks.min=many", "acks.default=1"]));
    assert_eq!(fault.subject, "acks.min = many");
}

#[test]
fn listeners_on_all_addresses_work_with_an_advertised_name() {
    let config = load_sets(&[
        "native.bind=0.0.0.0:7400",
        "native.core_bind=0.0.0.0:7401",
        "native.advertised=broker-1.example.org:7400",
        "http.bind=off",
    ])
    .expect("valid");
    assert_eq!(
        config.native_advertised,
        Some(("broker-1.example.org".to_owned(), 7400))
    );
    assert_eq!(
        config.native_core_advertised_host.as_deref(),
        Some("broker-1.example.org")
    );
    assert_eq!(config.http_bind, None);
}

#[test]
fn any_text_is_either_read_or_refused() {
    use proptest::prelude::*;
    proptest!(|(text in "[ -~\\n]{0,200}")| {
        let _ = load_text(&text, &[]);
    });
    for text in [
        "a.b.c.d.e.f = {x = {y = 1}}",
        "\u{0}",
        "[[acks]]",
        "acks = 3",
        "cores.x = 1",
    ] {
        assert!(load_text(text, &[]).is_err(), "{text}");
    }
}
