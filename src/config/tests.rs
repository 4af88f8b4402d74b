use super::{Style, effective, parse};

const SMALLEST: &str = r#"
state_dir = "/var/lib/larder"

[[listener]]
address = "127.0.0.1:8080"

[admin]
listen = "127.0.0.1:9090"

[cache.memory]
max_size = "256MiB"

[[cache.disk]]
path = "/var/lib/larder/cache"
max_size = "10GiB"

[[upstream]]
name = "app"
servers = [{ address = "127.0.0.1:9000" }]

[[vhost]]
name = "www"
hosts = ["www.example.test", "*.example.test"]
upstream = "app"
"#;

#[test]
fn the_smallest_file_loads_with_one_warning() {
    let resolved = parse(SMALLEST, "larder.toml").unwrap();
    let warnings = "larder.toml:13:1: warning: the disk tier is not in this version: objects are kept in memory only\n  \
                    help: remove [[cache.disk]] to silence this, or raise `max_size` of [cache.memory]\n";
    assert_eq!(resolved.warnings.render(Style::Plain), warnings);
    let again = parse(&effective(&resolved).unwrap(), "effective").unwrap();
    assert_eq!((again.boot, again.live), (resolved.boot, resolved.live));
}
