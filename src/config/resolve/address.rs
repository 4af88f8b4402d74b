//! Addresses to listen on and addresses of origins.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::config::diagnostics::Report;
use crate::config::values::{At, shown};

const HOST_LENGTH_MAX: usize = 253;

/// An IP address and a port, 0 for any.
pub(super) fn socket(text: &At<String>, report: &mut Report) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let (message, help) = why_no_socket(text);
    report.error(text.span(), message, help);
    None
}

fn why_no_socket(text: &str) -> (String, String) {
    if text.starts_with("unix:") || text.starts_with('/') {
        return (
            "unix sockets are not in this version".to_owned(),
            "write an IP address and a port, such as \"127.0.0.1:8080\"".to_owned(),
        );
    }
    let message = format!("`{}` is not an IP address and a port", shown(text));
    let example = "write both, such as \"127.0.0.1:8080\", or \"0.0.0.0:8080\" for all addresses";
    if let Some((_, rest)) = text.split_once("://") {
        return (
            message,
            format!("write it without a scheme: \"{}\"", shown(rest.trim_end_matches('/'))),
        );
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return (message, "an IPv6 address stands in brackets: \"[::1]:8080\"".to_owned());
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return (
            message,
            format!("the port is missing: write \"{}\"", SocketAddr::new(ip, 8080)),
        );
    }
    if text.parse::<u16>().is_ok() {
        return (
            message,
            format!("write \"0.0.0.0:{text}\" for all addresses, or \"127.0.0.1:{text}\""),
        );
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return (message, example.to_owned());
    };
    if port.parse::<u16>().is_err() {
        return (
            format!("the port `{}` is not a number from 0 to 65535", shown(port)),
            String::new(),
        );
    }
    let help = match host {
        "" | "*" => format!("write \"0.0.0.0:{port}\" for all addresses"),
        "localhost" => format!("write \"127.0.0.1:{port}\""),
        _ if host.parse::<Ipv6Addr>().is_ok() => format!("write \"[{host}]:{port}\""),
        _ => "names are not looked up here: write the IP address".to_owned(),
    };
    (message, help)
}

/// `host:port` of an origin. The name is looked up later.
pub(super) fn origin(text: &At<String>, report: &mut Report) -> Option<String> {
    match judge_origin(text) {
        Ok(()) => Some((**text).clone()),
        Err((message, help)) => {
            report.error(text.span(), message, help);
            None
        }
    }
}

fn judge_origin(text: &str) -> Result<(), (String, String)> {
    if text.starts_with("unix:") || text.starts_with('/') {
        let help = "let the origin listen on a port, and write \"127.0.0.1:9000\"";
        return Err(("unix sockets are not in this version".to_owned(), help.to_owned()));
    }
    let message = format!("`{}` is not a host and a port", shown(text));
    if let Some(rest) = text.strip_prefix("https://") {
        let host = rest.split('/').next().unwrap_or(rest);
        let help = format!(
            "write \"{}:80\", or put a TLS client such as stunnel between",
            shown(host)
        );
        return Err(("TLS to origins is not in this version".to_owned(), help));
    }
    if let Some((_, rest)) = text.split_once("://") {
        let host = rest.split('/').next().unwrap_or(rest);
        let port = if host.contains(':') { "" } else { ":80" };
        return Err((
            message,
            format!("write it without scheme and path: \"{}{port}\"", shown(host)),
        ));
    }
    if text.parse::<Ipv6Addr>().is_ok() {
        return Err((message, format!("write \"[{text}]:80\"")));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err((message, format!("the port is missing: write \"{}:80\"", shown(text))));
    };
    if !port.parse::<u16>().is_ok_and(|port| port != 0) {
        return Err((
            format!("the port `{}` is not a number from 1 to 65535", shown(port)),
            String::new(),
        ));
    }
    if !is_host(host) {
        return Err((
            message,
            "write a name or an IP address, and a port, such as \"127.0.0.1:9000\"".to_owned(),
        ));
    }
    Ok(())
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().is_ok();
    }
    is_dns_name(host)
}

/// A name of letters, digits, hyphens and underscores, in labels of at most 63.
pub(super) fn is_dns_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        let has_hyphen_outside = label.starts_with('-') || label.ends_with('-');
        (1..=63).contains(&label.len()) && label.bytes().all(is_plain) && !has_hyphen_outside
    };
    host.len() <= HOST_LENGTH_MAX && host.split('.').all(is_label)
}
