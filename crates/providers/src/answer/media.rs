//! Media in answers.
//!
//! Bytes become an object that is stored with the answer, and an address stays one. The first bytes decide about the
//! type, then what the server said. Media that cannot be kept is named in words, so that no answer loses a part
//! without a trace.

use backstitch_core::message::{MediaPart, MediaType, MediaUrl, Modality, Part};
use backstitch_core::ports::PolicyAnswer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The maximum length of a MIME type that is kept.
const LONGEST_MIME: usize = 127;

/// Adds media that was sent as base64. `modality` applies if neither the bytes nor the MIME type say what it is.
pub(crate) fn add_bytes(answer: &mut PolicyAnswer, data: &str, mime: Option<&str>, modality: Modality) {
    let mime = mime.filter(|mime| is_mime(mime));
    let modality = mime.map_or(modality, Modality::of_mime);
    let Some(bytes) = decoded(data).filter(|bytes| !bytes.is_empty()) else {
        return answer.parts.push(Part::text(format!("[{modality} that cannot be read]")));
    };
    let known = MediaType::of_bytes(&bytes);
    let (mut media, object) = MediaPart::held(known.map_or(modality, |known| known.modality), bytes);
    media.mime = known.map(|known| known.mime).or(mime).map(str::to_owned);
    answer.parts.push(Part::Media(media));
    answer.objects.push(object);
}

/// Adds media at an address, which may be a `data:` URL that holds it.
pub(crate) fn add_address(answer: &mut PolicyAnswer, address: &str, mime: Option<&str>, modality: Modality) {
    if let Some((head, data)) = address.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        let data_type = head.strip_suffix(";base64");
        return add_bytes(answer, data_type.map_or("", |_| data), data_type.or(mime), modality);
    }
    let mime = mime.filter(|mime| is_mime(mime));
    let modality = mime.map_or(modality, Modality::of_mime);
    answer.parts.push(match MediaUrl::new(address) {
        Ok(url) => {
            let media = MediaPart::new(modality, url);
            Part::Media(MediaPart { mime: mime.map(str::to_owned), ..media })
        }
        // An address that is refused may hold a password.
        Err(_) => Part::text(format!("[{modality} at an address that cannot be used]")),
    });
}

/// Decodes base64. Some servers leave the padding out, and streamed audio is encoded in pieces, each with its own
/// padding.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let data: String = data.split_ascii_whitespace().collect();
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3);
    for piece in data.split_inclusive('=').filter(|piece| *piece != "=") {
        STANDARD_NO_PAD.decode_vec(piece.trim_end_matches('='), &mut bytes).ok()?;
    }
    Some(bytes)
}

fn is_mime(mime: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    mime.len() <= LONGEST_MIME && mime.contains('/') && mime.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_address(address: &str) -> PolicyAnswer {
        let mut answer = PolicyAnswer::default();
        add_address(&mut answer, address, None, Modality::Image);
        answer
    }

    #[test]
    fn bytes_are_decoded_with_and_without_padding_and_in_pieces() {
        for (text, bytes) in [
            ("YWJj", &b"abc"[..]),
            ("YQ==", b"a"),
            ("YQ", b"a"),
            ("YWI=YWJjYQ==YWJj", b"ababcaabc"),
            (" YW\nJj ", b"abc"),
            ("", b""),
        ] {
            assert_eq!(decoded(text).as_deref(), Some(bytes), "{text:?}");
        }
        for wrong in ["Y", "a*b=", "!"] {
            assert_eq!(decoded(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn the_bytes_decide_about_the_type() {
        let mut answer = PolicyAnswer::default();
        // A GIF that is said to be an audio file.
        add_bytes(&mut answer, "R0lGODlhAQ==", Some("audio/wav"), Modality::Document);
        let media = answer.parts[0].as_media().unwrap();
        assert_eq!((media.modality, media.mime.as_deref()), (Modality::Image, Some("image/gif")));
        assert_eq!(media.url.object_id(), Some(answer.objects[0].id()));
        assert_eq!(&**answer.objects[0].bytes(), b"GIF89a\x01");
        add_bytes(&mut answer, "AAAA", Some("audio/L16;codec=pcm;rate=24000"), Modality::Image);
        let media = answer.parts[1].as_media().unwrap();
        assert_eq!(media.modality, Modality::Audio);
        assert_eq!(media.mime.as_deref(), Some("audio/L16;codec=pcm;rate=24000"));
        add_bytes(&mut answer, "AAAA", Some("no type"), Modality::Audio);
        let media = answer.parts[2].as_media().unwrap();
        assert_eq!((media.modality, &media.mime), (Modality::Audio, &None));
    }

    #[test]
    fn what_cannot_be_kept_is_named() {
        for (address, words) in [
            ("data:image/png;base64,***", "[image that cannot be read]"),
            ("data:image/png;base64,", "[image that cannot be read]"),
            ("data:image/png,abc", "[image that cannot be read]"),
            ("data:", "[image at an address that cannot be used]"),
            ("file:///etc/passwd", "[image at an address that cannot be used]"),
            ("https://ada:secret@example.org/a.png", "[image at an address that cannot be used]"),
        ] {
            assert_eq!(of_address(address).parts, [Part::text(words)], "{address}");
        }
        let answer = of_address("https://example.org/a.png");
        assert_eq!(answer.parts[0].as_media().unwrap().url.as_str(), "https://example.org/a.png");
        assert!(answer.objects.is_empty());
        assert_eq!(of_address("data:image/gif;base64,R0lGODlhAQ==").objects.len(), 1);
    }
}
