//! Wrong arguments are told apart from what goes wrong, by the exit code.

use std::process::Command;

#[test]
fn what_cannot_be_done_as_it_is_asked_for_exits_2() {
    let asked = [
        vec!["run", "--workload", "none-such"],
        vec!["run", "--server", "none-such"],
        vec!["tune", "--data", "/none/such"],
        vec!["--none-such"],
    ];
    for arguments in asked {
        let output = Command::new(env!("CARGO_BIN_EXE_tackboard-perf"))
            .args(&arguments)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    }
}
