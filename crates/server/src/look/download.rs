//! Routes that return files: a session as a bundle or a document, and media of messages.

use axum::body::Body;
use axum::response::Response;
use backstitch::code::ErrorCode;
use backstitch::message::{MediaPart, MediaUrl, Modality};
use backstitch::object::ObjectId;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use tempfile::TempDir;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;

use crate::problem::Problem;
use crate::table::{Answer, Call, NoFields, Route};

/// The type of all files: no browser shows or runs them.
const BYTES: &str = "application/octet-stream";

/// How much of a file is read at a time.
const PIECE: usize = 64 * 1024;

/// Which form a session has.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// bundle or markdown. By default, bundle.
    format: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/sessions/{session}/export",
            "Return a session as a bundle or as Markdown",
            Answer::Other(BYTES),
            export,
        ),
        Route::get(
            "/api/v1/sessions/{session}/media/{object}",
            "Return media of a message",
            Answer::Other(BYTES),
            media,
        ),
    ]
}

async fn export(call: Call<ExportQuery>) -> Result<Response, Problem> {
    let work = call.state.reading.clone();
    match call.query.format.as_deref() {
        None | Some("bundle") => {
            let (file, length, directory, name) = work.run(bundle(call)).await?;
            let mut response = Response::new(Body::from_stream(pieces(file, directory)));
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
            Ok(as_file(response, &name))
        }
        Some("markdown") => {
            let exported =
                work.run(async move { Ok(call.runtime().export_markdown(call.session().await?).await?) });
            let exported = exported.await?;
            let name = format!("{}.md", exported.session);
            Ok(as_file(Response::new(Body::from(exported.markdown)), &name))
        }
        Some(_) => Err(Problem::invalid("`format` is bundle or markdown")),
    }
}

/// Writes a bundle to a private directory, which is removed when it was sent.
async fn bundle(call: Call<ExportQuery>) -> Result<(File, u64, TempDir, String), Problem> {
    let session = call.session().await?;
    let failed =
        |error: std::io::Error| Problem::new(ErrorCode::Io, format!("the bundle cannot be written: {error}"));
    let directory = tempfile::tempdir().map_err(failed)?;
    let path = directory.path().join("bundle");
    let exported = call.runtime().export(session, &path, &mut |_| {}).await?;
    let file = File::open(&path).await.map_err(failed)?;
    Ok((file, exported.bytes, directory, format!("{session}.bundle")))
}

/// Reads a file piece by piece, as fast as the client takes them.
fn pieces(file: File, directory: TempDir) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> {
    stream::try_unfold((file, directory), |(mut file, directory)| async move {
        let mut piece = BytesMut::with_capacity(PIECE);
        let read = file.read_buf(&mut piece).await?;
        Ok((read > 0).then(|| (piece.freeze(), (file, directory))))
    })
}

async fn media(call: Call<NoFields>) -> Result<Response, Problem> {
    let work = call.state.reading.clone();
    let bytes = work.run(async move {
        let object: ObjectId = call
            .part("object")
            .parse()
            .map_err(|_| Problem::invalid("the id of an object has 40 hexadecimal digits"))?;
        // The session has to exist.
        call.view().await?;
        let part = MediaPart::new(Modality::Image, MediaUrl::blob(object));
        let found = call.runtime().media(&part).await?;
        found.ok_or_else(|| {
            Problem::new(ErrorCode::ObjectMissing, "there is no such media, or it was redacted")
        })
    });
    let bytes = Bytes::copy_from_slice(&bytes.await?);
    Ok(as_file(Response::new(Body::from(bytes)), "media"))
}

fn as_file(mut response: Response, name: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(BYTES));
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    if let Ok(disposition) = disposition {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    response
}
