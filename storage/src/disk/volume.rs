//! What the disk tier asks of a file system, and the real one. Everything but sled goes through here, so that a test can put
//! a failing or forgetful disk underneath.

#[cfg(test)]
pub(crate) mod faulty;

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::ReadWriteFlags;

/// A directory on some disk. Names are relative to it, with `/` between their parts.
pub(crate) trait Volume: Send + Sync + Debug + 'static {
    /// Opens a file that exists, to read and write.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Bytefile>>;
    /// Makes a new, empty file in place of whatever has this name.
    fn create(&self, name: &str) -> io::Result<Arc<dyn Bytefile>>;
    /// Removes a file. That it is not there is no fault.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Puts one file in the place of another, durably.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Names and lengths of the files in a subdirectory, which is made where it is missing.
    fn list(&self, directory: &str) -> io::Result<Vec<(String, u64)>>;
    /// Makes what was created or removed in a subdirectory durable.
    fn sync_directory(&self, directory: &str) -> io::Result<()>;
    /// Bytes of the file system that anyone may still use.
    fn free(&self) -> io::Result<u64>;
    /// Where it is, for those (sled) that open files by themselves.
    fn root(&self) -> &Path;
}

/// An open file. It stays readable after it was removed.
pub(crate) trait Bytefile: Send + Sync + Debug + 'static {
    /// Reads what is there, up to the buffer's length; less only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;
    /// Fills all the buffers, one after the other, from the page cache: `WouldBlock` where the disk would have to be asked.
    fn read_now(&self, buffers: &mut [IoSliceMut<'_>], at: u64) -> io::Result<()>;
    /// Writes all of it.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
}

/// The real file system.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
}

impl Directory {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
}

impl Volume for Directory {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Bytefile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.root.join(name))?;
        Ok(Arc::new(file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn Bytefile>> {
        let path = self.root.join(name);
        self.remove(name)?;
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.root.join(name)) {
            Err(fault) if fault.kind() != ErrorKind::NotFound => Err(fault),
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))?;
        let parent = Path::new(to).parent().and_then(Path::to_str).unwrap_or_default();
        self.sync_directory(parent)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<(String, u64)>> {
        let path = self.root.join(directory);
        fs::create_dir_all(&path)?;
        let mut found = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let facts = entry.metadata()?;
            if let (true, Ok(name)) = (facts.is_file(), entry.file_name().into_string()) {
                found.push((name, facts.len()));
            }
        }
        Ok(found)
    }

    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        File::open(self.root.join(directory))?.sync_all()
    }

    fn free(&self) -> io::Result<u64> {
        let facts = rustix::fs::statvfs(&self.root)?;
        Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    fn root(&self) -> &Path {
        &self.root
    }
}

impl Bytefile for File {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut read = 0;
        while let Some(rest) = buffer.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match FileExt::read_at(self, rest, at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(fault) if fault.kind() == ErrorKind::Interrupted => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(read)
    }

    fn read_now(&self, buffers: &mut [IoSliceMut<'_>], at: u64) -> io::Result<()> {
        let length = buffers.iter().map(|buffer| buffer.len()).sum();
        match rustix::io::preadv2(self, buffers, at, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == length => Ok(()),
            // A part only: the rest is not in memory, or the file ends here. Who may wait finds out.
            Ok(_) => Err(ErrorKind::WouldBlock.into()),
            // Not every file system can tell.
            Err(rustix::io::Errno::OPNOTSUPP) => Err(ErrorKind::WouldBlock.into()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
