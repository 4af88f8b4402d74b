//! Who may call. Tokens are random secrets of 256 bits; only their hashes stay in memory.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use subtle::ConstantTimeEq;

const FILE: &str = "admin.token";
/// Below it a secret could be guessed: 16 characters of base 64 are 96 bits.
const SECRET_BYTES_MIN: usize = 16;
/// 1 KiB: sixteen times what is made here.
const SECRET_BYTES_MAX: usize = 1024;

/// The tokens that are known.
#[derive(Clone)]
pub struct Tokens {
    known: Vec<Token>,
}

#[derive(Clone)]
struct Token {
    /// Its name in the audit log.
    id: Arc<str>,
    hash: [u8; 32],
}

impl Tokens {
    /// Reads `{state_dir}/admin.token`; makes it, with a new secret and mode 0600, where there is none.
    ///
    /// # Errors
    /// Where it cannot be read or made, where others than its owner may read it, or where it holds no usable secret.
    pub fn load_or_create(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.join(FILE);
        match File::open(&path) {
            Ok(file) => Self::from_secret(&read(file, &path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let secret = generate()?;
                write(&path, &secret)?;
                tracing::info!(path = %path.display(), "made the admin token");
                Self::from_secret(&secret)
            }
            Err(error) => Err(error),
        }
    }

    /// One token, with the name `admin` in the audit log.
    ///
    /// # Errors
    /// Where the secret is shorter than 16 bytes, longer than 1024, or has other than visible ASCII characters in it.
    pub fn from_secret(secret: &str) -> io::Result<Self> {
        let secret = secret.trim();
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&secret.len())
            || !secret.bytes().all(|byte| byte.is_ascii_graphic())
        {
            let reason = "the admin token has to be 16 to 1024 visible ASCII characters";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Ok(Self {
            known: vec![Token {
                id: Arc::from("admin"),
                hash: hash(secret),
            }],
        })
    }

    /// The name of the token with this secret. Takes the same time whichever it is, or none.
    pub(crate) fn identify(&self, secret: &str) -> Option<Arc<str>> {
        let presented = hash(secret);
        let mut found = None;
        for token in &self.known {
            if bool::from(token.hash.ct_eq(&presented)) {
                found = Some(Arc::clone(&token.id));
            }
        }
        found
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.known.iter().map(|token| &token.id))
            .finish()
    }
}

fn hash(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

fn generate() -> io::Result<String> {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    Ok(blake3::Hash::from_bytes(secret).to_hex().to_string())
}

fn read(file: File, path: &Path) -> io::Result<String> {
    let mode = file.metadata()?.mode();
    if mode & 0o077 != 0 {
        let reason = format!(
            "{} may be read by others (mode {:03o}); chmod 600 it",
            path.display(),
            mode & 0o777
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut text = String::new();
    file.take(SECRET_BYTES_MAX as u64 + 2).read_to_string(&mut text)?;
    Ok(text)
}

/// Under another name first, so that a crash leaves no file without a secret.
fn write(path: &Path, secret: &str) -> io::Result<()> {
    let draft = path.with_extension("token.new");
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)?;
    writeln!(file, "{secret}")?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        Tokens::load_or_create(dir.path()).unwrap();
        let path = dir.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(text.trim().len(), 64);

        let again = Tokens::load_or_create(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(again.identify(text.trim()).as_deref(), Some("admin"));
        assert_eq!(again.identify("something else"), None);
        assert!(!format!("{again:?}").contains(text.trim()));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Tokens::load_or_create(dir.path()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn no_start_with_an_empty_or_weak_secret() {
        for secret in [
            "",
            "\n",
            "short",
            "fifteen-bytes-x",
            "has a space in the middle",
            "not-ascii-ä-secret",
        ] {
            assert!(Tokens::from_secret(secret).is_err(), "{secret:?}");
        }
        assert!(Tokens::from_secret(&"x".repeat(1025)).is_err());
        assert!(Tokens::from_secret("sixteen-bytes-xx\n").is_ok());

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Tokens::load_or_create(dir.path()).is_err());
    }
}
