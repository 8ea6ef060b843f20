//! Wrong arguments are told apart from what goes wrong, by the exit code.

use std::process::Command;

/// Exit code and errors of a run with these arguments.
fn ran(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tackboard-perf"))
        .args(arguments)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn what_cannot_be_done_as_it_is_asked_for_exits_2_and_says_what_is_wrong() {
    // Any file passes for the broker's binary.
    let own = env!("CARGO_BIN_EXE_tackboard-perf");
    let cpus = tackboard_runtime::allowed_cpus();
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let cpus = cpus.join(",");
    let asked: [(&[&str], &str); 6] = [
        (
            &["run", "--workload", "none-such"],
            "--workload none-such is not one of small, ",
        ),
        (
            &["run", "--server", "none-such", "--tackboard", own],
            "--server names none of the servers",
        ),
        (
            &["run", "--server-cpus", &cpus, "--tackboard", own],
            "--server-cpus leaves no CPU to the driver",
        ),
        (
            &["run", "--tackboard", "/none/such"],
            "/none/such is not there",
        ),
        (&["tune", "--data", "/none/such"], "/none/such"),
        (&["--none-such"], "unexpected argument '--none-such'"),
    ];
    for (arguments, wrong) in asked {
        let (code, said) = ran(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(wrong), "{arguments:?}: {said}");
    }
}

#[test]
fn what_is_tried_and_fails_exits_1() {
    let (code, said) = ran(&["limits", "--data", "/none/such", "--out", "none"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("--data /none/such can't be written"),
        "{said}"
    );
}
