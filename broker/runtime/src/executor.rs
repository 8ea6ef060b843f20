//! Starts one executor on one CPU, with the settings that were measured to carry the load.

use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};

use futures_lite::future::poll_fn;
use glommio::{
    ExecutorJoinHandle, Latency, LocalExecutorBuilder, Placement, PoolPlacement, Shares, Task,
    executor, spawn_local_into,
};

use crate::watchdog::{Progress, Watchdog};

/// The preempt timer while only the root task is there to run. Until that task has run once there is no waker to end a
/// wrong sleep with, and a sleep is wrong when this timer fires before the first task ran: so it must not. The queue of
/// the main task brings the timer of [`CoreSettings::preempt`].
const ROOT_PREEMPT: Duration = Duration::from_secs(60);

/// How one executor is placed and sized.
#[derive(Clone, Debug)]
pub struct CoreSettings {
    /// The CPU it is pinned to; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// Name of the thread.
    pub name: String,
    /// Entries of each of the executor's rings.
    pub ring_depth: usize,
    /// Bytes of aligned memory registered with the rings; beyond them buffers come from the allocator.
    pub io_memory_bytes: usize,
    /// How often a busy task queue is asked to yield. glommio's default of 100 ms makes a request on a busy core take
    /// 200 ms; 500 µs costs a busy core 2.5 %.
    pub preempt: Duration,
    /// How long an idle executor looks for work before it sleeps.
    pub spin: Duration,
}

impl CoreSettings {
    /// The measured settings for a core that serves requests.
    pub fn pinned(cpu: usize, name: impl Into<String>) -> Self {
        CoreSettings {
            cpu: Some(cpu),
            name: name.into(),
            ring_depth: 512,
            io_memory_bytes: 16 << 20,
            preempt: Duration::from_micros(500),
            spin: Duration::ZERO,
        }
    }
}

/// What a core's main function is handed.
pub struct Core {
    /// Counters through which the watchdog sees whether this core moves.
    pub progress: Arc<Progress>,
}

/// The running thread of one core.
pub struct CoreHandle<T: Send + 'static> {
    join: ExecutorJoinHandle<T>,
    name: String,
    progress: Arc<Progress>,
}

impl<T: Send + 'static> CoreHandle<T> {
    /// CPU time that the core's thread has used.
    ///
    /// # Errors
    /// When the thread has ended.
    pub fn cpu_time(&self) -> io::Result<std::time::Duration> {
        self.progress.cpu_time()
    }

    /// Waits for the core's main function to return.
    ///
    /// # Errors
    /// When the executor could not start (no io_uring, too little locked memory) or its thread panicked.
    pub fn join(self) -> io::Result<T> {
        let name = self.name;
        self.join
            .join()
            .map_err(|error| io::Error::other(format!("core {name}: {error}")))
    }
}

/// Starts an executor on its own thread, registers it with the watchdog and runs `main` on it.
///
/// # Errors
/// When the thread could not be started. A ring that the kernel refuses shows at [`CoreHandle::join`].
pub fn spawn<F, Fut, T>(
    settings: CoreSettings,
    watchdog: &Watchdog,
    main: F,
) -> io::Result<CoreHandle<T>>
where
    F: FnOnce(Core) -> Fut + Send + 'static,
    Fut: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let progress = watchdog.register(&settings.name);
    let placement = settings.cpu.map_or(Placement::Unbound, Placement::Fixed);
    let name = settings.name.clone();
    let shown = progress.clone();
    let join = LocalExecutorBuilder::new(placement)
        .name(&settings.name)
        .ring_depth(settings.ring_depth)
        .io_memory(settings.io_memory_bytes)
        .preempt_timer(ROOT_PREEMPT)
        .spin_before_park(settings.spin)
        // A blocking call of the executor's own pool must not compete for the pinned CPU.
        .blocking_thread_pool_placement(PoolPlacement::Unbound(1))
        .spawn(move || async move {
            progress.thread_started();
            let latency = Latency::Matters(settings.preempt);
            let queue = executor().create_task_queue(Shares::Static(1000), latency, "main");
            let core = Core {
                progress: progress.clone(),
            };
            let task = spawn_local_into(main(core), queue).expect("the queue was just created");
            let result = rooted(task, &progress).await;
            // What was handed to the blocking thread before this has come back after it: the thread panics when it
            // has an answer for an executor that is gone.
            executor().spawn_blocking(|| ()).await;
            progress.retire();
            result
        })
        .map_err(|error| io::Error::other(format!("core {name}: {error}")))?;
    Ok(CoreHandle {
        join,
        name,
        progress: shown,
    })
}

/// Waits for the core's main task, and leaves a waker with the watchdog. A wake from a foreign thread always queues the
/// root task and writes the eventfd of a sleeping executor, so it ends a wrong sleep.
async fn rooted<T>(mut task: Task<T>, progress: &Progress) -> T {
    poll_fn(|context| {
        progress.install_waker(context.waker());
        progress.kick_arrived();
        Pin::new(&mut task).poll(context)
    })
    .await
}
