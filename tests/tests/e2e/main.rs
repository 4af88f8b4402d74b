//! End to end: the real binary between a scripted origin and a raw client, one module per family of behaviour.
//!
//! The names that begin with `b` and a number are cases from public bug reports of caches, one test or more for each.

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod corrupt;
#[cfg(test)]
mod counters;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod disk_bounds;
#[cfg(test)]
mod disk_faults;
#[cfg(test)]
mod disk_figures;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod first_minutes;
#[cfg(test)]
mod framing;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod incomplete;
#[cfg(test)]
mod invalidation;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod log;
#[cfg(test)]
mod min_uses;
#[cfg(test)]
mod pipelines;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod restart;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod smuggling;
#[cfg(test)]
mod storing;
#[cfg(test)]
mod transfer;
