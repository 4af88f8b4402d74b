//! The store over real files and real sled.

mod basics;
mod faults;
mod power;
mod rig;
mod sweep;
mod walk;
