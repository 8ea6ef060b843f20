//! What the allocator does with memory that was freed.

/// Keeps freed memory with the process, for binaries with executors. To be called before the first thread starts.
///
/// glibc gives large buffers back to the system as soon as they are freed, and takes fresh pages for the next one: a page
/// fault per 4 KiB, and on a virtual machine that hands free pages back to its host a fault of the host's besides.
/// Measured at a steady 100,000 events/s under `fsync`, with glibc's tunables: p99 5.1 ms with the defaults, 3.8 ms with
/// these two and a larger top pad (medians of six runs in alternation). Buffers are bounded by their budgets, so what is kept is bounded by their high water mark.
///
/// Elsewhere than under glibc this does nothing.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        /// The greatest that glibc takes: longer allocations are mapped and unmapped one by one.
        const MAPPED_BYTES_MIN: libc::c_int = 32 << 20;
        /// Free memory at the end of a heap that would be given back: none ever reaches it.
        const TRIMMED_BYTES_MIN: libc::c_int = libc::c_int::MAX;
        // SAFETY: mallopt only sets parameters; no other thread allocates yet.
        let taken = unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN) == 1
                && libc::mallopt(libc::M_TRIM_THRESHOLD, TRIMMED_BYTES_MIN) == 1
        };
        debug_assert!(taken, "glibc takes both");
    }
}
