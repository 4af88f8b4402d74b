use super::*;

const CONFIG: &str = r#"
state_dir = "STATE"
[[listener]]
address = "127.0.0.1:8080"
[admin]
listen = "127.0.0.1:7070"
[[upstream]]
name = "app"
servers = [{ address = "127.0.0.1:9000" }]
[[vhost]]
name = "www"
default = true
upstream = "app"
"#;

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A directory with a configuration, its token and another token.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    std::fs::write(
        path.join("larder.toml"),
        CONFIG.replace("STATE", path.to_str().unwrap()),
    )
    .unwrap();
    std::fs::write(path.join("admin.token"), "from-config\n").unwrap();
    std::fs::write(path.join("other.token"), "from-file\n").unwrap();
    directory
}

#[test]
fn arguments_go_before_the_environment_and_that_before_the_configuration() {
    let directory = directory();
    let config = directory.path().join("larder.toml");
    for (admin, admin_env, with_config, expected) in [
        ("http://a:1", "http://b:2", true, "a:1"),
        ("", "http://b:2", true, "b:2"),
        ("", "", true, "127.0.0.1:7070"),
        ("", "", false, "127.0.0.1:9090"),
    ] {
        let access = Access {
            admin: some(admin),
            ..Access::default()
        };
        let environment = Environment {
            admin: some(admin_env),
            token: None,
        };
        let client = access.client(with_config.then_some(&config), &environment).unwrap();
        assert_eq!(client.endpoint().to_string(), expected);
    }
    for (token, token_file, token_env, expected) in [
        ("given", "", "env", "given"),
        ("", "other.token", "env", "from-file"),
        ("", "", "env", "env"),
        ("", "", "", "from-config"),
    ] {
        let access = Access {
            token: some(token),
            token_file: some(token_file).map(|name| directory.path().join(name)),
            admin: None,
        };
        let environment = Environment {
            admin: None,
            token: some(token_env),
        };
        let token_path = directory.path().join("admin.token");
        assert_eq!(access.token(Some(&token_path), &environment).unwrap(), some(expected));
        assert_eq!(
            access.token(None, &environment).unwrap(),
            some(expected).filter(|token| token != "from-config")
        );
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let directory = directory();
    let path = directory.path();
    std::fs::write(path.join("empty.token"), "\n").unwrap();
    for (name, part) in [
        ("none.token", "cannot read the token file"),
        ("empty.token", "is empty"),
    ] {
        let access = Access {
            token_file: Some(path.join(name)),
            ..Access::default()
        };
        let said = format!("{:#}", access.client(None, &Environment::default()).unwrap_err());
        assert!(said.contains(part) && said.contains(name), "{said}");
    }
    let broken = path.join("broken.toml");
    std::fs::write(&broken, "state_dir = 1\n").unwrap();
    let said = Access::default()
        .client(Some(&broken), &Environment::default())
        .unwrap_err()
        .to_string();
    assert!(said.contains("broken.toml:1:13: error: expected a string"), "{said}");
}
