//! What `larder demo` shows: a built-in origin, a configuration in front of it, and what to try. It opens the origin's socket and
//! nothing else; the appliance is run by the caller, from the configuration like any other.

mod image;
mod origin;
mod pages;
mod text;

pub use origin::Origin;
pub use text::{Kept, Places, demo_config, instructions};
