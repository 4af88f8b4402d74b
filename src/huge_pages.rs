//! Transparent huge pages, which a cache of small objects has no use for: they double what the process keeps resident, since a
//! few living bytes hold two megabytes.

/// Switches them off for this process. Where the kernel refuses, nothing is lost but memory.
pub(crate) fn switch_off() {
    if let Err(fault) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%fault, "transparent huge pages stay on");
    }
}
