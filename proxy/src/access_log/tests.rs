mod hand_over;
mod lines;

use std::net::{IpAddr, Ipv4Addr};

use super::*;
use crate::outcome::CacheStatus;

const HIT: Outcome = Outcome {
    cache: Some(CacheStatus::Hit),
    ..Outcome::NONE
};

fn entry() -> Entry<'static> {
    Entry {
        // 2026-10-10T13:55:36.042Z
        unix_ms: 1_791_640_536_042,
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        vhost: "www",
        rule: "assets",
        method: b"GET",
        host: b"www.example.test",
        target: b"/a?b=1",
        version: Version::Http11,
        status: 200,
        bytes_sent: 2326,
        bytes_received: 120,
        duration_us: 42,
        outcome: &HIT,
        origin_us: None,
        referer: Some(b"http://r.test/"),
        user_agent: Some(b"agent/1"),
    }
}
