//! The words of the demo: its configuration, and what to try.

use std::net::SocketAddr;
use std::path::Path;

/// Where the demo writes.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The token, and what is stored: it is there again at the next start.
    pub state_dir: &'a Path,
    /// Lines of this run.
    pub access_log: &'a Path,
}

/// The configuration in front of the origin: two sites and three rules.
pub fn demo_config(origin: SocketAddr, data: SocketAddr, admin: SocketAddr, places: Places<'_>) -> String {
    // A path with a quote in it would end the string.
    let quoted = |path: &Path| toml::Value::from(path.display().to_string()).to_string();
    let access_log = quoted(places.access_log);
    let cache = quoted(&places.state_dir.join("cache"));
    let state_dir = quoted(places.state_dir);
    format!(
        r#"# Written by `larder demo`.
state_dir = {state_dir}

[server]
drain = "2s"
[server.access_log]
path = {access_log}
format = "combined"

[[listener]]
address = "{data}"

[admin]
listen = "{admin}"

[cache.memory]
max_size = "64MiB"

[[cache.disk]]
path = {cache}
max_size = "256MiB"

[[upstream]]
name = "demo"
servers = [{{ address = "{origin}" }}]

[[vhost]]
name = "www"
hosts = ["www.example.test"]
default = true
upstream = "demo"
purge = {{ method = "PURGE", allow = ["127.0.0.0/8", "::1"] }}

[[vhost.rule]]                   # /api/slow is stored for 30s, as the origin says; errors for a moment
name = "api"
match = {{ path_prefix = "/api/" }}
ttl = {{ 500 = "1s", 502 = "1s", 503 = "1s" }}

[[vhost.rule]]                   # ?nocache goes to the origin, and refreshes what is stored
name = "pages"
match = {{ path = "/**", method = ["GET", "HEAD"] }}
bypass = {{ query = ["nocache"] }}
key = {{ ignore_query = ["nocache", "utm_*"] }}

[[vhost]]
name = "static"
hosts = ["static.example.test"]
upstream = "demo"

[[vhost.rule]]                   # images for a day, whatever the origin says
name = "images"
match = {{ path = "/images/**" }}
ttl = {{ 200 = "1d", 404 = "10s" }}
ttl_force = true
"#
    )
}

/// What becomes of what the demo stores.
#[derive(Debug, Clone, Copy)]
pub enum Kept<'a> {
    /// It is there again at the next start.
    Here(&'a Path),
    /// It goes with the demo.
    No,
}

/// What to try, as `demo` prints it. `program` is how this binary is called from the current directory.
pub fn instructions(
    program: &Path,
    origin: SocketAddr,
    data: SocketAddr,
    admin: SocketAddr,
    token_path: &Path,
    kept: Kept<'_>,
) -> String {
    let program = shell_quoted(&program.display().to_string());
    let token = shell_quoted(&token_path.display().to_string());
    let kept = match kept {
        Kept::Here(path) => format!("{} (start it again: it is warm; --fresh begins empty)", path.display()),
        Kept::No => "nothing: what is stored goes with this demo".to_owned(),
    };
    let (www, static_host) = (format!("http://{data}"), "Host: static.example.test");
    format!(
        r#"Larder demo. Ctrl-C ends it.

  cache      {www}/                     vhost www (any host name)
             {www}/about
             {www}/images/small.png     3 KB
             {www}/images/large.png     100 KB
             {www}/api/slow             takes 1 s when it is not stored
             {www}/login                sets a cookie: never stored
  dashboard  http://{admin}/
  API        http://{admin}/api/openapi.json
  metrics    http://{admin}/metrics
  origin     http://{origin}/__count           requests that reached it, by path
  token      {token_path}
  kept       {kept}

Try:
  curl -si {www}/about | grep -i cache            # MISS, then HIT
  curl -si '{www}/about?nocache' | grep -i cache  # BYPASS
  curl -s {www}/api/slow & curl -s {www}/api/slow; wait; curl -s 'http://{origin}/__count?path=/api/slow'
  curl -si -H '{static_host}' {www}/images/large.png -o /dev/null -D - | grep -i cache
  curl -si -X PURGE {www}/about
  curl -s -H "Authorization: Bearer $(cat {token})" http://{admin}/api/v1/stats
  curl -s -H "Authorization: Bearer $(cat {token})" -H 'Content-Type: application/json' \
       -d '{{"match": {{"url": "{www}/about"}}}}' http://{admin}/api/v1/purges
  {program} stats --admin http://{admin} --token-file {token}
  {program} purge --admin http://{admin} --token-file {token} {www}/about

"#,
        token_path = token_path.display(),
    )
}

/// As a shell takes it for one word.
fn shell_quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn addresses() -> [SocketAddr; 3] {
        [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn the_configuration_is_good_and_has_no_warning() {
        let [origin, data, admin] = addresses();
        for state_dir in ["/tmp/larder-demo-1", "/tmp/a \"quoted\" \\ place"] {
            let state_dir = Path::new(state_dir);
            let access_log = &state_dir.join("access.log");
            let text = demo_config(origin, data, admin, Places { state_dir, access_log });
            let resolved = config::parse(&text, "demo").unwrap();
            assert!(resolved.warnings.is_empty(), "{}", resolved.warnings);
            assert_eq!(resolved.state_dir, state_dir);
            assert_eq!(resolved.boot.disks.len(), 1);
            assert_eq!((resolved.boot.listeners, resolved.admin.listen), (vec![data], admin));
            let rules = resolved.live.vhosts.iter().flat_map(|vhost| &vhost.rules);
            let rules: Vec<_> = rules.map(|rule| rule.name.as_str()).collect();
            assert_eq!(rules, ["api", "pages", "images"]);
            assert_eq!(resolved.live.upstreams[0].address, origin.to_string());
        }
    }

    #[test]
    fn every_address_is_shown() {
        let [origin, data, admin] = addresses();
        let text = instructions(
            Path::new("target/release/larder"),
            origin,
            data,
            admin,
            Path::new("/tmp/it's/admin.token"),
            Kept::Here(Path::new("/tmp/kept")),
        );
        for line in [
            "http://127.0.0.1:2/api/slow",
            "http://127.0.0.1:3/api/openapi.json",
            "http://127.0.0.1:1/__count",
            "token      /tmp/it's/admin.token\n",
            "kept       /tmp/kept (",
            r"Bearer $(cat '/tmp/it'\''s/admin.token')",
            "target/release/larder stats --admin http://127.0.0.1:3 --token-file",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }
}
