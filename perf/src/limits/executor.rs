//! Runs a measurement on an executor of its own, set up as the broker's cores are.

use std::{future::Future, io, rc::Rc};

use tackboard_runtime::{Core, CoreHandle, CoreSettings, Watchdog, spawn};

/// Starts `measure` on the CPU.
///
/// # Errors
/// When the thread could not be started.
pub fn start<F, Fut, T>(cpu: usize, watchdog: &Watchdog, measure: F) -> io::Result<CoreHandle<T>>
where
    F: FnOnce(Rc<Core>) -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let settings = CoreSettings::pinned(cpu, format!("limits-{cpu}"));
    spawn(settings, watchdog, move |core| {
        // Whatever is measured is work in flight: the watchdog is to end a wrong sleep within a tick.
        core.progress.work_started();
        measure(Rc::new(core))
    })
}

/// Runs `measure` on the CPU and waits for it.
///
/// # Errors
/// When the executor could not start: no io_uring, or too little locked memory.
pub fn run<F, Fut, T>(cpu: usize, measure: F) -> io::Result<T>
where
    F: FnOnce(Rc<Core>) -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let watchdog = Watchdog::start();
    start(cpu, &watchdog, measure)?.join()
}
