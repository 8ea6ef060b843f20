//! The disk as FUSE asks for it.

use std::{
    ffi::OsStr,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::state::{BLOCK, File, Node, State};

/// Nothing is remembered by the kernel: what it remembered would outlive a power cut.
const TTL: Duration = Duration::ZERO;
/// What the disk says it holds, in blocks.
const BLOCKS: u64 = (64 << 30) / BLOCK;

/// One disk, answered from its state.
pub struct Files(Arc<Mutex<State>>);

impl Files {
    pub fn new(state: Arc<Mutex<State>>) -> Self {
        Files(state)
    }

    /// The state, as long as there is power.
    fn read(&self) -> Result<MutexGuard<'_, State>, Errno> {
        let state = self.0.lock().expect("no operation panics");
        match state.is_off() {
            true => Err(Errno::EIO),
            false => Ok(state),
        }
    }

    /// The state for one change, as long as there is power for it.
    fn change(&self) -> Result<MutexGuard<'_, State>, Errno> {
        let mut state = self.0.lock().expect("no operation panics");
        match state.may_change() {
            true => Ok(state),
            false => Err(Errno::EIO),
        }
    }

    fn add(&self, parent: INodeNo, name: &OsStr, node: Node) -> Result<FileAttr, Errno> {
        let mut state = self.change()?;
        if state.folder(parent.0).is_none() {
            return Err(Errno::ENOENT);
        }
        if state.lookup(parent.0, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let number = state.create(parent.0, name, node);
        attributes(&state, number)
    }

    fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Errno> {
        let mut state = self.change()?;
        let number = state.lookup(parent.0, name).ok_or(Errno::ENOENT)?;
        if state.folder(number).is_some_and(|names| !names.is_empty()) {
            return Err(Errno::ENOTEMPTY);
        }
        state.remove(parent.0, name);
        Ok(())
    }

    fn with_file<T>(
        &self,
        number: INodeNo,
        change: impl FnOnce(&mut File) -> T,
    ) -> Result<T, Errno> {
        let mut state = self.change()?;
        state.file(number.0).map(change).ok_or(Errno::ENOENT)
    }
}

fn attributes(state: &State, number: u64) -> Result<FileAttr, Errno> {
    let (kind, size, perm) = match state.node(number).ok_or(Errno::ENOENT)? {
        Node::File(file) => (FileType::RegularFile, file.size(), 0o640),
        Node::Folder(_) => (FileType::Directory, 0, 0o750),
    };
    // SAFETY: neither call can fail or touch memory.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    Ok(FileAttr {
        ino: INodeNo(number),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid,
        gid,
        rdev: 0,
        blksize: BLOCK as u32,
        flags: 0,
    })
}

/// Answers with what a closure brings, or its error.
macro_rules! answer {
    ($reply:ident, $outcome:expr, $done:expr) => {
        match $outcome {
            Ok(value) => $done(value),
            Err(error) => $reply.error(error),
        }
    };
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self.read().and_then(|state| {
            let number = state.lookup(parent.0, name).ok_or(Errno::ENOENT)?;
            attributes(&state, number)
        });
        answer!(reply, found, |found| reply.entry(
            &TTL,
            &found,
            Generation(0)
        ));
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let found = self.read().and_then(|state| attributes(&state, number.0));
        answer!(reply, found, |found| reply.attr(&TTL, &found));
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let done = self.change().and_then(|mut state| {
            if let (Some(size), Some(file)) = (size, state.file(number.0)) {
                file.set_size(size);
            }
            attributes(&state, number.0)
        });
        answer!(reply, done, |found| reply.attr(&TTL, &found));
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        let made = self.add(parent, name, Node::Folder(Default::default()));
        answer!(reply, made, |made| reply.entry(&TTL, &made, Generation(0)));
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.add(parent, name, Node::File(File::default()));
        answer!(reply, made, |made| reply.created(
            &TTL,
            &made,
            Generation(0),
            FileHandle(0),
            FopenFlags::FOPEN_DIRECT_IO
        ));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name), |()| reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer!(reply, self.remove(parent, name), |()| reply.ok());
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to_parent: INodeNo,
        to_name: &OsStr,
        _flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let done = self.change().and_then(|mut state| {
            state.lookup(parent.0, name).ok_or(Errno::ENOENT)?;
            state.rename((parent.0, name), (to_parent.0, to_name));
            Ok(())
        });
        answer!(reply, done, |()| reply.ok());
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let opened = match flags.0 & libc::O_TRUNC {
            0 => self.read().map(drop),
            _ => self.with_file(number, |file| file.set_size(0)),
        };
        answer!(reply, opened, |()| reply
            .opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO));
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        at: u64,
        length: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = self.read().and_then(|mut state| {
            let file = state.file(number.0).ok_or(Errno::ENOENT)?;
            Ok(file.read(at, length.into()))
        });
        answer!(reply, bytes, |bytes: Vec<u8>| reply.data(&bytes));
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        at: u64,
        bytes: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let durable = flags.0 & libc::O_DSYNC != 0;
        let done = self.with_file(number, |file| file.write(at, bytes, durable));
        answer!(reply, done, |()| reply.written(bytes.len() as u32));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer!(reply, self.with_file(number, File::sync), |()| reply.ok());
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let done = self.change().map(|mut state| state.sync_folder(number.0));
        answer!(reply, done, |()| reply.ok());
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listed = self.read().and_then(|state| {
            let names = state.folder(number.0).ok_or(Errno::ENOTDIR)?;
            for (next, (name, child)) in (1..).zip(names).skip(offset as usize) {
                let kind = match state.node(*child) {
                    Some(Node::Folder(_)) => FileType::Directory,
                    _ => FileType::RegularFile,
                };
                if reply.add(INodeNo(*child), next, kind, name) {
                    break;
                }
            }
            Ok(())
        });
        answer!(reply, listed, |()| reply.ok());
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(
            BLOCKS,
            BLOCKS,
            BLOCKS,
            0,
            0,
            BLOCK as u32,
            255,
            BLOCK as u32,
        );
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = match mode {
            0 => self.with_file(number, |file| file.reserve(offset + length)),
            libc::FALLOC_FL_KEEP_SIZE => self.change().map(drop),
            _ => Err(Errno::EOPNOTSUPP),
        };
        answer!(reply, done, |()| reply.ok());
    }
}
