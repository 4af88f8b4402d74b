//! The hosts that the admin listener answers for. A page that rebinds its own name to the listener's address still sends
//! that name as Host, and is turned away by it.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;

/// Loopback names and addresses, the address that is listened on, and the configured names; the port does not matter.
#[derive(Debug, Clone)]
pub struct AllowedHosts {
    listen: IpAddr,
    names: HashSet<String>,
}

impl AllowedHosts {
    /// `names` are host names without port, as in `[admin] hosts`.
    #[must_use]
    pub fn new(listen: SocketAddr, names: &[String]) -> Self {
        let names = names
            .iter()
            .map(String::as_str)
            .chain(["localhost"])
            .map(canonical)
            .collect();
        Self {
            listen: listen.ip(),
            names,
        }
    }

    /// Judges the value of a Host field or the authority of an absolute target.
    pub(crate) fn permits(&self, authority: &str) -> bool {
        if authority.contains('@') {
            return false;
        }
        let Ok(authority) = authority.parse::<Authority>() else {
            return false;
        };
        let host = authority.host();
        // The parser takes any text for a port.
        let port = authority.as_str().strip_prefix(host).unwrap_or_default();
        if !port.is_empty() && authority.port_u16().is_none() {
            return false;
        }
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        match bare.parse::<IpAddr>() {
            // With the unspecified address the machine's addresses are not known. An address is no name that could be
            // rebound, so any is taken then.
            Ok(address) => address.is_loopback() || address == self.listen || self.listen.is_unspecified(),
            Err(_) => self.names.contains(&canonical(host)),
        }
    }
}

fn canonical(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_and_addresses_are_answered_for() {
        let check = |listen: &str, host: &str, expected: bool| {
            let hosts = AllowedHosts::new(listen.parse().unwrap(), &["Cache.Example.test".to_owned()]);
            assert_eq!(hosts.permits(host), expected, "{host} on {listen}");
        };
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST:9090", true),
            ("localhost.", true),
            ("127.0.0.1:9090", true),
            ("127.9.9.9", true),
            ("[::1]:9090", true),
            ("10.1.2.3:9090", true),
            ("cache.example.TEST:1", true),
            ("10.1.2.4:9090", false),
            ("evil.test", false),
            ("localhost.evil.test", false),
            ("127.0.0.1.evil.test", false),
            ("x@localhost", false),
            ("localhost@evil.test", false),
            ("localhost/", false),
            ("", false),
            ("[::1", false),
            ("localhost:port", false),
        ] {
            check("10.1.2.3:9090", host, expected);
        }
        check("0.0.0.0:9090", "10.1.2.4:9090", true);
        check("[::]:9090", "[2001:db8::1]", true);
        check("0.0.0.0:9090", "evil.test", false);
    }
}
