//! Types of media: by the first bytes, or by a declared MIME type.
//!
//! Names of files and declared types may be wrong, so the bytes decide where they are available. Bytes of another
//! kind have no type; it is never guessed.

use super::Modality;

/// The type of the bytes of a media item.
///
/// ```
/// use backstitch_core::message::{MediaType, Modality};
///
/// let kind = MediaType::of_bytes(b"GIF89a...").unwrap();
/// assert_eq!((kind.modality, kind.mime), (Modality::Image, "image/gif"));
/// assert_eq!(MediaType::of_bytes(b"# A plain text"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaType {
    /// How a model perceives it.
    pub modality: Modality,
    /// Its MIME type.
    pub mime: &'static str,
}

impl MediaType {
    /// Returns the type of bytes by their beginning; `None` if it is not known.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (modality, mime) = match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => (Modality::Image, "image/png"),
            [0xff, 0xd8, 0xff, ..] => (Modality::Image, "image/jpeg"),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => (Modality::Image, "image/gif"),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
                (Modality::Image, "image/webp")
            }
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => {
                (Modality::Audio, "audio/wav")
            }
            [b'I', b'D', b'3', ..] | [0xff, 0xfb | 0xf3 | 0xf2, ..] => (Modality::Audio, "audio/mpeg"),
            [_, _, _, _, b'f', b't', b'y', b'p', brand @ ..] if !is_image(brand) => {
                (Modality::Video, "video/mp4")
            }
            [b'%', b'P', b'D', b'F', b'-', ..] => (Modality::Document, "application/pdf"),
            _ => return None,
        };
        Some(Self { modality, mime })
    }
}

/// Whether the brand of an ISO media file is one of images, such as HEIC and AVIF.
fn is_image(brand: &[u8]) -> bool {
    const IMAGES: [&[u8]; 6] = [b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis"];
    IMAGES.iter().any(|image| brand.starts_with(image))
}

impl Modality {
    /// Returns the modality of a MIME type. What is neither image, audio nor video is a document.
    pub fn of_mime(mime: &str) -> Self {
        match mime.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            Some("video") => Self::Video,
            _ => Self::Document,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_the_first_bytes() {
        let known: [(&[u8], &str); 10] = [
            (b"\x89PNG\r\n\x1a\n\0", "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF87a", "image/gif"),
            (b"GIF89a", "image/gif"),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
            (b"RIFF\x01\x02\x03\x04WAVEfmt ", "audio/wav"),
            (b"ID3\x04", "audio/mpeg"),
            (b"\xff\xfb\x90", "audio/mpeg"),
            (b"\0\0\0\x18ftypmp42", "video/mp4"),
            (b"%PDF-1.7", "application/pdf"),
        ];
        for (bytes, mime) in known {
            let found = MediaType::of_bytes(bytes).unwrap();
            assert_eq!(found.mime, mime);
            assert_eq!(found.modality, Modality::of_mime(mime), "{mime}");
            // Every shorter beginning is of this type or of none.
            for end in 0..bytes.len() {
                assert!(MediaType::of_bytes(&bytes[..end]).is_none_or(|kind| kind == found), "{mime} {end}");
            }
        }
    }

    #[test]
    fn other_bytes_have_no_type() {
        for bytes in [&b""[..], b"GIF", b"GIF88a", b"RIFF", b"\x89PNG", b"\0\0\0\x18ftypheic", b"PK\x03\x04"]
        {
            assert_eq!(MediaType::of_bytes(bytes), None, "{bytes:?}");
        }
    }
}
