//! The appliance as a program: the command line, the configuration file, and the composition of the other crates.

pub mod appliance;
pub mod cli;
pub mod config;
pub mod demo;
mod huge_pages;
pub mod state_dir;
