//! The store over real files and real sled.

mod basics;
mod bounds;
mod faults;
mod files;
mod power;
mod races;
mod rig;
mod sweep;
mod walk;
