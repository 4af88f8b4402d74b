//! Where the admin plane is and which token opens it, from arguments, environment and configuration, in this order.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::client::{Client, Endpoint};
use crate::config;

const ADMIN_DEFAULT: &str = "http://127.0.0.1:9090";
/// A token is a line; this leaves room for long ones.
const TOKEN_BYTES_MAX: u64 = 4096;

#[derive(Debug, Default, Args)]
pub(super) struct Access {
    /// Address of the admin plane [default: http://127.0.0.1:9090; env: LARDER_ADMIN].
    #[arg(long, global = true, value_name = "URL")]
    pub admin: Option<String>,
    /// Token of the admin plane [env: LARDER_ADMIN_TOKEN].
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// File with the token of the admin plane.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
}

/// The variables that matter here.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pub admin: Option<String>,
    pub token: Option<String>,
}

impl Environment {
    pub(super) fn read() -> Self {
        let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            admin: given("LARDER_ADMIN"),
            token: given("LARDER_ADMIN_TOKEN"),
        }
    }
}

impl Access {
    /// A client for the commands that talk to a running appliance.
    pub(super) fn client(&self, config: Option<&Path>, environment: &Environment) -> anyhow::Result<Client> {
        let loaded = config.map(config::load).transpose()?.map(|loaded| loaded.resolved);
        let configured = loaded
            .as_ref()
            .map(|resolved| format!("http://{}", resolved.admin.listen));
        let url = self
            .admin
            .as_ref()
            .or(environment.admin.as_ref())
            .or(configured.as_ref());
        let endpoint: Endpoint = url.map_or(ADMIN_DEFAULT, String::as_str).parse()?;
        let token_path = loaded.map(|resolved| resolved.token_path());
        let token = self.token(token_path.as_deref(), environment)?;
        Client::new(endpoint, token.as_deref())
    }

    fn token(&self, configured: Option<&Path>, environment: &Environment) -> anyhow::Result<Option<String>> {
        if let Some(token) = &self.token {
            return Ok(Some(token.clone()));
        }
        if let Some(path) = &self.token_file {
            return read_token(path).map(Some);
        }
        if let Some(token) = &environment.token {
            return Ok(Some(token.clone()));
        }
        configured.map(read_token).transpose()
    }
}

fn read_token(path: &Path) -> anyhow::Result<String> {
    let unreadable = || format!("cannot read the token file {}", path.display());
    let file = std::fs::File::open(path).with_context(unreadable)?;
    let mut text = String::new();
    file.take(TOKEN_BYTES_MAX)
        .read_to_string(&mut text)
        .with_context(unreadable)?;
    let token = text.trim();
    if token.is_empty() {
        bail!("the token file {} is empty", path.display());
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests;
