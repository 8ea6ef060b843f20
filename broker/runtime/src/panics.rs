//! What a panic does to a process with executors.

use std::panic::{PanicHookInfo, set_hook, take_hook};

/// Ends the process on any panic, after it was reported: a core that panicked serves nobody, and whoever waits for it
/// would wait for ever. For binaries; release builds abort anyway.
///
/// One panic of glommio's is none: its blocking thread panics when it has an answer for an executor that has ended,
/// which happens when a start fails while files are still being opened. That thread is put to rest instead.
pub fn die_of_any_panic() {
    let report = take_hook();
    set_hook(Box::new(move |panic| {
        if is_late_answer(panic) {
            loop {
                std::thread::park();
            }
        }
        report(panic);
        std::process::abort();
    }));
}

fn is_late_answer(panic: &PanicHookInfo<'_>) -> bool {
    let said = panic.payload().downcast_ref::<&str>();
    let file = panic.location().map(|location| location.file());
    said.is_some_and(|said| *said == "failed to send response")
        && file.is_some_and(|file| file.ends_with("src/sys/blocking.rs"))
}
