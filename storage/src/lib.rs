//! Where objects live. Heads are opaque; nothing here knows HTTP.

/// Bounds of the memory tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Bytes of heads, bodies, keys and overhead together; 0 switches the tier off.
    pub max_size: u64,
    /// Largest object that is stored, head and body, in bytes.
    pub max_object: u64,
    /// Variants kept of one key; the least recently stored goes first.
    pub variants: usize,
}
