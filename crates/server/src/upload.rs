//! A file that a client sends.

use std::path::{Path, PathBuf};

use axum::body::Body;
use backstitch::code::ErrorCode;
use http_body_util::BodyExt as _;
use tempfile::TempDir;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use crate::limits::BODY_TIME;
use crate::problem::Problem;

/// A file that a client has sent, in a private directory that is removed with it.
pub(crate) struct UploadedFile {
    path: PathBuf,
    _directory: TempDir,
}

impl UploadedFile {
    /// Writes a body to a file, up to a number of bytes.
    pub(crate) async fn receive(mut body: Body, limit: usize) -> Result<Self, Problem> {
        let failed = |error: std::io::Error| {
            Problem::new(ErrorCode::Io, format!("the file cannot be written: {error}"))
        };
        let directory = tempfile::tempdir().map_err(failed)?;
        let path = directory.path().join("upload");
        let mut file = File::create_new(&path).await.map_err(failed)?;
        let mut left = limit;
        loop {
            let Ok(frame) = tokio::time::timeout(BODY_TIME, body.frame()).await else {
                return Err(Problem::invalid("the body did not arrive in time"));
            };
            let Some(frame) = frame else { break };
            let frame = frame.map_err(|_| Problem::invalid("the body is incomplete"))?;
            let Ok(data) = frame.into_data() else { continue };
            left = left.checked_sub(data.len()).ok_or_else(|| {
                Problem::new(ErrorCode::TooLarge, format!("the body is larger than {limit} bytes"))
            })?;
            file.write_all(&data).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok(Self { path, _directory: directory })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
