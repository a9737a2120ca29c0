//! What the runtime and a supervisor send each other.
//!
//! The runtime sends an [`Order`], together with the three standard streams of the process, and then [`GO`] once the
//! supervisor is in the journal. The end of its side asks for the end of all processes. It sends nothing else, except to a
//! supervisor without a process: when calls begin and end.
//! The supervisor sends one [`Report`] per line.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::SystemTime;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, send, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::super::sandbox::Limits;

/// The input on which a supervisor starts the process.
pub(super) const GO: [u8; 3] = *b"go\n";

/// The input on which a supervisor without a process renews its file, because a call may write.
pub(super) const BUSY: [u8; 1] = *b"b";

/// The input on which it stops that.
pub(super) const IDLE: [u8; 1] = *b"i";

/// The number of standard streams.
const STREAMS: usize = 3;

/// The process to start. No part of it holds a NUL byte. Without a program, only the file about the times is kept.
#[derive(Default)]
pub(super) struct Order {
    pub(super) program: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) limits: Option<Limits>,
    /// The beginning of the path of the file about its times. Empty if there is to be none.
    pub(super) times: PathBuf,
    /// The directory whose file system has the clock of these times.
    pub(super) root: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// All variables of the process, except the mark of its group.
    pub(super) environment: Vec<(OsString, OsString)>,
}

/// What a supervisor has done.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The process runs, or the first process of its namespaces. It leads a group of its own.
    Started { process: i32, started: String },
    /// The process was not started, because its limits cannot be applied.
    NotConfined { reason: String },
    /// The process was not started, because the system refused it.
    NotStarted { code: Option<i32>, reason: String },
    /// The process has ended. Its descendants may still run.
    Ended { code: Option<i32>, signal: Option<i32> },
    /// No process is left since this moment.
    Gone { at: SystemTime },
    /// There is no process, and the file about the runtime exists.
    Watching,
}

impl Order {
    /// Sends the order and the streams. Nothing that is sent raises a signal if the supervisor is gone.
    pub(super) fn send(&self, control: &UnixStream, streams: [BorrowedFd<'_>; STREAMS]) -> io::Result<()> {
        let body = self.encode()?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let bytes = [&length.to_le_bytes()[..], &body].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&streams));
        let sent = sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        send_all(control, &bytes[sent..])
    }

    /// Receives an order and the streams.
    pub(super) fn receive(mut control: &UnixStream) -> io::Result<(Self, [OwnedFd; STREAMS])> {
        let mut length = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let parts = &mut [IoSliceMut::new(&mut length)];
        let received = recvmsg(control.as_fd(), parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?.bytes;
        let mut streams = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        let streams = streams.try_into().map_err(|_| invalid("the streams are missing"))?;
        control.read_exact(&mut length[received..])?;
        let mut body = vec![0; u32::from_le_bytes(length) as usize];
        control.read_exact(&mut body)?;
        Ok((Self::decode(&body)?, streams))
    }

    fn encode(&self) -> io::Result<Vec<u8>> {
        let limits = self.limits.as_ref().map(serde_json::to_string).transpose()?.unwrap_or_default();
        let count = self.arguments.len().to_string();
        let first = [
            self.program.as_os_str(),
            self.directory.as_os_str(),
            limits.as_ref(),
            self.times.as_os_str(),
            self.root.as_os_str(),
            count.as_ref(),
        ];
        let mut bytes = Vec::new();
        for part in first.into_iter().chain(self.arguments.iter().map(OsString::as_os_str)) {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        }
        for (name, value) in &self.environment {
            bytes.extend_from_slice(&[name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> io::Result<Self> {
        let body = bytes.strip_suffix(b"\0").ok_or_else(|| invalid("the order has no end"))?;
        let mut parts = body.split(|byte| *byte == 0);
        let mut next = || parts.next().ok_or_else(|| invalid("the order is cut off"));
        let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let (program, directory, limits) = (owned(next()?).into(), owned(next()?).into(), next()?);
        let limits = if limits.is_empty() { None } else { Some(serde_json::from_slice(limits)?) };
        let (times, root) = (owned(next()?).into(), owned(next()?).into());
        let count = OsStr::from_bytes(next()?).to_str().and_then(|count| count.parse().ok());
        let count: usize = count.ok_or_else(|| invalid("the number of arguments is missing"))?;
        let arguments = (0..count).map(|_| next().map(owned)).collect::<io::Result<_>>()?;
        let environment = parts.map(|variable| {
            // A name has at least one character, which may be `=`.
            let end = variable.iter().skip(1).position(|byte| *byte == b'=').map(|end| end + 1);
            let end = end.ok_or_else(|| invalid("a variable has no value"))?;
            Ok((owned(&variable[..end]), owned(&variable[end + 1..])))
        });
        let environment = environment.collect::<io::Result<_>>()?;
        Ok(Self { program, directory, limits, times, root, arguments, environment })
    }
}

impl Report {
    /// Sends the report. A runtime that is gone receives nothing.
    pub(super) fn send(&self, control: &UnixStream) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let _ = send_all(control, &line);
        }
    }
}

/// Sends bytes, without a signal if the other side is gone.
pub(super) fn send_all(control: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(control, bytes, SendFlags::NOSIGNAL) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_with_its_streams_whatever_its_size() {
        let odd = OsString::from_vec(vec![0xff, b'=', b'\n']);
        for count in [0, 1, 20_000] {
            let order = || Order {
                program: "/bin/echo".into(),
                directory: "/".into(),
                limits: None,
                times: "/own/calls/session/call-1".into(),
                root: "/work".into(),
                arguments: (0..count).flat_map(|_| [odd.clone(), OsString::new(), "a b".into()]).collect(),
                environment: vec![
                    ("A".into(), "".into()),
                    ("B".into(), odd.clone()),
                    ("=C".into(), "1".into()),
                ],
            };
            let (near, far) = UnixStream::pair().unwrap();
            let (reader, writer) = io::pipe().unwrap();
            let (received, streams) = std::thread::scope(|scope| {
                scope
                    .spawn(|| order().send(&near, [writer.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap());
                Order::receive(&far).unwrap()
            });
            assert_eq!(received.encode().unwrap(), order().encode().unwrap());
            assert_eq!(received.environment, order().environment);
            rustix::io::write(&streams[2], b"heard").unwrap();
            drop((streams, writer));
            assert_eq!(io::read_to_string(reader).unwrap(), "heard");
        }
    }

    #[test]
    fn a_damaged_order_is_refused() {
        for bytes in [
            &b""[..],
            b"x",
            b"/p\0/\0\0",
            b"/p\0/\0\0\0\0x\0",
            b"/p\0/\0\0\0\x002\0a\0",
            b"/p\0/\0\0\0\x000\0A\0",
        ] {
            assert!(Order::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
