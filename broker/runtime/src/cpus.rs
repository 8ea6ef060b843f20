//! Which CPUs an executor can be pinned to.

use std::mem::MaybeUninit;

/// CPUs that this process may run on, ascending. Never empty: where the kernel does not say, CPU 0.
pub fn allowed_cpus() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: an all-zero set is a valid empty set, and the call writes no more than its size.
    let set = unsafe {
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) != 0 {
            return vec![0];
        }
        set.assume_init()
    };
    // SAFETY: every number is below the size of a set.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}
