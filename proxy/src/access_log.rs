use std::io; use std::net::IpAddr;
#[derive(Debug)] pub struct AccessLog; #[derive(Debug)] pub struct WorkerLog;
impl AccessLog { pub fn open(_: &crate::config::AccessLog) -> io::Result<Self> { Ok(Self) } pub fn handle(&self) -> WorkerLog { WorkerLog } pub fn dropped(&self) -> u64 { 0 } pub fn reopen(&self) {} pub fn close(&self) {} }
impl WorkerLog { pub fn line(&mut self, _: &Entry<'_>) {} pub fn flush(&mut self) {} }
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> { pub unix_ms: u64, pub client: IpAddr, pub vhost: &'a str, pub rule: &'a str, pub method: &'a [u8], pub host: &'a [u8], pub target: &'a [u8], pub version: crate::http1::Version, pub status: u16, pub bytes_sent: u64, pub bytes_received: u64, pub duration_us: u64, pub outcome: &'a crate::outcome::Outcome, pub origin_us: Option<u64>, pub referer: Option<&'a [u8]>, pub user_agent: Option<&'a [u8]> }
